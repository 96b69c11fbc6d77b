/* session_recover.c: a round is dead; back to the last commit, and ready for the next. */
#include "worker/core/session_parts.h"

#include <inttypes.h>
#include <string.h>

static bool is_inside(const struct session *session)
{
    return session->loop == LOOP_ENTERING || session->loop == LOOP_TRAINING;
}

static void say_recovering(struct session *session)
{
    const struct msg_held *held =
        session_copy(session, session->held, sizeof(*held) * session->held_count);
    uint64_t round = session->revoked > session->round ? session->revoked : session->round;
    bool unasked = round > session->asked;
    const char *why = unasked ? session->why.text : "";

    session_send(session, &(struct msg){
                              .type = MSG_RECOVERING,
                              .round = round,
                              .u.recovering = {.held = { held, session->held_count },
                                               .text = session_copy(session, why, strlen(why) + 1),
                                               .code = unasked ? session->why.code : 0}
    });
}

void session_restore(struct session *session)
{
    ASSERT(session->loop == LOOP_WAITING);
    session->loop = LOOP_RESTORING;
    session_do(session, (struct session_action){ .kind = DO_RESTORE });
}

void session_stop_loop(struct session *session, int code)
{
    if (is_inside(session))
        session_watch(session, true);
    session_cancel(session, session->revoked > session->round ? session->revoked : session->round);
    if (session->waits)
        session_answer(session, code);
}

/* What was to come of rounds that are dead by now. */
static void forget_dead(struct session *session)
{
    if (session->prepared.round <= session->revoked)
        session_forget_prepared(session);
    if (session->arrived.round <= session->revoked)
        session_forget_arrived(session);
}

static void note_revoked(struct session *session, uint64_t round)
{
    if (round > session->revoked)
        session->revoked = round;
}

void session_revoke(struct session *session, uint64_t round, int code, const char *why)
{
    ASSERT(round >= session->round);
    note_revoked(session, round);
    (void)err_set(&session->why, code, "%s", why);
    session->change = (struct session_change){ .next = 0 };
    session_stop_loop(session, HVD_E_REVOKED);
    forget_dead(session);
    sm_move(&session->sm, SESSION_REVOKED, session->now_us, why);
    if (session->loop == LOOP_WAITING)
        session_restore(session);
}

static void note_asked(struct session *session, uint64_t round)
{
    session->asked = round;
    note_revoked(session, round);
    forget_dead(session);
}

/* A joiner is concerned only if it was prepared for what is dead, or if it is named: then it was a
 * member, and its ROUND was lost on the way. It has nothing to restore. */
static void revoke_ready(struct session *session, const struct msg *msg)
{
    bool prepared =
        session->prepared.state > PREPARED_WITHOUT_ME && session->prepared.round <= msg->round;
    bool concerned = prepared || msg->incarnation == session->incarnation;

    note_asked(session, msg->round);
    if (!concerned) {
        session_drop(session, msg, "not in a round");
        return;
    }
    sm_move(&session->sm, SESSION_RECOVERED, session->now_us, "what it was to join is dead");
    say_recovering(session);
}

static void revoke_again(struct session *session, const struct msg *msg)
{
    bool later = msg->round > session->revoked;

    trace_add(session->trace, session->now_us, "session: round %" PRIu64 " is revoked too",
              msg->round);
    note_asked(session, msg->round);
    if (session->sm.state == SESSION_RECOVERED)
        say_recovering(session);
    else if (later)
        session_cancel(session, msg->round);
}

void session_on_revoke(struct session *session, const struct msg *msg)
{
    if (msg->round < session->round || msg->round < session->arrived.round) {
        session_drop(session, msg, "stale");
        return;
    }
    if (msg->round <= session->asked) {
        session_drop(session, msg, "said already");
        return;
    }
    switch (session_state(session)) {
    case SESSION_JOINING:
    case SESSION_READY: revoke_ready(session, msg); return;
    case SESSION_ENTERING:
    case SESSION_ACTIVE:
    case SESSION_SWITCHED:
        session->asked = msg->round;
        session_revoke(session, msg->round, 0, msg->u.revoke.reason);
        return;
    default: revoke_again(session, msg); return;
    }
}

static void recovered(struct session *session)
{
    if (session->draining) {
        session_leave(session, "drained");
    } else if (session->arrived.round) {
        session_enter_arrived(session);
    } else {
        sm_move(&session->sm, SESSION_RECOVERED, session->now_us, "restored");
        say_recovering(session);
    }
}

void session_keep_held(struct session *session, const struct msg_held_list *held)
{
    session->held_count = held ? held->count : 0;
    ASSERT(session->held_count <= ARRAY_SIZE(session->held));
    if (session->held_count)
        memcpy(session->held, held->items, session->held_count * sizeof(*held->items));
}

void session_on_settled(struct session *session, const struct session_event *event)
{
    ASSERT(session->loop == LOOP_RESTORING);
    session->loop = LOOP_WAITING;
    session->dirty = false;
    session_keep_held(session, event->held);
    if (session->sm.state == SESSION_REVOKED)
        recovered(session);
    else
        session_outside(session);
}
