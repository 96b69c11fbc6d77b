/*
 * storage_dir.c: checkpoints in a directory, which several hosts may share. Called through the
 * table of storage_internal.h. All names are looked up from the descriptor of the directory, and no
 * link is followed below it. Invariant: a name belongs only to a whole object: bytes go to a file
 * with another name, which is synced, renamed, and made durable by a sync of its folder and of the
 * directory.
 *
 * The bytes of a large object bypass the page cache (O_DIRECT): a write so costs a third of the
 * processor time, nothing is written behind the back of a caller that pauses, and the training
 * keeps its files in the cache. Direct writes need aligned memory, so the bytes go through a block.
 */
#include "base/mem.h"
#include "os/remedy.h"
#include "state/checkpoint/storage_internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define FOLDER_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
#define SUFFIX_MAX   40 /* most bytes of a dot, 16 digits and the suffix of a temporary name */

/* The bytes of one direct write. A disk is fast with writes of this size, and the block may stay in
 * a processor's cache. Smaller objects are not written directly. */
#ifndef STORAGE_BLOCK_BYTES /* smaller in tests/crash, so that its objects are written directly */
#define STORAGE_BLOCK_BYTES ((size_t)4 << 20)
#endif
#define BLOCK_ALIGN 4096 /* suffices for all usual disks */

struct checkpoint_dir {
    struct checkpoint_store base;
    int fd; /* the directory itself */
    /* The file of the last read stays open, so that a file that is read in pieces is opened
     * once. */
    int read_fd;
    char read_name[LIMIT_CHECKPOINT_NAME_BYTES + 1];
};

struct checkpoint_dir_object {
    struct checkpoint_object base;
    int folder;      /* the descriptor of the object's folder */
    int fd;          /* the file, while it has its temporary name */
    char *temporary; /* the name in the folder, until the rename */
    char *block;     /* bytes for the next direct write; NULL: bytes are written as they come */
    size_t used;     /* bytes in the block */
    void *memory;    /* the allocation in which the block lies */
};

/* Returns the struct of this file whose first member is `storage`. */
static struct checkpoint_dir *dir_of(struct checkpoint_store *storage)
{
    return CONTAINER_OF(storage, struct checkpoint_dir, base);
}

/* Sets the error of a system call that has failed with the errno `number` on "DIRECTORY/NAME".
 * `doing` says what was tried. */
static int dir_failed(const struct checkpoint_store *storage, const char *name, const char *doing,
                      int number, struct hvd_err *err)
{
    char path[LIMIT_PATH_BYTES + LIMIT_CHECKPOINT_NAME_BYTES + 2];

    snprintf(path, sizeof(path), "%s%s%s", storage->where, *name ? "/" : "", name);
    if (number == ELOOP)
        return err_set(err, HVD_E_DENIED,
                       "%s: %s: the path is a symbolic link; replace the link by the file itself",
                       path, doing);
    if (number == ESTALE)
        return err_set(err, HVD_E_IO,
                       "%s: %s: the file system has lost this file (stale file handle); mount the "
                       "file system again",
                       path, doing);
    return remedy_set(err, path, doing, number);
}

/* Returns the part of the name after the folder. */
static const char *name_in_folder(const char *name)
{
    const char *slash = strchr(name, '/');

    return slash ? slash + 1 : name;
}

/* Opens the folder in which the object of this name lies. make: a missing folder is made. Returns
 * -1 on failure, with the reason in errno. */
static int open_folder_of(const struct checkpoint_dir *dir, const char *name, bool make)
{
    size_t length = (size_t)(name_in_folder(name) - name);
    char folder[LIMIT_CHECKPOINT_NAME_BYTES + 1];

    if (!length)
        return fcntl(dir->fd, F_DUPFD_CLOEXEC, 0);
    memcpy(folder, name, length - 1);
    folder[length - 1] = '\0';
    if (make && mkdirat(dir->fd, folder, 0700) && errno != EEXIST)
        return -1;
    return openat(dir->fd, folder, FOLDER_FLAGS);
}

/* Closes the directory, and the file of the last read. */
static void dir_close(struct checkpoint_store *storage)
{
    struct checkpoint_dir *dir = dir_of(storage);

    if (dir->read_fd >= 0)
        close(dir->read_fd);
    if (dir->fd >= 0)
        close(dir->fd);
    mem_free(dir->base.where);
    mem_free(dir);
}

/* Frees an object. If its file is still open, the file has not got its name, and is removed; after
 * dir_finish nothing is removed. */
static void dir_abandon(struct checkpoint_object *base)
{
    struct checkpoint_dir_object *object = CONTAINER_OF(base, struct checkpoint_dir_object, base);

    if (object->fd >= 0) {
        close(object->fd);
        (void)unlinkat(object->folder, object->temporary, 0);
    }
    if (object->folder >= 0)
        close(object->folder);
    mem_free(object->temporary);
    mem_free(object->memory);
    mem_free(object);
}

/* Begins direct writes (O_DIRECT) of a large object. A file system without them, and a lack of
 * memory, are no errors: the bytes then go through the page cache. */
static void dir_begin_direct(struct checkpoint_dir_object *object, uint64_t bytes)
{
    int flags = bytes < STORAGE_BLOCK_BYTES ? -1 : fcntl(object->fd, F_GETFL);

    if (flags < 0)
        return;
    object->memory = mem_alloc(STORAGE_BLOCK_BYTES + BLOCK_ALIGN);
    if (!object->memory || fcntl(object->fd, F_SETFL, flags | O_DIRECT))
        return;
    object->block = (char *)object->memory + BLOCK_ALIGN - (uintptr_t)object->memory % BLOCK_ALIGN;
}

/* Ends direct writes, so that the next write goes through the page cache. false: the writes were
 * not direct. */
static bool dir_end_direct(const struct checkpoint_dir_object *object)
{
    int flags = fcntl(object->fd, F_GETFL);

    return flags >= 0 && flags & O_DIRECT && !fcntl(object->fd, F_SETFL, flags & ~O_DIRECT);
}

/* Begins a file with a temporary name, which no other writer uses, and asks for the space of the
 * whole file. */
static int dir_create(struct checkpoint_store *storage, const char *name, uint64_t bytes,
                      struct checkpoint_object **ret_object, struct hvd_err *err)
{
    struct checkpoint_dir *dir = dir_of(storage);
    struct checkpoint_dir_object *object = mem_zalloc(sizeof(*object));
    size_t room = strlen(name) + SUFFIX_MAX;
    uint64_t random = 0;
    int number; /* the errno of a failure; 0: none */

    if (object) {
        object->folder = object->fd = -1;
        object->temporary = mem_alloc(room);
    }
    if (!object || !object->temporary) {
        mem_free(object);
        return err_set(err, HVD_E_NOMEM,
                       "%s/%s: no memory to write this file; free memory on this host",
                       storage->where, name);
    }
    /* Several hosts may write an object of one name at the same time, so its temporary name is
     * random. */
    if (getrandom(&random, sizeof(random), 0) != sizeof(random))
        random = (uint64_t)getpid();
    snprintf(object->temporary, room, ".%s.%016" PRIx64 CHECKPOINT_UNFINISHED, name_in_folder(name),
             random);
    object->folder = open_folder_of(dir, name, true /* make the folder */);
    if (object->folder >= 0)
        object->fd = openat(object->folder, object->temporary,
                            O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    number = object->fd < 0 ? errno : 0;
    /* Space for the whole file is asked for, without a change of its size. Not all file systems can
     * do so: only a lack of space is an error. */
    if (!number && bytes > 0 && bytes <= INT64_MAX &&
        TEMP_FAILURE_RETRY(fallocate(object->fd, FALLOC_FL_KEEP_SIZE, 0, (off_t)bytes)) &&
        (errno == ENOSPC || errno == EDQUOT || errno == EFBIG))
        number = errno;
    if (!number) {
        dir_begin_direct(object, bytes);
        *ret_object = &object->base;
        return 0;
    }
    dir_abandon(&object->base);
    return dir_failed(storage, name, "cannot write it", number, err);
}

/* Writes all these bytes to the file. A disk with larger sectors, or the rest of a write that was
 * cut short, refuses a direct write (EINVAL): the page cache takes the bytes from there on. */
static int dir_write_out(struct checkpoint_dir_object *object, const char *next, size_t bytes,
                         struct hvd_err *err)
{
    while (bytes > 0) {
        ssize_t wrote = TEMP_FAILURE_RETRY(write(object->fd, next, bytes));

        if (wrote < 0 && errno == EINVAL && dir_end_direct(object))
            continue;
        if (wrote <= 0)
            return dir_failed(object->base.storage, object->base.name, "cannot write it",
                              wrote ? errno : ENOSPC, err);
        next += wrote;
        bytes -= (size_t)wrote;
    }
    return 0;
}

/* Writes the next bytes of the object: through the block, if the writes are direct, else as they
 * come. */
static int dir_write(struct checkpoint_object *base, const void *at, size_t bytes,
                     struct hvd_err *err)
{
    struct checkpoint_dir_object *object = CONTAINER_OF(base, struct checkpoint_dir_object, base);
    const char *next = at;

    if (!object->block)
        return dir_write_out(object, next, bytes, err);
    while (bytes > 0) {
        size_t room = STORAGE_BLOCK_BYTES - object->used;
        size_t now = bytes < room ? bytes : room;
        int rc = 0;

        memcpy(object->block + object->used, next, now);
        object->used += now;
        if (object->used == STORAGE_BLOCK_BYTES) {
            rc = dir_write_out(object, object->block, STORAGE_BLOCK_BYTES, err);
            object->used = 0;
        }
        if (rc)
            return rc;
        next += now;
        bytes -= now;
    }
    return 0;
}

/* Gives the object its name. The bytes that are left in the block go through the page cache,
 * because O_DIRECT writes only whole blocks. A file system may report a failed write only at the
 * sync or at the close. The directory is synced too, because the object's folder may be new. */
static int dir_finish(struct checkpoint_object *base, struct hvd_err *err)
{
    struct checkpoint_dir_object *object = CONTAINER_OF(base, struct checkpoint_dir_object, base);
    struct checkpoint_store *storage = base->storage;
    int number, rc;

    (void)dir_end_direct(object);
    rc = dir_write_out(object, object->block, object->used, err);
    if (rc) {
        dir_abandon(base);
        return rc;
    }
    number = fsync(object->fd) ? errno : 0;
    if (close(object->fd) && !number && errno != EINTR)
        number = errno;
    object->fd = -1;
    if (!number &&
        renameat(object->folder, object->temporary, object->folder, name_in_folder(base->name)))
        number = errno;
    if (number)
        (void)unlinkat(object->folder, object->temporary, 0);
    else if (fsync(object->folder) || fsync(dir_of(storage)->fd))
        number = errno;
    if (number)
        rc = dir_failed(storage, base->name, "cannot write it", number, err);
    dir_abandon(base);
    return rc;
}

/* Gives the size of a file; a link or a folder is an error. */
static int dir_size(struct checkpoint_store *storage, const char *name, uint64_t *ret_bytes,
                    struct hvd_err *err)
{
    struct stat st = { .st_size = 0 };
    int folder = open_folder_of(dir_of(storage), name, false /* make no folder */);
    int number = 0;

    if (folder < 0 || fstatat(folder, name_in_folder(name), &st, AT_SYMLINK_NOFOLLOW))
        number = errno;
    else if (!S_ISREG(st.st_mode))
        number = S_ISLNK(st.st_mode) ? ELOOP : EINVAL;
    if (folder >= 0)
        close(folder);
    if (number == ENOENT)
        return err_set(err, HVD_E_NOTFOUND, "%s/%s: there is no such file", storage->where, name);
    if (number)
        return dir_failed(storage, name, "cannot read its size", number, err);
    *ret_bytes = (uint64_t)st.st_size;
    return 0;
}

/* Reads bytes of a file. The file stays open for the next call, which often reads the bytes after
 * these. */
static int dir_read(struct checkpoint_store *storage, const char *name, uint64_t offset, void *at,
                    size_t bytes, struct hvd_err *err)
{
    struct checkpoint_dir *dir = dir_of(storage);
    char *next = at;
    int folder;

    /* The file may be open from the piece before. A read from offset 0 opens the file anew, because
     * the name may belong to another object by now. O_NONBLOCK: the open of a pipe does not wait.
     */
    if (dir->read_fd < 0 || offset == 0 || strcmp(dir->read_name, name) != 0) {
        if (dir->read_fd >= 0)
            close(dir->read_fd);
        dir->read_fd = -1;
        folder = open_folder_of(dir, name, false /* make no folder */);
        if (folder >= 0) {
            dir->read_fd = openat(folder, name_in_folder(name),
                                  O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
            close(folder);
        }
        if (dir->read_fd >= 0)
            memcpy(dir->read_name, name, strlen(name) + 1);
    }
    if (dir->read_fd < 0 && errno == ENOENT)
        return err_set(err, HVD_E_NOTFOUND, "%s/%s: there is no such file", storage->where, name);
    if (dir->read_fd < 0)
        return dir_failed(storage, name, "cannot read it", errno, err);
    while (bytes > 0) {
        ssize_t got = TEMP_FAILURE_RETRY(pread(dir->read_fd, next, bytes, (off_t)offset));

        if (got < 0)
            return dir_failed(storage, name, "cannot read it", errno, err);
        if (got == 0)
            return err_set(err, HVD_E_CORRUPT,
                           "%s/%s: the file ends at byte %" PRIu64
                           ", %zu bytes too early; choose another checkpoint (--from-checkpoint)",
                           storage->where, name, offset, bytes);
        next += got;
        offset += (uint64_t)got;
        bytes -= (size_t)got;
    }
    return 0;
}

/* Calls visit for each name in the directory of this descriptor, which is closed. *ret_rc is the
 * result of visit. Returns 0 or an errno. */
static int each_name_in(int fd, checkpoint_store_visit_fn *visit, void *arg, int *ret_rc)
{
    DIR *stream = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;
    int number;

    *ret_rc = 0;
    if (!stream) {
        number = errno;
        if (fd >= 0)
            close(fd);
        return number;
    }
    while (!*ret_rc && (errno = 0, entry = readdir(stream)))
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            *ret_rc = visit(arg, entry->d_name);
    number = *ret_rc ? 0 : errno;
    closedir(stream);
    return number;
}

/* Visits the names in a folder; a folder that is missing has no names. */
static int dir_list(struct checkpoint_store *storage, const char *folder,
                    checkpoint_store_visit_fn *visit, void *arg, struct hvd_err *err)
{
    /* The open of "." gives an open file of its own, because the position in a directory belongs to
     * the open file, and dir->fd has only one. */
    int fd = openat(dir_of(storage)->fd, *folder ? folder : ".", FOLDER_FLAGS);
    int rc, number;

    if (fd < 0 && errno == ENOENT && *folder)
        return 0;
    number = each_name_in(fd, visit, arg, &rc);
    return number ? dir_failed(storage, folder, "cannot list it", number, err) : rc;
}

/* Visits a name in a folder that is to be removed: removes the file. A failure shows when the
 * folder itself is removed. */
static int remove_name(void *arg, const char *name)
{
    const int *folder = arg;

    (void)unlinkat(*folder, name, 0);
    return 0;
}

/* Removes a file, or a folder with all its files. A missing name is no error. */
static int dir_remove(struct checkpoint_store *storage, const char *name, struct hvd_err *err)
{
    const char *last = name_in_folder(name);
    int parent = open_folder_of(dir_of(storage), name, false /* make no folder */);
    int number = 0; /* an errno; EISDIR: the name is a folder */
    int folder, rc;

    if (parent < 0)
        return errno == ENOENT ? 0 : dir_failed(storage, name, "cannot remove it", errno, err);
    if (unlinkat(parent, last, 0))
        number = errno;
    if (number == EISDIR) {
        /* If a name in the folder could not be removed, the removal of the folder fails and reports
         * that. */
        folder = openat(parent, last, FOLDER_FLAGS);
        number = each_name_in(folder < 0 ? -1 : fcntl(folder, F_DUPFD_CLOEXEC, 0), remove_name,
                              &folder, &rc);
        if (!number && unlinkat(parent, last, AT_REMOVEDIR))
            number = errno;
        if (folder >= 0)
            close(folder);
    }
    close(parent);
    return number && number != ENOENT ? dir_failed(storage, name, "cannot remove it", number, err)
                                      : 0;
}

static const struct checkpoint_store_ops dir_ops = { dir_close,  dir_create,  dir_write,
                                                     dir_finish, dir_abandon, dir_size,
                                                     dir_read,   dir_list,    dir_remove };

/* Opens a directory as a storage. `make` true: the directory and those above it are made if they
 * are missing. */
int checkpoint_store_dir_open(const char *where, bool make, struct checkpoint_store **ret_store,
                              struct hvd_err *err)
{
    struct checkpoint_dir *dir = mem_zalloc(sizeof(*dir));
    char path[LIMIT_PATH_BYTES];
    int number = 0;

    if (dir) {
        dir->base.ops = &dir_ops;
        dir->fd = dir->read_fd = -1;
        dir->base.where = mem_strdup(where);
    }
    if (!dir || !dir->base.where) {
        mem_free(dir);
        return err_set(err, HVD_E_NOMEM,
                       "%s: no memory to open this directory; free memory on this host", where);
    }
    dir->fd = open(where, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir->fd < 0 && errno == ENOENT && make) {
        /* the directories above `where` come first; each may exist, or belong to another user */
        snprintf(path, sizeof(path), "%s", where);
        for (char *slash = strchr(path + 1, '/'); slash && !number;
             slash = strchr(slash + 1, '/')) {
            *slash = '\0';
            if (mkdir(path, 0700) && errno != EEXIST && errno != EACCES && errno != EROFS)
                number = errno;
            *slash = '/';
        }
        if (!number && mkdir(path, 0700) && errno != EEXIST)
            number = errno;
        if (!number)
            dir->fd = open(where, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    }
    if (dir->fd >= 0) {
        dir->base.directory = dir->fd;
        *ret_store = &dir->base;
        return 0;
    }
    number = dir_failed(&dir->base, "", "cannot open the directory", number ? number : errno, err);
    dir_close(&dir->base);
    return number;
}
