/*
 * session.c: one step of a session: it calls the handler of an event, drops messages that are not
 * for this worker, and sends the messages that are due by time.
 *
 * Called by worker/io/session_thread.c, with one event at a time. Invariant: after each step
 * the invariant of session_states.c holds; a step that runs out of memory leaves a session that is
 * not used again.
 */
#include "worker/core/session.h"

#include "base/mem.h"
#include "base/time.h"
#include "proto/catalog.h"
#include "worker/core/session_internal.h"

/* Creates a session in the state JOINING. `welcome`: the agent's answer to this worker's hello. A
 * time of 0 there (beat_us, stall_warning_us) means that the session never sends that message: no
 * heartbeats, or no STALLED. */
struct session *session_create(uint64_t incarnation, const struct msg_welcome_worker *welcome,
                               int64_t now_us, struct trace *trace)
{
    struct session *session;

    ASSERT(incarnation > 0);
    session = mem_zalloc(sizeof(*session));
    if (!session)
        return NULL;
    session->incarnation = incarnation;
    session->trace = trace;
    session->beat_us = welcome->beat_us > 0 ? welcome->beat_us : TIME_NEVER;
    session->stall_warning_us =
        welcome->stall_warning_us > 0 ? welcome->stall_warning_us : TIME_NEVER;
    session->agent.connected = true;
    session->agent.minor = welcome->minor;
    session->agent.last_sent_us = now_us;
    session->loop.warn_stall_us = TIME_NEVER;
    sm_init(&session->sm, &session_type, SESSION_JOINING, session, trace);
    return session;
}

void session_free(struct session *session)
{
    if (!session)
        return;
    session_forget_arrived(session);
    mem_free(session);
}

/* Handles one message of the agent: calls the handler of its type, or drops the message, with the
 * reason in the trace, if this worker must not obey it. */
static void session_on_msg(struct session *session, const struct session_event *event)
{
    const struct msg *msg = event->msg;
    const struct msg_kind *kind = msg_kind(msg->type);
    const char *why = NULL;

    /* PROTOCOL.md K1 to K3: checks whether this message is for this worker. */
    if (!session->agent.connected)
        why = "the agent of this worker is gone";
    else if (msg_allowed(msg->type, LINK_AGENT_TO_WORKER, WHEN_OPEN, NULL))
        why = "an agent may not send this message";
    else if (((kind->keys & KEY_TERM) && !msg->term) || ((kind->keys & KEY_ROUND) && !msg->round))
        why = "malformed: its term or its round is 0";
    else if (msg->incarnation && msg->incarnation != session->incarnation)
        why = "the message is for another worker";
    else if ((kind->keys & KEY_TERM) && msg->term < session->agent.term)
        why = "the message is of a driver that was replaced";
    else if (kind->keys & KEY_TERM)
        session->agent.term = msg->term;
    /* the states from SESSION_LEFT on are those of a worker that has left, finished or lost its
     * agent, or whose job is done: it obeys only messages that end something which it still waits
     * for */
    if (!why && session->sm.state >= SESSION_LEFT && msg->type != MSG_BEAT &&
        msg->type != MSG_BYE && msg->type != MSG_PERSISTED && msg->type != MSG_STORED)
        why = "this worker has ended its part in the job";
    if (why) {
        session_drop(session, msg, why);
        return;
    }
    switch (msg->type) {
    case MSG_BEAT:
        if (msg->u.beat.sequence > session->agent.beats_heard)
            session->agent.beats_heard = msg->u.beat.sequence;
        return;
    case MSG_BYE: session_lose(session, "the agent has sent BYE"); return;
    case MSG_ROUND: session_on_round(session, msg); return;
    case MSG_PREPARE: session_on_prepare(session, msg); return;
    case MSG_PENDING: session_on_pending(session, event); return;
    case MSG_SWITCH_AT: session_on_switch_at(session, msg); return;
    case MSG_ABANDON: session_on_abandon(session, msg); return;
    case MSG_REVOKE: session_on_revoke(session, msg); return;
    /* this news is for the trace alone: what a worker must do comes in other messages */
    case MSG_HOSTS_UPDATED:
        trace_add(session->trace, session->now_us,
                  "session: hosts have changed: %u were added, %u removed",
                  msg->u.hosts_updated.added, msg->u.hosts_updated.removed);
        return;
    case MSG_DRAIN: session_on_drain(session, msg); return;
    case MSG_DONE: session_dismiss(session); return;
    case MSG_PERSISTED:
        session_do(session, (struct session_action){ .kind = DO_PERSISTED,
                                                     .commit = msg->u.persisted.commit,
                                                     .code = msg->u.persisted.code,
                                                     .text = msg->u.persisted.text });
        return;
    case MSG_STORED:
        session_do(session, (struct session_action){ .kind = DO_STORED, .msg = msg });
        return;
    default: session_drop(session, msg, "a worker does nothing about this message"); return;
    }
}

/* Returns when the next heartbeat is due: beat_us after the last message of any kind. */
static int64_t next_beat_us(const struct session *session)
{
    return session->agent.connected ? time_add(session->agent.last_sent_us, session->beat_us)
                                    : TIME_NEVER;
}

/* Called at a time that session_deadline has named, or earlier. Sends STALLED (a check waits too
 * long) and the heartbeat when they are due. STALLED comes first: any message shows that this
 * worker lives, so the heartbeat may then not be due any more. */
static void session_on_timer(struct session *session)
{
    if (session->now_us >= session->loop.warn_stall_us) {
        session->loop.warn_stall_us = time_add(session->now_us, session->stall_warning_us);
        session_send(session,
                     &(struct msg){
                         .type = MSG_STALLED,
                         .round = session->round,
                         .u.stalled = {.waited_us = session->now_us - session->loop.waiting_us,
                                       .operation = "check"},
        });
    }
    if (session->now_us >= next_beat_us(session))
        session_send(session, &(struct msg){
                                  .type = MSG_BEAT,
                                  .u.beat = {.sequence = ++session->agent.beats_sent,
                                             .answers = session->agent.beats_heard},
        });
}

/* Makes one line of a text that comes from the program or a device's driver, and may have several
 * lines (err_set joins them). The result lives as long as the list of actions. */
static const char *one_line(struct session *session, const char *text)
{
    struct hvd_err line;

    err_set(&line, HVD_E_STATE, "%s", text);
    return session_copy(session, line.text, sizeof(line.text));
}

/* Handles PERSIST of the training loop: asks the driver for a checkpoint of a commit. Outside a
 * round nothing is sent: the requests of a dead round end with the DO_CANCEL of that round. */
static void session_on_persist(struct session *session, const struct session_event *event)
{
    if (!session_in_round(session))
        trace_add(session->trace, session->now_us,
                  "session: a checkpoint is wanted in %s: too late", sm_name(&session->sm));
    else if (session->agent.minor < SESSION_PERSIST_MINOR)
        session_do(session, (struct session_action){
                                .kind = DO_PERSISTED,
                                .commit = event->commit,
                                .code = HVD_E_UNSUPPORTED,
                                .text = "the agent of this host is older than this library; "
                                        "install the same version of hvd-elastic on all hosts" });
    else
        session_send(session, &(struct msg){ .type = MSG_PERSIST,
                                             .round = session->round,
                                             .u.persist = { event->commit } });
}

/* Handles STORE, a call of hvd/store.h by the program: passes it on to the driver, which answers
 * with STORED. If no agent can pass it on, the call fails at once. A call about a round that is
 * over gets no answer from the driver: the DO_CANCEL of that round, or the next round, ends it. */
static void session_on_store(struct session *session, const struct session_event *event)
{
    const struct msg_store *call = &event->msg->u.store;
    struct msg answer = {
        .type = MSG_STORED,
        .u.stored = {.number = call->number,
                     .channel = call->channel,
                     .code = HVD_E_LOST,
                     .text = "the agent of this host is gone"}
    };

    if (session->agent.connected && session->agent.minor >= SESSION_STORE_MINOR) {
        session_send(session, event->msg);
        return;
    }
    if (session->agent.connected) {
        answer.u.stored.code = HVD_E_UNSUPPORTED;
        answer.u.stored.text = "the agent of this host is older than this library; install the "
                               "same version of hvd-elastic on all hosts";
    }
    session_do(session, (struct session_action){
                            .kind = DO_STORED,
                            .msg = session_copy(session, &answer, sizeof(answer)),
                        });
}

/* Takes one step: handles the event, and appends the resulting actions to `list`. All functions of
 * the session find the list in session->list, which is NULL between two steps. HVD_E_NOMEM: the
 * session must not be used any more. */
int session_step(struct session *session, const struct session_event *event,
                 struct session_action_list *list)
{
    const char *text;

    ASSERT(!session->list);
    session->now_us = event->now_us;
    session->list = list;
    switch (event->kind) {
    case SESSION_MSG: session_on_msg(session, event); break;
    case SESSION_CLOSED: session_lose(session, "the connection to the agent is closed"); break;
    case SESSION_TIMER: session_on_timer(session); break;
    case SESSION_RUN: session_on_run(session, event); break;
    case SESSION_PREPARED: session_on_prepared(session, event); break;
    case SESSION_SYNCED: session_on_synced(session, event); break;
    case SESSION_STEPPED: session_on_stepped(session, event); break;
    case SESSION_CHECK: session_on_check(session, event); break;
    case SESSION_RETURNED: session_on_returned(session, event); break;
    case SESSION_RESTORED: session_on_restored(session, event); break;
    case SESSION_STUCK:
        if (session_in_round(session))
            session_send(session, &(struct msg){ .type = MSG_STALLED,
                                                 .round = session->round,
                                                 .u.stalled = *event->stalled });
        else
            trace_add(session->trace, session->now_us,
                      "session: %s is stuck, which is not reported, because this worker is not in "
                      "a round",
                      event->stalled->operation);
        break;
    case SESSION_UNUSABLE:
        /* UNUSABLE is the last message of this worker. An agent that is too old to know it notices
         * the silence after it, and takes the worker for dead. */
        text = event->text && event->text[0] ? event->text : "the worker gives no reason";
        session_send(session, &(struct msg){ .type = MSG_UNUSABLE,
                                             .u.unusable = { one_line(session, text) } });
        session_lose(session, "this worker has sent UNUSABLE, so it must end");
        break;
    /* a remark is about the running round; without one it comes too late, and is not sent */
    case SESSION_REMARK:
        if (session_in_round(session))
            session_send(session, &(struct msg){ .type = MSG_REMARK,
                                                 .round = session->round,
                                                 .u.remark = { one_line(session, event->text) } });
        break;
    case SESSION_PERSIST: session_on_persist(session, event); break;
    case SESSION_STORE: session_on_store(session, event); break;
    default: PANIC("a session has no event of kind %d", (int)event->kind);
    }
    session->list = NULL;
    session_type.invariant(session, session->sm.state);
    return list->failed ? HVD_E_NOMEM : 0;
}

/* Returns when the next SESSION_TIMER is due: for the heartbeat, or for STALLED. */
int64_t session_deadline(const struct session *session)
{
    int64_t beat_us = next_beat_us(session);

    return beat_us < session->loop.warn_stall_us ? beat_us : session->loop.warn_stall_us;
}
