/*
 * session_rounds.c: the messages that bring the next round: PREPARE and its answer PREPARED,
 * ABANDON, ROUND.
 *
 * Called by session.c for each of them. Invariant: at most one round is prepared and at most one
 * has arrived, and each is newer than the running round.
 */
#include "worker/core/session_internal.h"

#include <inttypes.h>

/* Sends PREPARED: how the preparation of the next round has ended (code 0: its connections are
 * open). */
static void send_prepared(struct session *session)
{
    const struct session_prepared *prepared = &session->prepared;

    session_send(session,
                 &(struct msg){
                     .type = MSG_PREPARED,
                     .round = prepared->round,
                     .u.prepared = {.code = prepared->outcome.code,
                                    .text = session_copy(session, prepared->outcome.text,
                                    sizeof(prepared->outcome.text))},
    });
}

/* Handles PREPARE: lets the connections of the next round be opened while the running round goes on
 * (DO_PREPARE). A worker that the round does not list sends no answer, and leaves at the switch. */
void session_on_prepare(struct session *session, const struct msg *msg)
{
    struct session_prepared *prepared = &session->prepared;
    const char *why_not = NULL;
    bool listed;

    if (session->sm.state == SESSION_JOINING)
        why_not = "this worker has not sent READY yet";
    else if (session_is_dead(session, msg->round) || msg->round < prepared->round ||
             msg->round < session->change.next || msg->round <= session->arrived.round)
        why_not = "stale: the round is dead, or a newer round is known";
    else if (msg->round == prepared->round && prepared->state >= PREPARED_OPEN) {
        /* PROTOCOL.md, K4: the driver repeats a message when it knows of no answer. A repeated
         * PREPARE is answered as the first one was. */
        send_prepared(session);
        return;
    } else if (msg->round == prepared->round)
        why_not = "this PREPARE has come before";
    else if (session->change.agreed || session->arrived.round)
        why_not = "another round is agreed, or its ROUND has come";
    if (why_not) {
        session_drop(session, msg, why_not);
        return;
    }
    /* This round replaces the round that was prepared before. */
    session_note_abandoned(session, session->round, prepared->round);
    session_forget_prepared(session);
    /* The earlier change was a switch to an older round, which will never begin now. */
    if (session->change.next < msg->round)
        session_forget_change(session);
    listed = session_lists_worker(session, &msg->u.prepare.members);
    prepared->round = msg->round;
    prepared->state = listed ? PREPARED_OPENING : PREPARED_NOT_LISTED;
    if (listed)
        session_do(session,
                   (struct session_action){ .kind = DO_PREPARE, .round = msg->round, .msg = msg });
    trace_add(session->trace, session->now_us, "session: the driver prepares round %" PRIu64 "%s",
              msg->round, listed ? "" : ", which does not list this worker");
}

/* Handles PREPARED, the answer to DO_PREPARE: notes the outcome and sends it to the driver. The
 * answer for a round that was abandoned or replaced in the meantime is ignored. */
void session_on_prepared(struct session *session, const struct session_event *event)
{
    struct session_prepared *prepared = &session->prepared;

    if (prepared->state != PREPARED_OPENING || prepared->round != event->round) {
        trace_add(session->trace, session->now_us,
                  "session: round %" PRIu64 " is prepared, but was abandoned or replaced meanwhile",
                  event->round);
        return;
    }
    prepared->state = event->code ? PREPARED_FAILED : PREPARED_OPEN;
    err_set(&prepared->outcome, event->code, "%s", event->text ? event->text : "");
    trace_add(session->trace, session->now_us,
              "session: the preparation of round %" PRIu64 " has ended: %s", event->round,
              err_text(event->code));
    send_prepared(session);
}

/* true: the round is after `current`, up to `last`. */
static bool is_between(uint64_t round, uint64_t current, uint64_t last)
{
    return round > current && round <= last;
}

/* Handles ABANDON: no round after msg->round, the running one, up to `next` will begin. The session
 * forgets such a round, whether it is prepared, has arrived or is the round to which a switch is
 * planned. */
void session_on_abandon(struct session *session, const struct msg *msg)
{
    uint64_t next = msg->u.abandon.next;

    if (session_is_dead(session, next) || next <= msg->round) {
        session_drop(session, msg, "stale: the round is dead, or a newer round is known");
        return;
    }
    trace_add(session->trace, session->now_us, "session: round %" PRIu64 " is abandoned: %s", next,
              msg->u.abandon.reason);
    session_note_abandoned(session, msg->round, next);
    if (is_between(session->prepared.round, msg->round, next))
        session_forget_prepared(session);
    if (is_between(session->arrived.round, msg->round, next))
        session_forget_arrived(session);
    if (!is_between(session->change.next, msg->round,
                    next)) /* no switch to such a round is planned */
        return;
    /* The loop has left train for a round that will never begin, and the other members may still
     * train or may have left too: so the session revokes the running round, and all go back to the
     * last commit. */
    if (session->sm.state == SESSION_SWITCHED)
        session_revoke(session, session->round, 0 /* nothing has failed in this worker */,
                       "the next round was abandoned after the switch");
    else
        session_forget_change(session);
}

/* Keeps a ROUND until the training loop has left train. If there is no memory for the copy, the
 * step of the session fails (HVD_E_NOMEM). */
static void keep_round(struct session *session, const struct msg *msg)
{
    session_forget_arrived(session);
    if (msg_copy(msg, &session->arrived)) {
        session->list->failed = true;
        return;
    }
    /* the round lists this worker, so the worker stays, even if it was asked to leave before */
    session->draining = false;
    trace_add(session->trace, session->now_us,
              "session: round %" PRIu64 " waits until the training loop can enter it", msg->round);
}

/* Handles ROUND: a round begins. If the round lists this worker, the training loop enters it: now,
 * or when the loop has left train and restored what it must. If not, the worker leaves, or, as a
 * joiner, waits for another round. */
void session_on_round(struct session *session, const struct msg *msg)
{
    bool listed = session_lists_worker(session, &msg->u.round.members);
    bool agreed = session->change.agreed && msg->round == session->change.next;

    if (session_is_dead(session, msg->round) || msg->round <= session->arrived.round ||
        msg->round < session->change.next) {
        session_drop(session, msg, "stale: the round is dead, or a newer round is known");
        return;
    }
    switch (session_state(session)) {
    case SESSION_JOINING: session_drop(session, msg, "this worker has not sent READY yet"); return;
    case SESSION_READY:
    case SESSION_RECOVERED:
        /* After a recovery a worker leaves if the ROUND does not list it. A joiner, which was in
         * no round before, waits for the next ROUND. */
        if (listed) {
            session_enter(session, msg);
        } else if (session->sm.state == SESSION_RECOVERED && session->round) {
            session_leave(session, "the round that has begun does not list this worker");
        } else {
            if (session->prepared.round <= msg->round)
                session_forget_prepared(session);
            session_drop(session, msg,
                         "the round does not list this worker, which waits for another round");
        }
        return;
    case SESSION_REVOKED:
        if (listed)
            keep_round(session, msg);
        else
            session_leave(session, "the round that has begun does not list this worker");
        return;
    default: break;
    }
    /* This worker is in a round. Either the ROUND is the next round of the agreed switch; or the
     * session has heard nothing of this round: then the other members have given up the round in
     * which this worker still is. */
    if (agreed && listed && session->loop.at == LOOP_WAITING) {
        session_enter(session, msg);
    } else if (agreed && listed) {
        keep_round(session, msg);
    } else if (agreed && session->sm.state == SESSION_SWITCHED) {
        session_leave(session, "the agreed round has begun and does not list this worker");
    } else if (agreed) {
        /* a round without this worker needs no connections of it */
        session_forget_prepared(session);
        session_drop(session, msg,
                     "the round does not list this worker, which leaves at the agreed check");
    } else if (listed) {
        /* - 1: all rounds before the one that has begun are dead */
        session_revoke(session, msg->round - 1, 0 /* nothing has failed in this worker */,
                       "a later round has begun");
        keep_round(session, msg);
    } else {
        session_stop_loop(session, HVD_LEFT);
        session_leave(session, "a later round has begun, which does not list this worker");
    }
}
