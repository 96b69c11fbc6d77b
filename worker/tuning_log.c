/*
 * tuning_log.c: writes the log of the algorithms that were tried, and how fast they were
 * (tuning_log.h has the format).
 *
 * Called by worker.c when the members of a round have agreed on an algorithm. Invariant: if the
 * file cannot be written, the operator gets one remark, and the training goes on.
 */
#include "worker/tuning_log.h"

#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LINE_MAX_BYTES 256 /* enough for the names of the columns and one line */

/* Prepares the log; path NULL or "": there is no log. The file is opened with the first line. */
int tuning_log_init(struct tuning_log *log, const char *path)
{
    *log = (struct tuning_log){ .fd = -1 };
    if (path && *path)
        log->path = mem_strdup(path);
    return path && *path && !log->path ? HVD_E_NOMEM : 0;
}

void tuning_log_release(struct tuning_log *log)
{
    if (log->fd >= 0)
        close(log->fd);
    mem_free(log->path);
    *log = (struct tuning_log){ .fd = -1 };
}

/* Appends the line of one algorithm that was tried; opens the file at the first line. After
 * HVD_E_IO the log is closed, and later calls do nothing. */
int tuning_log_write(struct tuning_log *log, const struct coll_tried *tried, struct hvd_err *err)
{
    char line[LINE_MAX_BYTES];
    bool is_new;
    int length;
    int fault;

    if (!log->path)
        return 0;
    /* O_NONBLOCK: the path may be a named pipe, whose open would wait for a reader */
    if (log->fd < 0)
        log->fd = open(log->path,
                       O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600);
    is_new = log->fd >= 0 && lseek(log->fd, 0, SEEK_END) == 0;
    length = snprintf(line, sizeof(line), "%s%" PRIu64 ",%" PRIu32 ",%" PRIu32 ",%zu,%s,%.1f,%d\n",
                      is_new ? "round,workers,hosts,bytes,algorithm,microseconds,chosen\n" : "",
                      tried->round, tried->size, tried->hosts, tried->bytes, tried->algorithm,
                      tried->us, tried->chosen);
    if (log->fd >= 0)
        /* a write of less than the line sets no errno: then the disk is full. (For a pipe lseek has
         * left another errno.) */
        errno = ENOSPC;
    if (log->fd >= 0 && write(log->fd, line, (size_t)length) == length)
        return 0;
    fault = errno;
    err_set(
        err, HVD_E_IO,
        "--autotune-log-file %s: %s; the choice of algorithms is no longer written to this file",
        log->path, strerror(fault));
    tuning_log_release(log);
    return HVD_E_IO;
}
