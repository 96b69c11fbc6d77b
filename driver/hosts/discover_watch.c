#include "base/time.h"
#include "driver/hosts/discover_own.h"
#include "os/clock.h"

#include <string.h>

static void begin(struct discoverer *discoverer);

static bool set_timer(struct event *timer, int64_t us)
{
    const struct timeval wait = { .tv_sec = (time_t)(us / TIME_S),
                                  .tv_usec = (suseconds_t)(us % TIME_S) };

    return us == TIME_NEVER || !event_add(timer, &wait);
}

static void somebody_knows(struct watch *watch)
{
    watch->asked = false;
    event_del(&watch->patience);
}

static void fail(struct discoverer *discoverer, const struct hvd_err *err)
{
    struct watch *watch = &discoverer->watch;

    watch->news = WATCH_FAILED;
    watch->failure = *err;
    somebody_knows(watch);
    discover_tell_failure(discoverer, err);
}

static void tell_newest(struct discoverer *discoverer)
{
    struct hosts hosts;
    struct hvd_err err;
    int rc;

    hosts_init(&hosts);
    rc = hosts_copy(&discoverer->newest, &hosts);
    if (rc) {
        err_set(&err, rc, "%s: %s", discoverer->path, err_text(rc));
        discover_tell_failure(discoverer, &err);
    } else {
        discover_tell(discoverer, &hosts);
    }
    hosts_release(&hosts);
}

static void take_block(struct discoverer *discoverer, struct span block,
                       const struct complaint *complaint)
{
    struct hvd_err err;

    discoverer->watch.spoke = true;
    if (discover_read(discoverer, block, complaint, &discoverer->newest, &err)) {
        fail(discoverer, &err);
        return;
    }
    discoverer->watch.news = WATCH_HOSTS;
    somebody_knows(&discoverer->watch);
    tell_newest(discoverer);
}

/* The last block that is whole. Whoever printed two at once has made the first one old. */
static bool find_block(struct watch *watch, const struct buf *output, struct span *ret_block)
{
    bool found = false;
    const char *end;

    while ((end = memchr(output->data + watch->searched, '\n', output->length - watch->searched))) {
        struct span line = { output->data + watch->line, 0 };

        line.length = (size_t)(end - line.at);
        watch->searched = watch->line + line.length + 1;
        if (span_trim(line).length) {
            watch->filled = true;
        } else {
            if (watch->filled) {
                *ret_block =
                    (struct span){ output->data + watch->block, watch->line - watch->block };
                found = true;
            }
            watch->filled = false;
            watch->block = watch->searched;
        }
        watch->line = watch->searched;
    }
    watch->searched = output->length;
    return found;
}

static void printed(void *arg, struct buf *output)
{
    struct discoverer *discoverer = arg;
    struct watch *watch = &discoverer->watch;
    struct span block;

    if (find_block(watch, output, &block))
        take_block(discoverer, block, NULL);
    buf_consume(output, watch->block);
    watch->line -= watch->block;
    watch->searched -= watch->block;
    watch->block = 0;
}

static void complained(void *arg, const struct complaint *complaint)
{
    struct discoverer *discoverer = arg;

    complaint_log_line(&discoverer->log, complaint);
}

/* The output's end is the end of its last block, if it was meant. */
static void judge_end(struct discoverer *discoverer, const struct command_end *end)
{
    struct span rest = { buf_text(end->output), end->output->length };
    bool meant = end->how == COMMAND_EXITED && end->value == 0;
    const char *remedy = end->how == COMMAND_TOO_LONG ? "end each block with a blank line"
                                                      : "run it by hand to see why";
    char pause[TIME_TEXT_MAX];
    struct hvd_err err;

    if (meant && span_trim(rest).length)
        take_block(discoverer, rest, end->complaint);
    if (meant && discoverer->watch.spoke) {
        log_info(HOSTS, "%s: ended; it is started again in %s", discoverer->path,
                 time_format(discoverer->watch.pause_us, pause));
    } else {
        discover_blame(discoverer, end, remedy, &err);
        fail(discoverer, &err);
    }
}

/* When the next run begins, and how long the one after it would have to wait. */
static void pause_then_begin(struct discoverer *discoverer)
{
    struct watch *watch = &discoverer->watch;
    struct hvd_err err;

    if (!set_timer(&watch->again, watch->pause_us)) {
        err_set(&err, HVD_E_NOMEM, "%s: no memory to start it again", discoverer->path);
        fail(discoverer, &err);
    }
    watch->pause_us *= 2;
    if (watch->pause_us > WATCH_PAUSE_MAX_US)
        watch->pause_us = WATCH_PAUSE_MAX_US;
}

static void ended(void *arg, const struct command_end *end)
{
    struct discoverer *discoverer = arg;
    struct watch *watch = &discoverer->watch;

    if (clock_now_us() - watch->started_us >= WATCH_PAUSE_MAX_US)
        watch->pause_us = WATCH_PAUSE_MIN_US;
    judge_end(discoverer, end);
    command_free(discoverer->run);
    discoverer->run = NULL;
    pause_then_begin(discoverer);
}

static void begin(struct discoverer *discoverer)
{
    static const struct command_ops ops = { printed, complained, ended };
    struct watch *watch = &discoverer->watch;
    struct hvd_err err;

    watch->started_us = clock_now_us();
    watch->spoke = false;
    watch->filled = false;
    watch->block = 0;
    watch->line = 0;
    watch->searched = 0;
    if (command_run(discoverer->base, &discoverer->spec, &ops, discoverer, &discoverer->run,
                    &err)) {
        fail(discoverer, &err);
        pause_then_begin(discoverer);
    }
}

/* That it would be was not said of a failure: the job may end with it. */
static void again(evutil_socket_t fd, short what, void *arg)
{
    struct discoverer *discoverer = arg;

    (void)fd;
    (void)what;
    if (discoverer->watch.news == WATCH_FAILED)
        log_info(HOSTS, "%s: is started again", discoverer->path);
    begin(discoverer);
}

/* It goes on: it may have nothing to say yet. But whoever asked has waited long enough. */
static void out_of_patience(evutil_socket_t fd, short what, void *arg)
{
    struct discoverer *discoverer = arg;
    char time[TIME_TEXT_MAX];
    struct hvd_err err;

    (void)fd;
    (void)what;
    discoverer->watch.asked = false;
    err_set(&err, HVD_E_TIMEOUT, "%s: no hosts within %s; end each block with a blank line",
            discoverer->path, time_format(discoverer->config.limit_us, time));
    discover_tell_failure(discoverer, &err);
}

void watch_init(struct discoverer *discoverer)
{
    struct watch *watch = &discoverer->watch;

    watch->news = WATCH_SILENT;
    watch->pause_us = WATCH_PAUSE_MIN_US;
    event_assign(&watch->patience, discoverer->base, -1, 0, out_of_patience, discoverer);
    event_assign(&watch->again, discoverer->base, -1, 0, again, discoverer);
}

void watch_release(struct discoverer *discoverer)
{
    event_del(&discoverer->watch.patience);
    event_del(&discoverer->watch.again);
}

void watch_ask(struct discoverer *discoverer)
{
    struct watch *watch = &discoverer->watch;

    if (watch->news == WATCH_HOSTS) {
        tell_newest(discoverer);
        return;
    }
    if (watch->news == WATCH_FAILED) {
        discover_tell_failure(discoverer, &watch->failure);
        /* Nothing but memory is missing: it is tried again. */
    } else if (!watch->asked) {
        watch->asked = set_timer(&watch->patience, discoverer->config.limit_us);
    }
    if (!discoverer->run && !event_pending(&watch->again, EV_TIMEOUT, NULL))
        begin(discoverer);
}
