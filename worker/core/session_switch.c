/*
 * session_switch.c: all members leave train at the same check (a call of hvd_state_check or
 * hvd_state_commit, counted within the round), agreed without a collective (PROTOCOL.md: PENDING,
 * NEXT_CHECK, SWITCH_AT).
 *
 *     driver ──PENDING next──► worker ──NEXT_CHECK n──► driver ──SWITCH_AT k──► worker
 *              the loop goes on to check n          k is the largest n of all members
 *              and waits at check n + 1
 *
 * Called by session.c for PENDING and SWITCH_AT, and for each CHECK of the training loop.
 * Invariant: a check waits only after NEXT_CHECK was sent and before SWITCH_AT has come.
 */
#include "base/time.h"
#include "proto/commit.h"
#include "worker/core/session_internal.h"

#include <inttypes.h>

/* Called when the check at which all members switch is agreed, and the training loop waits at a
 * check. Compares the two: revokes the round if the loop is past it, lets the loop go on if it is
 * before it, and switches if the two are equal. */
static void switch_or_go_on(struct session *session, uint64_t check)
{
    uint64_t next = session->change.next;
    /* True: the next round lists this worker: its ROUND has come, or its PREPARE listed the
     * worker. */
    bool listed = session->arrived.round == next || (session->prepared.round == next &&
                                                     session->prepared.state > PREPARED_NOT_LISTED);

    if (check > session->change.check) {
        session_revoke(session, session->round, 0 /* nothing has failed in this worker */,
                       "this worker is past the agreed check");
        return;
    }
    if (check < session->change.check) {
        session_answer(session, 0 /* train goes on */);
        return;
    }
    /* All members commit at this check, also those that leave now: they may be the only ones that
     * have the state. The commit is the first one of the next round. */
    session_do(session, (struct session_action){ .kind = DO_COMMIT,
                                                 .round = session->round,
                                                 .commit = COMMIT_FIRST_OF(next) });
    if (listed) {
        session_answer(session, HVD_HOSTS_UPDATED);
        sm_move(&session->sm, SESSION_SWITCHED, session->now_us,
                "train has come to the agreed check");
    } else {
        session_answer(session, HVD_LEFT);
        session_leave(session, "the next round does not list this worker");
    }
}

/* Tells the driver (NEXT_CHECK) up to which check the training loop goes on. At the check after
 * that one the loop waits until SWITCH_AT names the check at which all members switch. */
static void send_next_check(struct session *session, uint64_t check)
{
    session->change.next_check_sent = true;
    session->change.next_check = check;
    session_send(session, &(struct msg){
                              .type = MSG_NEXT_CHECK,
                              .round = session->round,
                              .u.next_check = {session->change.next, check}
    });
}

/* Handles CHECK: the training loop has come to a check and waits for the answer. In ACTIVE the
 * answer is 0, unless the check is the agreed one; while the members still agree on it, the answer
 * may have to wait. In the other states the answer tells train to return. */
void session_on_check(struct session *session, const struct session_event *event)
{
    struct session_change *change = &session->change;
    struct session_loop *loop = &session->loop;

    ASSERT(loop->at == LOOP_TRAINING && !loop->check_waits);
    ASSERT(event->check >= loop->checks && event->check < UINT64_MAX);
    loop->checks = event->check + 1; /* checks count from 0: this is the number of the next one */
    loop->check_waits = true;
    switch (session_state(session)) {
    case SESSION_ACTIVE:
        if (change->agreed) {
            switch_or_go_on(session, event->check);
        } else if (change->next_check_sent &&
                   /* the loop waits at this check until SWITCH_AT comes */
                   event->check > change->next_check) {
            loop->waiting_us = session->now_us;
            loop->warn_stall_us = time_add(session->now_us, session->stall_warning_us);
            trace_add(session->trace, session->now_us,
                      "session: check %" PRIu64 " waits for SWITCH_AT", event->check);
        } else {
            /* PENDING came when the number of the next check was not known: this is that check */
            if (change->next && !change->next_check_sent)
                send_next_check(session, event->check);
            session_answer(session, 0 /* train goes on */);
        }
        return;
    case SESSION_SWITCHED:
        /* train was told to return, but makes another check: it may have changed the state since
         * the switch */
        loop->went_on = true;
        session_answer(session, HVD_HOSTS_UPDATED);
        return;
    case SESSION_REVOKED: session_answer(session, HVD_E_REVOKED); return;
    case SESSION_LEFT: session_answer(session, HVD_LEFT); return;
    case SESSION_DISMISSED: session_answer(session, HVD_DONE); return;
    case SESSION_LOST: session_answer(session, HVD_E_LOST); return;
    default: PANIC("a check in the state %s, in which train does not run", sm_name(&session->sm));
    }
}

/* Returns why a message about the switch to the round `next` must be ignored; NULL: it must be
 * obeyed. */
static const char *why_ignored(const struct session *session, const struct msg *msg, uint64_t next)
{
    if (!session_in_train(session) || msg->round != session->round)
        return "this worker does not train in the round of this message";
    if (session_is_dead(session, next) || next < session->change.next)
        return "stale: the next round is dead, or a newer one is planned";
    if (session->change.agreed)
        return next == session->change.next ? "the switch to this round is agreed already"
                                            : "the switch to another round is agreed already";
    return NULL;
}

/* Notes that a switch to the round `next` is planned. An earlier switch is forgotten, with all that
 * was agreed about it. */
static void begin_change(struct session *session, uint64_t next)
{
    session->change = (struct session_change){ .next = next };
    session_watch(session, true /* each check comes to the session */);
}

/* Handles PENDING: a switch to the round `next` is planned. Answers with NEXT_CHECK (the check up
 * to which this worker goes on) at once if the number of the loop's next check is known. An answer
 * only at that check could never come: the slower of two members may be in a collective that needs
 * the faster one, and the faster one waits at its check until all have sent NEXT_CHECK. */
void session_on_pending(struct session *session, const struct session_event *event)
{
    const struct msg *msg = event->msg;
    uint64_t next = msg->u.pending.next;
    uint64_t checks = session->loop.checks;
    const char *why = why_ignored(session, msg, next);

    if (!why && next == session->change.next)
        why = "this PENDING has come before";
    if (why) {
        session_drop(session, msg, why);
        return;
    }
    trace_add(session->trace, session->now_us, "session: a switch to round %" PRIu64 " is planned",
              next);
    begin_change(session, next);
    /* The loop waits at check `checks` - 1 for the SWITCH_AT of an older switch, which this one
     * replaces. NEXT_CHECK names this check, and the answer 0 lets the loop train on until the
     * check after it. */
    if (session->loop.check_waits) {
        send_next_check(session, checks - 1);
        session_answer(session, 0 /* train goes on */);
    } else if (event->counted) {
        /* the number of the loop's next check is known: from the thread that counts checks, or from
         * the checks that have come here; the higher one is newer */
        send_next_check(session, event->check > checks ? event->check : checks);
    }
}

/* Handles SWITCH_AT: all members leave train at the check msg->u.switch_at.check. If the PENDING
 * message before it was lost, this worker switches nevertheless, because the number of the check is
 * all that it needs. If the loop has passed this check already, the session revokes the round. */
void session_on_switch_at(struct session *session, const struct msg *msg)
{
    uint64_t next = msg->u.switch_at.next;
    const char *why = why_ignored(session, msg, next);

    if (why) {
        session_drop(session, msg, why);
        return;
    }
    trace_add(session->trace, session->now_us,
              "session: the switch to round %" PRIu64 " is agreed: at check %" PRIu64, next,
              msg->u.switch_at.check);
    if (next > session->change.next) /* the PENDING of this switch was lost */
        begin_change(session, next);
    session->change.agreed = true;
    session->change.check = msg->u.switch_at.check;
    /* checks - 1: the number of the check at which the loop waits */
    if (session->loop.check_waits)
        switch_or_go_on(session, session->loop.checks - 1);
    else if (session->change.check < session->loop.checks)
        session_revoke(session, session->round, 0 /* nothing has failed in this worker */,
                       "this worker is past the agreed check");
}
