/*
 * agent_worker.c: the connections of workers: hello, messages up and down, and silence. Called by
 * agent.c for each event of a connection, by agent_driver.c for messages that go down. "Words" are
 * the last messages of a worker, kept for a driver that connects later (agent_words.c). Invariant:
 * a worker has at most one connection, and speaks only for its own incarnation.
 */
#include "agent/core/agent_handlers.h"
#include "proto/catalog.h"

#include <inttypes.h>

/* Asks for the end of a worker's connection; messages that were sent before still reach the
 * worker. */
static void worker_drop(struct agent *agent, uint32_t connection, const char *why)
{
    struct agent_action *action = agent_do(agent, AGENT_DO_DROP);

    action->worker = connection;
    action->text = why;
    trace_add(agent->trace, agent->now_us, "worker: connection %u dropped: %s", connection, why);
}

static void worker_send(struct agent *agent, uint32_t connection, const struct msg *msg)
{
    struct agent_action *action = agent_do(agent, AGENT_DO_SEND_WORKER);

    action->worker = connection;
    action->msg = msg;
}

/* Sends a message to a worker that is alive, and drops the kept messages that it makes outdated. */
static void worker_pass_to(struct agent *agent, struct agent_worker *worker, const struct msg *msg)
{
    if (!agent_worker_is_alive(worker))
        return;
    worker_send(agent, worker->contact.number, msg);
    agent_words_note_down(worker, msg);
}

/* The worker counts as silent one lease from now, unless it sends something before. */
static void worker_renew_lease(struct agent *agent, struct agent_worker *worker)
{
    if (!agent_worker_is_alive(worker))
        return;
    worker->contact.silent_at_us = time_add(agent->now_us, worker->contact.lease_us);
    agent_wake_at(agent, worker->contact.silent_at_us);
}

/* A worker without a connection cannot take part in training. But the worker may be about to end,
 * so it gets a whole lease before it counts as silent. */
static void worker_disconnect(struct agent *agent, struct agent_worker *worker)
{
    agent_roster_disconnect(agent, worker);
    worker_renew_lease(agent, worker);
}

/* Answers HELLO_WORKER with the reason why this worker is refused, and closes the connection. */
static void worker_refuse(struct agent *agent, uint32_t connection, int code, const char *why)
{
    struct msg *msg = agent_msg(agent, MSG_REFUSED, 0);

    msg->u.refused = (struct msg_refused){ code, why };
    worker_send(agent, connection, msg);
    worker_drop(agent, connection, why);
}

/* Handles HELLO_WORKER. agent/io/workers_link.c has verified the sender's pid before this event. */
static void worker_hello(struct agent *agent, uint32_t connection, const struct msg *msg)
{
    struct agent_worker *worker = agent_roster_find(agent, msg->incarnation);
    const struct agent_config *config = &agent->config;
    struct msg *welcome;

    if (!worker || !agent_worker_is_alive(worker)) {
        worker_refuse(agent, connection, HVD_E_NOTFOUND,
                      "no worker of this incarnation runs on this host");
        return;
    }
    if (worker->pid && worker->pid != msg->u.hello_worker.pid) {
        worker_refuse(agent, connection, HVD_E_DENIED,
                      "another process was started as this incarnation");
        return;
    }
    if (worker->contact.connected) {
        worker_refuse(agent, connection, HVD_E_BUSY, "this incarnation has a connection");
        return;
    }
    agent_roster_connect(agent, worker, connection);
    trace_add(agent->trace, agent->now_us, "worker: %" PRIu64 " says hello on connection %u",
              worker->incarnation, connection);
    if (worker->phase == PHASE_STARTED)
        worker->phase = PHASE_JOINING;
    worker->contact.lease_us = config->lease_us;
    worker->pulse.heard_us = agent->now_us;
    worker_renew_lease(agent, worker);

    welcome = agent_msg(agent, MSG_WELCOME_WORKER, worker->incarnation);
    welcome->u.welcome_worker = (struct msg_welcome_worker){
        .minor = PROTO_MINOR,
        .version = HVD_VERSION_TEXT,
        .job = config->job,
        .host = config->host,
        .slot = worker->slot,
        .rank = worker->place.rank,
        .size = worker->place.size,
        .local_rank = worker->place.local_rank,
        .local_size = worker->place.local_size,
        .cross_rank = worker->place.cross_rank,
        .cross_size = worker->place.cross_size,
        .min_np = config->min_np,
        .max_np = config->max_np,
        .beat_us = config->beat_us,
        .stall_warning_us = config->stall_warning_us,
        .stall_shutdown_us = config->stall_shutdown_us,
    };
    worker_send(agent, connection, welcome);
}

#define DRIVER_IS_OLDER \
    "the driver is older than the agents; install the same version of hvd-elastic on its machine"

/* Answers a PERSIST or a STORE for a driver that does not know this message. Returns false, with no
 * answer, if the driver knows the message or the message is of another type (0: no message). */
static bool worker_refuse_newer(struct agent *agent, struct agent_worker *worker,
                                const struct msg *asked)
{
    struct msg *msg;

    if (asked->type == MSG_PERSIST && agent->link.minor < AGENT_PERSIST_MINOR) {
        msg = agent_msg(agent, MSG_PERSISTED, worker->incarnation);
        msg->u.persisted = (struct msg_persisted){ .commit = asked->u.persist.commit,
                                                   .code = HVD_E_UNSUPPORTED,
                                                   .text = DRIVER_IS_OLDER };
    } else if (asked->type == MSG_STORE && agent->link.minor < AGENT_STORE_MINOR) {
        msg = agent_msg(agent, MSG_STORED, worker->incarnation);
        msg->u.stored = (struct msg_stored){ .number = asked->u.store.number,
                                             .channel = asked->u.store.channel,
                                             .code = HVD_E_UNSUPPORTED,
                                             .text = DRIVER_IS_OLDER };
    } else {
        return false;
    }
    worker_pass_to(agent, worker, msg);
    return true;
}

/* A driver has said welcome: answers the PERSIST and the STOREs that are kept for a worker, if this
 * driver cannot answer them. */
void agent_worker_welcomed(struct agent *agent, struct agent_worker *worker)
{
    (void)worker_refuse_newer(agent, worker, &worker->words.persist);
    for (size_t i = 0; i < LIMIT_STORE_CALLS; i++)
        (void)worker_refuse_newer(agent, worker, &worker->words.stores[i]);
}

/* Handles a message of a worker. The first message of a connection must be HELLO_WORKER. Later
 * messages are for the driver, apart from BEAT and BYE. */
void agent_worker_msg(struct agent *agent, uint32_t connection, const struct msg *msg)
{
    struct agent_worker *worker = agent_roster_at(agent, connection);
    const char *why = NULL;
    struct hvd_err err;

    if (!worker) {
        if (msg->type == MSG_HELLO_WORKER)
            worker_hello(agent, connection, msg);
        else
            worker_drop(agent, connection, "the process says something else before hello");
        return;
    }
    if (msg_allowed(msg->type, LINK_WORKER_TO_AGENT, WHEN_OPEN, &err))
        why = agent_text(agent, "%s", err.text);
    else if (msg->type == MSG_BYE)
        why = agent_text(agent, "the worker says bye: %s", msg->u.bye.reason);
    else if (msg->type != MSG_BEAT && msg->incarnation != worker->incarnation)
        why = "the worker speaks for another incarnation";
    if (why) {
        worker_drop(agent, worker->contact.number, why);
        worker_disconnect(agent, worker);
        return;
    }
    worker->pulse.heard_us = agent->now_us;
    worker_renew_lease(agent, worker);
    if (msg->type == MSG_BEAT)
        return;
    if (agent_link_is_open(agent) && worker_refuse_newer(agent, worker, msg))
        return;
    /* Every other message is passed to the driver unchanged, and kept while it is true. */
    agent_words_keep(agent, worker, msg);
    agent_link_send(agent, msg);
    /* the agent kills an unusable worker without waiting for the driver */
    if (msg->type == MSG_UNUSABLE)
        agent_process_unusable(agent, worker);
}

/* The connection of a worker is lost. The worker itself may still run, and is not ended here. */
void agent_worker_down(struct agent *agent, uint32_t connection)
{
    struct agent_worker *worker = agent_roster_at(agent, connection);

    if (!worker)
        return; /* the worker never said hello */
    trace_add(agent->trace, agent->now_us, "worker: connection %u of %" PRIu64 " is gone",
              connection, worker->incarnation);
    worker_disconnect(agent, worker);
}

/* Passes a message of the driver down to the workers that it is for. */
void agent_worker_pass_down(struct agent *agent, const struct msg *msg)
{
    const struct msg_member_list *members = &msg->u.round.members;
    struct agent_worker *worker;

    /* PROTOCOL.md, K3: a message with an incarnation is for that worker; 0 means every worker of
     * this agent. */
    if (msg->incarnation) {
        worker = agent_roster_find(agent, msg->incarnation);
        if (worker && worker->contact.connected)
            worker_pass_to(agent, worker, msg);
        else /* the driver repeats messages that are still true, after the worker has said hello */
            trace_add(agent->trace, agent->now_us,
                      "worker: %s for %" PRIu64 ", which has no connection: dropped",
                      msg_kind(msg->type)->name, msg->incarnation);
    } else {
        for (size_t i = 0; i < agent->connections.count; i++)
            worker_pass_to(agent, agent->connections.items[i].worker, msg);
    }
    if (msg->type != MSG_ROUND)
        return;
    /* A ROUND was passed down: each of its members among this agent's workers is in that round from
     * now on, so the agent drops the messages of that worker which it has kept from earlier rounds
     * and which are no longer true (agent_words.c). Cost: O(members * log workers). */
    for (size_t i = 0; i < members->count; i++) {
        uint64_t incarnation = members->items[i].incarnation;

        worker = agent_roster_find(agent, incarnation);
        if (!worker || !worker->contact.connected || !agent_worker_is_alive(worker))
            continue;
        if (!msg->incarnation || msg->incarnation == incarnation)
            agent_words_note_member(worker, msg->round);
    }
}

/* Called at the deadlines of workers: ends this worker if its lease has passed because the worker
 * is silent, or has had no connection for too long. */
void agent_worker_timer(struct agent *agent, struct agent_worker *worker)
{
    const struct agent_contact *contact = &worker->contact;

    if (contact->silent_at_us > agent->now_us)
        return;
    worker->contact.silent_at_us = TIME_NEVER;
    /* Two kinds of workers have no lease: a worker whose training is over, and a worker that was
     * asked to end, which has its grace time. */
    if (contact->dismissed || worker->killing.asked != ASKED_NOT)
        return;
    trace_add(agent->trace, agent->now_us, "worker: %" PRIu64 " %s for too long: it is ended",
              worker->incarnation, contact->connected ? "is silent" : "has no connection");
    agent_process_blame(agent, worker, contact->connected ? WITNESS_LEASE : WITNESS_SOCKET);
}
