/*
 * lines.c: a file, line by line. Called by hvd_audit.c and hvd_timeline.c for each of their files.
 * The file is foreign: it may be of any size, and may be growing. Invariant: the buffer holds one
 * line and one read at most.
 */
#include "tools/lines.h"

#include "base/buf.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#define READ_BYTES (256 * 1024)

/* Passes each whole line of the file to lines->take. Text after the last newline is left out,
 * because its writer has died or is still writing. */
int lines_read(const struct lines *lines, const char *path, struct hvd_err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    uint64_t number = 0;
    const char *newline;
    const char *at;
    ssize_t got = 1;
    struct buf buf;
    int rc = 0;

    if (fd < 0)
        return err_set(err, HVD_E_IO, "%s: cannot open: %s; give a file that this user can read",
                       path, strerror(errno));
    buf_init(&buf, lines->line_max + READ_BYTES);
    while (!rc && got > 0) {
        /* A line that is longer than the limit leaves no room for the next read. */
        rc = buf_reserve(&buf, READ_BYTES);
        if (rc) {
            rc = err_set(
                err, rc == HVD_E_LIMIT ? lines->too_long : rc,
                "%s: line %" PRIu64
                ": the line is too long for a %s, or no memory is left; leave this file out, "
                "or free memory",
                path, number + 1, lines->kind);
            break;
        }
        got = read(fd, buf.data + buf.length, READ_BYTES);
        if (got < 0)
            rc = err_set(err, HVD_E_IO, "%s: cannot read: %s", path, strerror(errno));
        if (got > 0)
            buf.length += (size_t)got;
        /* A line without a newline stays in the buffer until the next read. */
        at = buf_text(&buf);
        while (!rc && (newline = memchr(at, '\n', buf.length - (size_t)(at - buf_text(&buf))))) {
            rc = lines->take(lines->arg, (struct span){ at, (size_t)(newline - at) }, err);
            number++;
            if (rc)
                err_prefix(err, rc, "%s: line %" PRIu64, path, number);
            at = newline + 1;
        }
        buf_consume(&buf, (size_t)(at - buf_text(&buf)));
    }
    buf_release(&buf);
    close(fd);
    return rc;
}
