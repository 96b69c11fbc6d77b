/*
 * session_recover.c: what a worker does when its round is dead: it goes back to the last commit and
 * waits for the next round (PROTOCOL.md: REVOKE, RECOVERING), or leaves the job (DRAIN).
 *
 * Called by session.c for REVOKE and DRAIN, and when the training loop has restored its last commit
 * (RESTORED). Invariant: the session answers each REVOKE of a new round with one RECOVERING, after
 * the loop has restored.
 */
#include "worker/core/session_internal.h"

#include <inttypes.h>
#include <string.h>

/* Sends RECOVERING: the training loop has restored its last commit, and this worker holds these
 * commits. If no REVOKE of the driver has named the round, the driver may not know of the failure:
 * then the message also says why this worker gave the round up. */
static void send_recovering(struct session *session)
{
    const struct session_dead *dead = &session->dead;
    const struct msg_held *held =
        session_copy(session, session->held, sizeof(*held) * session->held_count);
    uint64_t round = dead->revoked > session->round ? dead->revoked : session->round;
    bool is_unasked = round > dead->revoke_heard;
    const char *why = is_unasked ? dead->why.text : "";

    session_send(session, &(struct msg){
                              .type = MSG_RECOVERING,
                              .round = round,
                              .u.recovering = {.held = { held, session->held_count },
                                               .text = session_copy(session, why, strlen(why) + 1),
                                               .code = is_unasked ? dead->why.code : 0}
    });
}

/* Notes that a round is revoked, for a worker that is in no round or whose training loop is stopped
 * already: what is known of a next round is forgotten if that round is dead too. */
static void note_revoke(struct session *session, uint64_t round)
{
    struct session_dead *dead = &session->dead;

    dead->revoke_heard = round;
    if (round > dead->revoked)
        dead->revoked = round;
    if (session->prepared.round <= dead->revoked)
        session_forget_prepared(session);
    if (session->arrived.round <= dead->revoked)
        session_forget_arrived(session);
}

/* Handles REVOKE: the round msg->round and all before it are dead. A worker in a round stops and
 * restores. A worker that has stopped already only notes the later number. */
void session_on_revoke(struct session *session, const struct msg *msg)
{
    const struct session_prepared *next = &session->prepared;
    /* this session did not know yet that a round with this number is dead */
    bool later = msg->round > session->dead.revoked;
    bool concerned;

    if (msg->round < session->round || msg->round < session->arrived.round) {
        session_drop(session, msg, "stale: a newer round is known");
        return;
    }
    if (msg->round <= session->dead.revoke_heard) {
        session_drop(session, msg, "a REVOKE of this or a later round has come before");
        return;
    }
    switch (session_state(session)) {
    case SESSION_JOINING:
    case SESSION_READY:
        /* A REVOKE concerns a joiner in two cases: the joiner was prepared for the dead round,
         * or the message names the joiner. In the second case it was a member whose ROUND
         * message was lost. A joiner has nothing to restore. */
        concerned = (next->state > PREPARED_NOT_LISTED && next->round <= msg->round) ||
                    msg->incarnation == session->incarnation;
        note_revoke(session, msg->round);
        if (!concerned) {
            session_drop(session, msg, "this worker is not a member of the round");
            return;
        }
        sm_move(&session->sm, SESSION_RECOVERED, session->now_us,
                "the round that this worker was to join is dead");
        send_recovering(session);
        return;
    case SESSION_ENTERING:
    case SESSION_ACTIVE:
    case SESSION_SWITCHED:
        session->dead.revoke_heard = msg->round;
        session_revoke(session, msg->round, 0 /* nothing has failed in this worker */,
                       msg->u.revoke.reason);
        return;
    default: break;
    }
    /* The state is REVOKED or RECOVERED: this worker has stopped already, and now hears that a
     * later round is dead too. */
    trace_add(session->trace, session->now_us, "session: round %" PRIu64 " is revoked too",
              msg->round);
    note_revoke(session, msg->round);
    /* RECOVERED: the driver waits for a RECOVERING of the later round too. REVOKED: that message
     * follows when the loop has restored; now only the collectives of the later round are ended. */
    if (session->sm.state == SESSION_RECOVERED)
        send_recovering(session);
    else if (later)
        session_cancel(session, msg->round);
}

/* Handles RESTORED: the training loop has restored its last commit, as DO_RESTORE has ordered, and
 * event->held lists the commits that this worker holds. In REVOKED the worker leaves (`draining`),
 * enters the round that has arrived, or reports RECOVERING. In all other states session_order_next
 * gives the loop its next order. */
void session_on_restored(struct session *session, const struct session_event *event)
{
    ASSERT(session->loop.at == LOOP_RESTORING);
    session->loop.at = LOOP_WAITING;
    session->loop.went_on = false;
    session_keep_held(session, event->held);
    if (session->sm.state != SESSION_REVOKED) {
        session_order_next(session);
    } else if (session->draining) {
        session_leave(session, "the driver has asked this worker to leave");
    } else if (session->arrived.round) {
        session_enter_arrived(session);
    } else {
        sm_move(&session->sm, SESSION_RECOVERED, session->now_us, "the last commit is restored");
        send_recovering(session);
    }
}

/* Handles DRAIN: the driver asks this worker to leave. A worker outside a round leaves at once. A
 * worker that is restoring its last commit is still needed, because others may have to fetch
 * commits from it: it leaves when it has restored. A worker in a round leaves by a switch, which
 * the driver starts. */
void session_on_drain(struct session *session, const struct msg *msg)
{
    switch (session_state(session)) {
    case SESSION_JOINING:
    case SESSION_READY:
    case SESSION_RECOVERED:
        session_leave(session, "the driver has asked this worker to leave");
        return;
    case SESSION_REVOKED:
        if (session->draining || session->arrived.round) {
            session_drop(
                session, msg,
                session->draining
                    ? "this worker was already asked to leave"
                    : "a ROUND that lists this worker has arrived, so this worker enters it");
            return;
        }
        session->draining = true;
        trace_add(session->trace, session->now_us,
                  "session: this worker was asked to leave; it leaves when it has restored its "
                  "last commit");
        return;
    default:
        session_drop(session, msg, "this worker leaves at the switch that will follow");
        return;
    }
}
