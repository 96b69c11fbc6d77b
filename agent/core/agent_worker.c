/* agent_worker.c: the connections of workers: hello, up, down, and silence. */
#include "agent/core/agent_state.h"
#include "proto/catalog.h"

#include <inttypes.h>

static void drop(struct agent *agent, uint32_t connection, const char *why)
{
    struct agent_action *action = agent_do(agent, AGENT_DO_DROP);

    action->worker = connection;
    action->text = why;
    trace_add(agent->trace, agent->now_us, "worker: connection %u dropped: %s", connection, why);
}

static void send(struct agent *agent, uint32_t connection, const struct msg *msg)
{
    struct agent_action *action = agent_do(agent, AGENT_DO_SEND_WORKER);

    action->worker = connection;
    action->msg = msg;
}

static void watch(struct agent *agent, struct agent_worker *worker)
{
    if (!agent_worker_is_alive(worker))
        return;
    worker->silent_at_us = time_add(agent->now_us, worker->lease_us);
    agent_wake_at(agent, worker->silent_at_us);
}

/* Without a connection it cannot take part. It may be about to end, so it has as long as it may be
 * silent. */
static void disconnect(struct agent *agent, struct agent_worker *worker)
{
    agent_roster_disconnect(agent, worker);
    watch(agent, worker);
}

static void refuse(struct agent *agent, uint32_t connection, int code, const char *why)
{
    struct msg *msg = agent_msg(agent, MSG_REFUSED, 0);

    msg->u.refused = (struct msg_refused){ code, why };
    send(agent, connection, msg);
    drop(agent, connection, why);
}

static void welcome(struct agent *agent, struct agent_worker *worker, uint32_t connection)
{
    const struct agent_config *config = &agent->config;
    const struct place *place = &worker->place;
    struct msg *msg = agent_msg(agent, MSG_WELCOME_WORKER, worker->incarnation);

    msg->u.welcome_worker = (struct msg_welcome_worker){
        .minor = PROTO_MINOR,
        .version = HVD_VERSION_TEXT,
        .job = config->job,
        .host = config->host,
        .slot = worker->slot,
        .rank = place->rank,
        .size = place->size,
        .local_rank = place->local_rank,
        .local_size = place->local_size,
        .cross_rank = place->cross_rank,
        .cross_size = place->cross_size,
        .min_np = config->min_np,
        .max_np = config->max_np,
        .beat_us = config->beat_us,
        .stall_warning_us = config->stall_warning_us,
        .stall_shutdown_us = config->stall_shutdown_us,
    };
    send(agent, connection, msg);
}

static void hello(struct agent *agent, uint32_t connection, const struct msg *msg)
{
    struct agent_worker *worker = agent_roster_find(agent, msg->incarnation);
    uint64_t pid = msg->u.hello_worker.pid;

    if (!worker || !agent_worker_is_alive(worker)) {
        refuse(agent, connection, HVD_E_NOTFOUND, "no such incarnation runs here");
        return;
    }
    if (worker->pid && worker->pid != pid) {
        refuse(agent, connection, HVD_E_DENIED, "another process was started as this incarnation");
        return;
    }
    if (worker->connected) {
        refuse(agent, connection, HVD_E_BUSY, "this incarnation has a connection");
        return;
    }
    agent_roster_connect(agent, worker, connection);
    trace_add(agent->trace, agent->now_us, "worker: %" PRIu64 " says hello on connection %u",
              worker->incarnation, connection);
    if (worker->phase == PHASE_STARTED)
        worker->phase = PHASE_JOINING;
    worker->lease_us = agent->config.lease_us;
    watch(agent, worker);
    welcome(agent, worker, connection);
}

static void up(struct agent *agent, struct agent_worker *worker, const struct msg *msg)
{
    struct hvd_err err;

    if (msg_allowed(msg->type, LINK_WORKER_TO_AGENT, WHEN_OPEN, &err)) {
        drop(agent, worker->connection, agent_text(agent, "%s", err.text));
        disconnect(agent, worker);
        return;
    }
    if (msg->type == MSG_BYE) {
        drop(agent, worker->connection, agent_text(agent, "it says bye: %s", msg->u.bye.reason));
        disconnect(agent, worker);
        return;
    }
    watch(agent, worker);
    if (msg->type == MSG_BEAT)
        return;
    if (msg->incarnation != worker->incarnation) {
        drop(agent, worker->connection, "it speaks for another incarnation");
        disconnect(agent, worker);
        return;
    }
    agent_words_keep(agent, worker, msg);
    agent_driver_send(agent, msg);
    if (msg->type == MSG_USELESS)
        agent_process_useless(agent, worker);
}

void agent_worker_msg(struct agent *agent, uint32_t connection, const struct msg *msg)
{
    struct agent_worker *worker = agent_roster_at(agent, connection);

    if (worker)
        up(agent, worker, msg);
    else if (msg->type == MSG_HELLO_WORKER)
        hello(agent, connection, msg);
    else
        drop(agent, connection, "it says something else before hello");
}

void agent_worker_down(struct agent *agent, uint32_t connection)
{
    struct agent_worker *worker = agent_roster_at(agent, connection);

    if (!worker)
        return; /* it never said hello */
    trace_add(agent->trace, agent->now_us, "worker: connection %u of %" PRIu64 " is gone",
              connection, worker->incarnation);
    disconnect(agent, worker);
}

static void pass_to(struct agent *agent, struct agent_worker *worker, const struct msg *msg)
{
    if (!agent_worker_is_alive(worker))
        return;
    send(agent, worker->connection, msg);
    agent_words_note_down(worker, msg);
}

/* Who is a member of the round that was passed on is in it. By the members, each of which is
 * looked up here: not by our workers, each of which would be looked for there. */
static void note_members(struct agent *agent, const struct msg *msg)
{
    const struct msg_member_list *members = &msg->u.round.members;

    for (size_t i = 0; i < members->count; i++) {
        uint64_t incarnation = members->items[i].incarnation;
        struct agent_worker *worker = agent_roster_find(agent, incarnation);

        if (!worker || !worker->connected || !agent_worker_is_alive(worker))
            continue;
        if (!msg->incarnation || msg->incarnation == incarnation)
            agent_words_note_member(worker, msg->round);
    }
}

void agent_worker_pass_down(struct agent *agent, const struct msg *msg)
{
    struct agent_worker *worker;

    if (msg->incarnation) {
        worker = agent_roster_find(agent, msg->incarnation);
        if (worker && worker->connected)
            pass_to(agent, worker, msg);
        else /* the driver says again what still holds, once the worker has spoken */
            trace_add(agent->trace, agent->now_us,
                      "worker: %s for %" PRIu64 ", which has no connection: dropped",
                      msg_kind(msg->type)->name, msg->incarnation);
    } else {
        for (size_t i = 0; i < agent->connections.count; i++)
            pass_to(agent, agent->connections.items[i].worker, msg);
    }
    if (msg->type == MSG_ROUND)
        note_members(agent, msg);
}

void agent_worker_timer(struct agent *agent, struct agent_worker *worker)
{
    if (worker->silent_at_us > agent->now_us)
        return;
    worker->silent_at_us = TIME_NEVER;
    /* Its training is over and what it does now is its own affair; or it has been given its time.
     */
    if (worker->dismissed || worker->asked != ASKED_NOT)
        return;
    trace_add(agent->trace, agent->now_us, "worker: %" PRIu64 " %s for too long: it is ended",
              worker->incarnation, worker->connected ? "is silent" : "has no connection");
    agent_process_blame(agent, worker, worker->connected ? WITNESS_LEASE : WITNESS_SOCKET);
}
