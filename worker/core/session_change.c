/* session_change.c: the switch step, agreed without a collective. */
#include "base/time.h"
#include "proto/commit.h"
#include "worker/core/session_parts.h"

#include <inttypes.h>

static bool in_train(const struct session *session)
{
    return session->sm.state == SESSION_ACTIVE || session->sm.state == SESSION_ENTERING;
}

/* The loop is past the check at which the others leave, or will leave. */
static void give_up(struct session *session, const char *why)
{
    session_revoke(session, session->round, 0, why);
}

static void switch_here(struct session *session)
{
    uint64_t next = session->change.next;
    bool listed = session->arrived.round == next || (session->prepared.round == next &&
                                                     session->prepared.state > PREPARED_WITHOUT_ME);

    /* Leavers too: there may be nobody else to get the state from. */
    session_do(session, (struct session_action){ .kind = DO_COMMIT,
                                                 .round = session->round,
                                                 .commit = COMMIT_FIRST_OF(next) });
    if (!listed) {
        session_answer(session, HVD_LEFT);
        session_leave(session, "the next round is without me");
        return;
    }
    session_answer(session, HVD_HOSTS_UPDATED);
    sm_move(&session->sm, SESSION_SWITCHED, session->now_us, "at the agreed check");
}

/* The check that waits, held against the agreed one. */
static void judge(struct session *session, uint64_t check)
{
    if (check > session->change.check)
        give_up(session, "past the agreed check");
    else if (check == session->change.check)
        switch_here(session);
    else
        session_answer(session, 0);
}

static void say_at(struct session *session, uint64_t check)
{
    session->change.at_said = true;
    session->change.at = check;
    session_send(
        session,
        &(struct msg){
            .type = MSG_AT, .round = session->round, .u.at = {session->change.next, check}
    });
}

static void wait(struct session *session)
{
    session->waiting_us = session->now_us;
    session->warn_stall_us = time_add(session->now_us, session->stall_warning_us);
    trace_add(session->trace, session->now_us, "session: check %" PRIu64 " waits",
              session->checks - 1);
}

static void active_check(struct session *session, uint64_t check)
{
    if (!session->change.next)
        session_answer(session, 0);
    else if (session->change.agreed)
        judge(session, check);
    else if (session->change.at_said && check > session->change.at)
        wait(session);
    else {
        if (!session->change.at_said)
            say_at(session, check);
        session_answer(session, 0);
    }
}

void session_on_check(struct session *session, const struct session_event *event)
{
    ASSERT(session->loop == LOOP_TRAINING && !session->waits);
    ASSERT(event->check >= session->checks && event->check < UINT64_MAX);
    session->checks = event->check + 1;
    session->waits = true;
    switch (session_state(session)) {
    case SESSION_ACTIVE: active_check(session, event->check); return;
    case SESSION_SWITCHED:
        session->dirty = true;
        session_answer(session, HVD_HOSTS_UPDATED);
        return;
    case SESSION_REVOKED: session_answer(session, HVD_E_REVOKED); return;
    case SESSION_LEFT: session_answer(session, HVD_LEFT); return;
    case SESSION_DISMISSED: session_answer(session, HVD_DONE); return;
    case SESSION_LOST: session_answer(session, HVD_E_LOST); return;
    default: PANIC("a check in %s", sm_name(&session->sm));
    }
}

void session_forget_change(struct session *session)
{
    session->change = (struct session_change){ .next = 0 };
    if (in_train(session))
        session_watch(session, false);
    if (session->waits)
        session_answer(session, 0);
}

static void take_change(struct session *session, uint64_t next)
{
    session->change = (struct session_change){ .next = next };
    session_watch(session, true);
}

/* Why a message of the running round about the change to next is not acted on; NULL: it is. */
static const char *why_not(const struct session *session, const struct msg *msg, uint64_t next)
{
    if (!in_train(session) || msg->round != session->round)
        return "not of a round that runs here";
    if (session_is_dead(session, next) || next < session->change.next)
        return "stale";
    if (session->change.agreed)
        return next == session->change.next ? "said already" : "another round is agreed";
    return NULL;
}

static uint64_t where(const struct session *session, const struct session_event *event)
{
    if (session->waits)
        return session->checks - 1;
    return event->check > session->checks ? event->check : session->checks;
}

/* Where the loop is, is said at once, if that is known. To wait until it comes here with a check
 * could be to wait for ever: of two members the slower one may be in a collective that needs the
 * faster, which waits at its check until all have said where they are. */
void session_on_pending(struct session *session, const struct session_event *event)
{
    const struct msg *msg = event->msg;
    uint64_t next = msg->u.pending.next;
    const char *why = why_not(session, msg, next);

    if (!why && next == session->change.next)
        why = "said already";
    if (why) {
        session_drop(session, msg, why);
        return;
    }
    trace_add(session->trace, session->now_us, "session: round %" PRIu64 " is pending", next);
    take_change(session, next); /* a check that waits is one for the answer to an older change */
    if (session->waits || event->counted)
        say_at(session, where(session, event));
    if (session->waits)
        session_answer(session, 0);
}

/* A PENDING that was not heard changes nothing: the agreed check decides. */
void session_on_switch_at(struct session *session, const struct msg *msg)
{
    uint64_t next = msg->u.switch_at.next;
    const char *why = why_not(session, msg, next);

    if (why) {
        session_drop(session, msg, why);
        return;
    }
    trace_add(session->trace, session->now_us, "session: to round %" PRIu64 " at check %" PRIu64,
              next, msg->u.switch_at.check);
    if (next > session->change.next)
        take_change(session, next);
    session->change.agreed = true;
    session->change.check = msg->u.switch_at.check;
    if (session->waits)
        judge(session, session->checks - 1);
    else if (session->change.check < session->checks)
        give_up(session, "the agreed check has passed");
}

void session_note_abandoned(struct session *session, uint64_t current, uint64_t last)
{
    if (last <= session->abandoned)
        return;
    if (current < session->current || current > session->abandoned)
        session->current = current;
    session->abandoned = last;
}

static bool is_between(uint64_t round, uint64_t current, uint64_t last)
{
    return round > current && round <= last;
}

void session_on_abandon(struct session *session, const struct msg *msg)
{
    uint64_t next = msg->u.abandon.next;

    if (session_is_dead(session, next) || next <= msg->round) {
        session_drop(session, msg, "stale");
        return;
    }
    trace_add(session->trace, session->now_us, "session: round %" PRIu64 " is abandoned: %s", next,
              msg->u.abandon.reason);
    session_note_abandoned(session, msg->round, next);
    if (is_between(session->prepared.round, msg->round, next))
        session_forget_prepared(session);
    if (is_between(session->arrived.round, msg->round, next))
        session_forget_arrived(session);
    if (!is_between(session->change.next, msg->round, next))
        return;
    if (session->sm.state == SESSION_SWITCHED)
        give_up(session, "abandoned after the switch");
    else
        session_forget_change(session);
}
