#include "worker/sample_log.h"

#include "base/limits.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The name as one word. */
static int format_name(const char *name, struct buf *out)
{
    int rc = 0;

    for (; !rc && *name; name++) {
        if (*name == ' ' || *name == '%')
            rc = buf_printf(out, "%%%02x", (unsigned)*name);
        else
            rc = buf_append(out, name, 1);
    }
    return rc;
}

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
    if (!rc)
        rc = format_name(name, &text);
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

static int failed(const struct sample_log *log, const char *what, struct hvd_err *err)
{
    return err_set(err, HVD_E_IO, "%s: cannot %s: %s; HVD_SAMPLE_LOG must be a folder with room",
                   log->path, what, strerror(errno));
}

static int open_file(struct sample_log *log, struct hvd_err *err)
{
    char *slash = strrchr(log->path, '/');

    *slash = '\0';
    (void)mkdir(*log->path ? log->path : "/", 0777); /* if it cannot be, open says why */
    *slash = '/';
    log->fd = open(log->path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    return log->fd < 0 ? failed(log, "open", err) : 0;
}

static int format_line(struct sample_log *log, const struct sample_place *place,
                       const hvd_batch *batch)
{
    struct buf *line = &log->line;
    int rc;

    buf_clear(line);
    rc = buf_printf(line,
                    "batch %s %" PRIu64 " %" PRIu64 " %zu %" PRIu64 " %" PRIu32 " %" PRIu32
                    " %" PRIu64 ":",
                    log->name, batch->epoch, batch->first, batch->total, place->round, place->rank,
                    place->size, log->samples);
    for (size_t i = 0; !rc && i < batch->count; i++)
        rc = buf_printf(line, " %" PRIu64, batch->samples[i]);
    return rc ? rc : buf_append(line, "\n", 1);
}

/* The whole line, or nothing: what did get to a disk that is full is taken back. */
static int write_line(struct sample_log *log, struct hvd_err *err)
{
    off_t before = lseek(log->fd, 0, SEEK_END);
    size_t done = 0;

    while (done < log->line.length) {
        ssize_t got = write(log->fd, log->line.data + done, log->line.length - done);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0) {
            int rc = failed(log, "write", err);

            if (done && ftruncate(log->fd, before))
                return rc; /* and if not: without its newline nobody takes it for a line */
            return rc;
        }
        done += (size_t)got;
    }
    return 0;
}

int sample_log_write(struct sample_log *log, const struct sample_place *place,
                     const hvd_batch *batch, struct hvd_err *err)
{
    int rc;

    if (!log->path)
        return 0;
    rc = format_line(log, place, batch);
    if (rc == HVD_E_LIMIT)
        return err_set(err, rc,
                       "%s: a share of %zu samples makes a line longer than "
                       "LIMIT_SAMPLE_LINE_BYTES (%d); use a smaller batch, or no HVD_SAMPLE_LOG",
                       log->path, batch->count, LIMIT_SAMPLE_LINE_BYTES);
    if (rc)
        return err_set(err, rc, "%s: %s", log->path, err_text(rc));
    if (log->fd < 0)
        rc = open_file(log, err);
    return rc ? rc : write_line(log, err);
}
