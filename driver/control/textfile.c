/*
 * textfile.c: writes the file of --metrics-textfile. shown.c owns it. The driver's thread makes the
 * text, and another thread writes it to the disk; the mutex covers the text that waits between
 * them, and is never held during a write. Invariant: the path leads to a whole text or to none,
 * because a text is written under another name, and then renamed.
 */
#include "driver/control/textfile.h"

#include "base/limits.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "base/time.h"
#include "driver/control/metrics.h"
#include "os/clock.h"
#include "os/remedy.h"
#include "os/thread.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PROM  ".prom" /* node_exporter reads no other file */
#define FRESH ".new"  /* the end of the name under which a text is written */
/* Until the driver does its work, it is asked again after this time. */
#define BEGIN_US (100 * TIME_MS)

struct textfile {
    const struct scrapes_ops *ops;
    void *arg;
    struct event *timer;
    bool begun; /* the first text was made */

    pthread_t thread;
    pthread_mutex_t mutex; /* protects the fields below up to `abandoned` */
    /* signalled when a text waits, and when the thread must end or has ended */
    pthread_cond_t more;
    struct buf waiting; /* the newest text */
    bool waits;         /* the thread has not taken the newest text yet */
    bool failing;       /* the file is not written, and a warning about it was logged */
    bool ending;
    bool ended;
    /* textfile_free waits no longer, because the disk hangs: the thread frees everything when it
     * ends */
    bool abandoned;

    struct buf text; /* only the thread uses it */
    char path[LIMIT_PATH_BYTES];
    char fresh[LIMIT_PATH_BYTES + sizeof(FRESH)];
};

/* ---- the thread that writes ------------------------------------------------------------------ */

/* Writes the text under the other name, and renames it. The file is not forced to the disk: after a
 * power failure its values would be old in any case. */
static int textfile_write(const struct textfile *own, struct hvd_err *err)
{
    int number = 0;
    size_t done = 0;
    int fd = -1;

    /* A file that a former driver has left is removed, and so is a link of another user. */
    if (unlink(own->fresh) && errno != ENOENT)
        number = errno;
    if (!number && (fd = open(own->fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644)) < 0)
        number = errno;
    if (fd >= 0)
        (void)fchmod(fd, 0644); /* node_exporter reads it as another user, so no umask counts */
    while (!number && done < own->text.length) {
        ssize_t put = write(fd, own->text.data + done, own->text.length - done);

        if (put < 0 && errno != EINTR)
            number = errno;
        done += put > 0 ? (size_t)put : 0;
    }
    if (fd >= 0 && close(fd) && !number)
        number = errno;
    if (!number && rename(own->fresh, own->path))
        number = errno;
    if (!number)
        return 0;
    (void)unlink(own->fresh); /* on a full disk a part of a text is only in the way */
    return remedy_set(err, own->path, "the metrics cannot be written", number);
}

/* Frees the textfile when no thread uses it any more. */
static void textfile_destroy(struct textfile *own)
{
    pthread_cond_destroy(&own->more);
    pthread_mutex_destroy(&own->mutex);
    buf_release(&own->waiting);
    buf_release(&own->text);
    mem_free(own);
}

/* The function of the thread: writes the newest text, until textfile_end and until no text waits.
 */
static void *textfile_thread(void *arg)
{
    struct textfile *own = arg;
    struct hvd_err err;
    struct buf newest;
    bool abandoned;
    int rc;

    pthread_mutex_lock(&own->mutex);
    for (;;) {
        while (!own->waits && !own->ending)
            pthread_cond_wait(&own->more, &own->mutex);
        if (!own->waits)
            break;
        newest = own->waiting;
        own->waiting = own->text;
        own->text = newest;
        own->waits = false;
        pthread_mutex_unlock(&own->mutex);
        rc = textfile_write(own, &err);
        pthread_mutex_lock(&own->mutex);
        if (rc && !own->failing)
            log_warning(JOB, "the job goes on with old metrics in its file: %s", err.text);
        if (!rc && own->failing)
            log_info(JOB, "%s: the metrics are written again", own->path);
        own->failing = rc != 0;
    }
    own->ended = true;
    abandoned = own->abandoned;
    pthread_cond_signal(&own->more);
    pthread_mutex_unlock(&own->mutex);
    if (abandoned)
        textfile_destroy(own);
    return NULL;
}

/* ---- the driver's thread --------------------------------------------------------------------- */

int textfile_check(const char *path, bool folder, struct hvd_err *err)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    size_t length = strlen(name);
    char place[LIMIT_PATH_BYTES];
    struct hvd_err why;
    int rc;

    if (strlen(path) >= sizeof(place))
        return err_set(err, HVD_E_LIMIT,
                       "--metrics-textfile: the path is longer than %d bytes (LIMIT_PATH_BYTES); "
                       "name a shorter one",
                       LIMIT_PATH_BYTES);
    if (length <= strlen(PROM) || strcmp(name + length - strlen(PROM), PROM) != 0)
        return err_set(err, HVD_E_INVAL,
                       "--metrics-textfile %s: node_exporter reads only files whose names end in "
                       "%s; give such a name",
                       path, PROM);
    /* "FOLDER/." is an error also if FOLDER is a file. */
    snprintf(place, sizeof(place), "%.*s.", (int)(name - path), path);
    if (!folder || access(place, W_OK | X_OK) == 0)
        return 0;
    snprintf(place, sizeof(place), "%.*s", name - path > 1 ? (int)(name - path - 1) : 1,
             slash ? path : ".");
    rc = remedy_set(&why, place, "no file can be made in this folder", errno);
    return err_set(err, rc, "--metrics-textfile: %s", why.text);
}

/* Makes the metrics of this moment, and gives them to the thread in place of a text that still
 * waits. */
static void textfile_make(struct textfile *own)
{
    struct table_facts facts;
    struct core_view view;
    int rc;

    core_view_init(&view);
    rc = own->ops->view(own->arg, &view, &facts);
    pthread_mutex_lock(&own->mutex);
    buf_clear(&own->waiting);
    if (!rc)
        rc = metrics_write(&view, &facts, false /* not OpenMetrics */, &own->waiting);
    own->waits = !rc;
    pthread_cond_signal(&own->more);
    pthread_mutex_unlock(&own->mutex);
    core_view_release(&view);
    if (rc)
        log_warning(JOB, "%s: the metrics cannot be made: %s; the file keeps its old values",
                    own->path, err_text(rc));
}

/* Makes the text that is due, unless the driver does not do its work, and arms the timer. */
static void textfile_on_timer(evutil_socket_t fd, short what, void *arg)
{
    struct textfile *own = arg;
    bool works = !own->ops->trouble(own->arg);
    struct timeval next;

    (void)fd;
    (void)what;
    /* The thread has not taken the last text, so it still writes an earlier one. */
    pthread_mutex_lock(&own->mutex);
    if (own->waits && !own->failing) {
        own->failing = true;
        log_warning(JOB,
                    "the job goes on with old metrics in its file: %s: a write has not ended for "
                    "%" PRId64 " s; check its file system",
                    own->path, TEXTFILE_EVERY_US / TIME_S);
    }
    pthread_mutex_unlock(&own->mutex);
    if (works)
        textfile_make(own);
    own->begun = own->begun || works;
    next = clock_timeval(own->begun ? TEXTFILE_EVERY_US : BEGIN_US);
    (void)event_add(own->timer, &next);
}

int textfile_create(struct event_base *base, const char *path, const struct scrapes_ops *ops,
                    void *arg, struct textfile **ret_textfile, struct hvd_err *err)
{
    struct textfile *own = mem_zalloc(sizeof(*own));
    int rc = HVD_E_NOMEM;

    if (!own || thread_cond_init(&own->more)) {
        mem_free(own);
        return err_set(err, rc, "no memory for --metrics-textfile; free memory on this host");
    }
    pthread_mutex_init(&own->mutex, NULL);
    buf_init(&own->waiting, LIMIT_METRICS_BYTES);
    buf_init(&own->text, LIMIT_METRICS_BYTES);
    own->ops = ops;
    own->arg = arg;
    snprintf(own->path, sizeof(own->path), "%s", path);
    snprintf(own->fresh, sizeof(own->fresh), "%s%s", own->path, FRESH);
    own->timer = evtimer_new(base, textfile_on_timer, own);
    if (!own->timer)
        err_set(err, rc, "no memory for --metrics-textfile; free memory on this host");
    else if ((rc = thread_start(&own->thread, 0, textfile_thread, own)))
        err_set(err, rc, "%s: no thread can be started to write this file; raise ulimit -u", path);
    if (!rc) {
        textfile_on_timer(-1, 0, own);
        *ret_textfile = own;
        return 0;
    }
    if (own->timer)
        event_free(own->timer);
    textfile_destroy(own);
    return rc;
}

void textfile_end(struct textfile *textfile, bool last)
{
    if (!textfile)
        return;
    event_free(textfile->timer);
    if (last)
        textfile_make(textfile);
    pthread_mutex_lock(&textfile->mutex);
    textfile->ending = true;
    /* The values of a driver that was replaced come after those of the next one. */
    textfile->waits = textfile->waits && last;
    pthread_cond_signal(&textfile->more);
    pthread_mutex_unlock(&textfile->mutex);
}

/* If the disk hangs for longer than TEXTFILE_LAST_US, the textfile is abandoned: the thread frees
 * it later, or never. */
void textfile_free(struct textfile *textfile)
{
    const int64_t until_us = clock_now_us() + TEXTFILE_LAST_US;
    pthread_t thread;
    bool ended;

    if (!textfile)
        return;
    thread = textfile->thread;
    pthread_mutex_lock(&textfile->mutex);
    while (!textfile->ended && !thread_cond_wait(&textfile->more, &textfile->mutex, until_us))
        continue;
    ended = textfile->ended;
    textfile->abandoned = !ended;
    if (!ended)
        log_warning(JOB,
                    "%s: a write hangs, so the last metrics are missing; check its file system",
                    textfile->path);
    pthread_mutex_unlock(&textfile->mutex);
    if (ended) {
        thread_join(thread);
        textfile_destroy(textfile);
    } else {
        thread_abandon(thread);
    }
}
