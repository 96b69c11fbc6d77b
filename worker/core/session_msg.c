/* session_msg.c: which of the agent's frames are for this worker, and still true. */
#include "proto/catalog.h"
#include "worker/core/session_parts.h"

#include <inttypes.h>

static const char *name_of(const struct msg *msg)
{
    const struct msg_kind *kind = msg_kind(msg->type);

    return kind ? kind->name : "?";
}

void session_drop(struct session *session, const struct msg *msg, const char *why)
{
    trace_add(session->trace, session->now_us,
              "session: %s %" PRIu64 " dropped in %s %" PRIu64 ": %s", name_of(msg), msg->round,
              sm_name(&session->sm), session->round, why);
}

bool session_lists_me(const struct session *session, const struct msg_member_list *members)
{
    for (size_t i = 0; i < members->count; i++) {
        if (members->items[i].incarnation == session->incarnation)
            return true;
    }
    return false;
}

bool session_is_dead(const struct session *session, uint64_t round)
{
    return round <= session->round || round <= session->revoked ||
           (round > session->current && round <= session->abandoned);
}

static void on_drain(struct session *session, const struct msg *msg)
{
    switch (session_state(session)) {
    case SESSION_JOINING:
    case SESSION_READY:
    case SESSION_RECOVERED: session_leave(session, "drained"); return;
    case SESSION_REVOKED:
        if (session->draining || session->arrived.round) {
            session_drop(session, msg, session->draining ? "said already" : "a round waits for it");
            return;
        }
        session->draining = true;
        trace_add(session->trace, session->now_us, "session: drained; leaves once it is restored");
        return;
    default: session_drop(session, msg, "news only; a switch will follow"); return;
    }
}

static void on_beat(struct session *session, const struct msg_beat *beat)
{
    if (beat->sequence > session->heard)
        session->heard = beat->sequence;
}

static void on_hosts_updated(struct session *session, const struct msg_hosts_updated *updated)
{
    trace_add(session->trace, session->now_us, "session: hosts: %u more, %u less", updated->added,
              updated->removed);
}

/* Why this frame is not for this worker; NULL when it is. */
static const char *why_not(const struct session *session, const struct msg *msg,
                           const struct msg_kind *kind)
{
    if (!session->connected)
        return "the agent is gone";
    if (msg_allowed(msg->type, LINK_AGENT_TO_WORKER, WHEN_OPEN, NULL))
        return "not from an agent";
    if (((kind->keys & KEY_TERM) && !msg->term) || ((kind->keys & KEY_ROUND) && !msg->round))
        return "malformed: a key is 0";
    if (msg->incarnation && msg->incarnation != session->incarnation)
        return "for another worker";
    if ((kind->keys & KEY_TERM) && msg->term < session->term)
        return "of a driver that was replaced";
    return NULL;
}

static void obey(struct session *session, const struct session_event *event)
{
    const struct msg *msg = event->msg;

    switch (msg->type) {
    case MSG_ROUND: session_on_round(session, msg); return;
    case MSG_PREPARE: session_on_prepare(session, msg); return;
    case MSG_PENDING: session_on_pending(session, event); return;
    case MSG_SWITCH_AT: session_on_switch_at(session, msg); return;
    case MSG_ABANDON: session_on_abandon(session, msg); return;
    case MSG_REVOKE: session_on_revoke(session, msg); return;
    case MSG_HOSTS_UPDATED: on_hosts_updated(session, &msg->u.hosts_updated); return;
    case MSG_DRAIN: on_drain(session, msg); return;
    case MSG_DONE: session_dismiss(session); return;
    default: session_drop(session, msg, "nothing a worker acts on"); return;
    }
}

void session_on_msg(struct session *session, const struct session_event *event)
{
    const struct msg *msg = event->msg;
    const struct msg_kind *kind = msg_kind(msg->type);
    const char *why = why_not(session, msg, kind);

    if (why) {
        session_drop(session, msg, why);
        return;
    }
    if (kind->keys & KEY_TERM)
        session->term = msg->term;
    if (msg->type == MSG_BEAT)
        on_beat(session, &msg->u.beat);
    else if (msg->type == MSG_BYE)
        session_lose(session, "the agent hung up");
    else if (session->sm.state >= SESSION_LEFT)
        session_drop(session, msg, "it is over here");
    else
        obey(session, event);
}
