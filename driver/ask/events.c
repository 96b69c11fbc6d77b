#include "driver/ask/events.h"

#include "base/limits.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/time.h"
#include "driver/ask/tables.h"
#include "os/clock.h"
#include "os/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define BATCH_LINES 64
#define BATCH_BYTES (BATCH_LINES * (TRACE_LINE_MAX + TIME_STAMP_MAX + 2))

/* The file, as only the thread knows it. */
struct event_file {
    int fd; /* -1: not open */
    int64_t bytes;
    bool failing; /* and it was said */
    bool torn;    /* it ends within a line */
    uint64_t lost;
    char text[BATCH_BYTES];
};

struct events {
    struct event_line *ring;
    uint64_t added;
    struct list followers;

    bool has_thread;
    pthread_t thread;
    pthread_mutex_t mutex; /* of ring, added and what follows */
    pthread_cond_t more;   /* lines, or the end */
    bool ending;
    bool ended; /* the thread has written what there was */
    bool left;  /* to the thread, whose disk hangs: it frees what there is */

    uint64_t taken; /* lines that the thread has taken, or has lost */
    struct event_line batch[BATCH_LINES];
    struct event_file file;
    char *path;
};

/* ---- the file ----------------------------------------------------------------------------------
 */

static void file_failed(struct events *events, const char *what)
{
    struct event_file *file = &events->file;

    if (!file->failing)
        log_warning(STATE, "%s: cannot %s: %s; events are kept in memory meanwhile", events->path,
                    what, strerror(errno));
    file->failing = true;
    if (file->fd >= 0)
        close(file->fd);
    file->fd = -1;
}

static bool file_open(struct events *events)
{
    struct event_file *file = &events->file;
    struct stat status;

    if (file->fd >= 0)
        return true;
    file->fd = open(events->path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (file->fd < 0 || fstat(file->fd, &status)) {
        file_failed(events, "open");
        return false;
    }
    file->bytes = status.st_size;
    return true;
}

/* One that cannot be renamed goes on growing: a log is not worth a job. */
static void file_rotate(struct events *events)
{
    struct event_file *file = &events->file;
    char older[LIMIT_PATH_BYTES];

    if (file->bytes < LIMIT_EVENTS_LOG_BYTES)
        return;
    file->bytes = 0;
    if (snprintf(older, sizeof(older), "%s.1", events->path) >= (int)sizeof(older) ||
        rename(events->path, older))
        return;
    close(file->fd);
    file->fd = -1;
}

static bool file_write(struct events *events, const char *text, size_t length)
{
    struct event_file *file = &events->file;

    while (length > 0) {
        ssize_t put = write(file->fd, text, length);

        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0) {
            file_failed(events, "write");
            return false;
        }
        file->bytes += put;
        file->torn = text[put - 1] != '\n';
        text += put;
        length -= (size_t)put;
    }
    return true;
}

/* What stands before the first line after a time in which lines were lost. */
static bool file_recovers(struct events *events)
{
    struct event_file *file = &events->file;
    char text[TIME_STAMP_MAX + 64];
    char moment[TIME_STAMP_MAX];

    if (file->torn && !file_write(events, "\n", 1))
        return false;
    if (file->lost) {
        int length = snprintf(text, sizeof(text), "%s (%" PRIu64 " lines are missing here)\n",
                              time_stamp(clock_wall_us(), moment), file->lost);

        if (!file_write(events, text, (size_t)length))
            return false;
    }
    if (file->failing)
        log_info(STATE, "%s: it can be written again, without %" PRIu64 " lines", events->path,
                 file->lost);
    file->failing = false;
    file->lost = 0;
    return true;
}

static void file_put(struct events *events, size_t count)
{
    struct event_file *file = &events->file;
    size_t length = 0;
    bool opened;

    for (size_t i = 0; i < count; i++) {
        char moment[TIME_STAMP_MAX];

        length +=
            (size_t)snprintf(file->text + length, sizeof(file->text) - length, "%s %s\n",
                             time_stamp(events->batch[i].wall_us, moment), events->batch[i].text);
    }
    opened = file_open(events);
    if (opened) {
        file_rotate(events);
        opened = file_open(events);
    }
    if (!opened || !file_recovers(events) || !file_write(events, file->text, length))
        file->lost += count;
}

/* ---- the thread --------------------------------------------------------------------------------
 */

/* Copies what it can at a time; the mutex is held. */
static size_t take_batch(struct events *events)
{
    size_t count = 0;

    if (events->added - events->taken > LIMIT_EVENTS_KEPT) {
        events->file.lost += events->added - events->taken - LIMIT_EVENTS_KEPT;
        events->taken = events->added - LIMIT_EVENTS_KEPT;
    }
    while (count < BATCH_LINES && events->taken < events->added) {
        events->batch[count] = events->ring[events->taken % LIMIT_EVENTS_KEPT];
        count++;
        events->taken++;
    }
    return count;
}

/* The file is closed last: who reads it from a pipe knows then that nothing is left. */
static void events_destroy(struct events *events)
{
    int fd = events->file.fd;

    pthread_cond_destroy(&events->more);
    pthread_mutex_destroy(&events->mutex);
    mem_free(events->path);
    mem_free(events->ring);
    mem_free(events);
    if (fd >= 0)
        close(fd);
}

static void *write_lines(void *arg)
{
    struct events *events = arg;
    bool left;

    pthread_mutex_lock(&events->mutex);
    for (;;) {
        size_t count = take_batch(events);

        if (count == 0 && events->ending)
            break;
        if (count == 0) {
            pthread_cond_wait(&events->more, &events->mutex);
            continue;
        }
        pthread_mutex_unlock(&events->mutex);
        file_put(events, count);
        pthread_mutex_lock(&events->mutex);
    }
    events->ended = true;
    left = events->left;
    pthread_cond_signal(&events->more);
    pthread_mutex_unlock(&events->mutex);
    if (left)
        events_destroy(events);
    return NULL;
}

static int start_thread(struct events *events, struct hvd_err *err)
{
    int rc = thread_start(&events->thread, 0, write_lines, events);

    if (rc)
        return err_set(err, rc, "%s: no thread can be started for it; raise ulimit -u",
                       events->path);
    events->has_thread = true;
    return 0;
}

/* ---- for the driver's thread -------------------------------------------------------------------
 */

/* NULL without memory. */
static char *log_path(const char *folder)
{
    size_t size = strlen(folder) + sizeof("/events.log");
    char *path = mem_alloc(size);

    if (path)
        snprintf(path, size, "%s/events.log", folder);
    return path;
}

int events_create(const char *folder, struct events **ret_events, struct hvd_err *err)
{
    struct events *events = mem_zalloc(sizeof(*events));
    int rc = 0;

    if (!events || thread_cond_init(&events->more)) {
        mem_free(events);
        return err_set(err, HVD_E_NOMEM, "%s", err_text(HVD_E_NOMEM));
    }
    list_init(&events->followers);
    pthread_mutex_init(&events->mutex, NULL);
    events->file.fd = -1;
    events->ring = mem_zalloc_array(LIMIT_EVENTS_KEPT, sizeof(*events->ring));
    events->path = folder ? log_path(folder) : NULL;
    if (!events->ring || (folder && !events->path))
        rc = err_set(err, HVD_E_NOMEM, "%s", err_text(HVD_E_NOMEM));
    if (!rc && folder)
        rc = start_thread(events, err);
    if (rc) {
        events_destroy(events);
        return rc;
    }
    *ret_events = events;
    return 0;
}

/* False: its disk hangs, and what it uses is left to it. By the monotonic clock: a wall clock that
 * is set back meanwhile must not hold up the end. */
static bool thread_ends(struct events *events)
{
    int64_t until_us = clock_now_us() + EVENTS_LAST_US;
    pthread_t thread = events->thread;
    bool ended;

    pthread_mutex_lock(&events->mutex);
    events->ending = true;
    pthread_cond_signal(&events->more);
    while (!events->ended && !thread_cond_wait(&events->more, &events->mutex, until_us))
        continue;
    ended = events->ended;
    events->left = !ended;
    pthread_mutex_unlock(&events->mutex);
    if (ended)
        pthread_join(thread, NULL);
    else
        pthread_detach(thread);
    return ended;
}

void events_free(struct events *events)
{
    if (!events)
        return;
    LIST_EACH_SAFE (it, after, &events->followers)
        list_remove(it);
    if (!events->has_thread || thread_ends(events))
        events_destroy(events);
}

void events_add(struct events *events, const char *text)
{
    struct event_line *line = &events->ring[events->added % LIMIT_EVENTS_KEPT];

    pthread_mutex_lock(&events->mutex);
    line->wall_us = clock_wall_us();
    snprintf(line->text, sizeof(line->text), "%s", text);
    events->added++;
    pthread_cond_signal(&events->more);
    pthread_mutex_unlock(&events->mutex);
    LIST_EACH_SAFE (it, after, &events->followers) {
        struct events_follower *follower = (struct events_follower *)it; /* link comes first */

        follower->line(follower->arg, line);
    }
}

void events_each(const struct events *events, size_t most, events_fn *visit, void *arg)
{
    uint64_t kept = events->added < LIMIT_EVENTS_KEPT ? events->added : LIMIT_EVENTS_KEPT;
    uint64_t at = events->added - (most < kept ? most : kept);

    /* Only this thread writes to the ring. */
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
