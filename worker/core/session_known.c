/*
 * session_known.c: what a session knows of rounds: which are dead, which one is prepared, which one
 * has arrived, which change is pending; and how it forgets each of them.
 *
 * Called by session_move.c and the handlers. Invariant: a number that is dead stays dead, so a late
 * or repeated message about it is dropped (PROTOCOL.md K2, K4).
 */
#include "proto/catalog.h"
#include "worker/core/session_internal.h"

#include <inttypes.h>
#include <string.h>

/* Drops a message, and writes one trace line. PROTOCOL.md, K2: a stale message is no error, because
 * it was right when it was sent. */
void session_drop(struct session *session, const struct msg *msg, const char *why)
{
    const struct msg_kind *kind = msg_kind(msg->type);

    trace_add(session->trace, session->now_us,
              "session: %s of round %" PRIu64 " is dropped in the state %s (round %" PRIu64 "): %s",
              kind ? kind->name : "?", msg->round, sm_name(&session->sm), session->round, why);
}

bool session_lists_worker(const struct session *session, const struct msg_member_list *members)
{
    for (size_t i = 0; i < members->count; i++) {
        if (members->items[i].incarnation == session->incarnation)
            return true;
    }
    return false;
}

/* true: this round will not begin, or is over: it is not later than the present one, or is revoked
 * or abandoned. */
bool session_is_dead(const struct session *session, uint64_t round)
{
    const struct session_dead *dead = &session->dead;

    return round <= session->round || round <= dead->revoked ||
           (round > dead->abandoned_above && round <= dead->abandoned_to);
}

/* Notes that the rounds after `current`, up to `last`, were abandoned. The session keeps one range
 * of abandoned numbers, which is enough, because the numbers of rounds only grow: a range that
 * overlaps the earlier range is joined with it; an earlier range that does not overlap is dropped,
 * because its rounds are older than `current`. */
void session_note_abandoned(struct session *session, uint64_t current, uint64_t last)
{
    struct session_dead *dead = &session->dead;

    if (last <= dead->abandoned_to)
        return;
    if (current < dead->abandoned_above || current > dead->abandoned_to)
        dead->abandoned_above = current;
    dead->abandoned_to = last;
}

/* Keeps the list of the commits that this worker holds, for the RECOVERING that it sends next. held
 * NULL: the worker holds none. */
void session_keep_held(struct session *session, const struct msg_held_list *held)
{
    session->held_count = held ? held->count : 0;
    ASSERT(session->held_count <= ARRAY_SIZE(session->held));
    if (session->held_count)
        memcpy(session->held, held->items, session->held_count * sizeof(*held->items));
}

/* Forgets the round that is prepared. The action DO_ABANDON closes the connections of that round,
 * if they are open or being opened. */
void session_forget_prepared(struct session *session)
{
    struct session_prepared *prepared = &session->prepared;

    if (prepared->state == PREPARED_OPENING || prepared->state == PREPARED_OPEN)
        session_do(session,
                   (struct session_action){ .kind = DO_ABANDON, .round = prepared->round });
    *prepared = (struct session_prepared){ .state = PREPARED_NONE };
}

/* Forgets the ROUND message that waits until the training loop can enter the round. */
void session_forget_arrived(struct session *session)
{
    msg_release(&session->arrived);
    session->arrived = (struct msg){ .round = 0 };
}

/* Forgets the planned switch to another round: train goes on in the running round, checks return
 * 0 at once again, and a check that waits for the switch is answered with 0. */
void session_forget_change(struct session *session)
{
    session->change = (struct session_change){ .next = 0 };
    if (session_in_train(session))
        session_watch(session, false /* checks return 0 at once */);
    if (session->loop.check_waits)
        session_answer(session, 0);
}
