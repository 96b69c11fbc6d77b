/*
 * event_hook.c: runs the command of --on-event. shown.c makes the hook, and the log of events calls
 * it for each line, within a step of the core: then the line is only copied into a queue, and the
 * call is started from the event loop. Invariants: at most one call runs; a warning of this file is
 * no event, so a hook never causes its own calls.
 */
#include "driver/io/event_hook.h"

#include "base/limits.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "base/time.h"
#include "os/clock.h"
#include "os/command/command.h"

#include <event2/event.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

struct event_hook {
    struct event_base *base;
    struct events_follower follower;
    char *words; /* the command, cut into argv */
    const char *argv[LIMIT_HOOK_WORDS + 1];
    struct command_spec spec;
    struct command *run; /* the call that runs; NULL: none */
    struct event *next;  /* starts the next call */
    struct event *last;  /* timer: the time for the last events is over */
    struct buf json;     /* the event of the call that runs */
    uint64_t lost;       /* events of calls that have failed in a row */
    bool ending;         /* no further event is taken */
    struct event_queue queue;
};

/* A call of the command has failed: counts its event as lost. Only the first of several failures in
 * a row is logged; `said` is the first line of the command's standard error. */
static void event_hook_failed(struct event_hook *hook, const char *why, struct span said)
{
    if (!hook->lost++)
        log_warning(JOB,
                    "--on-event: %s%s%.*s%s; this event is lost, and the job goes on; run the "
                    "command by hand with a line of 'hvd-elastic events --json'",
                    why, said.length ? " (standard error: " : "", (int)said.length,
                    said.length ? said.at : "", said.length ? ")" : "");
}

/* Called when a call may begin or the hook may end: lets the event loop start the next call, or, if
 * the hook is ending and has told all its events, removes the timer `last`, which keeps the event
 * loop running. */
static void event_hook_go_on(struct event_hook *hook)
{
    if (hook->run) /* event_hook_on_ended calls this function again */
        return;
    if (hook->queue.count)
        event_active(hook->next, EV_TIMEOUT, 0);
    else if (hook->ending)
        event_del(hook->last);
}

/* A call has ended: the exit code 0 says that the event was told. The next call follows. */
static void event_hook_on_ended(void *arg, const struct command_end *end)
{
    struct event_hook *hook = arg;
    char how[COMMAND_HOW_MAX], why[COMMAND_HOW_MAX + LIMIT_REASON_BYTES];

    if (end->how == COMMAND_EXITED && end->value == 0) {
        if (hook->lost)
            log_info(JOB, "--on-event: %s works again; %" PRIu64 " events were lost", hook->argv[0],
                     hook->lost);
        hook->lost = 0;
    } else {
        snprintf(why, sizeof(why), "%s: %s", hook->argv[0], command_how(&hook->spec, end, how));
        event_hook_failed(hook, end->how == COMMAND_FAILED ? end->why : why,
                          stderr_tail_first(end->stderr_tail));
    }
    command_free(hook->run);
    hook->run = NULL;
    event_hook_go_on(hook);
}

/* Tells the oldest event that waits. If the call cannot be started, the event is lost. */
static void event_hook_on_next(evutil_socket_t fd, short what, void *arg)
{
    static const struct command_ops ops = { .ended = event_hook_on_ended };
    struct event_hook *hook = arg;
    uint64_t dropped;
    struct hvd_err err;
    int rc;

    (void)fd;
    (void)what;
    /* The event may come twice, or after event_hook_on_last has dropped all lines. */
    if (hook->run || !hook->queue.count)
        return;
    rc = event_queue_take(&hook->queue, &hook->json, &dropped);
    if (rc)
        err_set(&err, rc, "%s: %s", hook->argv[0], err_text(rc));
    if (dropped)
        log_warning(JOB,
                    "--on-event: %s is slower than events come: %" PRIu64
                    " events were dropped; make the command faster, or choose fewer events with "
                    "--on-event-filter",
                    hook->argv[0], dropped);
    hook->spec.input = buf_text(&hook->json);
    if (!rc)
        rc = command_run(hook->base, &hook->spec, &ops, hook, &hook->run, &err);
    if (!rc)
        return;
    event_hook_failed(hook, err.text, (struct span){ NULL, 0 });
    event_hook_go_on(hook);
}

/* Takes a line of the log of events, if the filter lets it pass. Returns true: events_each goes on
 * with the next line. */
static bool event_hook_take(void *arg, const struct event_line *line)
{
    struct event_hook *hook = arg;

    if (event_queue_put(&hook->queue, line))
        event_hook_go_on(hook);
    return true;
}

/* The log of events has a new line. */
static void event_hook_on_line(void *arg, const struct event_line *line)
{
    (void)event_hook_take(arg, line);
}

/* The hook is ending, and its time is over: kills the call that runs. Its event and those that wait
 * count as dropped. */
static void event_hook_on_last(evutil_socket_t fd, short what, void *arg)
{
    struct event_hook *hook = arg;

    (void)fd;
    (void)what;
    command_free(hook->run);
    hook->queue.dropped += hook->queue.count + (hook->run != NULL);
    hook->run = NULL;
    hook->queue.count = 0;
}

/* Cuts `words`, a copy of the command, into argv at its blanks. */
static int event_hook_cut(struct event_hook *hook, const char *command, struct hvd_err *err)
{
    size_t count = 0;
    char *rest = hook->words, *word;

    while ((word = strtok_r(rest, " \t", &rest)) != NULL) {
        if (count == LIMIT_HOOK_WORDS)
            return err_set(err, HVD_E_INVAL,
                           "--on-event: more than %d words; write a script that calls the command",
                           LIMIT_HOOK_WORDS);
        hook->argv[count++] = word;
    }
    return count ? 0
                 : err_set(err, HVD_E_INVAL, "--on-event: \"%s\" names no program; give one",
                           command);
}

/* Makes the hook, and takes the lines that the log of events has already: its first call begins
 * when the event loop runs. */
int event_hook_create(struct event_base *base, const struct event_hook_config *config,
                      struct events *events, struct event_hook **ret_hook, struct hvd_err *err)
{
    struct event_hook *hook = mem_zalloc(sizeof(*hook));
    int rc;

    if (!hook)
        return err_set(err, HVD_E_NOMEM, "no memory for --on-event; free memory on this host");
    buf_init(&hook->json, LIMIT_CONFIG_LINE_BYTES);
    list_init(&hook->follower.link);
    hook->words = mem_strdup(config->command);
    hook->next = evtimer_new(base, event_hook_on_next, hook);
    hook->last = evtimer_new(base, event_hook_on_last, hook);
    if (hook->words && hook->next && hook->last)
        rc = event_hook_cut(hook, config->command, err);
    else
        rc = err_set(err, HVD_E_NOMEM, "no memory for --on-event; free memory on this host");
    if (rc) {
        event_hook_free(hook);
        return rc;
    }
    hook->base = base;
    hook->queue.filter = config->filter;
    hook->follower.line = event_hook_on_line;
    hook->follower.arg = hook;
    hook->spec = (struct command_spec){ .argv = hook->argv,
                                        .envp = config->envp,
                                        .limit_us = config->limit_us,
                                        .linger_us = TIME_NEVER,
                                        .stderr_max = LIMIT_OUTPUT_LINE_BYTES,
                                        .dies_with_us = SIGKILL };
    events_each(events, LIMIT_EVENTS_KEPT, event_hook_take, hook);
    events_follow(events, &hook->follower);
    *ret_hook = hook;
    return 0;
}

/* The job is over: no further event is taken. While calls remain, the timer `last` bounds the time
 * for them. */
void event_hook_end(struct event_hook *hook)
{
    const struct timeval wait = clock_timeval(LIMIT_OUTPUT_LINGER_US);

    if (!hook || hook->ending)
        return;
    hook->ending = true;
    events_unfollow(&hook->follower);
    if ((hook->run || hook->queue.count) && !event_add(hook->last, &wait))
        event_hook_go_on(hook);
}

/* Frees the hook. A call that still runs is killed, and the log says how many events were not told.
 */
void event_hook_free(struct event_hook *hook)
{
    if (!hook)
        return;
    events_unfollow(&hook->follower);
    if (hook->run || hook->queue.count)
        event_hook_on_last(-1, 0, hook); /* as if the timer `last` had fired */
    if (hook->queue.dropped)
        log_warning(JOB, "--on-event: %s was too slow for the last %" PRIu64 " events",
                    hook->argv[0], hook->queue.dropped);
    if (hook->next)
        event_free(hook->next);
    if (hook->last)
        event_free(hook->last);
    buf_release(&hook->json);
    mem_free(hook->words);
    mem_free(hook);
}
