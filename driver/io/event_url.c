/*
 * event_url.c: the thread that tells a web server of events, and the queue before it. shown.c makes
 * the hook, and the log of events calls it for each line, within a step of the core: then the line
 * is only copied. The mutex protects what both threads use; it is never held during a request.
 * Invariants: at most one request runs; a warning of this file is no event.
 */
#include "driver/io/event_url.h"

#include "base/limits.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/rng.h"
#include "base/time.h"
#include "driver/control/event_target.h"
#include "driver/io/event_post.h"
#include "os/clock.h"
#include "os/thread.h"

#include <inttypes.h>
#include <pthread.h>
#include <unistd.h>

/* The pause before an event is posted again: at first, and at most. */
#define PAUSE_FIRST_US (500 * TIME_MS)
#define PAUSE_MOST_US  (30 * TIME_S)
/* An event to which the server answers so often in a row with POST_BROKEN is given up, because the
 * event itself may be the reason. With the pauses this takes about a minute. */
#define BROKEN_MOST 8

struct event_url {
    struct events_follower follower; /* used by the driver's thread only */
    pthread_t thread;

    pthread_mutex_t mutex; /* protects the fields below up to `untold` */
    /* signalled when an event waits, when the end is near, and when the thread has ended */
    pthread_cond_t more;
    struct event_queue queue;
    int64_t until_us; /* the hook is ending: the thread ends at this time; TIME_NEVER: not yet */
    bool ended;
    /* event_url_free waits for the thread no longer: the thread frees everything when it ends */
    bool abandoned;
    uint64_t untold; /* events that the server was not told; known when `ended` is true */

    struct event_post *post; /* used by the thread only, but for event_post_stop */
    int64_t limit_us;        /* how long one request may take */

    /* The fields below are used by the thread only. */
    struct buf line;   /* the event that is told, as JSON */
    uint64_t carried;  /* its field `dropped` */
    uint64_t reported; /* how many of queue.dropped the log has been told already, or `lost`
                          counts */
    uint64_t lost;     /* events that were refused or dropped since the last one that was told */
    enum post_verdict said; /* the worst failure since then, of which the log was told */
    struct rng rng;
};

/* ---- the thread ------------------------------------------------------------------------------ */

/* Frees the hook when no other thread uses it any more. */
static void event_url_destroy(struct event_url *hook)
{
    event_post_free(hook->post);
    pthread_cond_destroy(&hook->more);
    pthread_mutex_destroy(&hook->mutex);
    buf_release(&hook->line);
    mem_free(hook);
}

/* Returns the time at which the thread ends; TIME_NEVER: the hook is not ending. */
static int64_t event_url_until(struct event_url *hook)
{
    int64_t until_us;

    pthread_mutex_lock(&hook->mutex);
    until_us = hook->until_us;
    pthread_mutex_unlock(&hook->mutex);
    return until_us;
}

/* The event that is told could not be told. The log is warned when the first of several events in a
 * row is held up, and when the first is lost. */
static void event_url_failed(struct event_url *hook, enum post_verdict verdict,
                             const struct hvd_err *err)
{
    bool lost = verdict == POST_REFUSED;

    hook->lost += lost;
    if (lost ? hook->said == POST_REFUSED : hook->said != POST_TOLD)
        return;
    hook->said = verdict;
    if (lost)
        log_warning(JOB, "--on-event-url: an event is lost, and the job goes on: %s", err->text);
    else
        log_warning(
            JOB,
            "--on-event-url: an event is held up, and later ones wait; it is sent again, and "
            "the job goes on: %s",
            err->text);
}

/* Waits before the event is posted again: `after_us`, if the server has asked for that, or
 * *pause_us, which doubles, and of which a random part is left out, so that many jobs do not all
 * call a server that has just come back. When the hook begins to end, the pause is over, and pauses
 * are short again. Returns false if the time for the next post would be over. */
static bool event_url_pause(struct event_url *hook, int64_t after_us, int64_t *pause_us)
{
    int64_t pause = *pause_us - (int64_t)rng_below(&hook->rng, (uint64_t)*pause_us / 2);
    int64_t wake_us = clock_now_us() + (after_us > pause ? after_us : pause), until_us;
    bool ending, over = false;

    *pause_us = *pause_us < PAUSE_MOST_US / 2 ? 2 * *pause_us : PAUSE_MOST_US;
    pthread_mutex_lock(&hook->mutex);
    ending = hook->until_us != TIME_NEVER;
    while (!over && wake_us < hook->until_us && ending == (hook->until_us != TIME_NEVER))
        over = thread_cond_wait(&hook->more, &hook->mutex, wake_us);
    until_us = hook->until_us;
    pthread_mutex_unlock(&hook->mutex);
    if (!ending && until_us != TIME_NEVER) {
        *pause_us = PAUSE_FIRST_US;
        return clock_now_us() < until_us;
    }
    return wake_us < until_us;
}

/* Tells the server the event in hook->line, as often as it takes. After failures the log gets the
 * number of events that were lost meanwhile: refused, or dropped because they had no room. Returns
 * POST_TOLD, POST_REFUSED for an event that is lost, or POST_LATER if the time of the hook is over
 * before. */
static enum post_verdict event_url_tell(struct event_url *hook)
{
    int64_t pause_us = PAUSE_FIRST_US, after_us, now_us, until_us;
    enum post_verdict verdict = POST_LATER;
    unsigned broken = 0;
    struct hvd_err err;

    while ((now_us = clock_now_us()) < (until_us = event_url_until(hook))) {
        verdict =
            event_post_send(hook->post, &hook->line,
                            hook->limit_us < until_us - now_us ? hook->limit_us : until_us - now_us,
                            &after_us, &err);
        if (verdict == POST_TOLD)
            break;
        broken = verdict == POST_BROKEN ? broken + 1 : 0;
        if (broken == BROKEN_MOST)
            verdict = POST_REFUSED;
        /* A request that event_url_free has broken off is no failure of the server. */
        if (verdict != POST_REFUSED && clock_now_us() >= event_url_until(hook))
            return POST_LATER;
        event_url_failed(hook, verdict, &err);
        if (verdict == POST_REFUSED)
            return verdict;
        if (!event_url_pause(hook, after_us, &pause_us))
            return POST_LATER;
    }
    if (verdict != POST_TOLD)
        return POST_LATER;
    if (hook->said != POST_TOLD) {
        pthread_mutex_lock(&hook->mutex);
        hook->reported = hook->queue.dropped;
        pthread_mutex_unlock(&hook->mutex);
        log_info(JOB, "--on-event-url: %s works again; %" PRIu64 " events were lost",
                 event_post_name(hook->post), hook->lost + hook->reported);
        hook->lost = 0;
        hook->said = POST_TOLD;
    }
    return POST_TOLD;
}

/* The function of the thread: tells events as they come, until the hook is ending and all were
 * told, or its time is over. The number of dropped events before an event is logged here, unless a
 * line that the server works again will follow. If the event is not told, its number goes to the
 * next one. */
static void *event_url_thread(void *arg)
{
    struct event_url *hook = arg;
    enum post_verdict verdict = POST_TOLD;
    struct hvd_err err;
    uint64_t dropped;
    bool abandoned;
    int rc;

    pthread_mutex_lock(&hook->mutex);
    while (verdict != POST_LATER) {
        while (!hook->queue.count && hook->until_us == TIME_NEVER)
            pthread_cond_wait(&hook->more, &hook->mutex);
        if (!hook->queue.count)
            break;
        rc = event_queue_take(&hook->queue, &hook->line, &hook->carried);
        pthread_mutex_unlock(&hook->mutex);
        dropped = hook->carried - hook->reported;
        hook->reported = 0;
        if (dropped && hook->said == POST_TOLD)
            log_warning(JOB,
                        "--on-event-url: %s is slower than events come: %" PRIu64
                        " events were dropped; make the server faster, or choose fewer events with "
                        "--on-event-filter",
                        event_post_name(hook->post), dropped);
        else
            hook->lost += dropped;
        verdict = rc ? POST_REFUSED : event_url_tell(hook);
        if (rc) {
            err_set(&err, rc, "%s; free memory on this host", err_text(rc));
            event_url_failed(hook, verdict, &err);
        }
        pthread_mutex_lock(&hook->mutex);
        if (verdict == POST_TOLD)
            continue;
        hook->queue.dropped += hook->carried;
        hook->reported += hook->carried;
    }
    hook->untold = hook->lost + hook->queue.dropped - hook->reported + hook->queue.count +
                   (verdict == POST_LATER);
    hook->ended = true;
    abandoned = hook->abandoned;
    pthread_cond_broadcast(&hook->more);
    pthread_mutex_unlock(&hook->mutex);
    if (abandoned)
        event_url_destroy(hook);
    return NULL;
}

/* ---- the driver's thread --------------------------------------------------------------------- */

int event_url_check(const struct event_hook_config *config, bool file, struct hvd_err *err)
{
    struct event_target target;
    int rc;

    if (!config->url && (config->header_file || config->ca_file))
        return err_set(err, HVD_E_INVAL, "%s: there is no URL; give --on-event-url too",
                       config->header_file ? "--on-event-url-header-file" : "--on-event-url-ca");
    if (!config->url)
        return 0;
    rc = event_target_init(&target, config->url, file ? config->header_file : NULL, err);
    if (!rc)
        event_target_release(&target);
    return rc || !config->ca_file
               ? rc
               : event_target_ca(config->url, file ? config->ca_file : NULL, err);
}

/* Takes a line of the log of events, if the filter lets it pass. Returns true: events_each goes on
 * with the next line. */
static bool event_url_take(void *arg, const struct event_line *line)
{
    struct event_url *hook = arg;

    pthread_mutex_lock(&hook->mutex);
    if (event_queue_put(&hook->queue, line))
        pthread_cond_broadcast(&hook->more);
    pthread_mutex_unlock(&hook->mutex);
    return true;
}

/* The log of events has a new line. */
static void event_url_on_line(void *arg, const struct event_line *line)
{
    (void)event_url_take(arg, line);
}

/* Makes the hook, takes the lines that the log of events has already, and starts the thread. */
int event_url_create(const struct event_hook_config *config, struct events *events,
                     struct event_url **ret_hook, struct hvd_err *err)
{
    struct event_url *hook = mem_zalloc(sizeof(*hook));
    int rc;

    if (!hook || thread_cond_init(&hook->more)) {
        mem_free(hook);
        return err_set(err, HVD_E_NOMEM, "no memory for --on-event-url; free memory on this host");
    }
    pthread_mutex_init(&hook->mutex, NULL);
    buf_init(&hook->line, LIMIT_CONFIG_LINE_BYTES);
    list_init(&hook->follower.link);
    hook->follower.line = event_url_on_line;
    hook->follower.arg = hook;
    hook->queue.filter = config->filter;
    hook->limit_us = config->limit_us;
    hook->until_us = TIME_NEVER;
    rng_seed(&hook->rng, (uint64_t)clock_wall_us() ^ (uint64_t)getpid());
    rc = event_post_create(config, &hook->post, err);
    if (!rc) {
        events_each(events, LIMIT_EVENTS_KEPT, event_url_take, hook);
        rc = thread_start(&hook->thread, 0, event_url_thread, hook);
        if (rc)
            err_set(err, rc, "--on-event-url: no thread can be started; raise ulimit -u");
    }
    if (rc) {
        event_url_destroy(hook);
        return rc;
    }
    events_follow(events, &hook->follower);
    *ret_hook = hook;
    return 0;
}

/* The job is over: the thread gets a last moment for the events that wait. */
void event_url_end(struct event_url *hook)
{
    if (!hook)
        return;
    events_unfollow(&hook->follower);
    pthread_mutex_lock(&hook->mutex);
    if (hook->until_us == TIME_NEVER)
        hook->until_us = clock_now_us() + LIMIT_OUTPUT_LINGER_US;
    pthread_cond_broadcast(&hook->more);
    pthread_mutex_unlock(&hook->mutex);
}

/* Frees the hook. A request that still runs when the time is over is broken off. */
void event_url_free(struct event_url *hook)
{
    int64_t stop_us;
    pthread_t thread;
    bool ended;

    if (!hook)
        return;
    events_unfollow(&hook->follower);
    thread = hook->thread;
    pthread_mutex_lock(&hook->mutex);
    if (hook->until_us == TIME_NEVER) /* no end of the job: another driver tells of it */
        hook->until_us = clock_now_us();
    pthread_cond_broadcast(&hook->more);
    while (!hook->ended && !thread_cond_wait(&hook->more, &hook->mutex, hook->until_us))
        continue;
    if (!hook->ended)
        event_post_stop(hook->post);
    stop_us = clock_now_us() + EVENT_URL_STOP_US;
    while (!hook->ended && !thread_cond_wait(&hook->more, &hook->mutex, stop_us))
        continue;
    ended = hook->ended;
    hook->abandoned = !ended;
    if (!ended)
        log_warning(JOB,
                    "--on-event-url: a request to %s hangs, so the last events are not told; see "
                    "that its name can be looked up",
                    event_post_name(hook->post));
    else if (hook->untold)
        log_warning(JOB,
                    "--on-event-url: %s was not told the last %" PRIu64
                    " events; \"hvd-elastic events\" shows them",
                    event_post_name(hook->post), hook->untold);
    pthread_mutex_unlock(&hook->mutex);
    if (ended) {
        thread_join(thread);
        event_url_destroy(hook);
    } else {
        thread_abandon(thread);
    }
}
