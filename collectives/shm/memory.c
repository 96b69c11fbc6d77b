#include "collectives/shm/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define WITHOUT "set HVD_CPU_OPERATIONS=tcp, which does without"
#define SEALS   (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

/* The reason is in errno. */
static int not_had(size_t bytes, struct hvd_err *err)
{
    switch (errno) {
    case EMFILE:
    case ENFILE:
        return err_set(err, HVD_E_LIMIT,
                       "shared memory of %zu bytes: too many files are open; "
                       "raise that limit (ulimit -n), or " WITHOUT,
                       bytes);
    case ENOMEM:
    case EFBIG:
        return err_set(
            err, HVD_E_NOMEM,
            "shared memory of %zu bytes: out of memory; give this process more, or " WITHOUT,
            bytes);
    default:
        return err_set(err, HVD_E_UNSUPPORTED,
                       "shared memory of %zu bytes: %s; allow memfd_create and mmap, or " WITHOUT,
                       bytes, strerror(errno));
    }
}

static int map(int fd, size_t bytes, bool writable, uint8_t **ret_at, struct hvd_err *err)
{
    void *at = mmap(NULL, bytes, writable ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, fd, 0);

    if (at == MAP_FAILED)
        return not_had(bytes, err);
    *ret_at = at;
    return 0;
}

int memory_create(const char *name, size_t bytes, struct memory *ret_memory,
                  struct memory_place *ret_place, struct hvd_err *err)
{
    int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    struct stat found;
    uint8_t *at = NULL;
    int rc;

    if (fd < 0)
        return not_had(bytes, err);
    if (bytes > INT64_MAX)
        rc = err_set(err, HVD_E_NOMEM, "shared memory of %zu bytes: ask for less", bytes);
    else if (ftruncate(fd, (off_t)bytes) || fcntl(fd, F_ADD_SEALS, SEALS) || fstat(fd, &found))
        rc = not_had(bytes, err);
    else
        rc = map(fd, bytes, true, &at, err);
    if (rc) {
        close(fd);
        return rc;
    }
    *ret_memory = (struct memory){ at, bytes, fd };
    *ret_place = (struct memory_place){ getpid(), fd, found.st_dev, found.st_ino };
    return 0;
}

/*
 * What a number leads to now can be anything, a terminal or a device of somebody else: it is looked
 * at before it is opened.
 */
static int look(const struct memory_place *place, int *ret_fd, struct hvd_err *err)
{
    char path[64];
    struct stat found;
    int fd;

    (void)snprintf(path, sizeof(path), "/proc/%d/fd/%d", place->pid, place->fd);
    fd = open(path, O_PATH | O_CLOEXEC);
    if (fd < 0 && (errno == EACCES || errno == EPERM))
        return err_set(err, HVD_E_DENIED,
                       "%s may not be opened: %s; let all processes of a host run as the same user "
                       "and keep them dumpable, or " WITHOUT,
                       path, strerror(errno));
    if (fd < 0 && (errno == EMFILE || errno == ENFILE))
        return not_had(0, err);
    if (fd < 0)
        return err_set(err, HVD_E_LOST,
                       "%s is not there (%s): the process has ended or is in another container; if "
                       "it lives let them share /proc, or " WITHOUT,
                       path, strerror(errno));
    if (fstat(fd, &found) || !S_ISREG(found.st_mode) || found.st_dev != place->device ||
        found.st_ino != place->inode) {
        close(fd);
        return err_set(err, HVD_E_LOST,
                       "%s is something else: the process has ended or is in another container; if "
                       "it lives let them share /proc, or " WITHOUT,
                       path);
    }
    *ret_fd = fd;
    return 0;
}

static int open_seen(int seen, bool writable, struct memory *ret_memory, struct hvd_err *err)
{
    char path[64];
    struct stat found;
    uint8_t *at = NULL;
    int fd, rc, seals;

    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", seen);
    fd = open(path, (writable ? O_RDWR : O_RDONLY) | O_CLOEXEC);
    if (fd < 0 && errno == EMFILE)
        return not_had(0, err);
    if (fd < 0)
        return err_set(err, HVD_E_DENIED, "shared memory of another process: %s; " WITHOUT,
                       strerror(errno));
    seals = fcntl(fd, F_GET_SEALS);
    if (seals < 0 || (seals & SEALS) != SEALS || fstat(fd, &found) || found.st_size <= 0) {
        rc = err_set(err, HVD_E_PROTO, "shared memory of another process is none of ours");
    } else {
        rc = map(fd, (size_t)found.st_size, writable, &at, err);
        if (!rc)
            *ret_memory = (struct memory){ at, (size_t)found.st_size, -1 };
    }
    close(fd);
    return rc;
}

int memory_open(const struct memory_place *place, bool writable, struct memory *ret_memory,
                struct hvd_err *err)
{
    int rc, seen = -1;

    if (place->pid <= 0 || place->fd < 0)
        return err_set(err, HVD_E_PROTO,
                       "shared memory of process %d, descriptor %d: no such thing", place->pid,
                       place->fd);
    rc = look(place, &seen, err);
    if (rc)
        return rc;
    rc = open_seen(seen, writable, ret_memory, err);
    close(seen);
    return rc;
}

void memory_empty(const struct memory *memory, size_t from)
{
    (void)madvise(memory->at + from, memory->bytes - from, MADV_REMOVE);
}

void memory_release(struct memory *memory)
{
    if (memory->at)
        (void)munmap(memory->at, memory->bytes);
    if (memory->fd >= 0)
        close(memory->fd);
    *memory = (struct memory){ .fd = -1 };
}
