/* session_round.c: the next membership, from its ROUND until the loop enters it. */
#include "worker/core/session_parts.h"

#include <inttypes.h>

void session_forget_arrived(struct session *session)
{
    msg_release(&session->arrived);
    session->arrived = (struct msg){ .round = 0 };
}

/* Kept for when the loop is outside. When memory is out there is none, and the step fails. */
static void keep(struct session *session, const struct msg *msg)
{
    session_forget_arrived(session);
    if (msg_copy(msg, &session->arrived)) {
        session->list->failed = true;
        return;
    }
    session->draining = false;
    trace_add(session->trace, session->now_us, "session: round %" PRIu64 " waits for the loop",
              msg->round);
}

static bool use_prepared(struct session *session, uint64_t round)
{
    struct session_prepared *prepared = &session->prepared;
    bool use = prepared->round == round && prepared->state == PREPARED_OPEN;

    if (use)
        *prepared = (struct session_prepared){ .state = PREPARED_NONE };
    else
        session_forget_prepared(session);
    return use;
}

/* msg lives as long as the event or the list. */
static void enter(struct session *session, const struct msg *msg)
{
    struct place place = { .rank = 0 };
    bool prepared;

    ASSERT(session->loop == LOOP_WAITING && msg->round > session->round);
    if (place_find(&msg->u.round.members, session->incarnation, &place))
        session->list->failed = true;
    prepared = use_prepared(session, msg->round);
    session_watch(session, false);
    session->round = msg->round;
    session->change = (struct session_change){ .next = 0 };
    session->entered = false;
    session->dirty = false;
    session->draining = false;
    session->checks = 0;
    session->loop = LOOP_ENTERING;
    session_do(
        session,
        (struct session_action){
            .kind = DO_ENTER, .round = msg->round, .msg = msg, .place = place, .yes = prepared });
}

static void enter_now(struct session *session, const struct msg *msg)
{
    enter(session, msg);
    sm_move(&session->sm, SESSION_ENTERING, session->now_us, "a round with me");
}

void session_enter_arrived(struct session *session)
{
    struct msg *msg = arena_alloc(&session->list->memory, sizeof(*msg));

    if (!msg || msg_copy_into(&session->arrived, &session->list->memory, msg)) {
        session->list->failed = true;
        return;
    }
    session_forget_arrived(session);
    enter_now(session, msg);
}

/* It knows of no way there: what it is in must be dead, or it is itself to the others. */
static void catch_up(struct session *session, const struct msg *msg)
{
    if (session_lists_me(session, &msg->u.round.members)) {
        session_revoke(session, msg->round - 1, 0, "a later round has begun");
        keep(session, msg);
        return;
    }
    session_stop_loop(session, HVD_LEFT);
    session_leave(session, "a later round has begun without me");
}

/* The round that the pending change leads to. */
static void take_next(struct session *session, const struct msg *msg)
{
    if (session_lists_me(session, &msg->u.round.members)) {
        if (session->loop == LOOP_WAITING)
            enter_now(session, msg);
        else
            keep(session, msg);
    } else if (session->sm.state == SESSION_SWITCHED) {
        session_leave(session, "the round has begun without me");
    } else {
        session_forget_prepared(session); /* not prepared for it: leaves at the agreed check */
        session_drop(session, msg, "without me, and the agreed check is still to come");
    }
}

static void while_ready(struct session *session, const struct msg *msg)
{
    if (session_lists_me(session, &msg->u.round.members)) {
        enter_now(session, msg);
        return;
    }
    if (session->sm.state == SESSION_RECOVERED && session->round) {
        session_leave(session, "a round has begun without me");
        return;
    }
    if (session->prepared.round <= msg->round)
        session_forget_prepared(session);
    session_drop(session, msg, "without me; waits for another");
}

static void while_revoked(struct session *session, const struct msg *msg)
{
    if (!session_lists_me(session, &msg->u.round.members))
        session_leave(session, "a round has begun without me");
    else
        keep(session, msg);
}

void session_on_round(struct session *session, const struct msg *msg)
{
    if (session_is_dead(session, msg->round) || msg->round <= session->arrived.round ||
        msg->round < session->change.next) {
        session_drop(session, msg, "stale");
        return;
    }
    switch (session_state(session)) {
    case SESSION_JOINING: session_drop(session, msg, "not built yet"); return;
    case SESSION_READY:
    case SESSION_RECOVERED: while_ready(session, msg); return;
    case SESSION_REVOKED: while_revoked(session, msg); return;
    default: break;
    }
    if (session->change.agreed && msg->round == session->change.next)
        take_next(session, msg);
    else
        catch_up(session, msg);
}
