/*
 * sample_log.c: writes the log of the samples that a worker has used, which hvd-audit compares
 * (sample_log.h has the format).
 *
 * Called by sampler.c for each batch, before the program gets it. Invariant: each line of the file
 * is whole, unless the disk is full or the machine dies; then the last line has no newline.
 */
#include "worker/sample_log.h"

#include "base/limits.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Prepares the log of one sampler in the folder; without a folder there is no log (log->path stays
 * NULL). The file is opened when the first line is written. */
int sample_log_init(struct sample_log *log, const char *folder, uint64_t incarnation,
                    const char *name, uint64_t samples)
{
    struct buf text;
    int rc;

    *log = (struct sample_log){ .samples = samples, .fd = -1 };
    buf_init(&log->line, LIMIT_SAMPLE_LINE_BYTES);
    if (!folder || !*folder)
        return 0;
    buf_init(&text, LIMIT_PATH_BYTES);
    rc = buf_printf(&text, "%s/%" PRIu64 ".samples", folder, incarnation);
    if (!rc && !(log->path = mem_strdup(buf_text(&text))))
        rc = HVD_E_NOMEM;
    buf_clear(&text);
    /* writes the name without blanks, which separate the words of a line */
    for (; !rc && *name; name++) {
        if (*name == ' ' || *name == '%')
            rc = buf_printf(&text, "%%%02x", (unsigned)*name);
        else
            rc = buf_append(&text, name, 1);
    }
    if (!rc && !(log->name = mem_strdup(buf_text(&text))))
        rc = HVD_E_NOMEM;
    buf_release(&text);
    if (rc)
        sample_log_release(log);
    return rc;
}

void sample_log_release(struct sample_log *log)
{
    if (log->fd >= 0)
        close(log->fd);
    mem_free(log->path);
    mem_free(log->name);
    buf_release(&log->line);
    *log = (struct sample_log){ .fd = -1 };
}

/* Reports a failed system call on the log, with the text of errno. */
static int log_failed(const struct sample_log *log, const char *what, struct hvd_err *err)
{
    return err_set(err, HVD_E_IO,
                   "%s: cannot %s: %s; set HVD_SAMPLE_LOG to a folder that this user may write, on "
                   "a disk with free space",
                   log->path, what, strerror(errno));
}

/* Appends the line of one batch to the log. After an error the part of the line that was written is
 * cut off, if that is possible. */
int sample_log_write(struct sample_log *log, const struct sample_place *place,
                     const hvd_batch *batch, struct hvd_err *err)
{
    struct buf *line = &log->line;
    size_t done = 0;
    off_t before;
    char *slash;
    int rc;

    if (!log->path)
        return 0;
    buf_clear(line);
    rc = buf_printf(line,
                    "batch %s %" PRIu64 " %" PRIu64 " %zu %" PRIu64 " %" PRIu32 " %" PRIu32
                    " %" PRIu64 ":",
                    log->name, batch->epoch, batch->first, batch->total, place->round, place->rank,
                    place->size, log->samples);
    for (size_t i = 0; !rc && i < batch->count; i++)
        rc = buf_printf(line, " %" PRIu64, batch->samples[i]);
    if (!rc)
        rc = buf_append(line, "\n", 1);
    if (rc == HVD_E_LIMIT)
        return err_set(err, rc,
                       "%s: a batch of %zu samples for one rank makes a line longer than %d bytes "
                       "(LIMIT_SAMPLE_LINE_BYTES); use a smaller batch, or unset HVD_SAMPLE_LOG",
                       log->path, batch->count, LIMIT_SAMPLE_LINE_BYTES);
    if (rc)
        return err_set(err, rc, "%s: no memory for a line of this log; free memory on this host",
                       log->path);
    if (log->fd < 0) {
        slash = strrchr(log->path, '/');
        *slash = '\0';
        /* if the folder cannot be made, open fails and says why */
        (void)mkdir(*log->path ? log->path : "/", 0700);
        *slash = '/';
        log->fd = open(log->path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (log->fd < 0)
            return log_failed(log, "open", err);
    }
    /* The log gets the whole line or nothing: when the disk is full, the part that was written is
     * cut off again. */
    before = lseek(log->fd, 0, SEEK_END);
    while (done < line->length) {
        ssize_t got = write(log->fd, line->data + done, line->length - done);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0) {
            rc = log_failed(log, "write", err);
            /* if the file cannot be cut, a part of the line stays; it has no newline, so hvd-audit
             * ignores it */
            if (done && ftruncate(log->fd, before))
                return rc;
            return rc;
        }
        done += (size_t)got;
    }
    return 0;
}
