/*
 * disk_faults_preload.c: the faulty disk and clock of a process. Its C library calls that read the
 * wall clock or change files come here, and are passed on as system calls. So other preloaded
 * libraries and sanitizers make no difference, and nothing is allocated here. Two pages of faults
 * apply: one everywhere, the other below one folder.
 *
 * Functions with two names, such as pwrite and pwrite64, are both here: the driver calls one and
 * SQLite the other. Parameters have the names of the C library's headers.
 */
#include "tests/chaos/disk_faults.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define SEEN __attribute__((visibility("default")))

#define S_US INT64_C(1000000)

static struct disk_faults calm;
static struct disk_faults *disk_faults = &calm;
static struct disk_faults *folder_faults = &calm;

/* Maps the page that this variable names. Without the variable the page is calm. */
static struct disk_faults *map_page(const char *variable)
{
    const char *path = getenv(variable);
    void *page = MAP_FAILED;
    long fd;

    if (!path)
        return &calm;
    fd = syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC, 0);
    if (fd >= 0) {
        page = mmap(NULL, DISK_FAULTS_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, (int)fd, 0);
        syscall(SYS_close, fd);
    }
    if (page == MAP_FAILED) {
        /* Ends a process that should have faults and cannot read them; otherwise every fault would
         * seem to succeed. */
        static const char why[] = "disk_faults: the page of the faults cannot be mapped\n";

        (void)!write(STDERR_FILENO, why, sizeof(why) - 1);
        abort();
    }
    return (struct disk_faults *)page;
}

__attribute__((constructor)) static void disk_faults_begin(void)
{
    disk_faults = map_page("CHAOS_DISK_FAULTS");
    folder_faults = map_page("CHAOS_FOLDER_FAULTS");
    unsetenv("CHAOS_DISK_FAULTS");
    if (folder_faults != &calm && strcmp(program_invocation_short_name, "hvd-agent") != 0)
        return; /* the agents among the children get the faults of the folder */
    unsetenv("CHAOS_FOLDER_FAULTS");
    unsetenv("LD_PRELOAD");
}

/* ---- the wall clock ----------------------------------------------------------------------------
 */

/* Adds the offset of the wall clock to the time. */
static void shift(struct timespec *at)
{
    int64_t offset_us = atomic_load_explicit(&disk_faults->wall_offset_us, memory_order_relaxed);
    int64_t ns;

    if (!offset_us)
        return;
    ns = at->tv_nsec + offset_us % S_US * 1000;
    at->tv_sec += offset_us / S_US;
    if (ns < 0) {
        ns += S_US * 1000;
        at->tv_sec--;
    } else if (ns >= S_US * 1000) {
        ns -= S_US * 1000;
        at->tv_sec++;
    }
    at->tv_nsec = (long)ns;
}

SEEN int clock_gettime(clockid_t clock_id, struct timespec *tp)
{
    if (syscall(SYS_clock_gettime, clock_id, tp))
        return -1;
    if (clock_id == CLOCK_REALTIME || clock_id == CLOCK_REALTIME_COARSE)
        shift(tp);
    return 0;
}

SEEN int gettimeofday(struct timeval *restrict tv, void *restrict tz)
{
    struct timespec now;

    (void)tz;
    clock_gettime(CLOCK_REALTIME, &now);
    *tv = (struct timeval){ .tv_sec = now.tv_sec, .tv_usec = now.tv_nsec / 1000 };
    return 0;
}

SEEN time_t time(time_t *timer)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    if (timer)
        *timer = now.tv_sec;
    return now.tv_sec;
}

/* ---- the disk ----------------------------------------------------------------------------------
 */

static bool is_below(const struct disk_faults *faults, const char *path)
{
    size_t length = strlen(faults->folder);

    return !strncmp(path, faults->folder, length) && (!path[length] || path[length] == '/');
}

/* true: the faults concern the descriptor. It is a regular file or a folder, and not standard
 * input, output or error. */
static bool concerns_file(const struct disk_faults *faults, int fd)
{
    char link[64], path[4096];
    struct stat status;
    int number = errno;
    bool is = fd > STDERR_FILENO && !fstat(fd, &status) &&
              (S_ISREG(status.st_mode) || S_ISDIR(status.st_mode));
    ssize_t length;

    if (is && faults->folder[0]) {
        snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
        length = readlink(link, path, sizeof(path) - 1);
        path[length > 0 ? length : 0] = '\0';
        is = is_below(faults, path);
    }
    errno = number;
    return is;
}

/* true: the faults concern the path, which is relative to this folder. */
static bool concerns_path(const struct disk_faults *faults, int folder, const char *path)
{
    if (!faults->folder[0])
        return true;
    return *path == '/' ? is_below(faults, path) : concerns_file(faults, folder);
}

static void wait_us(struct disk_faults *faults, int64_t delay_us)
{
    struct timespec left = { .tv_sec = delay_us / S_US, .tv_nsec = delay_us % S_US * 1000 };

    atomic_fetch_add(&faults->delayed, 1);
    while (syscall(SYS_nanosleep, &left, &left) && errno == EINTR)
        ;
}

static bool refuse(struct disk_faults *faults, int number)
{
    atomic_fetch_add(&faults->refused, 1);
    errno = number;
    return true;
}

/* The errno of a change; 0: the change is possible. */
static int number_of(const struct disk_faults *faults)
{
    if (atomic_load(&faults->disk_broken))
        return EIO;
    if (atomic_load(&faults->disk_readonly))
        return EROFS;
    return atomic_load(&faults->disk_full) ? ENOSPC : 0;
}

/* true: a write to this file must fail; errno is set. */
static bool refuses_write(struct disk_faults *faults, int fd)
{
    int64_t delay_us = atomic_load(&faults->write_delay_us);
    int number = number_of(faults);

    if ((!delay_us && !number) || !concerns_file(faults, fd))
        return false;
    if (delay_us)
        wait_us(faults, delay_us);
    return number ? refuse(faults, number) : false;
}

static bool writes_badly(int fd)
{
    return refuses_write(disk_faults, fd) || refuses_write(folder_faults, fd);
}

/* Delays a sync; true: the sync must fail, and errno is set. */
static bool refuses_sync(struct disk_faults *faults, int fd)
{
    int64_t delay_us = atomic_load(&faults->sync_delay_us);
    bool broken = atomic_load(&faults->disk_broken);

    if ((!delay_us && !broken) || !concerns_file(faults, fd))
        return false;
    if (delay_us)
        wait_us(faults, delay_us);
    return broken ? refuse(faults, EIO) : false;
}

static bool syncs_badly(int fd)
{
    return refuses_sync(disk_faults, fd) || refuses_sync(folder_faults, fd);
}

/* true: the call would make a file, and must fail. An existing file can be opened on a full disk.
 */
static bool refuses_make(struct disk_faults *faults, int folder, const char *path)
{
    int number = number_of(faults), before = errno;

    if (!number || !concerns_path(faults, folder, path) || !faccessat(folder, path, F_OK, 0))
        return false;
    errno = before;
    return refuse(faults, number);
}

static bool makes_badly(int folder, const char *path)
{
    return refuses_make(disk_faults, folder, path) || refuses_make(folder_faults, folder, path);
}

/* true: the call would rename or remove a file, and must fail: it is possible on a full disk. */
static bool refuses_rename(struct disk_faults *faults, int folder, const char *path)
{
    return atomic_load(&faults->disk_readonly) && concerns_path(faults, folder, path)
               ? refuse(faults, EROFS)
               : false;
}

static bool renames_badly(int folder, const char *path)
{
    return refuses_rename(disk_faults, folder, path) || refuses_rename(folder_faults, folder, path);
}

SEEN ssize_t write(int fd, const void *buf, size_t n)
{
    return writes_badly(fd) ? -1 : syscall(SYS_write, fd, buf, n);
}

SEEN ssize_t pwrite(int fd, const void *buf, size_t n, off_t offset)
{
    return writes_badly(fd) ? -1 : syscall(SYS_pwrite64, fd, buf, n, offset);
}

SEEN ssize_t pwrite64(int fd, const void *buf, size_t n, off64_t offset)
{
    return writes_badly(fd) ? -1 : syscall(SYS_pwrite64, fd, buf, n, offset);
}

SEEN ssize_t writev(int fd, const struct iovec *iovec, int count)
{
    return writes_badly(fd) ? -1 : syscall(SYS_writev, fd, iovec, count);
}

SEEN int ftruncate(int fd, off_t length)
{
    return writes_badly(fd) ? -1 : (int)syscall(SYS_ftruncate, fd, length);
}

SEEN int ftruncate64(int fd, off64_t length)
{
    return writes_badly(fd) ? -1 : (int)syscall(SYS_ftruncate, fd, length);
}

SEEN int fsync(int fd)
{
    return syncs_badly(fd) ? -1 : (int)syscall(SYS_fsync, fd);
}

SEEN int fdatasync(int fildes)
{
    return syncs_badly(fildes) ? -1 : (int)syscall(SYS_fdatasync, fildes);
}

static int open_at(int folder, const char *path, int flags, mode_t mode)
{
    if ((flags & O_CREAT) && makes_badly(folder, path))
        return -1;
    return (int)syscall(SYS_openat, folder, path, flags, mode);
}

/* the mode exists only with flags that make a file */
#define MODE_OF(flags, ret_mode)                        \
    do {                                                \
        if ((flags) & (O_CREAT | O_TMPFILE)) {          \
            va_list rest;                               \
            va_start(rest, flags);                      \
            *(ret_mode) = (mode_t)va_arg(rest, mode_t); \
            va_end(rest);                               \
        }                                               \
    } while (0)

SEEN int open(const char *file, int oflag, ...)
{
    mode_t mode = 0;

    MODE_OF(oflag, &mode);
    return open_at(AT_FDCWD, file, oflag, mode);
}

SEEN int open64(const char *file, int oflag, ...)
{
    mode_t mode = 0;

    MODE_OF(oflag, &mode);
    return open_at(AT_FDCWD, file, oflag, mode);
}

SEEN int openat(int fd, const char *file, int oflag, ...)
{
    mode_t mode = 0;

    MODE_OF(oflag, &mode);
    return open_at(fd, file, oflag, mode);
}

SEEN int openat64(int fd, const char *file, int oflag, ...)
{
    mode_t mode = 0;

    MODE_OF(oflag, &mode);
    return open_at(fd, file, oflag, mode);
}

SEEN int mkdir(const char *path, mode_t mode)
{
    return makes_badly(AT_FDCWD, path) ? -1 : (int)syscall(SYS_mkdirat, AT_FDCWD, path, mode);
}

SEEN int mkdirat(int fd, const char *path, mode_t mode)
{
    return makes_badly(fd, path) ? -1 : (int)syscall(SYS_mkdirat, fd, path, mode);
}

SEEN int fallocate(int fd, int mode, off_t offset, off_t len)
{
    return writes_badly(fd) ? -1 : (int)syscall(SYS_fallocate, fd, mode, offset, len);
}

SEEN int fallocate64(int fd, int mode, off64_t offset, off64_t len)
{
    return writes_badly(fd) ? -1 : (int)syscall(SYS_fallocate, fd, mode, offset, len);
}

SEEN int renameat(int oldfd, const char *old, int newfd, const char *new)
{
    return renames_badly(newfd, new) ? -1 : (int)syscall(SYS_renameat2, oldfd, old, newfd, new, 0);
}

SEEN int unlinkat(int fd, const char *name, int flag)
{
    return renames_badly(fd, name) ? -1 : (int)syscall(SYS_unlinkat, fd, name, flag);
}
