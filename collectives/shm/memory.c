/*
 * memory.c: shared memory without a name: a memfd that its maker keeps open, and that other
 * processes open by the maker's process number and descriptor in /proc. segment.c and pool.c are
 * built on it.
 *
 * Invariant: a mapping can be read as long as it exists, because a seal keeps the memory from
 * shrinking; and memory of a process that has died is never taken for memory of another process.
 */
#include "collectives/shm/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* the way out of an error of shared memory: the end of each error's text */
#define WITHOUT "set HVD_CPU_OPERATIONS=tcp, which needs no shared memory"
/* no process can change the size of the memory, or add another seal */
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

/* Writes the error of a system call that gave no memory; the reason is in errno. Returns its code.
 */
static int report_refusal(size_t bytes, struct hvd_err *err)
{
    switch (errno) {
    case EMFILE:
    case ENFILE:
        return err_set(err, HVD_E_LIMIT,
                       "shared memory of %zu bytes: too many files are open; "
                       "raise the limit of open files (ulimit -n), or " WITHOUT,
                       bytes);
    case ENOMEM:
    case EFBIG:
        return err_set(
            err, HVD_E_NOMEM,
            "shared memory of %zu bytes: out of memory; give this process more memory, or " WITHOUT,
            bytes);
    default:
        return err_set(err, HVD_E_UNSUPPORTED,
                       "shared memory of %zu bytes: %s; allow memfd_create and mmap, or " WITHOUT,
                       bytes, strerror(errno));
    }
}

/* Maps the whole memory into this process. `writable` is false: for reading only. */
static int map_memory(int fd, size_t bytes, bool writable, uint8_t **ret_at, struct hvd_err *err)
{
    void *at = mmap(NULL, bytes, writable ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, fd, 0);

    if (at == MAP_FAILED)
        return report_refusal(bytes, err);
    *ret_at = at;
    return 0;
}

/* Makes shared memory of this size, and says where other processes find it. The descriptor stays
 * open, because other processes open the memory through it; the seals forbid every later change of
 * the size. */
int memory_create(const char *name, size_t bytes, struct memory *ret_memory,
                  struct memory_place *ret_place, struct hvd_err *err)
{
    int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    struct stat found;
    uint8_t *at = NULL;
    int rc;

    if (fd < 0)
        return report_refusal(bytes, err);
    if (bytes > INT64_MAX)
        rc = err_set(
            err, HVD_E_NOMEM,
            "shared memory of %zu bytes is more than a process can have; ask for fewer bytes",
            bytes);
    else if (ftruncate(fd, (off_t)bytes) || fcntl(fd, F_ADD_SEALS, SEALS) || fstat(fd, &found))
        rc = report_refusal(bytes, err);
    else
        /* true: this process can write to it */
        rc = map_memory(fd, bytes, true, &at, err);
    if (rc) {
        close(fd);
        return rc;
    }
    *ret_memory = (struct memory){ at, bytes, fd };
    *ret_place = (struct memory_place){ getpid(), fd, found.st_dev, found.st_ino };
    return 0;
}

/* Checks that the maker's descriptor still refers to this memory; HVD_E_LOST: it does not. By now
 * the descriptor can refer to anything, a terminal or a device of another program, so *ret_fd is
 * opened with O_PATH, which touches nothing. The caller closes *ret_fd. */
static int look_at_place(const struct memory_place *place, int *ret_fd, struct hvd_err *err)
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
        return report_refusal(0, err);
    if (fd < 0)
        return err_set(
            err, HVD_E_LOST,
            "%s does not exist (%s): the process has ended or is in another container; if "
            "the process lives, let both containers share /proc, or " WITHOUT,
            path, strerror(errno));
    if (fstat(fd, &found) || !S_ISREG(found.st_mode) || found.st_dev != place->device ||
        found.st_ino != place->inode) {
        close(fd);
        return err_set(
            err, HVD_E_LOST,
            "%s is no longer shared memory: the process has ended or is in another container; if "
            "the process lives, let both containers share /proc, or " WITHOUT,
            path);
    }
    *ret_fd = fd;
    return 0;
}

/* Maps the memory of another process. look_at_place has checked which file it is; opening that file
 * through /proc/self/fd opens the same file, even if the maker closes its descriptor meanwhile.
 * This process keeps no descriptor (-1): the mapping is enough. */
int memory_open(const struct memory_place *place, bool writable, struct memory *ret_memory,
                struct hvd_err *err)
{
    char path[64];
    struct stat found;
    uint8_t *at = NULL;
    int fd, rc, seals, seen = -1;

    if (place->pid <= 0 || place->fd < 0)
        return err_set(
            err, HVD_E_PROTO,
            "process %d, descriptor %d: these numbers name no shared memory; all workers "
            "must use the same release of libhvd",
            place->pid, place->fd);
    rc = look_at_place(place, &seen, err);
    if (rc)
        return rc;
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", seen);
    fd = open(path, (writable ? O_RDWR : O_RDONLY) | O_CLOEXEC);
    if (fd < 0)
        rc = errno == EMFILE
                 ? report_refusal(0, err)
                 : err_set(err, HVD_E_DENIED,
                           "the shared memory of another process cannot be opened: %s; " WITHOUT,
                           strerror(errno));
    close(seen);
    if (rc)
        return rc;
    seals = fcntl(fd, F_GET_SEALS);
    if (seals < 0 || (seals & SEALS) != SEALS || fstat(fd, &found) || found.st_size <= 0)
        rc = err_set(err, HVD_E_PROTO,
                     "the shared memory of another process was not made by hvd-elastic; all "
                     "workers must use the same release of libhvd");
    else
        rc = map_memory(fd, (size_t)found.st_size, writable, &at, err);
    if (!rc)
        *ret_memory = (struct memory){ at, (size_t)found.st_size, -1 };
    close(fd);
    return rc;
}

/* Gives the pages from offset `from` on back to the machine; they read as zeros then (memory.h). */
void memory_empty(const struct memory *memory, size_t from)
{
    (void)madvise(memory->at + from, memory->bytes - from, MADV_REMOVE);
}

/* Unmaps the memory, and closes its descriptor if this process keeps one (-1: none). The memory
 * itself lives as long as any process has it mapped. */
void memory_release(struct memory *memory)
{
    if (memory->at)
        (void)munmap(memory->at, memory->bytes);
    if (memory->fd >= 0)
        close(memory->fd);
    *memory = (struct memory){ .fd = -1 };
}
