#include "os/lock.h"

#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define PID_TEXT 32
#define TRIES    100 /* each is lost only to somebody who takes it over at that moment */

static int failed(const char *path, int number, struct hvd_err *err)
{
    const char *remedy = "check the disk";
    int code = HVD_E_IO;

    if (number == ENOENT || number == ENOTDIR) {
        code = HVD_E_NOTFOUND;
        remedy = "create the directory";
    } else if (number == EACCES || number == EPERM || number == EROFS) {
        code = HVD_E_DENIED;
        remedy = "make it and its directory writable for this user";
    } else if (number == ENOSPC || number == EDQUOT) {
        code = HVD_E_FULL;
        remedy = "free some space";
    } else if (number == ENOLCK || number == EOPNOTSUPP) {
        code = HVD_E_UNSUPPORTED;
        remedy = "put it on a local file system";
    }
    return err_set(err, code, "%s: cannot lock it: %s; %s", path, strerrordesc_np(number), remedy);
}

/* Who has it wrote this; nobody else may have. */
static pid_t read_holder(int fd)
{
    char text[PID_TEXT];
    struct span line;
    uint64_t pid = 0;
    ssize_t got = pread(fd, text, sizeof(text), 0);

    line = span_trim((struct span){ text, got > 0 ? (size_t)got : 0 });
    if (line.length > 0 && line.at[line.length - 1] == '\n')
        line.length--;
    return text_parse_u64(line, 1, INT32_MAX, "a pid", &pid, NULL) ? 0 : (pid_t)pid;
}

/* Whoever looks between the two steps sees no pid, which is better than an old one. */
static int write_holder(int fd)
{
    char text[PID_TEXT];
    int length = snprintf(text, sizeof(text), "%ld\n", (long)getpid());

    if (ftruncate(fd, 0) || pwrite(fd, text, (size_t)length, 0) != length)
        return errno ? errno : EIO;
    return 0;
}

/* Somebody may have taken it over, under its name, since it was opened. */
static bool has_name(int fd, const char *path)
{
    struct stat mine;
    struct stat there;

    return !fstat(fd, &mine) && !lstat(path, &there) && mine.st_ino == there.st_ino &&
           mine.st_dev == there.st_dev;
}

/* 0 or the error number; ESTALE: the file has another one's place by now. */
static int try_to_take(const char *path, int *ret_fd, pid_t *ret_holder)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    int number;

    if (fd < 0)
        return errno;
    number = flock(fd, LOCK_EX | LOCK_NB) ? errno : 0;
    if (!number && !has_name(fd, path))
        number = ESTALE;
    errno = 0;
    if (!number)
        number = write_holder(fd);
    if (!number) {
        *ret_fd = fd;
        return 0;
    }
    if (number == EWOULDBLOCK)
        *ret_holder = read_holder(fd);
    close(fd);
    return number;
}

int lock_take(const char *path, int *ret_fd, pid_t *ret_holder, struct hvd_err *err)
{
    char who[PID_TEXT] = "another process";
    int number = ESTALE;

    for (int i = 0; number == ESTALE && i < TRIES; i++)
        number = try_to_take(path, ret_fd, ret_holder);
    if (number != EWOULDBLOCK)
        return number ? failed(path, number, err) : 0;
    if (*ret_holder)
        snprintf(who, sizeof(who), "process %ld", (long)*ret_holder);
    return err_set(err, HVD_E_BUSY, "%s: %s has it; wait for it or stop it", path, who);
}

int lock_take_over(const char *path, int *ret_fd, struct hvd_err *err)
{
    pid_t holder = 0;

    if (unlink(path) && errno != ENOENT)
        return failed(path, errno, err);
    return lock_take(path, ret_fd, &holder, err);
}
