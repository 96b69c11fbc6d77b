/*
 * session_states.c: the states of a session: which may follow which, where the training loop may be
 * in each, and the invariant (what holds of the data between two steps).
 *
 * README.md shows the same table; tests/unit/test_session_states.c compares the two. sm_move panics
 * on a move that is not in the table.
 */
#include "worker/core/session_internal.h"

/* clang-format off */
#define TO(state) SM_BIT(SESSION_##state)
#define ENDS      (TO(LEFT) | TO(DISMISSED) | TO(LOST))

static const struct sm_state states[SESSION_STATE_COUNT] = {
    [SESSION_JOINING]   = { "joining",   ENDS | TO(READY),                                SM_INITIAL },
    [SESSION_READY]     = { "ready",     ENDS | TO(ENTERING) | TO(RECOVERED),             0 },
    [SESSION_ENTERING]  = { "entering",  ENDS | TO(ACTIVE) | TO(REVOKED),                 0 },
    [SESSION_ACTIVE]    = { "active",    ENDS | TO(SWITCHED) | TO(REVOKED) | TO(FINISHED), 0 },
    [SESSION_SWITCHED]  = { "switched",  ENDS | TO(ENTERING) | TO(REVOKED) | TO(FINISHED), 0 },
    [SESSION_REVOKED]   = { "revoked",   ENDS | TO(RECOVERED) | TO(ENTERING) | TO(FINISHED), 0 },
    [SESSION_RECOVERED] = { "recovered", ENDS | TO(ENTERING),                             0 },
    [SESSION_LEFT]      = { "left",      0,                                               SM_FINAL },
    [SESSION_FINISHED]  = { "finished",  0,                                               SM_FINAL },
    [SESSION_DISMISSED] = { "dismissed", TO(FINISHED),                                    0 },
    [SESSION_LOST]      = { "lost",      0,                                               SM_FINAL },
};

#define AT(place) (1u << LOOP_##place)
#define ANYWHERE  (AT(AWAY) | AT(WAITING) | AT(ENTERING) | AT(TRAINING) | AT(RESTORING))

const unsigned session_loop_allowed[SESSION_STATE_COUNT] = {
    [SESSION_JOINING]   = AT(AWAY),
    [SESSION_READY]     = AT(WAITING),
    [SESSION_ENTERING]  = AT(ENTERING),
    [SESSION_ACTIVE]    = AT(TRAINING),
    [SESSION_SWITCHED]  = AT(TRAINING) | AT(WAITING) | AT(RESTORING),
    [SESSION_REVOKED]   = AT(ENTERING) | AT(TRAINING) | AT(WAITING) | AT(RESTORING),
    [SESSION_RECOVERED] = AT(WAITING),
    [SESSION_LEFT]      = ANYWHERE,
    [SESSION_FINISHED]  = AT(WAITING) | AT(AWAY),
    [SESSION_DISMISSED] = ANYWHERE,
    [SESSION_LOST]      = ANYWHERE,
};
/* clang-format on */

/* The invariant of a session: sm_move checks it after each move, and session_step after each step.
 * A violation is a bug of the library, and panics. */
static void check_state(const void *owner, unsigned state)
{
    const struct session *session = owner;
    const struct session_change *change = &session->change;
    bool in_round = session_in_round(session);

    ASSERT(session_loop_allowed[state] & 1u << session->loop.at);
    if (in_round || state == SESSION_REVOKED)
        ASSERT(session->round > 0);
    if (in_round)
        ASSERT(session->round > session->dead.revoked);
    /* a check may wait only in ACTIVE, between NEXT_CHECK and SWITCH_AT: in any other state no
     * message would come that answers it */
    if (session->loop.check_waits)
        ASSERT(state == SESSION_ACTIVE && change->next_check_sent && !change->agreed);
    if (change->next)
        ASSERT(in_round && change->next > session->round && session->loop.watched);
    if (session->arrived.round)
        ASSERT(state == SESSION_REVOKED || session->arrived.round == change->next);
    if (state >= SESSION_LEFT)
        ASSERT(session->prepared.state == PREPARED_NONE);
}

const struct sm_type session_type = { "session", states, SESSION_STATE_COUNT, check_state };

bool session_in_train(const struct session *session)
{
    return session->sm.state == SESSION_ACTIVE || session->sm.state == SESSION_ENTERING;
}

bool session_in_round(const struct session *session)
{
    return session_in_train(session) || session->sm.state == SESSION_SWITCHED;
}

enum session_state session_state(const struct session *session)
{
    return (enum session_state)session->sm.state;
}

const char *session_state_name(enum session_state state)
{
    return (unsigned)state < SESSION_STATE_COUNT ? states[state].name : "?";
}

uint64_t session_round(const struct session *session)
{
    return session->round;
}
