/*
 * lock.c: a lock file, which the driver holds for its job and the agent for its host. flock belongs
 * to the open file, so the lock ends with the process in any case. The pid in the file is a hint
 * for the operator: only the lock itself decides.
 */
#include "os/lock.h"

#include "base/text.h"
#include "os/remedy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define PID_TEXT 32
/* Attempts to take the lock. One fails only when another process takes the lock over at that
 * moment. */
#define TRIES 100

/* Returns the pid in the file of a lock; 0: there is none. */
static pid_t lock_read_pid(int fd)
{
    char text[PID_TEXT];
    ssize_t got = pread(fd, text, sizeof(text), 0);
    struct span line = span_trim((struct span){ text, got > 0 ? (size_t)got : 0 });
    uint64_t pid = 0;

    if (line.length > 0 && line.at[line.length - 1] == '\n')
        line.length--;
    return text_parse_u64(line, 1, INT32_MAX, "a pid", &pid, NULL) ? 0 : (pid_t)pid;
}

/* Takes the lock of the file without waiting, and writes the pid of this process into the file.
 * HVD_E_BUSY: another process holds the lock, and *ret_holder is its pid (0: not known). */
int lock_take(const char *path, int *ret_fd, pid_t *ret_holder, struct hvd_err *err)
{
    char who[PID_TEXT] = "another process";
    char text[PID_TEXT];
    int number = ESTALE; /* an errno; 0: the lock was taken */

    /* ESTALE: after the open another file took the same name. */
    for (int i = 0; number == ESTALE && i < TRIES; i++) {
        int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        struct stat mine, there; /* of the opened file; of the file that has its name now */

        if (fd < 0)
            return remedy_set(err, path, "cannot lock it", errno);
        number = flock(fd, LOCK_EX | LOCK_NB) ? errno : 0;
        if (!number || number == EWOULDBLOCK)
            *ret_holder = lock_read_pid(fd);
        if (!number && (fstat(fd, &mine) || lstat(path, &there) || mine.st_ino != there.st_ino ||
                        mine.st_dev != there.st_dev))
            number = ESTALE;
        if (!number) {
            int length = snprintf(text, sizeof(text), "%ld\n", (long)getpid());

            /* A process that reads the file between ftruncate and pwrite finds no pid, which is
             * better than the pid of an earlier holder. */
            errno = 0;
            if (ftruncate(fd, 0) || pwrite(fd, text, (size_t)length, 0) != length)
                number = errno ? errno : EIO;
        }
        if (number)
            close(fd);
        else
            *ret_fd = fd;
    }
    if (number != EWOULDBLOCK)
        return number ? remedy_set(err, path, "cannot lock it", number) : 0;
    if (*ret_holder)
        snprintf(who, sizeof(who), "process %ld", (long)*ret_holder);
    return err_set(err, HVD_E_BUSY,
                   "%s: %s holds the lock; wait until that process ends, or stop it", path, who);
}

/* Takes the lock away from a process that seems to hold it. */
int lock_take_over(const char *path, int *ret_fd, struct hvd_err *err)
{
    pid_t holder = 0;

    /* The file is removed and created again under the same name: the old holder keeps a file
     * without a name. */
    if (unlink(path) && errno != ENOENT)
        return remedy_set(err, path, "cannot lock it", errno);
    return lock_take(path, ret_fd, &holder, err);
}
