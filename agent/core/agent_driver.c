/* agent_driver.c: the connection to the driver, from the dial to the lease that runs out. */
#include "agent/core/agent_state.h"
#include "proto/catalog.h"

#include <inttypes.h>
#include <string.h>

bool agent_driver_is_open(const struct agent *agent)
{
    return agent->driver.state == DRIVER_OPEN;
}

static void send(struct agent *agent, const struct msg *msg)
{
    ASSERT(agent->driver.state == DRIVER_GREETING || agent_driver_is_open(agent));
    agent_do(agent, AGENT_DO_SEND_DRIVER)->msg = msg;
    agent->beat_at_us = time_add(agent->now_us, agent->config.beat_us);
}

void agent_driver_send(struct agent *agent, const struct msg *msg)
{
    if (agent_driver_is_open(agent))
        send(agent, msg);
}

void agent_driver_dial(struct agent *agent)
{
    sm_move(&agent->driver, DRIVER_DIALLING, agent->now_us, "an attempt");
    agent_do(agent, AGENT_DO_DIAL);
    agent->link_at_us = TIME_NEVER;
}

/* The connection is gone, or never was. */
static void lose(struct agent *agent, const char *why)
{
    sm_move(&agent->driver, DRIVER_DOWN, agent->now_us, why);
    agent->link_at_us = time_add(agent->now_us, agent->config.redial_us);
    agent->beat_at_us = TIME_NEVER;
    if (agent->life.state != LIFE_SERVING)
        return;
    sm_move(&agent->life, LIFE_ALONE, agent->now_us, why);
    agent->grace_at_us = time_add(agent->now_us, agent->config.driver_grace_us);
}

static void hang_up(struct agent *agent, const char *why)
{
    agent_do(agent, AGENT_DO_HANG_UP)->text = agent_text(agent, "%s", why);
    lose(agent, why);
}

void agent_driver_bye(struct agent *agent, const char *why)
{
    struct msg *msg;

    if (agent->driver.state != DRIVER_GREETING && !agent_driver_is_open(agent))
        return;
    msg = agent_msg(agent, MSG_BYE, 0);
    msg->u.bye.reason = agent_text(agent, "%s", why);
    send(agent, msg);
    hang_up(agent, why);
}

/* One report for each process that runs, or has ended without the driver's FORGET. */
static void report(const struct agent_worker *worker, struct msg_slot_report *ret_report)
{
    *ret_report = (struct msg_slot_report){
        .incarnation = worker->incarnation,
        .slot = worker->slot,
        .pid = worker->pid,
        .phase = worker->phase,
        .round = worker->round,
        .ended = worker->ended,
        .value = worker->value,
        .witness = worker->witness,
        .ran_us = worker->ran_us,
    };
}

static struct msg_slot_report_list reports(struct agent *agent)
{
    struct msg_slot_report *items =
        arena_alloc_array(&agent->list->memory, agent->workers.count, sizeof(*items));
    size_t count = 0;

    if (!items) {
        agent->list->failed = true;
        return (struct msg_slot_report_list){ NULL, 0 };
    }
    for (size_t i = 0; i < agent->workers.count; i++) {
        if (agent->workers.items[i]->process.state != FAILED)
            report(agent->workers.items[i], &items[count++]);
    }
    return (struct msg_slot_report_list){ items, count };
}

void agent_driver_up(struct agent *agent, const struct msg_kept_list *kept)
{
    struct msg *msg;

    if (agent->driver.state != DRIVER_DIALLING) {
        trace_add(agent->trace, agent->now_us, "driver: up without a dial: ignored");
        return;
    }
    sm_move(&agent->driver, DRIVER_GREETING, agent->now_us, "connected");
    agent->link_at_us = time_add(agent->now_us, LIMIT_GREETING_US);
    agent->heard = 0;
    msg = agent_msg(agent, MSG_HELLO_AGENT, 0);
    msg->u.hello_agent = (struct msg_hello_agent){
        .minor = PROTO_MINOR,
        .version = HVD_VERSION_TEXT,
        .job = agent->config.job,
        .host = agent->config.host,
        .agent = agent->config.agent,
        .cores = agent->config.cores,
        .memory_bytes = agent->config.memory_bytes,
        .slots = reports(agent),
        .kept = kept ? *kept : (struct msg_kept_list){NULL, 0},
    };
    send(agent, msg);
    agent->beat_at_us = TIME_NEVER; /* nothing more is said before the welcome */
}

void agent_driver_down(struct agent *agent, const char *text)
{
    if (agent->driver.state == DRIVER_DOWN) {
        trace_add(agent->trace, agent->now_us, "driver: down while it was down: ignored");
        return;
    }
    lose(agent, text ? text : "the connection is gone");
}

void agent_driver_moved(struct agent *agent, const char *text)
{
    const char *why = text ? text : "the driver is elsewhere now";

    if (agent_is_unmet(agent))
        agent_first_driver(agent);
    agent_driver_bye(agent, why);
    if (agent->driver.state == DRIVER_DIALLING)
        hang_up(agent, why);
    agent_driver_dial(agent);
}

static void say_notice(struct agent *agent)
{
    struct msg *msg;
    int64_t left_us = agent->taken_at_us - agent->now_us;

    if (!agent->noticed || left_us < 0)
        return; /* what has not come true is not said to the next driver */
    msg = agent_msg(agent, MSG_NOTICE, 0);
    if (agent->taken_at_us == TIME_NEVER)
        left_us = TIME_NEVER;
    msg->u.notice.left_us = left_us;
    msg->u.notice.source = agent_text(agent, "%s", agent->notice);
    agent_driver_send(agent, msg);
}

void agent_driver_notice(struct agent *agent, int64_t left_us, const char *source)
{
    const char *clean = agent_text(agent, "%s", source ? source : "");

    agent->noticed = true;
    agent->taken_at_us = time_add(agent->now_us, left_us > 0 ? left_us : 0);
    memcpy(agent->notice, clean, strlen(clean) + 1);
    trace_add(agent->trace, agent->now_us, "agent: this machine will be taken away: %s", clean);
    say_notice(agent);
}

/* A driver that leaves one out wants it as it was; 0 would be a lease that is always over. */
static void adopt_intervals(struct agent *agent, const struct msg_welcome_agent *welcome)
{
    if (welcome->beat_us > 0)
        agent->config.beat_us = welcome->beat_us;
    if (welcome->lease_us > 0)
        agent->config.lease_us = welcome->lease_us;
    if (welcome->driver_grace_us > 0)
        agent->config.driver_grace_us = welcome->driver_grace_us;
}

static void welcome(struct agent *agent, const struct msg *msg)
{
    adopt_intervals(agent, &msg->u.welcome_agent);
    sm_move(&agent->driver, DRIVER_OPEN, agent->now_us, "welcome");
    agent->link_at_us = time_add(agent->now_us, agent->config.lease_us);
    agent->beat_at_us = time_add(agent->now_us, agent->config.beat_us);
    agent->grace_at_us = TIME_NEVER;
    if (agent->life.state == LIFE_ALONE)
        sm_move(&agent->life, LIFE_SERVING, agent->now_us, "a driver's welcome");
    for (size_t i = 0; i < agent->workers.count; i++) {
        struct agent_worker *worker = agent->workers.items[i];

        if (worker->process.state == RUNNING)
            agent_process_report(agent, worker);
        agent_words_say_again(agent, worker);
        agent_output_say_kept(agent, worker);
        if (worker->process.state != RUNNING)
            agent_process_report(agent, worker);
    }
    say_notice(agent);
}

static bool is_final(int32_t code)
{
    return code == HVD_E_VERSION || code == HVD_E_DENIED || code == HVD_E_MISMATCH;
}

static void refused(struct agent *agent, const struct msg_refused *refused)
{
    const char *why = agent_text(agent, "refused by the driver: %s", refused->text);

    hang_up(agent, why);
    if (is_final(refused->code))
        agent_end(agent, agent->config.kill_grace_us, refused->code, why);
}

static void open_msg(struct agent *agent, const struct msg *msg)
{
    switch ((unsigned)msg->type) {
    case MSG_BEAT:
        if (msg->u.beat.sequence > agent->heard)
            agent->heard = msg->u.beat.sequence;
        break;
    case MSG_LAUNCH: agent_process_launch(agent, msg); break;
    case MSG_KILL: agent_process_kill(agent, msg->incarnation, msg->u.kill.grace_us); break;
    case MSG_FORGET: agent_process_forget(agent, msg->incarnation); break;
    case MSG_STOP:
        agent->stopped = true;
        agent_end(agent, msg->u.stop.grace_us, HVD_OK,
                  agent_text(agent, "stopped: %s", msg->u.stop.reason));
        break;
    default: agent_worker_pass_down(agent, msg); break;
    }
}

void agent_driver_msg(struct agent *agent, const struct msg *msg)
{
    bool greeting = agent->driver.state == DRIVER_GREETING;
    struct hvd_err err;

    if (!greeting && !agent_driver_is_open(agent)) {
        trace_add(agent->trace, agent->now_us, "driver: a message without a connection: ignored");
        return;
    }
    if (msg->term && msg->term < agent->term) {
        agent_driver_bye(agent, agent_text(agent, "term %" PRIu64 " is over, %" PRIu64 " is obeyed",
                                           msg->term, agent->term));
        return;
    }
    if (msg_allowed(msg->type, LINK_DRIVER_TO_AGENT, greeting ? WHEN_GREETING : WHEN_OPEN, &err)) {
        agent_driver_bye(agent, agent_text(agent, "%s", err.text));
        return;
    }
    if (msg->term > agent->term)
        agent->term = msg->term;
    if (msg->type == MSG_BYE) {
        hang_up(agent, agent_text(agent, "the driver says bye: %s", msg->u.bye.reason));
    } else if (msg->type == MSG_WELCOME_AGENT) {
        welcome(agent, msg);
    } else if (msg->type == MSG_REFUSED) {
        refused(agent, &msg->u.refused);
    } else {
        agent->link_at_us = time_add(agent->now_us, agent->config.lease_us);
        open_msg(agent, msg);
    }
}

static void beat(struct agent *agent)
{
    struct msg *msg = agent_msg(agent, MSG_BEAT, 0);

    msg->u.beat = (struct msg_beat){ .sequence = ++agent->sequence, .answers = agent->heard };
    agent_driver_send(agent, msg);
}

void agent_driver_timer(struct agent *agent)
{
    if (agent->now_us >= agent->link_at_us) {
        switch ((enum driver_link)agent->driver.state) {
        case DRIVER_DOWN: agent_driver_dial(agent); break;
        case DRIVER_GREETING: hang_up(agent, "no welcome in time"); break;
        case DRIVER_OPEN: hang_up(agent, "the driver is silent"); break;
        case DRIVER_DIALLING:
        case DRIVER_COUNT: PANIC("a deadline while %s", sm_name(&agent->driver));
        }
    }
    if (agent->now_us >= agent->beat_at_us)
        beat(agent);
    if (agent->now_us >= agent->grace_at_us) {
        agent->grace_at_us = TIME_NEVER;
        agent_end(agent, agent->config.kill_grace_us, HVD_E_LOST,
                  agent->term ? "no driver came back in time (driver grace)"
                              : "the driver that started it is not there");
    }
}
