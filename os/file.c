#include "os/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define READ_BYTES 65536

static int failed(const char *path, const char *what, struct hvd_err *err)
{
    int code = errno == ENOENT ? HVD_E_NOTFOUND : errno == EACCES ? HVD_E_DENIED : HVD_E_IO;

    return err_set(err, code, "%s: cannot %s: %s", path, what, strerror(errno));
}

static int read_some(int fd, const char *path, struct buf *buf, bool *ret_more, struct hvd_err *err)
{
    size_t room = buf->max - buf->length;
    size_t wanted = room < READ_BYTES ? room : READ_BYTES;
    ssize_t got;
    int rc = buf_reserve(buf, wanted);

    if (rc)
        return err_set(err, rc, "%s: no memory to read it", path);
    do
        got = read(fd, buf->data + buf->length, wanted);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return failed(path, "read", err);
    buf->length += (size_t)got;
    buf->data[buf->length] = '\0';
    *ret_more = got > 0 && buf->length < buf->max;
    return 0;
}

int file_read(const char *path, struct buf *buf, struct hvd_err *err)
{
    bool input = !strcmp(path, "-");
    int fd = input ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    bool more = true;
    int rc = 0;

    if (fd < 0)
        return failed(path, "open", err);
    while (!rc && more)
        rc = read_some(fd, input ? "standard input" : path, buf, &more, err);
    if (!input)
        close(fd);
    return rc;
}

void file_hold_standard(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        /* the lowest number that is free is this one */
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) < 0)
            return;
}
