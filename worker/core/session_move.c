/*
 * session_move.c: the moves of a session from one state to another, and the orders that the
 * training loop gets with each move.
 *
 * Called by the handlers of messages and events, which decide that a move is due. Invariant: the
 * loop has at most one order at a time. While the loop enters a round, runs train or restores a
 * commit, it gets no order, and only hears that its round is dead. When it has come out,
 * session_order_next gives it the next order.
 */
#include "worker/core/session_internal.h"

/* Orders the training loop to enter the round of this ROUND message, which lists this worker
 * (DO_ENTER). The loop uses the connections that were prepared for this round, if they are open;
 * connections that were prepared for another round are closed. */
void session_enter(struct session *session, const struct msg *round)
{
    struct session_prepared *prepared = &session->prepared;
    bool use_prepared = prepared->round == round->round && prepared->state == PREPARED_OPEN;
    struct place place = { .rank = 0 };

    ASSERT(session->loop.at == LOOP_WAITING && round->round > session->round);
    /* place_find needs memory. The callers have checked that the round lists this worker, so this
     * is the only reason for a failure. */
    if (place_find(&round->u.round.members, session->incarnation, &place))
        session->list->failed = true;
    if (use_prepared)
        /* the training loop owns the connections from now on, so DO_ABANDON must not close them */
        *prepared = (struct session_prepared){ .state = PREPARED_NONE };
    else
        session_forget_prepared(session);
    session_watch(session, false); /* false: no switch is pending, so checks return 0 at once */
    session->round = round->round;
    session->change = (struct session_change){ .next = 0 };
    session->draining = false;
    session->loop.entered = false;
    session->loop.went_on = false; /* train has come to no agreed check in this round yet */
    session->loop.checks = 0;
    session->loop.at = LOOP_ENTERING;
    session_do(session, (struct session_action){
                            .kind = DO_ENTER,
                            .round = round->round,
                            .msg = round,
                            .place = place,
                            .yes = use_prepared /* true: the connections are open already */ });
    sm_move(&session->sm, SESSION_ENTERING, session->now_us, "a ROUND lists this worker");
}

/* Enters the round whose ROUND message came while the loop was still in train, and has waited in
 * session->arrived since then. The message moves to the memory of the action list, because the
 * action DO_ENTER points to it. */
void session_enter_arrived(struct session *session)
{
    struct msg *msg = arena_alloc(&session->list->memory, sizeof(*msg));

    if (!msg || msg_copy_into(&session->arrived, &session->list->memory, msg)) {
        session->list->failed = true;
        return;
    }
    session_forget_arrived(session);
    session_enter(session, msg);
}

/* ---- leaving a dead round -------------------------------------------------------------------- */

/* Orders the training loop, which waits for an order, to go back to its last commit. */
static void session_restore(struct session *session)
{
    ASSERT(session->loop.at == LOOP_WAITING);
    session->loop.at = LOOP_RESTORING;
    session_do(session, (struct session_action){ .kind = DO_RESTORE });
}

/* Stops the training loop in its round: ends the collectives of the round, answers a check that
 * waits with `code`, and lets the loop bring its next checks to the session, whose answers make
 * train (the program's function) return. Later rounds that are revoked already are cancelled
 * too. */
void session_stop_loop(struct session *session, int code)
{
    uint64_t revoked = session->dead.revoked;

    /* The round is cancelled first, so that hvd_news never says of a revoked round that a change is
     * coming. */
    session_cancel(session, revoked > session->round ? revoked : session->round);
    if (session->loop.at == LOOP_ENTERING || session->loop.at == LOOP_TRAINING)
        session_watch(session, true /* each check comes to the session */);
    if (session->loop.check_waits)
        session_answer(session, code);
}

/* Moves to REVOKED: this round and all before it are dead. Stops the training loop, which then
 * restores its last commit: now if it waits for an order, else when train, the program's function,
 * has returned. code and `why` are for the RECOVERING message; code 0: nothing has failed in this
 * worker. */
void session_revoke(struct session *session, uint64_t round, int code, const char *why)
{
    struct session_dead *dead = &session->dead;

    ASSERT(round >= session->round);
    if (round > dead->revoked)
        dead->revoked = round;
    (void)err_set(&dead->why, code, "%s", why);
    session->change = (struct session_change){ .next = 0 };
    session_stop_loop(session, HVD_E_REVOKED);
    /* what is known of a later round stays, unless that round is dead too */
    if (session->prepared.round <= dead->revoked)
        session_forget_prepared(session);
    if (session->arrived.round <= dead->revoked)
        session_forget_arrived(session);
    sm_move(&session->sm, SESSION_REVOKED, session->now_us, why);
    if (session->loop.at == LOOP_WAITING)
        session_restore(session);
}

/* ---- out of the job -------------------------------------------------------------------------- */

/* Lets hvd_elastic_run return this code. session_on_run answers a later call of hvd_elastic_run. */
void session_return(struct session *session, int code)
{
    ASSERT(session->loop.at == LOOP_WAITING);
    session->loop.at = LOOP_AWAY;
    session_do(session, (struct session_action){ .kind = DO_RETURN, .code = code });
}

/* Moves to a state in which this worker takes no part in rounds any more: what is known of a next
 * round is forgotten. */
static void move_to_end(struct session *session, enum session_state state, const char *why)
{
    session->change = (struct session_change){ .next = 0 };
    session_forget_arrived(session);
    session_forget_prepared(session);
    sm_move(&session->sm, state, session->now_us, why);
}

/* Ends the work of this worker because train has returned: sends FINISHED, and lets hvd_elastic_run
 * return the code. Code 0: train is done; another code: its error, with the reason in `text` (may
 * be NULL). */
void session_finish(struct session *session, int code, const char *text)
{
    /* err_set makes one line of the text, which comes from the program and may have several */
    struct hvd_err line;

    err_set(&line, code, "%s", text ? text : "");
    move_to_end(session, SESSION_FINISHED, code ? "train failed" : "train returned 0");
    session_send(session,
                 &(struct msg){
                     .type = MSG_FINISHED,
                     .round = session->round,
                     .u.finished = {.code = code,
                                    .text = session_copy(session, line.text, sizeof(line.text))},
    });
    session_return(session, code);
}

/* Gives the training loop its next order, by the state of the session. Called when the loop is
 * outside train and has nothing to do: it has come out of DO_ENTER, train or DO_RESTORE, or the
 * state changes while it waits. In SWITCHED the loop gets no order if the ROUND has not come yet:
 * it waits for that message. */
void session_order_next(struct session *session)
{
    switch (session_state(session)) {
    case SESSION_SWITCHED:
        if (session->loop.went_on)
            session_restore(session);
        else if (session->arrived.round)
            session_enter_arrived(session);
        return;
    case SESSION_REVOKED: session_restore(session); return;
    case SESSION_LEFT:
        session_send(session, &(struct msg){ .type = MSG_LEFT });
        session_return(session, HVD_LEFT);
        return;
    case SESSION_DISMISSED: session_return(session, HVD_DONE); return;
    case SESSION_LOST: session_return(session, HVD_E_LOST); return;
    default: PANIC("the training loop has no next order in the state %s", sm_name(&session->sm));
    }
}

/* Moves to the state LEFT: this worker leaves the job. The message LEFT is sent when the training
 * loop is outside train: at once, or later by session_order_next. */
void session_leave(struct session *session, const char *why)
{
    move_to_end(session, SESSION_LEFT, why);
    if (session->loop.at == LOOP_WAITING)
        session_order_next(session);
    else if (session->loop.at == LOOP_AWAY)
        session_send(session, &(struct msg){ .type = MSG_LEFT });
}

/* Ends the run of this worker in the state `state`: if the training loop is in a round, its
 * collectives end, and a check that waits is answered with code. hvd_elastic_run returns at once,
 * or when the loop has left train. */
static void session_end_run(struct session *session, enum session_state state, int code,
                            const char *why)
{
    if (session_in_round(session))
        session_stop_loop(session, code);
    move_to_end(session, state, why);
    if (session->loop.at == LOOP_WAITING)
        session_order_next(session);
}

/* Called when the driver says that other workers have finished the job (DONE): hvd_elastic_run
 * returns HVD_DONE. */
void session_dismiss(struct session *session)
{
    session_end_run(session, SESSION_DISMISSED, HVD_DONE, "the job is done");
}

/* Notes that the agent is gone: the session moves to LOST, and hvd_elastic_run returns HVD_E_LOST.
 * But a decision that was made earlier (to leave, or that the job is done) stays valid. */
void session_lose(struct session *session, const char *why)
{
    if (!session->agent.connected) /* noted before: BYE came, and now the connection is closed */
        return;
    session->agent.connected = false;
    if (session->sm.state < SESSION_LEFT)
        session_end_run(session, SESSION_LOST, HVD_E_LOST, why);
    else if (session->loop.at == LOOP_TRAINING || session->loop.at == LOOP_ENTERING)
        session_stop_loop(session, HVD_E_LOST);
}
