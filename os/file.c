/*
 * file.c: reads small texts: host files, config files, and the agent's options from standard input.
 * The caller sets the bound (buf->max), so an endless file does not block the program. Reads files
 * with secrets, if other users cannot. Replaces the files that a driver writes for other programs.
 * Also the standard streams of the programs: dup2 replaces a stream at once, for all threads.
 */
#include "os/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define READ_BYTES 65536

/* Sets the error of an operation on a file that has just failed with errno; `what` names the
 * operation, such as "open". */
static int file_failed(const char *path, const char *what, struct hvd_err *err)
{
    int code = errno == ENOENT ? HVD_E_NOTFOUND : errno == EACCES ? HVD_E_DENIED : HVD_E_IO;

    return err_set(err, code, "%s: cannot %s: %s", path, what, strerror(errno));
}

/* Appends what can be read from the descriptor to the buffer, up to the buffer's `max` bytes. */
static int file_append(int fd, const char *name, struct buf *buf, struct hvd_err *err)
{
    ssize_t got = 1;
    int rc = 0;

    while (!rc && got > 0 && buf->length < buf->max) {
        size_t room = buf->max - buf->length;
        size_t wanted = room < READ_BYTES ? room : READ_BYTES;

        rc = buf_reserve(buf, wanted);
        if (rc) {
            err_set(err, rc, "%s: no memory to read this file; free memory on this host", name);
            break;
        }
        got = TEMP_FAILURE_RETRY(read(fd, buf->data + buf->length, wanted));
        if (got < 0) {
            rc = file_failed(name, "read", err);
            break;
        }
        buf->length += (size_t)got;
        buf->data[buf->length] = '\0';
    }
    return rc;
}

/* Appends the file, or standard input for "-", to the buffer. A caller that refuses long files
 * gives room for one byte more than it allows. */
int file_read(const char *path, struct buf *buf, struct hvd_err *err)
{
    bool input = !strcmp(path, "-");
    int fd = input ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    int rc;

    if (fd < 0)
        return file_failed(path, "open", err);
    rc = file_append(fd, input ? "standard input" : path, buf, err);
    if (!input)
        close(fd);
    return rc;
}

/* Appends a file with a secret to the buffer. The mode of the open file is checked, so another file
 * cannot take its place after the check. O_NONBLOCK: the open of a pipe does not wait. */
int file_read_secret(const char *path, struct buf *buf, struct hvd_err *err)
{
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    struct stat st;
    int rc;

    if (fd < 0)
        return file_failed(path, "open", err);
    if (fstat(fd, &st))
        rc = file_failed(path, "read", err);
    else if (!S_ISREG(st.st_mode))
        rc = err_set(err, HVD_E_INVAL,
                     "%s: is no regular file, which each driver of the job can read again; put the "
                     "secret into a file",
                     path);
    else if (st.st_mode & (S_IRWXO | S_IWGRP))
        rc = err_set(err, HVD_E_DENIED,
                     "%s: other users can read or change this file, which has a secret (mode "
                     "%04o); run: chmod o-rwx,g-w %s",
                     path, (unsigned)st.st_mode & 07777, path);
    else
        rc = file_append(fd, path, buf, err);
    close(fd);
    return rc;
}

int file_replace(const char *path, const char *fresh, const struct buf *bytes, mode_t mode)
{
    int error_number = 0, fd = -1;
    size_t done = 0;

    /* The file `fresh` that an earlier process has left is removed, and so is a link that another
     * user has put there. */
    if (unlink(fresh) && errno != ENOENT)
        error_number = errno;
    if (!error_number && (fd = open(fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode)) < 0)
        error_number = errno;
    if (fd >= 0)
        (void)fchmod(fd, mode);
    while (!error_number && done < bytes->length) {
        ssize_t put = write(fd, bytes->data + done, bytes->length - done);

        if (put < 0 && errno != EINTR)
            error_number = errno;
        done += put > 0 ? (size_t)put : 0;
    }
    if (fd >= 0 && close(fd) && !error_number)
        error_number = errno;
    if (!error_number && rename(fresh, path))
        error_number = errno;
    if (error_number)
        (void)unlink(fresh); /* a part of a file would only fill the disk */
    return error_number;
}

/* Opens /dev/null as each standard stream that is closed. A program calls this function first, so
 * no file or socket gets the number 0, 1 or 2. */
void file_hold_standard(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        /* open returns the lowest free number, which is fd, because all lower numbers are open */
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) < 0)
            return;
}

/* Puts /dev/null in the place of each standard stream that is a terminal. `all` true: in the place
 * of each one that is no regular file, so that pipes are replaced as well. */
static void file_to_null(bool all)
{
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    struct stat st;

    for (int fd = STDIN_FILENO; nothing >= 0 && fd <= STDERR_FILENO; fd++) {
        errno = 0; /* isatty fails with EIO for a terminal that was closed */
        if (all ? fstat(fd, &st) || !S_ISREG(st.st_mode) : isatty(fd) || errno == EIO)
            (void)dup2(nothing, fd);
    }
    if (nothing > STDERR_FILENO)
        close(nothing);
}

/* Leaves the terminal: standard streams that are a terminal lead to /dev/null from now on. */
void file_leave_terminal(void)
{
    file_to_null(false /* only terminals */);
}

/* Leaves all standard streams but regular files, so that no reader of a pipe waits for this
 * process. */
void file_leave_streams(void)
{
    file_to_null(true /* pipes, too */);
}
