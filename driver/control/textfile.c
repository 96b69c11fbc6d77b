/*
 * textfile.c: writes the file of --metrics-textfile. driver/io/shown.c owns it. The driver's thread
 * makes the text, and another thread writes it to the disk. The mutex protects the text that waits
 * between the two threads, and is never held during a write. Invariant: the path leads to a whole
 * text or to no file, because a text is written under another name, and then renamed.
 */
#include "driver/control/textfile.h"

#include "base/limits.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "base/time.h"
#include "driver/control/metrics.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/remedy.h"
#include "os/thread.h"

#include <errno.h>
#include <event2/event.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PROM  ".prom" /* node_exporter reads no other file */
#define FRESH ".new"  /* a text is first written to NAME.prom.new */
/* Until the driver does its work for the first time, the timer fires after so long. */
#define BEGIN_US (100 * TIME_MS)

struct textfile {
    const struct scrapes_ops *ops;
    void *arg;
    struct event *timer;
    bool begun; /* true: the first text was made, so texts are made every TEXTFILE_EVERY_US */

    pthread_t thread;
    pthread_mutex_t mutex; /* protects the fields below up to `abandoned` */
    /* signalled when a text waits, and when the thread must end or has ended */
    pthread_cond_t more;
    struct buf waiting; /* the newest text that the driver's thread has made */
    bool waits;         /* true: the thread has not taken the newest text yet */
    bool failing;       /* the file is not written, and a warning about it was logged */
    bool ending;
    bool ended;
    /* textfile_free does not wait for the thread any longer, because the disk hangs: the thread
     * frees everything when it ends */
    bool abandoned;

    struct buf text; /* the text that the thread writes; no other thread uses it */
    char path[LIMIT_PATH_BYTES];
    char fresh[LIMIT_PATH_BYTES + sizeof(FRESH)]; /* the path to which a text is written first */
};

/* ---- the thread that writes ------------------------------------------------------------------ */

/* Frees the textfile when no thread uses it any more. */
static void textfile_destroy(struct textfile *textfile)
{
    pthread_cond_destroy(&textfile->more);
    pthread_mutex_destroy(&textfile->mutex);
    buf_release(&textfile->waiting);
    buf_release(&textfile->text);
    mem_free(textfile);
}

/* The function of the thread: writes the newest text as often as one waits, until textfile_end. To
 * take the text it exchanges the buffers `waiting` and `text`. */
static void *textfile_thread(void *arg)
{
    struct textfile *textfile = arg;
    struct hvd_err err;
    struct buf newest;
    bool abandoned;
    int error_number;

    pthread_mutex_lock(&textfile->mutex);
    for (;;) {
        while (!textfile->waits && !textfile->ending)
            pthread_cond_wait(&textfile->more, &textfile->mutex);
        if (!textfile->waits)
            break;
        newest = textfile->waiting;
        textfile->waiting = textfile->text;
        textfile->text = newest;
        textfile->waits = false;
        pthread_mutex_unlock(&textfile->mutex);
        /* The file is not forced to the disk: after a power failure its values would be old in any
         * case. Another user (node_exporter) must be able to read it. */
        error_number = file_replace(textfile->path, textfile->fresh, &textfile->text, 0644);
        if (error_number)
            remedy_set(&err, textfile->path, "the metrics cannot be written", error_number);
        pthread_mutex_lock(&textfile->mutex);
        if (error_number && !textfile->failing)
            log_warning(JOB, "the job goes on with old metrics in its file: %s", err.text);
        if (!error_number && textfile->failing)
            log_info(JOB, "%s: the metrics are written again", textfile->path);
        textfile->failing = error_number != 0;
    }
    textfile->ended = true;
    abandoned = textfile->abandoned;
    pthread_cond_signal(&textfile->more);
    pthread_mutex_unlock(&textfile->mutex);
    if (abandoned)
        textfile_destroy(textfile);
    return NULL;
}

/* ---- the driver's thread --------------------------------------------------------------------- */

/* Checks the path of --metrics-textfile before anything is made for the job. With `folder` the
 * folder of the file must be one in which this user can make files. */
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
    /* `place` is "FOLDER/.": access fails for it also if FOLDER is a file. */
    snprintf(place, sizeof(place), "%.*s.", (int)(name - path), path);
    if (!folder || access(place, W_OK | X_OK) == 0)
        return 0;
    snprintf(place, sizeof(place), "%.*s", name - path > 1 ? (int)(name - path - 1) : 1,
             slash ? path : ".");
    rc = remedy_set(&why, place, "no file can be made in this folder", errno);
    return err_set(err, rc, "--metrics-textfile: %s", why.text);
}

/* Makes the metrics of this moment, and gives them to the thread. A text that still waits is
 * replaced. */
static void textfile_make(struct textfile *textfile)
{
    struct table_facts facts;
    struct core_view view;
    int rc;

    core_view_init(&view);
    rc = textfile->ops->view(textfile->arg, &view, &facts);
    pthread_mutex_lock(&textfile->mutex);
    buf_clear(&textfile->waiting);
    if (!rc)
        rc = metrics_write(&view, &facts, false /* not OpenMetrics */, &textfile->waiting);
    textfile->waits = !rc;
    pthread_cond_signal(&textfile->more);
    pthread_mutex_unlock(&textfile->mutex);
    core_view_release(&view);
    if (rc)
        log_warning(JOB, "%s: the metrics cannot be made: %s; the file keeps its old values",
                    textfile->path, err_text(rc));
}

/* Called by the timer: makes a text if the driver does its work, and sets the timer again. */
static void textfile_on_timer(evutil_socket_t fd, short what, void *arg)
{
    struct textfile *textfile = arg;
    bool works = !textfile->ops->trouble(textfile->arg);
    struct timeval next;

    (void)fd;
    (void)what;
    /* If the thread has not taken the text before, it still writes an older one: a write has not
     * ended since the last call. */
    pthread_mutex_lock(&textfile->mutex);
    if (textfile->waits && !textfile->failing) {
        textfile->failing = true;
        log_warning(JOB,
                    "the job goes on with old metrics in its file: %s: a write has not ended for "
                    "%" PRId64 " s; check its file system",
                    textfile->path, TEXTFILE_EVERY_US / TIME_S);
    }
    pthread_mutex_unlock(&textfile->mutex);
    if (works)
        textfile_make(textfile);
    textfile->begun = textfile->begun || works;
    next = clock_timeval(textfile->begun ? TEXTFILE_EVERY_US : BEGIN_US);
    (void)event_add(textfile->timer, &next);
}

/* Starts the thread, and makes the first text at once if the driver does its work. */
int textfile_create(struct event_base *base, const char *path, const struct scrapes_ops *ops,
                    void *arg, struct textfile **ret_textfile, struct hvd_err *err)
{
    struct textfile *textfile = mem_zalloc(sizeof(*textfile));
    int rc = HVD_E_NOMEM;

    if (!textfile || thread_cond_init(&textfile->more)) {
        mem_free(textfile);
        return err_set(err, rc, "no memory for --metrics-textfile; free memory on this host");
    }
    pthread_mutex_init(&textfile->mutex, NULL);
    buf_init(&textfile->waiting, LIMIT_METRICS_BYTES);
    buf_init(&textfile->text, LIMIT_METRICS_BYTES);
    textfile->ops = ops;
    textfile->arg = arg;
    snprintf(textfile->path, sizeof(textfile->path), "%s", path);
    snprintf(textfile->fresh, sizeof(textfile->fresh), "%s%s", textfile->path, FRESH);
    textfile->timer = evtimer_new(base, textfile_on_timer, textfile);
    if (!textfile->timer)
        err_set(err, rc, "no memory for --metrics-textfile; free memory on this host");
    else if ((rc = thread_start(&textfile->thread, 0, textfile_thread, textfile)))
        err_set(err, rc, "%s: no thread can be started to write this file; raise ulimit -u", path);
    if (!rc) {
        textfile_on_timer(-1, 0, textfile);
        *ret_textfile = textfile;
        return 0;
    }
    if (textfile->timer)
        event_free(textfile->timer);
    textfile_destroy(textfile);
    return rc;
}

/* Called at the end of the driver: stops the timer and lets the thread end. `last`: the job has
 * ended, so one more text is made. Does not wait for the thread; textfile_free does. */
void textfile_end(struct textfile *textfile, bool last)
{
    if (!textfile)
        return;
    event_free(textfile->timer);
    if (last)
        textfile_make(textfile);
    pthread_mutex_lock(&textfile->mutex);
    textfile->ending = true;
    /* If the job has not ended, a text that waits is dropped: another driver may have taken the job
     * over, and written newer values. */
    textfile->waits = textfile->waits && last;
    pthread_cond_signal(&textfile->more);
    pthread_mutex_unlock(&textfile->mutex);
}

/* Waits for the end of the thread. If the disk hangs for longer than TEXTFILE_LAST_US, the textfile
 * is abandoned: the thread frees it later, or never. */
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
