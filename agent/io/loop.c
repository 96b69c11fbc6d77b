/*
 * loop.c: the agent's event loop: what happens on this machine becomes an event of the core, and
 * the actions of that step are carried out before the next event. Called by main.c, and by
 * libevent. Invariant: no call in the loop waits for long, so a heartbeat proves that the loop
 * runs.
 */
#include "agent/io/loop.h"

#include "agent/io/key_word.h"
#include "agent/io/loop_internal.h"
#include "agent/processes/leftovers.h"
#include "agent/processes/supervisor.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/time.h"
#include "os/clock.h"
#include "os/process.h"
#include "proto/frame.h"
#include "wire/tls.h"

#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

/* how many lines of the core's trace are kept in memory, for the text of a panic */
#define TRACE_LINES 256
/* how long the end of the agent waits for a write to a checkpoint */
#define CHECKPOINT_STOP_US (2 * TIME_S)
/* bytes; enough for a line for each slot, and for the reports of all its workers */
#define KEPT_BYTES (64 * 1024 + LIMIT_SLOTS_PER_HOST * LIMIT_REPORTS * sizeof(struct report_seen))

/* Called after each step, and when the driver takes output again: reads the output of workers while
 * the driver takes output, and otherwise stops reading, so that workers that print much wait. */
static void loop_hold_output(void *arg)
{
    struct agent_loop *loop = arg;
    bool hold = !driver_link_takes_output(loop->driver);

    if (hold == loop->holds_output)
        return;
    loop->holds_output = hold;
    children_hold_output(loop->children, hold);
}

/* Tells the core an event, and carries out the actions that the core returns. An event that happens
 * inside an action (for example a program that cannot be started) waits until all actions are done,
 * and then gets a step of its own. At the end the timer is set to the core's next deadline. */
static void loop_tell(struct agent_loop *loop, const struct agent_event *event)
{
    struct agent_event now = *event;
    int64_t deadline_us, left_us;
    struct timeval left;

    if (loop->over)
        return;
    if (loop->stepping) { /* an action below has caused this event */
        loop_put_off(loop, event);
        return;
    }
    loop->stepping = true;
    do {
        int rc;

        now.now_us = clock_now_us();
        rc = agent_step(loop->core, &now, &loop->actions);
        if (rc)
            loop_give_up(loop, rc, "a step of the agent's core has failed");
        for (size_t i = 0; i < loop->actions.count && !loop->over; i++)
            loop_carry_out(loop, &loop->actions.items[i]);
        loop->frame.msg = NULL; /* the message of the cached frame is freed with the action list */
        agent_action_list_clear(&loop->actions);
    } while (!loop->over && loop_take_waiting(loop, &now));
    loop->stepping = false;
    if (loop->over)
        return;

    /* what depends on the state of the core is brought up to date once, after all steps */
    loop_hold_output(loop);
    notice_host_empty(loop->notice, !loop->started.count);
    deadline_us = agent_deadline(loop->core);
    left_us = deadline_us - clock_now_us();
    left = clock_timeval(left_us > 0 ? left_us : 0);
    if (deadline_us == TIME_NEVER)
        event_del(loop->events.timer);
    else if (event_add(loop->events.timer, &left))
        loop_give_up(loop, HVD_E_NOMEM, "a timer cannot be set");
}

/* Tells the core an event of this kind, TIMER or DRIVER_UP, with the commits that are kept on this
 * host now. TIMER, on which heartbeats are sent, also has the values that workers have reported. */
static void loop_tell_kept(struct agent_loop *loop, enum agent_event_kind kind)
{
    struct report_list reports = { 0 };
    struct msg_kept_list kept;
    char address[STATE_CONTACT_MAX];
    struct arena arena;

    arena_init(&arena, KEPT_BYTES);
    if (snapshots_kept(loop->snapshots, &arena, &kept))
        loop_give_up(loop, HVD_E_NOMEM, "the snapshots that are kept cannot be listed");
    else if (kind == AGENT_TIMER && children_reports(loop->children, 0, &arena, &reports))
        loop_give_up(loop, HVD_E_NOMEM, "the values that workers report cannot be listed");
    else
        loop_tell(loop, &(struct agent_event){ .kind = kind,
                                               .kept = &kept,
                                               .reports = &reports,
                                               .text = kind == AGENT_DRIVER_UP
                                                           ? loop_commits_address(loop, address)
                                                           : NULL });
    arena_release(&arena);
}

/* The core's next deadline has come. Snapshots that are not needed any more are freed on this
 * occasion. */
static void agent_loop_on_timer(evutil_socket_t fd, short what, void *arg)
{
    struct agent_loop *loop = arg;

    (void)fd;
    (void)what;
    snapshots_tidy(loop->snapshots, clock_now_us());
    loop_tell_kept(loop, AGENT_TIMER);
}

/* SIGTERM has two senders: the machine, before it is taken away, or the kernel, when the supervisor
 * has died. In the second case this process has another parent.
 *
 * The supervisor passes its own SIGTERM, SIGINT or SIGHUP on to the agent as SUPERVISOR_PASSES_ON.
 * A SIGTERM to all processes therefore comes twice, directly and passed on, and must count once:
 * the number of SIGTERMs is the larger of the two counters. The first SIGTERM is a notice, the
 * second ends the agent. A SIGINT to the agent ends it at once.
 *
 * SIGUSR2 is the warning of a scheduler before its SIGTERM (Slurm: --signal=USR2@TIME); it may come
 * again, and never ends the agent. */
static void agent_loop_on_signal(evutil_socket_t signal, short what, void *arg)
{
    struct agent_loop *loop = arg;
    /* how many SIGTERMs have come before this signal; also a passed-on signal counts as one */
    unsigned before = loop->own_terms > loop->passed_terms ? loop->own_terms : loop->passed_terms;

    (void)what;
    loop->own_terms += signal == SIGTERM;
    loop->passed_terms += signal == SUPERVISOR_PASSES_ON;
    if (signal == SIGUSR2) {
        log_warning(AGENT, "SIGUSR2 means that this machine will go away: the driver is told");
        loop_tell(loop, &(struct agent_event){ .kind = AGENT_NOTICE,
                                               .left_us = loop->config.warning_us,
                                               .text = "SIGUSR2 to the agent" });
    } else if (loop->config.supervisor && getppid() != (pid_t)loop->config.supervisor) {
        log_warning(AGENT, "the supervisor is gone: the agent ends its workers, and then itself");
        loop_tell(loop,
                  &(struct agent_event){ .kind = AGENT_STOP, .text = "its supervisor is gone" });
    } else if (signal != SIGINT && loop->own_terms <= before && loop->passed_terms <= before) {
        log_debug(AGENT, "this SIGTERM has come before, %s; it is not counted again",
                  signal == SIGTERM ? "through the supervisor" : "directly");
    } else if (signal != SIGINT && !before) {
        log_warning(AGENT, "SIGTERM means that this machine will go away soon: the driver is told; "
                           "a second SIGTERM ends the agent now");
        loop_tell(loop, &(struct agent_event){ .kind = AGENT_NOTICE,
                                               .left_us = loop->config.notice_us,
                                               .text = "SIGTERM to the agent" });
    } else {
        loop_tell(loop, &(struct agent_event){ .kind = AGENT_STOP,
                                               .text = "a signal has asked the agent to end" });
    }
}

/* A giver of notices says that this machine will go away. The core does the same as for SIGTERM. */
static void loop_on_notice(void *arg, int64_t left_us, const char *text)
{
    struct agent_loop *loop = arg;
    char left[TIME_TEXT_MAX];

    log_warning(AGENT, "this machine goes away %s%s: %s; the driver is told",
                left_us == TIME_NEVER ? "at a time that is not known" : "in ",
                left_us == TIME_NEVER ? "" : time_brief(left_us > 0 ? left_us : 0, left), text);
    loop_tell(loop,
              &(struct agent_event){ .kind = AGENT_NOTICE, .left_us = left_us, .text = text });
}

static const struct notice_ops notice_ops = { loop_on_notice };

/* The connection to the driver is open. The HELLO_AGENT that follows lists all commits that are
 * kept on this host: a slot without a worker may have the newest commit. */
static void loop_on_driver_up(void *arg)
{
    struct agent_loop *loop = arg;

    loop_commits_driver_up(loop);
    loop_tell_kept(loop, AGENT_DRIVER_UP);
}

/* The remains of a worker, and the memory to which they point. */
struct loop_remains {
    struct children_remains left;
    char core_pattern[LIMIT_TEXT_BYTES + 1];
    struct agent_remains known;
};

/* Reads the remains of a worker; NULL: there is no such worker. */
static const struct agent_remains *loop_remains(const struct agent_loop *loop, uint64_t incarnation,
                                                struct loop_remains *room)
{
    const struct children_remains *left = &room->left;

    if (!children_remains(loop->children, incarnation, &room->left))
        return NULL;
    room->known = (struct agent_remains){
        .pid = (uint64_t)left->pid,
        .recorded = &left->recorded,
        .output = {left->output[STREAM_STDOUT], left->output[STREAM_STDERR]},
        .dumped = left->dumped,
        .core_pattern = process_core_pattern(room->core_pattern, sizeof(room->core_pattern)),
    };
    return &room->known;
}

/* Passes a message of the driver to the core. Some messages also concern the loop, which handles
 * them after the core: STATE_KEY has a key for the thread that moves commits between hosts, BEAT
 * names the standbys, and a welcome ends the greeting. */
static void loop_on_driver_msg(void *arg, const struct msg *msg)
{
    struct agent_loop *loop = arg;
    struct loop_remains remains;

    loop_tell(loop, &(struct agent_event){ .kind = AGENT_DRIVER_MSG, .msg = msg });
    if (loop->over) /* the core has ended the agent because of this message */
        return;
    if (msg->type == MSG_STATE_KEY && driver_link_is_open(loop->driver))
        loop_commits_key(loop, msg);
    /* The driver has named a worker of this host in a stall: tells it what each worker is doing. */
    if (msg->type == MSG_EXAMINE && driver_link_is_open(loop->driver))
        for (size_t i = 0; i < loop->started.count && !loop->over; i++) {
            struct agent_event examined = { .kind = AGENT_EXAMINED,
                                            .incarnation = loop->started.items[i].incarnation };

            examined.remains = loop_remains(loop, examined.incarnation, &remains);
            if (examined.remains)
                loop_tell(loop, &examined);
        }
    if (msg->type == MSG_BEAT && driver_link_is_open(loop->driver) &&
        driver_link_learn(loop->driver, &msg->u.beat.standbys))
        log_info(NET,
                 "the standbys of the driver have %zu addresses, which this agent dials when the "
                 "driver is gone",
                 msg->u.beat.standbys.count);
    if (msg->type == MSG_REFUSED)
        log_error(NET, "the driver has refused this agent: %s", msg->u.refused.text);
    /* If this driver has a lower term than an earlier one, the core has closed the connection in
     * the step above, and the connection is not open here. */
    if (msg->type == MSG_WELCOME_AGENT && driver_link_is_open(loop->driver)) {
        driver_link_welcomed(loop->driver);
        /* after a welcome the next loss is logged at once; then one line in TIME_MIN (a minute) */
        loop->unreachable = (struct log_limit){ TIME_MIN, 1, 0, 0, 0 };
        log_info(NET, "the agent is connected to the driver of term %" PRIu64 ", at %s", msg->term,
                 driver_link_peer(loop->driver));
        loop_hold_output(loop);
    }
}

/* The connection to the driver is lost, or a dial has failed. The core dials again; the log gets a
 * line only now and then. */
static void loop_on_driver_down(void *arg, const char *why)
{
    struct agent_loop *loop = arg;
    unsigned held;

    if (log_limit_pass(&loop->unreachable, clock_now_us(), &held))
        log_warning(
            NET,
            "the agent has no connection to the driver: %s; the agent keeps dialling (%u more "
            "failures since the last line like this)",
            why, held);
    loop_tell(loop, &(struct agent_event){ .kind = AGENT_DRIVER_DOWN, .text = why });
}

static const struct driver_link_ops driver_ops = { loop_on_driver_up, loop_on_driver_msg,
                                                   loop_on_driver_down, loop_hold_output };

/* Called when a process says hello as this worker: returns the pid of the process that was started
 * as this worker; 0: none runs. */
static uint64_t loop_pid_of(void *arg, uint64_t incarnation)
{
    const struct started *started = loop_started(arg, incarnation);

    return started ? started->pid : 0;
}

/* Passes a message of a worker to the core. LEFT is noted, because it decides how long the commits
 * of the worker's slot are kept. */
static void loop_on_worker_msg(void *arg, uint32_t worker, const struct msg *msg)
{
    struct agent_loop *loop = arg;
    struct started *started = loop_started(loop, msg->incarnation);

    if (msg->type == MSG_LEFT && started)
        started->left = true;
    loop_tell(loop,
              &(struct agent_event){ .kind = AGENT_WORKER_MSG, .worker = worker, .msg = msg });
}

static void loop_on_worker_down(void *arg, uint32_t worker)
{
    loop_tell(arg, &(struct agent_event){ .kind = AGENT_WORKER_DOWN, .worker = worker });
}

/* Another agent of this host has asked "driver": its words say which driver this agent must dial
 * (PROTOCOL.md, "Operators"). Returns why this agent refuses, or 0. */
static int loop_on_point(void *arg, const char *job_id, const char *key_word,
                         const struct msg_texts *addresses, struct hvd_err *err)
{
    struct agent_loop *loop = arg;
    uint8_t key[TLS_KEY_BYTES];
    uint64_t epoch = 0;
    bool moved = false;
    int rc;

    if (loop->over || agent_is_ending(loop->core))
        return err_set(err, HVD_E_STATE, "the agent of this host is ending; end this process");

    /* Another id is another job of the same name. An agent that no driver has ever welcomed ends
     * for that job; any other agent refuses. */
    if (strcmp(job_id, loop->config.job_id) != 0) {
        if (!agent_was_never_welcomed(loop->core))
            return err_set(err, HVD_E_EXISTS,
                           "this agent works for another job of the name %s, %s; end that job, or "
                           "kill -INT %ld, or choose another name (--job)",
                           loop->config.core.job,
                           driver_link_is_open(loop->driver) ? "which has its driver"
                                                             : "and waits for its driver",
                           (long)getpid());
        log_info(AGENT,
                 "another job of the same name begins, and no driver has come for the job of "
                 "this agent: the agent ends");
        loop_tell(loop,
                  &(struct agent_event){ .kind = AGENT_STOP, .text = "another job has its name" });
        return err_set(err, HVD_E_STATE, "the agent of this host is ending; end this process");
    }

    /* The new agent has brought the host's key. If that key is later than this agent's, this agent
     * dials with it from now on. */
    rc = key_word_read(key_word, &epoch, key);
    if (rc)
        return err_set(err, rc,
                       "driver: the second word of the question is not a key; all files of "
                       "hvd-elastic on this host must be of the same release");
    if (epoch > loop->config.epoch) {
        rc = tls_dial_with(loop->config.tls, key);
        if (!rc)
            loop->config.epoch = epoch;
    }
    explicit_bzero(key, sizeof(key));
    if (rc)
        return err_set(err, rc, "no memory for the key of this host; free memory on this host");
    rc = driver_link_point(loop->driver, addresses, &moved);
    if (rc)
        return err_set(err, rc,
                       "no memory for the addresses of the driver; free memory on this host");
    if (!moved)
        return 0;
    log_info(NET, "another driver is at %s: the agent connects to it at once", addresses->items[0]);
    loop_tell(loop, &(struct agent_event){ .kind = AGENT_DRIVER_MOVED,
                                           .text = "another driver of the job has started" });
    return 0;
}

static const struct workers_link_ops workers_ops = { .pid_of = loop_pid_of,
                                                     .msg = loop_on_worker_msg,
                                                     .down = loop_on_worker_down,
                                                     .point = loop_on_point,
                                                     .health = loop_health,
                                                     .snapshot = loop_commits_snapshot,
                                                     .fetch = loop_commits_fetch,
                                                     .hung_up = loop_commits_hung_up };

/* The worker's program runs. From now on a process may say hello as this worker. */
static void loop_on_spawned(void *arg, uint64_t incarnation, pid_t pid)
{
    struct agent_loop *loop = arg;
    struct started *started = loop_started(loop, incarnation);

    ASSERT(started);
    started->pid = (uint64_t)pid;
    loop_tell(loop, &(struct agent_event){
                        .kind = AGENT_SPAWNED, .incarnation = incarnation, .pid = (uint64_t)pid });
}

/* The worker's program could not be started; `text` says why. */
static void loop_on_spawn_failed(void *arg, uint64_t incarnation, int code, const char *text)
{
    struct agent_loop *loop = arg;

    log_warning(LAUNCH, "incarnation %" PRIu64 ": this worker cannot be started: %s", incarnation,
                text);
    loop_forget_started(loop, incarnation);
    loop_tell(loop, &(struct agent_event){ .kind = AGENT_SPAWN_FAILED,
                                           .incarnation = incarnation,
                                           .code = code,
                                           .text = text });
}

/* A worker has printed these bytes: the core passes them on to the driver. */
static void loop_on_output(void *arg, uint64_t incarnation, enum msg_stream stream,
                           struct msg_bytes data)
{
    loop_tell(arg, &(struct agent_event){ .kind = AGENT_OUTPUT,
                                          .incarnation = incarnation,
                                          .stream = stream,
                                          .data = data });
}

/* A worker is about to end, or has ended: reads its last messages before the end is handled,
 * because LEFT or FINISHED says that the worker has ended in order. The values that the worker has
 * reported last go to the core, too. */
static void loop_on_dying(void *arg, uint64_t incarnation)
{
    struct agent_loop *loop = arg;
    struct report_list reports;
    struct arena arena;

    workers_link_read_now(loop->workers, incarnation);
    if (loop->over) /* a last message has ended the agent */
        return;
    arena_init(&arena, KEPT_BYTES);
    if (children_reports(loop->children, incarnation, &arena, &reports))
        loop_give_up(loop, HVD_E_NOMEM, "the values that a worker has reported cannot be listed");
    else if (reports.count)
        loop_tell(loop, &(struct agent_event){ .kind = AGENT_REPORTS, .reports = &reports });
    arena_release(&arena);
}

/* The worker's process has ended, with this exit code or signal (`value`). The event also names the
 * newest commit in the slot's snapshot, because a later round may resume from that commit. */
static void loop_on_ended(void *arg, uint64_t incarnation, enum msg_ended ended, int32_t value,
                          enum msg_witness witness)
{
    struct agent_loop *loop = arg;
    struct started *started = loop_started(loop, incarnation);
    struct loop_remains remains;
    uint64_t commit;

    ASSERT(started);
    commit = snapshots_newest(loop->snapshots, started->slot);
    checkpoint_thread_ended(loop->checkpoint, started->slot);
    if (started->left) /* no worker follows in the slot: its commits are dropped after a while */
        snapshots_left(loop->snapshots, started->slot, clock_now_us());
    loop_forget_started(loop, incarnation);
    loop_tell(loop, &(struct agent_event){ .kind = AGENT_ENDED,
                                           .incarnation = incarnation,
                                           .ended = ended,
                                           .value = value,
                                           .witness = witness,
                                           .remains = loop_remains(loop, incarnation, &remains),
                                           .commit = commit });
}

static const struct children_ops children_ops = { loop_on_spawned, loop_on_spawn_failed,
                                                  loop_on_output, loop_on_dying, loop_on_ended };

/* A HOLD or SAVE of the driver was carried out. `result` is NULL if there was no memory for it. */
static void agent_loop_on_checkpoint(void *arg, const struct msg *result)
{
    struct agent_loop *loop = arg;

    if (result)
        loop_tell(loop, &(struct agent_event){ .kind = AGENT_CHECKPOINT_RESULT, .msg = result });
    else
        loop_give_up(loop, HVD_E_NOMEM, "the result of a checkpoint cannot be sent");
}

/* true: a worker runs, or is being started, in this slot. Asked by the thread for checkpoints. */
static bool loop_runs(void *arg, uint32_t slot)
{
    const struct agent_loop *loop = arg;
    const struct started *started;

    VEC_EACH (started, &loop->started) {
        if (started->slot == slot)
            return true;
    }
    return false;
}

static const struct checkpoint_ops checkpoint_ops = { agent_loop_on_checkpoint, loop_runs };

/* Each line of the core's trace is also a debug line of the log. */
static void agent_loop_on_trace(void *arg, const char *line, enum trace_level level,
                                const struct facts *facts)
{
    (void)arg;
    (void)facts;
    (void)level;
    log_debug(AGENT, "%s", line);
}

/* Makes the agent and all its parts; agent_loop_run starts them. On failure everything is freed,
 * and another agent may take the host. */
int agent_loop_create(struct event_base *base, const struct agent_loop_config *config,
                      struct agent_loop **ret_loop, struct hvd_err *err)
{
    struct agent_loop *loop = mem_zalloc(sizeof(*loop));
    int rc;

    if (!loop)
        return err_set(err, HVD_E_NOMEM, "no memory for the agent; free memory on this host");
    loop->base = base;
    loop->config = *config;
    /* at most one line in TIME_MIN (a minute) may say that there is no driver */
    loop->unreachable = (struct log_limit){ TIME_MIN, 1, 0, 0, 0 };
    agent_action_list_init(&loop->actions);
    buf_init(&loop->frame.bytes, FRAME_HEADER_BYTES + LIMIT_FRAME_BODY_BYTES);

    rc = trace_init(&loop->trace, "agent", TRACE_LINES);
    if (!rc)
        loop->core = agent_create(&loop->config.core, &loop->trace);
    loop->events.timer = evtimer_new(loop->base, agent_loop_on_timer, loop);
    loop->events.sigterm = evsignal_new(loop->base, SIGTERM, agent_loop_on_signal, loop);
    loop->events.passed_on =
        evsignal_new(loop->base, SUPERVISOR_PASSES_ON, agent_loop_on_signal, loop);
    loop->events.sigint = evsignal_new(loop->base, SIGINT, agent_loop_on_signal, loop);
    loop->events.sigusr2 = evsignal_new(loop->base, SIGUSR2, agent_loop_on_signal, loop);
    if (!loop->core || !loop->events.timer || !loop->events.sigterm || !loop->events.sigint ||
        !loop->events.passed_on || !loop->events.sigusr2 || event_add(loop->events.sigusr2, NULL) ||
        event_add(loop->events.passed_on, NULL) || event_add(loop->events.sigterm, NULL) ||
        event_add(loop->events.sigint, NULL))
        rc = err_set(err, HVD_E_NOMEM, "no memory for the agent; free memory on this host");
    else
        trace_set_tap(&loop->trace, agent_loop_on_trace, loop);

    if (!rc)
        rc = children_create(base, &children_ops, loop, &loop->children, err);
    if (!rc)
        rc = loop_commits_create(loop, err);
    if (!rc)
        rc = checkpoint_thread_start(base,
                                     &(struct checkpoint_config){ .snapshots = loop->snapshots,
                                                                  .open = checkpoint_store_open,
                                                                  .stop_us = CHECKPOINT_STOP_US,
                                                                  .give_way_us = TIME_S },
                                     &checkpoint_ops, loop, &loop->checkpoint, err);
    if (!rc)
        rc = workers_link_create(base, config->socket->name, loop->children, &workers_ops, loop,
                                 &loop->workers, err);
    if (!rc)
        rc = driver_link_create(base, config->tls, &config->drivers, &driver_ops, loop,
                                &loop->driver, err);
    if (!rc)
        rc = notice_start(base,
                          &(struct notice_config){ config->preemption ? config->preemption : "none",
                                                   config->notice_us },
                          &notice_ops, loop, &loop->notice, err);
    if (rc) {
        agent_loop_free(loop);
        return rc;
    }
    /* This agent has just taken the host, and has started no worker: processes of the job that run
     * here were left by an agent that was killed. They are ended. */
    leftovers_end(config->core.job, config->core.host);
    *ret_loop = loop;
    return 0;
}

/* Begins (AGENT_START) and runs until the core has asked to exit, or until an error ends the loop.
 * Returns the code of that exit or error. */
int agent_loop_run(struct agent_loop *loop)
{
    loop->holds_output = true; /* output is held until a driver has said welcome */
    children_hold_output(loop->children, true /* do not read it */);
    loop_tell(loop, &(struct agent_event){ .kind = AGENT_START });
    if (!loop->over && event_base_dispatch(loop->base) != 0 && !loop->over)
        loop_give_up(loop, HVD_E_INTERNAL, "the event loop has failed");
    return loop->code;
}

static void loop_free_event(struct event *event)
{
    if (event)
        event_free(event);
}

/* Frees the parts of the agent. The order counts: all workers are ended before another agent can
 * take the host, and the connection to the driver is closed late, so that its last messages are
 * sent. */
void agent_loop_free(struct agent_loop *loop)
{
    if (!loop)
        return;
    loop->over = true; /* from now on callbacks of the parts do nothing */
    notice_stop(loop->notice);
    workers_link_free(loop->workers);
    children_free(loop->children);
    agent_socket_release(loop->config.socket); /* from now on another agent may have the host */
    driver_link_free(loop->driver);
    checkpoint_thread_stop(loop->checkpoint);
    loop_commits_release(loop);
    loop_free_event(loop->events.timer);
    loop_free_event(loop->events.sigterm);
    loop_free_event(loop->events.passed_on);
    loop_free_event(loop->events.sigint);
    loop_free_event(loop->events.sigusr2);
    agent_free(loop->core);
    agent_action_list_release(&loop->actions);
    loop_release_waiting(loop);
    buf_release(&loop->frame.bytes);
    VEC_RELEASE(&loop->started);
    trace_release(&loop->trace);
    /* Only connections with unsent messages still have events: the event loop runs until those
     * messages are sent or their time limit is over, and then returns. */
    event_base_dispatch(loop->base);
    mem_free(loop);
}
