/*
 * watch.c: hosts from a program that goes on running and prints a block of hosts at each change,
 * with a blank line at the end (--discovery-watch). A question (discover_ask) gets the newest block
 * or failure as its answer; a new block is also reported without a question. A block counts only
 * when it is complete. A program that ends is started again after a pause. The pause doubles at
 * each restart, and is short again after a run of at least WATCH_PAUSE_MAX_US.
 */
#include "base/time.h"
#include "discovery/sources/program_internal.h"
#include "os/clock.h"

#include <string.h>

/* The shortest and the longest pause before the program is started again. */
#define WATCH_PAUSE_MIN_US INT64_C(1000000)
#define WATCH_PAUSE_MAX_US INT64_C(30000000)

/* The newest result of the program: none yet, hosts, or a failure. */
enum watch_news { WATCH_SILENT, WATCH_HOSTS, WATCH_FAILED };

struct watch {
    struct program program;
    enum watch_news news;
    struct hosts newest;        /* the hosts if `news` is WATCH_HOSTS */
    struct hvd_err failure;     /* the error if `news` is WATCH_FAILED */
    bool asked;                 /* the owner waits for the first result, until answer_timer fires */
    struct event answer_timer;  /* ends an unanswered question after config.limit_us */
    struct event restart_timer; /* starts the program again */
    int64_t started_us;         /* when the last run of the program began */
    int64_t pause_us;           /* the pause before the next start of the program */
    bool spoke;                 /* this run has printed a block */
    /* Offsets in the output: `block` is where the current block begins, `line` where its last line
     * begins, and `searched` the first byte that was not yet searched for a newline. `filled` is
     * true: the block has a line that is not blank. */
    size_t block;
    size_t line;
    size_t searched;
    bool filled;
};

/* Starts a timer. false: there is no memory for it. TIME_NEVER: no timer is needed, which is a
 * success. */
static bool watch_set_timer(struct event *timer, int64_t us)
{
    const struct timeval wait = clock_timeval(us);

    return us == TIME_NEVER || !event_add(timer, &wait);
}

/* Sets the newest result, and gives it to the owner of the source: the hosts in watch->newest
 * (WATCH_HOSTS; `err` is not used), or the failure `err` (WATCH_FAILED). */
static void watch_publish(struct watch *watch, enum watch_news news, const struct hvd_err *err)
{
    struct hosts none;

    watch->news = news;
    watch->asked = false;
    event_del(&watch->answer_timer);
    if (news == WATCH_HOSTS) {
        discover_answer_copy(watch->program.discoverer, &watch->newest);
    } else {
        watch->failure = *err;
        hosts_init(&none);
        discover_answer(watch->program.discoverer, err->code, &none, err);
    }
}

/* Reads a complete block of hosts, and gives the owner its hosts, or the error in the block.
 * stderr_tail NULL: the program still runs, and an error does not quote its standard error. */
static void watch_take_block(struct watch *watch, struct span block,
                             const struct stderr_tail *stderr_tail)
{
    struct hvd_err err;
    int rc = discover_read(watch->program.discoverer, block, stderr_tail, &watch->newest, &err);

    watch->spoke = true;
    watch_publish(watch, rc ? WATCH_FAILED : WATCH_HOSTS, &err);
}

/* Searches the output for whole blocks. When several blocks came at once, only the last one is
 * used, because each block replaces the block before it. The offsets watch->block and watch->line
 * are those at which the current block and its last line begin; watch->searched is that of the
 * first byte that was not yet searched; watch->filled is true if the current block has a line that
 * is not blank. */
static void watch_on_output(void *arg, struct buf *output)
{
    struct watch *watch = arg;
    struct span block = { NULL, 0 }; /* the last whole block */
    const char *end;

    while ((end = memchr(output->data + watch->searched, '\n', output->length - watch->searched))) {
        struct span line = { output->data + watch->line, 0 };

        line.length = (size_t)(end - line.at);
        watch->searched = watch->line + line.length + 1;
        if (span_trim(line).length) {
            watch->filled = true;
        } else {
            if (watch->filled)
                block = (struct span){ output->data + watch->block, watch->line - watch->block };
            watch->filled = false;
            watch->block = watch->searched;
        }
        watch->line = watch->searched;
    }
    watch->searched = output->length;
    if (block.at)
        watch_take_block(watch, block, NULL);
    /* The whole blocks are removed from the buffer, so all offsets are reduced by as much. */
    buf_consume(output, watch->block);
    watch->line -= watch->block;
    watch->searched -= watch->block;
    watch->block = 0;
}

/* Called when the program has printed on its standard error: logs the newest line. */
static void watch_on_stderr(void *arg, const struct stderr_tail *stderr_tail)
{
    struct watch *watch = arg;

    script_log_line(&watch->program.log, stderr_tail);
}

/* Sets the timer that starts the program again, and doubles the pause for the restart after this
 * one. If there is no memory for the timer, the next question starts the program (watch_ask). */
static void watch_restart_later(struct watch *watch)
{
    struct hvd_err err;

    if (!watch_set_timer(&watch->restart_timer, watch->pause_us)) {
        err_set(&err, HVD_E_NOMEM,
                "%s: no memory to start the discovery program again; free memory on this host",
                watch->program.argv[0]);
        watch_publish(watch, WATCH_FAILED, &err);
    }
    watch->pause_us *= 2;
    if (watch->pause_us > WATCH_PAUSE_MAX_US)
        watch->pause_us = WATCH_PAUSE_MAX_US;
}

/* Called when the program has ended, for any reason: gives the owner its last block or a failure,
 * and sets the timer that starts the program again. A run that exited with code 0 is a failure if
 * it has printed no block. */
static void watch_on_ended(void *arg, const struct command_end *end)
{
    struct watch *watch = arg;
    struct span rest = { buf_text(end->output), end->output->length };
    bool exited = end->how == COMMAND_EXITED && end->value == 0;
    const char *remedy = end->how == COMMAND_TOO_LONG ? "end each block with a blank line"
                                                      : "run the program by hand to see why";
    char pause[TIME_TEXT_MAX];
    struct hvd_err err;

    if (clock_now_us() - watch->started_us >= WATCH_PAUSE_MAX_US)
        watch->pause_us = WATCH_PAUSE_MIN_US;
    /* If the program exited with code 0, the end of the output also ends the last block. */
    if (exited && span_trim(rest).length)
        watch_take_block(watch, rest, end->stderr_tail);
    if (exited && watch->spoke) {
        log_info(HOSTS, "%s: the discovery program has ended; it is started again in %s",
                 watch->program.argv[0], time_format(watch->pause_us, pause));
    } else {
        program_blame(&watch->program, end, remedy, &err);
        watch_publish(watch, WATCH_FAILED, &err);
    }
    program_stop(watch->program.discoverer);
    watch_restart_later(watch);
}

/* Starts the program, and sets the offsets to the beginning of its output, which is empty. If the
 * program cannot be started, the failure becomes the newest result, and the start is tried again
 * later. */
static void watch_start(struct watch *watch)
{
    static const struct command_ops ops = { watch_on_output, watch_on_stderr, watch_on_ended };
    struct program *program = &watch->program;
    struct hvd_err err;

    watch->started_us = clock_now_us();
    watch->spoke = false;
    watch->filled = false;
    watch->block = 0;
    watch->line = 0;
    watch->searched = 0;
    if (command_run(program->discoverer->base, &program->spec, &ops, watch, &program->run, &err)) {
        watch_publish(watch, WATCH_FAILED, &err);
        watch_restart_later(watch);
    }
}

/* The callback of restart_timer: the pause after the last end of the program is over. */
static void watch_on_restart(evutil_socket_t fd, short what, void *arg)
{
    struct watch *watch = arg;

    (void)fd;
    (void)what;
    /* The log says it now, because it was not certain before: after a failure the owner may have
     * ended the job. */
    if (watch->news == WATCH_FAILED)
        log_info(HOSTS, "%s: the discovery program is started again now", watch->program.argv[0]);
    watch_start(watch);
}

/* Called when the program has printed no block within config.limit_us after a question. The owner
 * gets a failure, but the program goes on running, because it may have no hosts to print yet. */
static void watch_on_late(evutil_socket_t fd, short what, void *arg)
{
    struct watch *watch = arg;
    struct discoverer *discoverer = watch->program.discoverer;
    char time[TIME_TEXT_MAX];
    struct hosts none;
    struct hvd_err err;

    (void)fd;
    (void)what;
    watch->asked = false;
    hosts_init(&none);
    err_set(&err, HVD_E_TIMEOUT,
            "%s: the program has printed no hosts within %s; end each block with a blank line",
            discoverer->name, time_format(discoverer->config.limit_us, time));
    discover_answer(discoverer, HVD_E_TIMEOUT, &none, &err);
}

/* Prepares the program, which the first question starts (watch_ask). limit_us is TIME_NEVER,
 * because the program may run for ever; answer_timer limits how long a question waits for hosts.
 * linger_us limits how long the program may run on after it has closed its output. */
static int watch_open(struct discoverer *discoverer, struct hvd_err *err)
{
    struct watch *watch = discoverer->state;
    int rc;

    hosts_init(&watch->newest);
    watch->pause_us = WATCH_PAUSE_MIN_US;
    event_assign(&watch->answer_timer, discoverer->base, -1, 0, watch_on_late, watch);
    event_assign(&watch->restart_timer, discoverer->base, -1, 0, watch_on_restart, watch);
    rc = program_open(discoverer, err);
    watch->program.spec.limit_us = TIME_NEVER;
    watch->program.spec.linger_us = discoverer->config.limit_us;
    return rc;
}

/* Answers a question with the newest hosts or failure. If the program has printed nothing yet, the
 * answer comes with its first block, or when answer_timer fires. If there are no hosts, the
 * question also starts the program, unless it runs or restart_timer is set. */
static void watch_ask(struct discoverer *discoverer)
{
    struct watch *watch = discoverer->state;

    switch (watch->news) {
    case WATCH_HOSTS: watch_publish(watch, WATCH_HOSTS, NULL); return;
    case WATCH_FAILED: watch_publish(watch, WATCH_FAILED, &watch->failure); break;
    case WATCH_SILENT:
        /* When no memory for the timer is left, `asked` stays false, and the next question tries
         * again. */
        if (!watch->asked)
            watch->asked = watch_set_timer(&watch->answer_timer, discoverer->config.limit_us);
        break;
    }
    if (!watch->program.run && !event_pending(&watch->restart_timer, EV_TIMEOUT, NULL))
        watch_start(watch);
}

/* Called when the discoverer is freed: ends the program and all timers. */
static void watch_close(struct discoverer *discoverer)
{
    struct watch *watch = discoverer->state;

    program_stop(discoverer);
    event_del(&watch->answer_timer);
    event_del(&watch->restart_timer);
    hosts_release(&watch->newest);
}

const struct discover_source discover_watch = {
    .option = "discovery-watch",
    .when_empty = "printed nothing",
    .state_bytes = sizeof(struct watch),
    .open = watch_open,
    .ask = watch_ask,
    .close = watch_close,
};
