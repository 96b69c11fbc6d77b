/*
 * session_loop.c: what the training loop says: hvd_elastic_run was called (RUN), the round's state
 * is loaded (SYNCED), the first step is done (STEPPED), train has returned (RETURNED).
 *
 * Called by session.c for each event of the training loop but CHECK (session_switch.c). Invariant:
 * each event finds the loop where the last order put it; anything else is a bug of the library.
 */
#include "worker/core/session_internal.h"

#include <stdio.h>

/* Handles RUN: the program has called hvd_elastic_run. A new worker sends READY, and then waits for
 * a round. If this worker's part in the job is over, hvd_elastic_run returns at once. */
void session_on_run(struct session *session, const struct session_event *event)
{
    ASSERT(session->loop.at == LOOP_AWAY);
    session->loop.at = LOOP_WAITING;
    switch (session_state(session)) {
    case SESSION_JOINING:
        session_keep_held(session, &event->ready->held);
        session_send(session, &(struct msg){ .type = MSG_READY, .u.ready = *event->ready });
        sm_move(&session->sm, SESSION_READY, session->now_us,
                "the program has called hvd_elastic_run");
        return;
    /* LEFT was sent to the agent when the session moved to this state */
    case SESSION_LEFT: session_return(session, HVD_LEFT); return;
    case SESSION_FINISHED: session_return(session, HVD_E_STATE); return;
    /* DISMISSED or LOST: hvd_elastic_run returns at once */
    default: session_order_next(session); return;
    }
}

/* Returns the text of the event, or `otherwise` if the event has none. */
static const char *text_or(const struct session_event *event, const char *otherwise)
{
    return event->text && event->text[0] ? event->text : otherwise;
}

/* Handles SYNCED: the training loop has carried out the order DO_ENTER. Code 0: the loop calls
 * train now, also when the round has died in the meantime (collectives in train then return
 * HVD_E_REVOKED). Another code: the loop could not enter the round. If the round still lives,
 * the session revokes it, because the other members wait for this worker. */
void session_on_synced(struct session *session, const struct session_event *event)
{
    ASSERT(session->loop.at == LOOP_ENTERING);
    if (!event->code) {
        session->loop.at = LOOP_TRAINING;
        if (session->sm.state == SESSION_ENTERING)
            sm_move(&session->sm, SESSION_ACTIVE, session->now_us,
                    "the state of the round is loaded");
        return;
    }
    session->loop.at = LOOP_WAITING;
    /* Not ENTERING: the round has died meanwhile, and the loop gets the order of the new state. */
    if (session->sm.state == SESSION_ENTERING)
        session_revoke(session, session->round, event->code, text_or(event, err_text(event->code)));
    else
        session_order_next(session);
}

/* Handles STEPPED: the first step of the round is done. Sends ENTERED to the driver, once for
 * each round. If the round has died meanwhile, the step is ignored. */
void session_on_stepped(struct session *session, const struct session_event *event)
{
    unsigned state = session->sm.state;

    if ((state != SESSION_ACTIVE && state != SESSION_SWITCHED) || session->loop.entered) {
        trace_add(session->trace, session->now_us,
                  "session: the end of the first step is ignored in the state %s: it was reported "
                  "already, or the round is dead",
                  sm_name(&session->sm));
        return;
    }
    session->loop.entered = true;
    session_send(session, &(struct msg){ .type = MSG_ENTERED,
                                         .round = session->round,
                                         .u.entered = *event->entered });
}

/* Handles RETURNED: train has returned event->code. The worker has finished if train returned 0 or
 * an error of its own; otherwise session_order_next says what comes next. event->failed is the code
 * of the round's first failed collective (0: none failed). */
void session_on_returned(struct session *session, const struct session_event *event)
{
    /* True: train has returned 0 or an error of its own, not a code that only the library gives. */
    bool finishes = event->code != HVD_HOSTS_UPDATED && event->code != HVD_LEFT &&
                    event->code != HVD_DONE && event->code != HVD_E_REVOKED &&
                    event->code != HVD_E_LOST;
    char text[ERR_TEXT_MAX];

    ASSERT(session->loop.at == LOOP_TRAINING && !session->loop.check_waits);
    session->loop.at = LOOP_WAITING;
    switch (session_state(session)) {
    case SESSION_ACTIVE: /* train was not told to return */
        if (event->code == HVD_E_REVOKED) {
            session_revoke(session, session->round, event->failed,
                           text_or(event, "the collectives of this worker failed"));
            return;
        }
        /* train has returned news, such as HVD_DONE, that no call of the library has returned */
        if (!finishes && event->code > 0) {
            snprintf(text, sizeof(text),
                     "train returned %s, but no call of the library has returned this code; return "
                     "only codes that a call has returned",
                     err_name(event->code));
            session_finish(session, HVD_E_STATE, text);
            return;
        }
        finishes = true;
        break;
    /* At the agreed check `train` was told to return HVD_HOSTS_UPDATED. It has returned another
     * code, so it may have changed the state since then: the loop must restore the commit
     * (went_on). */
    case SESSION_SWITCHED: session->loop.went_on |= event->code != HVD_HOSTS_UPDATED; break;
    /* the job is done: a worker that has ended its training too has finished, any other returns
     * HVD_DONE */
    case SESSION_DISMISSED: finishes = event->code == 0; break;
    case SESSION_LEFT:
    case SESSION_LOST: finishes = false; break;
    default: break; /* REVOKED: the next order is to restore the last commit */
    }
    if (finishes)
        session_finish(session, event->code, event->text);
    else
        session_order_next(session);
}
