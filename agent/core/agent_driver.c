/*
 * agent_driver.c: messages from the driver, and messages that the agent sends to the driver by
 * itself: hello, heartbeats, notices. Called by agent.c for each event of the driver's connection
 * and at its deadlines. Invariant: the agent obeys only a driver of the highest term that it has
 * seen (PROTOCOL.md, section 3).
 */
#include "agent/core/agent_handlers.h"
#include "proto/catalog.h"

#include <inttypes.h>
#include <string.h>

/* The connection that was dialled is open: sends HELLO_AGENT. `kept` lists the commits in the
 * snapshots of this host; NULL: none. `address`: where the agent serves them; NULL: nowhere. */
void agent_driver_up(struct agent *agent, const struct msg_kept_list *kept, const char *address)
{
    struct msg_slot_report *reports;
    const char **addresses;
    size_t count = 0;
    struct msg *msg;

    if (agent->driver.state != DRIVER_DIALLING) {
        trace_add(agent->trace, agent->now_us, "driver: up without a dial: ignored");
        return;
    }
    sm_move(&agent->driver, DRIVER_GREETING, agent->now_us, "connected");
    agent->link.due_us = time_add(agent->now_us, LIMIT_GREETING_US);
    agent->link.heard = 0; /* the driver on this connection has sent no heartbeat yet */

    /* HELLO_AGENT has one report for each worker process that runs, or has ended without the
     * driver's FORGET. A start that failed has no report: LAUNCH_FAILED is sent again. */
    reports = arena_alloc_array(&agent->list->memory, agent->workers.count, sizeof(*reports));
    addresses = arena_alloc_array(&agent->list->memory, 1, sizeof(*addresses));
    if (!reports || !addresses) {
        agent->list->failed = true;
        return;
    }
    addresses[0] = address;
    for (size_t i = 0; i < agent->workers.count; i++) {
        const struct agent_worker *worker = agent->workers.items[i];

        if (worker->process.state == FAILED)
            continue;
        reports[count++] = (struct msg_slot_report){
            .incarnation = worker->incarnation,
            .slot = worker->slot,
            .pid = worker->pid,
            .phase = worker->phase,
            .round = worker->round,
            .ended = worker->ending.ended,
            .value = worker->ending.value,
            .witness = worker->ending.witness,
            .ran_us = worker->ending.ran_us,
        };
    }
    msg = agent_msg(agent, MSG_HELLO_AGENT, 0);
    msg->u.hello_agent = (struct msg_hello_agent){
        .minor = PROTO_MINOR,
        .version = HVD_VERSION_TEXT,
        .job = agent->config.job,
        .host = agent->config.host,
        .agent = agent->config.agent,
        .cores = agent->config.cores,
        .memory_bytes = agent->config.memory_bytes,
        .slots = {reports,    count          },
        .kept = kept ? *kept : (struct msg_kept_list){ NULL,      0              },
        .addresses = { addresses, address ? 1 : 0},
    };
    agent_link_say(agent, msg);
    agent->link.beat_at_us = TIME_NEVER; /* no heartbeat is sent before the welcome */
}

/* The event loop says that the connection is lost, or that the dial has failed. */
void agent_driver_down(struct agent *agent, const char *text)
{
    if (agent->driver.state == DRIVER_DOWN) {
        trace_add(agent->trace, agent->now_us, "driver: down while it was down: ignored");
        return;
    }
    agent_link_lost(agent, text ? text : "the connection is gone");
}

/* The driver has another address now, which the event loop has put first in its list: closes the
 * connection, or ends the attempt to connect, and dials at once. */
void agent_driver_moved(struct agent *agent, const char *text)
{
    const char *why = text ? text : "the driver is elsewhere now";

    /* An agent that no driver has welcomed yet waits for the new driver as long as for the first.
     */
    if (agent_was_never_welcomed(agent))
        agent_link_await_first(agent);
    agent_link_bye(agent, why);
    if (agent->driver.state == DRIVER_DIALLING)
        agent_link_hang_up(agent, why);
    agent_link_dial(agent);
}

/* Sends the preemption notice with the time that is left; TIME_NEVER stays TIME_NEVER. A notice
 * whose time has passed did not come true, and is dropped. */
static void agent_driver_say_notice(struct agent *agent)
{
    int64_t left_us = agent->notice.taken_at_us - agent->now_us;
    struct msg *msg;

    if (!agent->notice.given || left_us < 0)
        return;
    msg = agent_msg(agent, MSG_NOTICE, 0);
    msg->u.notice.left_us = agent->notice.taken_at_us == TIME_NEVER ? TIME_NEVER : left_us;
    msg->u.notice.source = agent_text(agent, "%s", agent->notice.text);
    agent_link_send(agent, msg);
}

/* This machine will be taken away in `left_us`: keeps the notice for every driver that connects,
 * and sends it now if a driver is connected. A negative `left_us` counts as 0. Of several notices
 * the one holds whose time ends first: SIGTERM often follows what a metadata service has said. */
void agent_driver_notice(struct agent *agent, int64_t left_us, const char *source)
{
    const char *clean = agent_text(agent, "%s", source ? source : "");
    int64_t taken_at_us = time_add(agent->now_us, left_us > 0 ? left_us : 0);

    if (agent->notice.given && agent->notice.taken_at_us >= agent->now_us &&
        agent->notice.taken_at_us <= taken_at_us) {
        trace_add(agent->trace, agent->now_us, "agent: an earlier notice holds: %s is ignored",
                  clean);
        return;
    }
    agent->notice.given = true;
    agent->notice.taken_at_us = taken_at_us;
    memcpy(agent->notice.text, clean, strlen(clean) + 1);
    trace_add(agent->trace, agent->now_us, "agent: this machine will be taken away: %s", clean);
    agent_driver_say_notice(agent);
}

/* The agent has taken a new key: sends REKEYED if the driver is connected. Otherwise no answer is
 * needed, because the next connection proves that the agent has the key (PROTOCOL.md, REKEY). */
void agent_driver_key_taken(struct agent *agent, uint64_t epoch)
{
    struct msg *msg = agent_msg(agent, MSG_REKEYED, 0);

    msg->u.rekeyed.epoch = epoch;
    agent_link_send(agent, msg);
}

/* Handles the driver's welcome: takes over its intervals, and repeats all messages that are still
 * true. */
static void agent_driver_welcome(struct agent *agent, const struct msg *msg)
{
    const struct msg_welcome_agent *welcome = &msg->u.welcome_agent;
    bool entries_said = false;

    /* An interval that the driver leaves out (0) keeps its value: with a lease of 0 the agent would
     * count every peer as dead at once. */
    if (welcome->beat_us > 0)
        agent->config.beat_us = welcome->beat_us;
    if (welcome->lease_us > 0)
        agent->config.lease_us = welcome->lease_us;
    if (welcome->driver_grace_us > 0)
        agent->config.driver_grace_us = welcome->driver_grace_us;

    agent->link.minor = welcome->minor;
    agent->link.redial_us = agent->config.redial_first_us;
    sm_move(&agent->driver, DRIVER_OPEN, agent->now_us, "welcome");
    agent_link_renew(agent);
    agent->link.beat_at_us = time_add(agent->now_us, agent->config.beat_us);
    agent->link.beat_by_us = time_add(agent->link.beat_at_us, agent->config.beat_us);
    agent->grace_at_us = TIME_NEVER;
    if (agent->life.state == LIFE_ALONE)
        sm_move(&agent->life, LIFE_SERVING, agent->now_us, "a driver's welcome");

    /* PROTOCOL.md, "Greeting": for each worker, the messages that are still true are sent again in
     * their original order: LAUNCHED, its last messages, its output, its end. The READY of one
     * worker is sent again in any case, because a driver needs the entries of the state. */
    for (size_t i = 0; i < agent->workers.count; i++) {
        struct agent_worker *worker = agent->workers.items[i];

        agent_pulse_forget_told(worker);
        if (worker->process.state == RUNNING)
            agent_process_report(agent, worker);
        agent_worker_welcomed(agent, worker);
        agent_words_say_again(agent, worker, !entries_said);
        entries_said |= agent_words_entries(worker) != NULL;
        agent_output_say_kept(agent, worker);
        if (worker->process.state != RUNNING)
            agent_process_report(agent, worker);
    }
    agent_driver_say_notice(agent);
}

/* Handles a message of the driver. A message that is not for the agent goes down to the workers.
 * The term 0 in a message means that the message is valid in every term. */
void agent_driver_msg(struct agent *agent, const struct msg *msg)
{
    bool greeting = agent->driver.state == DRIVER_GREETING;
    const char *why;
    struct hvd_err err;

    if (!greeting && !agent_link_is_open(agent)) {
        trace_add(agent->trace, agent->now_us, "driver: a message without a connection: ignored");
        return;
    }
    /* PROTOCOL.md, "Greeting": a driver of a lower term has been replaced. */
    if (msg->term && msg->term < agent->link.term) {
        agent_link_bye(agent, agent_text(agent, "term %" PRIu64 " is over, %" PRIu64 " is obeyed",
                                         msg->term, agent->link.term));
        return;
    }
    if (msg_allowed(msg->type, LINK_DRIVER_TO_AGENT, greeting ? WHEN_GREETING : WHEN_OPEN, &err)) {
        agent_link_bye(agent, agent_text(agent, "%s", err.text));
        return;
    }
    if (msg->term > agent->link.term)
        agent->link.term = msg->term;

    /* In the greeting no lease runs yet: only the welcome may end the wait for it. */
    if (!greeting)
        agent_link_renew(agent);
    switch ((unsigned)msg->type) {
    case MSG_BYE:
        agent_link_hang_up(agent, agent_text(agent, "the driver says bye: %s", msg->u.bye.reason));
        break;
    case MSG_WELCOME_AGENT: agent_driver_welcome(agent, msg); break;
    case MSG_REFUSED:
        why = agent_text(agent, "refused by the driver: %s", msg->u.refused.text);
        agent_link_hang_up(agent, why);
        /* The driver would refuse another attempt for the same reason, so the agent ends. */
        if (msg->u.refused.code == HVD_E_VERSION || msg->u.refused.code == HVD_E_DENIED ||
            msg->u.refused.code == HVD_E_MISMATCH)
            agent_end(agent, agent->config.kill_grace_us, msg->u.refused.code, why);
        break;
    case MSG_BEAT:
        if (msg->u.beat.sequence > agent->link.heard)
            agent->link.heard = msg->u.beat.sequence;
        break;
    case MSG_STATE_KEY: /* agent/io gives this key to the thread that serves commits */
    /* only the process that joins (agent/join) gets a START, never an agent */
    case MSG_START: break;
    case MSG_REKEY: agent_do(agent, AGENT_DO_TAKE_KEY)->msg = msg; break;
    case MSG_HOLD:
    case MSG_SAVE:
    case MSG_RELEASE: agent_checkpoint_msg(agent, msg); break;
    case MSG_EXAMINE: break; /* the loop reads the pages, and tells of each worker (EXAMINED) */
    case MSG_LAUNCH: agent_process_launch(agent, msg); break;
    case MSG_KILL: agent_process_kill(agent, msg); break;
    case MSG_FORGET: agent_process_forget(agent, msg->incarnation); break;
    case MSG_STOP:
        agent->exit.by_driver = true;
        agent_end(agent, msg->u.stop.grace_us, HVD_OK,
                  agent_text(agent, "stopped: %s", msg->u.stop.reason));
        break;
    default: agent_worker_pass_down(agent, msg); break;
    }
}

/* Handles the deadlines of the driver's connection that have passed: the next dial, the welcome or
 * the lease, the next heartbeat, and the end of the time without a driver. */
void agent_driver_timer(struct agent *agent, const struct report_list *reports)
{
    if (agent->now_us >= agent->link.due_us) {
        switch ((enum driver_link)agent->driver.state) {
        case DRIVER_DOWN: agent_link_dial(agent); break;
        case DRIVER_GREETING: agent_link_hang_up(agent, "no welcome in time"); break;
        case DRIVER_OPEN: agent_link_hang_up(agent, "the driver is silent"); break;
        case DRIVER_DIALLING:
        case DRIVER_COUNT: PANIC("a deadline while %s", sm_name(&agent->driver));
        }
    }
    if (agent->now_us >= agent->link.beat_at_us)
        agent_pulse_beat(agent, reports);
    if (agent->now_us >= agent->grace_at_us) {
        agent->grace_at_us = TIME_NEVER;
        agent_end(agent, agent->config.kill_grace_us, HVD_E_LOST,
                  agent->link.term ? "no driver came back in time (driver grace)"
                                   : "the driver that started the agent does not answer");
    }
}
