/*
 * events.c: the job's event log: a ring of lines in memory for control clients, and events.log on
 * disk. The driver's thread adds lines and reads the ring; another thread writes the file. The ring
 * is written only by the driver's thread, under the mutex; the file and `batch` are used only by
 * the file's thread. If the disk hangs, the file loses lines, but the driver loses no time.
 */
#include "driver/control/events.h"

#include "base/limits.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/time.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BATCH_LINES 64 /* the most lines that the thread writes at once */
#define LINE_BYTES \
    (TIME_STAMP_MAX + EVENTS_MARK_MAX + TRACE_LINE_MAX + EVENT_FACTS_MAX + sizeof(" \t\n"))
#define BATCH_BYTES (BATCH_LINES * LINE_BYTES)
/* The end that a line gets whose writer has died inside it; event_facts_json knows it by the tab.
 */
#define TORN_END "\t\n"

/* The file; only the thread that writes it uses this struct. */
struct event_file {
    int fd; /* the descriptor of events.log; -1: it is not open */
    int64_t bytes;
    bool failing; /* writes fail now, and a warning about that was logged */
    bool torn;    /* the file ends in the middle of a line */
    /* how many lines are missing in the file, since the last line that was written */
    uint64_t lost;
    char text[BATCH_BYTES];
};

struct events {
    const char *job;
    struct event_line *ring;
    /* how many lines were added; the newest is at (added - 1) % LIMIT_EVENTS_KEPT */
    uint64_t added;
    struct list followers;

    bool has_thread;
    pthread_t thread;
    pthread_mutex_t mutex; /* protects ring, added and the fields below up to `abandoned` */
    /* signalled when lines were added, and when a thread must end or has ended */
    pthread_cond_t more;
    bool ending;
    bool ended; /* the thread has written all lines, and ends */
    /* events_free waits for the thread no longer, because the disk hangs; the thread frees
     * everything when it ends */
    bool abandoned;

    uint64_t taken; /* how many lines the thread has taken from the ring, or has lost */
    struct event_line batch[BATCH_LINES];
    struct event_file file;
    char *path;
};

/* ---- the text of a line ---------------------------------------------------------------------- */

static const struct {
    const char *severity, *mark;
} events_levels[] = {
    [TRACE_ERROR] = {"error",    "error: "  },
    [TRACE_WARNING] = { "warning", "warning: "},
    [TRACE_INFO] = { "info",    ""         },
    [TRACE_DETAIL] = { "debug",   "debug: "  },
};

const char *events_severity(enum trace_level level)
{
    return events_levels[level].severity;
}

const char *events_mark(enum trace_level level)
{
    return events_levels[level].mark;
}

/* Splits a line at the first blank and the first tab: the time, the text, and the facts. The
 * severity before the text becomes the level. */
struct events_parsed events_parse(struct span line)
{
    struct events_parsed parsed = { .level = TRACE_INFO };

    parsed.facts = line;
    (void)span_next(&parsed.facts, '\t', &line);
    (void)span_next(&line, ' ', &parsed.moment);
    for (size_t i = 0; i < ARRAY_SIZE(events_levels) && parsed.level == TRACE_INFO; i++)
        if (*events_levels[i].mark && span_take(&line, events_levels[i].mark))
            parsed.level = (enum trace_level)i;
    parsed.text = line;
    return parsed;
}

/* Reads events.log. If it ends inside a line, TORN_END completes that line. */
int events_read(const char *path, struct buf *text, struct hvd_err *err)
{
    int rc = file_read(path, text, err);

    if (rc || !text->length || text->data[text->length - 1] == '\n')
        return rc;
    text->max += strlen(TORN_END); /* the buffer may be full, so it gets room for the end */
    rc = buf_append_text(text, TORN_END);
    if (rc)
        err_set(err, rc, "%s: no memory to read this file; free memory on this host", path);
    return rc;
}

/* ---- the file -------------------------------------------------------------------------------- */

/* Closes the file after an operation has failed; `what` names the operation, and errno is the
 * reason. Of several failures in a row only the first is logged. The next batch tries to open the
 * file again. */
static void events_file_failed(struct events *events, const char *what)
{
    struct event_file *file = &events->file;

    if (!file->failing)
        log_warning(STATE,
                    "%s: cannot %s: %s; until this file can be written, events are missing in it; "
                    "'hvd-elastic events' shows the newest ones from memory",
                    events->path, what, strerror(errno));
    file->failing = true;
    if (file->fd >= 0)
        close(file->fd);
    file->fd = -1;
}

/* Opens the file if it is not open. False: it cannot be opened. */
static bool events_file_open(struct events *events)
{
    struct event_file *file = &events->file;
    struct stat status;
    char last;
    int fd;

    if (file->fd >= 0)
        return true;
    file->fd = open(events->path, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file->fd < 0 || fstat(file->fd, &status)) {
        events_file_failed(events, "open");
        return false;
    }
    file->bytes = status.st_size;
    /* An earlier driver may have died inside a line: then the file does not end in a newline. */
    fd = status.st_size ? open(events->path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC) : -1;
    file->torn = fd >= 0 && pread(fd, &last, 1, status.st_size - 1) == 1 && last != '\n';
    if (fd >= 0)
        close(fd);
    return true;
}

/* Writes the text to the file. False: the write failed. */
static bool events_file_write(struct events *events, const char *text, size_t length)
{
    struct event_file *file = &events->file;

    while (length > 0) {
        ssize_t put = write(file->fd, text, length);

        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0) {
            events_file_failed(events, "write");
            return false;
        }
        file->bytes += put;
        file->torn = text[put - 1] != '\n';
        text += put;
        length -= (size_t)put;
    }
    return true;
}

/* Writes the first `count` lines of `batch` to the file, and renames a file that has become too
 * long. If the write fails, the lines count as lost. */
static void events_file_write_batch(struct events *events, size_t count)
{
    struct event_file *file = &events->file;
    char line[LIMIT_PATH_BYTES]; /* the new path for the rename; later a line that says how many
                                    lines are missing */
    char moment[TIME_STAMP_MAX];
    size_t length = 0;
    bool opened, written;
    int missing;

    for (size_t i = 0; i < count; i++)
        length += (size_t)snprintf(file->text + length, sizeof(file->text) - length,
                                   "%s %s%s\t%s\n", time_stamp(events->batch[i].wall_us, moment),
                                   events_mark(events->batch[i].level), events->batch[i].text,
                                   events->batch[i].facts);
    opened = events_file_open(events);
    /* A file that cannot be renamed grows further: bytes 0 delays the next attempt. A job must not
     * end because of its log. */
    if (opened && file->bytes >= LIMIT_EVENTS_LOG_BYTES) {
        file->bytes = 0;
        if (snprintf(line, sizeof(line), "%s.1", events->path) < (int)sizeof(line) &&
            !rename(events->path, line)) {
            close(file->fd);
            file->fd = -1;
            opened = events_file_open(events);
        }
    }
    /* An incomplete last line of the file gets an end that says so (event_facts.h). After lines
     * were lost, a line says how many are missing. */
    written = opened && (!file->torn || events_file_write(events, TORN_END, strlen(TORN_END)));
    if (written && file->lost) {
        missing = snprintf(line, sizeof(line),
                           "%s %s(%" PRIu64 " lines are missing here)\tjob=%s\tkind=%s\n",
                           time_stamp(clock_wall_us(), moment), events_mark(TRACE_WARNING),
                           file->lost, events->job, facts_kind_name(KIND_LINES_MISSING));
        written = events_file_write(events, line, (size_t)missing);
    }
    if (written && file->failing)
        log_info(STATE, "%s: the file can be written again; %" PRIu64 " lines are missing in it",
                 events->path, file->lost);
    if (written) {
        file->failing = false;
        file->lost = 0;
    }
    if (!written || !events_file_write(events, file->text, length))
        file->lost += count;
}

/* Frees the log when no thread uses it any more. */
static void events_destroy(struct events *events)
{
    int fd = events->file.fd;

    pthread_cond_destroy(&events->more);
    pthread_mutex_destroy(&events->mutex);
    mem_free(events->path);
    mem_free(events->ring);
    mem_free(events);
    if (fd >= 0)
        /* The file is closed last: if it is a pipe, its reader knows by the end of the pipe that
         * everything else is freed. */
        close(fd);
}

/* The function of the file's thread: takes lines from the ring into `batch` and writes them, until
 * events_free ends it. */
static void *events_thread(void *arg)
{
    struct events *events = arg;
    bool abandoned;

    pthread_mutex_lock(&events->mutex);
    for (;;) {
        size_t count = 0;

        /* More lines were added than the ring keeps: the oldest were overwritten before this thread
         * took them, and the file will not have them. */
        if (events->added - events->taken > LIMIT_EVENTS_KEPT) {
            events->file.lost += events->added - events->taken - LIMIT_EVENTS_KEPT;
            events->taken = events->added - LIMIT_EVENTS_KEPT;
        }
        while (count < BATCH_LINES && events->taken < events->added)
            events->batch[count++] = events->ring[events->taken++ % LIMIT_EVENTS_KEPT];
        if (count == 0 && events->ending)
            break;
        if (count == 0) {
            pthread_cond_wait(&events->more, &events->mutex);
            continue;
        }
        pthread_mutex_unlock(&events->mutex);
        events_file_write_batch(events, count);
        pthread_mutex_lock(&events->mutex);
    }
    events->ended = true;
    abandoned = events->abandoned;
    pthread_cond_signal(&events->more);
    pthread_mutex_unlock(&events->mutex);
    if (abandoned)
        events_destroy(events);
    return NULL;
}

/* Makes the event log in memory, and starts the thread that writes the file. folder NULL: there is
 * neither a file nor a thread. */
int events_create(const char *folder, const char *job, struct events **ret_events,
                  struct hvd_err *err)
{
    struct events *events = mem_zalloc(sizeof(*events));
    size_t path_size = folder ? strlen(folder) + sizeof("/events.log") : 0;
    int rc = 0;

    if (!events || thread_cond_init(&events->more)) {
        mem_free(events);
        return err_set(err, HVD_E_NOMEM, "%s", err_text(HVD_E_NOMEM));
    }
    events->job = job;
    list_init(&events->followers);
    pthread_mutex_init(&events->mutex, NULL);
    events->file.fd = -1;
    events->ring = mem_zalloc_array(LIMIT_EVENTS_KEPT, sizeof(*events->ring));
    events->path = folder ? mem_alloc(path_size) : NULL;
    if (!events->ring || (folder && !events->path)) {
        rc = err_set(err, HVD_E_NOMEM, "%s", err_text(HVD_E_NOMEM));
    } else if (folder) {
        snprintf(events->path, path_size, "%s/events.log", folder);
        rc = thread_start(&events->thread, 0, events_thread, events);
        events->has_thread = rc == 0;
        if (rc)
            err_set(err, rc, "%s: no thread can be started to write this file; raise ulimit -u",
                    events->path);
    }
    if (rc)
        events_destroy(events);
    else
        *ret_events = events;
    return rc;
}

/* Ends the thread and frees the log. The wait for the thread is EVENTS_LAST_US at most, by the
 * monotonic clock, because the wall clock may be set back. If the disk hangs longer, the log is
 * abandoned: the thread frees it later, or never. */
void events_free(struct events *events)
{
    int64_t until_us = clock_now_us() + EVENTS_LAST_US;
    pthread_t thread;
    bool ended;

    if (!events)
        return;
    LIST_EACH_SAFE (it, after, &events->followers)
        list_remove(it);
    if (!events->has_thread) {
        events_destroy(events);
        return;
    }
    thread = events->thread;
    pthread_mutex_lock(&events->mutex);
    events->ending = true;
    pthread_cond_signal(&events->more);
    while (!events->ended && !thread_cond_wait(&events->more, &events->mutex, until_us))
        continue;
    ended = events->ended;
    events->abandoned = !ended;
    pthread_mutex_unlock(&events->mutex);
    if (ended) {
        pthread_join(thread, NULL);
        events_destroy(events);
    } else {
        thread_abandon(thread);
    }
}

/* Adds a line to the ring, in place of the oldest line if the ring is full; wakes the thread, and
 * calls all followers. A follower may unfollow in its callback. */
void events_add(struct events *events, enum trace_level level, const struct facts *facts,
                const char *text)
{
    struct event_line *line = &events->ring[events->added % LIMIT_EVENTS_KEPT];

    pthread_mutex_lock(&events->mutex);
    line->wall_us = clock_wall_us();
    snprintf(line->text, sizeof(line->text), "%s", text);
    for (char *at = line->text; *at; at++)
        if ((unsigned char)*at < ' ' || *at == 0x7f) /* a tab would end the text in the file */
            *at = ' ';
    event_facts_write(events->job, facts, line->facts);
    line->level = level;
    line->kind = facts ? facts->kind : KIND_NONE;
    line->number = ++events->added;
    pthread_cond_signal(&events->more);
    pthread_mutex_unlock(&events->mutex);
    LIST_EACH_SAFE (it, after, &events->followers) {
        /* `link` is the first field of struct events_follower */
        struct events_follower *follower = (struct events_follower *)it;

        follower->line(follower->arg, line);
    }
}

/* Calls `visit` with each of the newest `most` lines, from the oldest to the newest, until it
 * returns false. */
void events_each(const struct events *events, size_t most, events_fn *visit, void *arg)
{
    uint64_t kept = events->added < LIMIT_EVENTS_KEPT ? events->added : LIMIT_EVENTS_KEPT;
    uint64_t at = events->added - (most < kept ? most : kept);

    /* No lock is needed: only the driver's thread, which calls this function, writes to the ring.
     */
    for (; at < events->added; at++)
        if (!visit(arg, &events->ring[at % LIMIT_EVENTS_KEPT]))
            return;
}

void events_follow(struct events *events, struct events_follower *follower)
{
    list_append(&events->followers, &follower->link);
}

void events_unfollow(struct events_follower *follower)
{
    list_remove(&follower->link);
}
