#include "agent/io/body.h"

#include "agent/io/body_state.h"
#include "agent/io/leftovers.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/time.h"
#include "os/clock.h"
#include "proto/frame.h"
#include "wire/tls.h"

#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#define TRACE_LINES 256
#define KEPT_BYTES  (64 * 1024) /* a line for each slot */

/* ---- events ---------------------------------------------------------------------------------- */

static void arm_timer(struct body *body)
{
    int64_t deadline_us = agent_deadline(body->mind);
    int64_t left_us = deadline_us - clock_now_us();
    struct timeval left;

    if (deadline_us == TIME_NEVER) {
        event_del(body->timer);
        return;
    }
    if (left_us < 0)
        left_us = 0;
    left = (struct timeval){ .tv_sec = (time_t)(left_us / TIME_S),
                             .tv_usec = (suseconds_t)(left_us % TIME_S) };
    if (event_add(body->timer, &left))
        body_give_up(body, HVD_E_NOMEM, "a timer");
}

/* Workers wait with what they print while nobody takes it. */
static void hold_output(struct body *body)
{
    bool hold = !driver_link_takes_output(body->driver);

    if (hold == body->holds_output)
        return;
    body->holds_output = hold;
    children_hold_output(body->children, hold);
}

static void step(struct body *body, struct agent_event *event)
{
    int rc;

    event->now_us = clock_now_us();
    rc = agent_step(body->mind, event, &body->actions);
    if (rc)
        body_give_up(body, rc, "the agent's mind");
    for (size_t i = 0; i < body->actions.count && !body->over; i++)
        body_carry_out(body, &body->actions.items[i]);
    body->encoded = NULL; /* it goes with the list */
    agent_action_list_clear(&body->actions);
}

/* What happens inside an action (a program that cannot be started) waits until all are done. */
static void tell(struct body *body, const struct agent_event *event)
{
    struct agent_event now = *event;

    if (body->over)
        return;
    if (body->stepping) {
        body_put_off(body, event);
        return;
    }
    body->stepping = true;
    do
        step(body, &now);
    while (!body->over && body_queue_take(&body->queue, &now));
    body->stepping = false;
    if (body->over)
        return;
    hold_output(body);
    arm_timer(body);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    struct body *body = arg;

    (void)what;
    snapshots_tidy(body->snapshots, clock_now_us());
    tell(body, &(struct agent_event){ .kind = AGENT_TIMER });
}

static void on_signal(evutil_socket_t signal, short what, void *arg)
{
    struct body *body = arg;

    (void)what;
    if (body->config.keeper && getppid() != (pid_t)body->config.keeper) {
        log_warning(AGENT, "its keeper is gone: it ends its workers, and then itself");
        tell(body, &(struct agent_event){ .kind = AGENT_STOP, .text = "its keeper is gone" });
    } else if (signal == SIGTERM && !body->noticed) {
        body->noticed = true;
        log_warning(AGENT, "SIGTERM: this machine is taken to go away soon; again: it ends now");
        tell(body, &(struct agent_event){ .kind = AGENT_NOTICE,
                                          .left_us = body->config.notice_us,
                                          .text = "SIGTERM to the agent" });
    } else {
        tell(body, &(struct agent_event){ .kind = AGENT_STOP, .text = "ended by a signal" });
    }
}

/* ---- from the driver ------------------------------------------------------------------------- */

static void on_driver_up(void *arg)
{
    struct body *body = arg;

    struct msg_kept_list kept;
    struct arena arena;

    arena_init(&arena, KEPT_BYTES);
    if (snapshots_kept(body->snapshots, &arena, &kept)) {
        body_give_up(body, HVD_E_NOMEM, "what is kept for the driver");
    } else {
        body_commits_driver_up(body);
        tell(body, &(struct agent_event){ .kind = AGENT_DRIVER_UP, .kept = &kept });
    }
    arena_release(&arena);
}

static void on_driver_msg(void *arg, const struct msg *msg)
{
    struct body *body = arg;

    tell(body, &(struct agent_event){ .kind = AGENT_DRIVER_MSG, .msg = msg });
    if (body->over)
        return;
    if (msg->type == MSG_REFUSED)
        log_error(NET, "the driver refuses this agent: %s", msg->u.refused.text);
    /* One whose term is over has been hung up on by now. */
    if (msg->type == MSG_WELCOME_AGENT && driver_link_is_open(body->driver)) {
        driver_link_welcomed(body->driver);
        body->unreachable = (struct log_limit){ TIME_MIN, 1, 0, 0, 0 };
        log_info(NET, "driver %s: serves term %" PRIu64, driver_link_peer(body->driver), msg->term);
        hold_output(body);
    }
}

static void on_driver_down(void *arg, const char *why)
{
    struct body *body = arg;
    unsigned held;

    if (log_limit_pass(&body->unreachable, clock_now_us(), &held))
        log_warning(NET, "no driver: %s; it is dialled again and again (%u more since)", why, held);
    tell(body, &(struct agent_event){ .kind = AGENT_DRIVER_DOWN, .text = why });
}

static void on_driver_drained(void *arg)
{
    hold_output(arg);
}

static const struct driver_link_ops driver_ops = { on_driver_up, on_driver_msg, on_driver_down,
                                                   on_driver_drained };

/* ---- from workers' connections --------------------------------------------------------------- */

static uint64_t pid_of(void *arg, uint64_t incarnation)
{
    const struct started *started = body_started(arg, incarnation);

    return started ? started->pid : 0;
}

static void on_worker_msg(void *arg, uint32_t worker, const struct msg *msg)
{
    struct body *body = arg;
    struct started *started = body_started(body, msg->incarnation);

    if (msg->type == MSG_LEFT && started)
        started->left = true;
    tell(body, &(struct agent_event){ .kind = AGENT_WORKER_MSG, .worker = worker, .msg = msg });
}

static void on_worker_down(void *arg, uint32_t worker)
{
    tell(arg, &(struct agent_event){ .kind = AGENT_WORKER_DOWN, .worker = worker });
}

/* A job of our name that is not ours: its state was removed, or ours has ended while we started. */
static int on_other_job(struct body *body, struct hvd_err *err)
{
    if (!agent_is_unmet(body->mind))
        return err_set(err, HVD_E_EXISTS,
                       "it works for another job of the name %s, %s; end that job, or kill -INT "
                       "%ld, or choose another name (--job)",
                       body->config.mind.job,
                       driver_link_is_open(body->driver) ? "which has its driver"
                                                         : "and waits for its driver",
                       (long)getpid());
    log_info(AGENT, "another job of this name begins, and no driver has come for this one");
    tell(body, &(struct agent_event){ .kind = AGENT_STOP, .text = "another job has its name" });
    return err_set(err, HVD_E_STATE, "the agent is ending");
}

static int on_point(void *arg, const char *key, const struct msg_texts *addresses,
                    struct hvd_err *err)
{
    struct body *body = arg;
    char mine[TLS_NAME_MAX];
    bool moved = false;
    int rc;

    if (body->over || agent_is_ending(body->mind))
        return err_set(err, HVD_E_STATE, "the agent is ending");
    if (tls_name(body->config.tls, mine))
        return err_set(err, HVD_E_NOMEM, "no memory for the key's name");
    if (strcmp(key, mine) != 0)
        return on_other_job(body, err);
    rc = driver_link_point(body->driver, addresses, &moved);
    if (rc)
        return err_set(err, rc, "no memory for the addresses");
    if (!moved)
        return 0;
    log_info(NET, "driver: is said to be at %s now: dialled at once", addresses->items[0]);
    tell(body,
         &(struct agent_event){ .kind = AGENT_DRIVER_MOVED, .text = "another driver asks for it" });
    return 0;
}

static const struct workers_link_ops workers_ops = { .pid_of = pid_of,
                                                     .msg = on_worker_msg,
                                                     .down = on_worker_down,
                                                     .point = on_point,
                                                     .snapshot = body_commits_snapshot,
                                                     .fetch = body_commits_fetch,
                                                     .hung_up = body_commits_hung_up };

/* ---- from workers' processes ----------------------------------------------------------------- */

static void on_spawned(void *arg, uint64_t incarnation, pid_t pid)
{
    struct body *body = arg;
    struct started *started = body_started(body, incarnation);

    ASSERT(started);
    started->pid = (uint64_t)pid;
    tell(body, &(struct agent_event){
                   .kind = AGENT_SPAWNED, .incarnation = incarnation, .pid = (uint64_t)pid });
}

static void on_spawn_failed(void *arg, uint64_t incarnation, int code, const char *text)
{
    struct body *body = arg;

    log_warning(LAUNCH, "incarnation %" PRIu64 ": %s", incarnation, text);
    body_forget_started(body, incarnation);
    tell(body,
         &(struct agent_event){
             .kind = AGENT_SPAWN_FAILED, .incarnation = incarnation, .code = code, .text = text });
}

static void on_output(void *arg, uint64_t incarnation, enum msg_stream stream,
                      struct msg_bytes data)
{
    tell(arg,
         &(struct agent_event){
             .kind = AGENT_OUTPUT, .incarnation = incarnation, .stream = stream, .data = data });
}

static void on_dying(void *arg, uint64_t incarnation)
{
    struct body *body = arg;

    workers_link_read_now(body->workers, incarnation);
}

static void on_ended(void *arg, uint64_t incarnation, enum msg_ended ended, int32_t value,
                     enum msg_witness witness)
{
    struct body *body = arg;
    struct started *started = body_started(body, incarnation);
    uint64_t commit;

    ASSERT(started);
    commit = snapshots_newest(body->snapshots, started->slot);
    if (started->left)
        snapshots_left(body->snapshots, started->slot, clock_now_us());
    body_forget_started(body, incarnation);
    tell(body, &(struct agent_event){ .kind = AGENT_ENDED,
                                      .incarnation = incarnation,
                                      .ended = ended,
                                      .value = value,
                                      .witness = witness,
                                      .commit = commit });
}

static const struct children_ops children_ops = { on_spawned, on_spawn_failed, on_output, on_dying,
                                                  on_ended };

/* ---- from outside ---------------------------------------------------------------------------- */

static void on_trace(void *arg, const char *line)
{
    (void)arg;
    log_debug(AGENT, "%s", line);
}

static int make_events(struct body *body)
{
    body->timer = evtimer_new(body->base, on_timer, body);
    body->sigterm = evsignal_new(body->base, SIGTERM, on_signal, body);
    body->sigint = evsignal_new(body->base, SIGINT, on_signal, body);
    if (!body->timer || !body->sigterm || !body->sigint)
        return HVD_E_NOMEM;
    return event_add(body->sigterm, NULL) || event_add(body->sigint, NULL) ? HVD_E_NOMEM : 0;
}

static int make_mind(struct body *body, struct hvd_err *err)
{
    int rc = trace_init(&body->trace, "agent", TRACE_LINES);

    if (!rc)
        body->mind = agent_create(&body->config.mind, &body->trace);
    if (!body->mind || make_events(body))
        return err_set(err, HVD_E_NOMEM, "no memory for the agent");
    trace_set_tap(&body->trace, on_trace, body);
    return 0;
}

int body_create(struct event_base *base, const struct body_config *config, struct body **ret_body,
                struct hvd_err *err)
{
    struct body *body = mem_zalloc(sizeof(*body));
    int rc;

    if (!body)
        return err_set(err, HVD_E_NOMEM, "no memory for the agent");
    body->base = base;
    body->config = *config;
    body->unreachable = (struct log_limit){ TIME_MIN, 1, 0, 0, 0 };
    agent_socket_name(config->mind.job, config->mind.host, body->socket);
    agent_action_list_init(&body->actions);
    body_queue_init(&body->queue);
    buf_init(&body->frame, FRAME_HEADER_BYTES + LIMIT_FRAME_BODY_BYTES);
    rc = make_mind(body, err);
    if (!rc)
        rc = children_create(base, &children_ops, body, &body->children, err);
    if (!rc)
        rc = body_commits_create(body, err);
    if (!rc) /* before anything that a second agent should not do */
        rc = workers_link_create(base, body->socket, body->children, &workers_ops, body,
                                 &body->workers, err);
    if (!rc)
        rc = driver_link_create(base, config->tls, &config->drivers, &driver_ops, body,
                                &body->driver, err);
    if (rc) {
        body_free(body);
        return rc;
    }
    leftovers_end(body->socket); /* that of our name: there is no other agent */
    *ret_body = body;
    return 0;
}

int body_run(struct body *body)
{
    body->holds_output = true;
    children_hold_output(body->children, true);
    tell(body, &(struct agent_event){ .kind = AGENT_START });
    if (!body->over && event_base_dispatch(body->base) != 0 && !body->over)
        body_give_up(body, HVD_E_INTERNAL, "the loop");
    return body->code;
}

static void free_event(struct event *event)
{
    if (event)
        event_free(event);
}

void body_free(struct body *body)
{
    if (!body)
        return;
    body->over = true;
    workers_link_free(body->workers);
    children_free(body->children);
    driver_link_free(body->driver);
    body_commits_release(body);
    free_event(body->timer);
    free_event(body->sigterm);
    free_event(body->sigint);
    agent_free(body->mind);
    agent_action_list_release(&body->actions);
    body_queue_release(&body->queue);
    buf_release(&body->frame);
    VEC_RELEASE(&body->started);
    trace_release(&body->trace);
    /* What was sent is on its way, and nothing else keeps the loop. */
    event_base_dispatch(body->base);
    mem_free(body);
}
