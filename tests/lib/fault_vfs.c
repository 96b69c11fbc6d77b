/*
 * fault_vfs.c: a SQLite file system layer that can fail, refuse locks, record what was synced, and
 * lose what was not. It is on top of the default layer, so the files are real.
 */
#include "tests/lib/fault_vfs.h"

#include "base/mem.h"
#include "tests/lib/fault.h"
#include "tests/lib/power.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct shim_file {
    sqlite3_file base;
    sqlite3_file *real; /* the default layer's file, in the bytes behind this struct */
    const char *name;
    /* true: the first sync of this file also syncs its directory, because the file was created */
    bool names_too;
};

static sqlite3_vfs *system_vfs;
static bool is_quiet;
static uint64_t points;
static fault_vfs_hook_fn *hook;
static void *hook_arg;

void fault_vfs_quiet(bool quiet)
{
    is_quiet = quiet;
}

void fault_vfs_set_hook(fault_vfs_hook_fn *new_hook, void *arg)
{
    hook = new_hook;
    hook_arg = arg;
    points = 0;
}

/* Counts the step that is about to be done. true: the step must fail. */
static bool point(const char *what)
{
    if (is_quiet)
        return false;
    points++;
    if (hook)
        hook(hook_arg, points, what);
    return fault_now(FAULT_STORE);
}

static sqlite3_file *real_of(sqlite3_file *file)
{
    return ((struct shim_file *)(void *)file)->real;
}

static int shim_close(sqlite3_file *file)
{
    return real_of(file)->pMethods->xClose(real_of(file));
}

static int shim_read(sqlite3_file *file, void *bytes, int length, sqlite3_int64 offset)
{
    return real_of(file)->pMethods->xRead(real_of(file), bytes, length, offset);
}

/* Tells power.h the bytes that a change is about to overwrite. */
static void note_bytes(sqlite3_file *file, int64_t offset, int64_t length)
{
    struct shim_file *shim = (struct shim_file *)(void *)file;
    sqlite3_int64 size = 0;
    int64_t had;
    char *old;

    if (!power_is_on() || !shim->name)
        return;
    if (shim->real->pMethods->xFileSize(shim->real, &size))
        abort();
    had = offset >= size ? 0 : offset + length > size ? size - offset : length;
    old = mem_alloc((size_t)had);
    if (!old || (had && shim->real->pMethods->xRead(shim->real, old, (int)had, offset)))
        abort();
    power_note_bytes(shim->name, offset, length, old, (size_t)had);
    mem_free(old);
}

static int shim_write(sqlite3_file *file, const void *bytes, int length, sqlite3_int64 offset)
{
    sqlite3_file *real = real_of(file);

    if (point("write")) {
        (void)real->pMethods->xWrite(real, bytes, length / 2, offset);
        return fault_count(FAULT_STORE) % 2 ? SQLITE_FULL : SQLITE_IOERR_WRITE;
    }
    note_bytes(file, offset, length);
    return real->pMethods->xWrite(real, bytes, length, offset);
}

static int shim_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    sqlite3_int64 before = size;

    if (point("truncate"))
        return SQLITE_IOERR_TRUNCATE;
    (void)real_of(file)->pMethods->xFileSize(real_of(file), &before);
    if (before > size)
        note_bytes(file, size, before - size);
    return real_of(file)->pMethods->xTruncate(real_of(file), size);
}

static int shim_sync(sqlite3_file *file, int flags)
{
    struct shim_file *shim = (struct shim_file *)(void *)file;

    if (point("sync"))
        return SQLITE_IOERR_FSYNC;
    if (power_is_on() && shim->name) {
        power_synced(shim->name);
        if (shim->names_too)
            power_synced_directory();
        shim->names_too = false;
    }
    return real_of(file)->pMethods->xSync(real_of(file), flags);
}

static int shim_file_size(sqlite3_file *file, sqlite3_int64 *ret_size)
{
    return real_of(file)->pMethods->xFileSize(real_of(file), ret_size);
}

static int shim_lock(sqlite3_file *file, int level)
{
    return real_of(file)->pMethods->xLock(real_of(file), level);
}

static int shim_unlock(sqlite3_file *file, int level)
{
    return real_of(file)->pMethods->xUnlock(real_of(file), level);
}

static int shim_check_reserved_lock(sqlite3_file *file, int *ret_held)
{
    return real_of(file)->pMethods->xCheckReservedLock(real_of(file), ret_held);
}

static int shim_file_control(sqlite3_file *file, int op, void *arg)
{
    return real_of(file)->pMethods->xFileControl(real_of(file), op, arg);
}

static int shim_sector_size(sqlite3_file *file)
{
    return real_of(file)->pMethods->xSectorSize(real_of(file));
}

static int shim_device_characteristics(sqlite3_file *file)
{
    return real_of(file)->pMethods->xDeviceCharacteristics(real_of(file));
}

static int shim_shm_map(sqlite3_file *file, int page, int bytes, int extend, void volatile **ret)
{
    if (extend && point("map"))
        return SQLITE_IOERR_SHMMAP;
    return real_of(file)->pMethods->xShmMap(real_of(file), page, bytes, extend, ret);
}

static int shim_shm_lock(sqlite3_file *file, int offset, int count, int flags)
{
    return real_of(file)->pMethods->xShmLock(real_of(file), offset, count, flags);
}

static void shim_shm_barrier(sqlite3_file *file)
{
    real_of(file)->pMethods->xShmBarrier(real_of(file));
}

static int shim_shm_unmap(sqlite3_file *file, int delete)
{
    return real_of(file)->pMethods->xShmUnmap(real_of(file), delete);
}

/* Version 2 has no memory-mapped reading, which would not pass through this layer. */
static const sqlite3_io_methods shim_methods = {
    .iVersion = 2,
    .xClose = shim_close,
    .xRead = shim_read,
    .xWrite = shim_write,
    .xTruncate = shim_truncate,
    .xSync = shim_sync,
    .xFileSize = shim_file_size,
    .xLock = shim_lock,
    .xUnlock = shim_unlock,
    .xCheckReservedLock = shim_check_reserved_lock,
    .xFileControl = shim_file_control,
    .xSectorSize = shim_sector_size,
    .xDeviceCharacteristics = shim_device_characteristics,
    .xShmMap = shim_shm_map,
    .xShmLock = shim_shm_lock,
    .xShmBarrier = shim_shm_barrier,
    .xShmUnmap = shim_shm_unmap,
};

/* Opens a file of the default layer; a new file's name is noted for power.h. */
static int shim_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags,
                     int *ret_flags)
{
    struct shim_file *shim = (struct shim_file *)(void *)file;
    bool creates = (flags & SQLITE_OPEN_CREATE) && name && access(name, F_OK);
    int rc;

    (void)vfs;
    file->pMethods = NULL;
    shim->real = (sqlite3_file *)(void *)(shim + 1);
    shim->name = name;
    shim->names_too = creates && (flags & (SQLITE_OPEN_WAL | SQLITE_OPEN_MAIN_JOURNAL));
    if (creates && point("create"))
        return SQLITE_CANTOPEN;
    rc = system_vfs->xOpen(system_vfs, name, shim->real, flags, ret_flags);
    if (shim->real->pMethods)
        file->pMethods = &shim_methods;
    if (creates && rc == SQLITE_OK && power_is_on())
        power_note_created(name);
    return rc;
}

static int shim_delete(sqlite3_vfs *vfs, const char *name, int sync_directory)
{
    int rc;
    static char bytes[4 * 1024 * 1024];
    FILE *file;
    size_t length;

    (void)vfs;
    if (point("delete"))
        return SQLITE_IOERR_DELETE;
    file = power_is_on() ? fopen(name, "rb") : NULL;
    if (file) {
        length = fread(bytes, 1, sizeof(bytes), file);
        if (length == sizeof(bytes))
            abort();
        fclose(file);
        power_note_deleted(name, bytes, length);
    }
    rc = system_vfs->xDelete(system_vfs, name, sync_directory);
    if (sync_directory && power_is_on())
        power_synced_directory();
    return rc;
}

void fault_vfs_use(void)
{
    static sqlite3_vfs shim;

    if (sqlite3_vfs_find(FAULT_VFS))
        return;
    system_vfs = sqlite3_vfs_find("unix");
    if (!system_vfs)
        abort();
    shim = *system_vfs;
    shim.zName = FAULT_VFS;
    shim.szOsFile = (int)sizeof(struct shim_file) + system_vfs->szOsFile;
    shim.xOpen = shim_open;
    shim.xDelete = shim_delete;
    if (sqlite3_vfs_register(&shim, 0))
        abort();
}

/* rename() and fsync() of the product, by the linker's --wrap. */
int __real_rename(const char *from, const char *to);
int __wrap_rename(const char *from, const char *to);
int __real_fsync(int fd);
int __wrap_fsync(int fd);

int __wrap_rename(const char *from, const char *to)
{
    if (point("rename")) {
        errno = fault_count(FAULT_STORE) % 2 ? ENOSPC : EIO;
        return -1;
    }
    if (power_is_on())
        power_note_renamed(from, to);
    return __real_rename(from, to);
}

int __wrap_fsync(int fd)
{
    if (point("fsync")) {
        errno = fault_count(FAULT_STORE) % 2 ? ENOSPC : EIO;
        return -1;
    }
    if (power_is_on()) {
        char link[64];
        char name[4096];
        struct stat st;
        ssize_t length;

        snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
        length = readlink(link, name, sizeof(name) - 1);
        if (length < 0 || fstat(fd, &st))
            abort();
        name[length] = '\0';
        if (S_ISDIR(st.st_mode))
            power_synced_directory();
        else
            power_synced(name);
    }
    return __real_fsync(fd);
}

/* Each block begins with its size, for which SQLite asks. */
#define SIZE_BYTES 16

static void *memory_alloc(int bytes)
{
    char *block = mem_alloc((size_t)bytes + SIZE_BYTES);

    if (!block)
        return NULL;
    memcpy(block, &bytes, sizeof(bytes));
    return block + SIZE_BYTES;
}

static void memory_free(void *block)
{
    mem_free(block ? (char *)block - SIZE_BYTES : NULL);
}

static void *memory_resize(void *block, int bytes)
{
    char *resized = mem_resize((char *)block - SIZE_BYTES, (size_t)bytes + SIZE_BYTES);

    if (!resized)
        return NULL;
    memcpy(resized, &bytes, sizeof(bytes));
    return resized + SIZE_BYTES;
}

static int memory_size(void *block)
{
    int bytes = 0;

    if (block)
        memcpy(&bytes, (char *)block - SIZE_BYTES, sizeof(bytes));
    return bytes;
}

static int memory_round_up(int bytes)
{
    return (bytes + 7) & ~7;
}

static int memory_init(void *arg)
{
    (void)arg;
    return SQLITE_OK;
}

static void memory_shut_down(void *arg)
{
    (void)arg;
}

void fault_vfs_route_memory(void)
{
    static const sqlite3_mem_methods methods = {
        memory_alloc,    memory_free, memory_resize,    memory_size,
        memory_round_up, memory_init, memory_shut_down, NULL,
    };

    if (sqlite3_config(SQLITE_CONFIG_MALLOC, &methods))
        abort();
}

void fault_vfs_shut_down(void)
{
    if (sqlite3_shutdown())
        abort();
}
