/*
 * rounds_prepare.c: the collectives of the next round, made and connected by a thread of their own
 * while the running round trains (PROTOCOL.md: PREPARE, PREPARED, ABANDON).
 *
 * Called by rounds.c, and on the session's thread, which says which round to prepare or to abandon.
 * A struct next_round is such a round, from its PREPARE message until the round is entered or given
 * up. Invariant: there is at most one struct next_round; and the callback `prepared` is called once
 * for each, unless the round was abandoned.
 */
#include "base/mem.h"
#include "base/time.h"
#include "os/thread.h"
#include "worker/addresses.h"
#include "worker/rounds_internal.h"

/* How long the preparation waits for the connections of the GPUs; the running round trains
 * meanwhile. GPUs that need longer are connected when the new round has begun. */
#define DEVICE_US (20 * TIME_S)

static void next_round_free(struct next_round *next)
{
    coll_free(next->coll);
    roll_free(next->roll);
    msg_release(&next->prepare);
    mem_free(next);
}

/* Makes the roll (which ranks are in which group) and the collectives of a round from its list of
 * members. The collectives are not connected yet: the caller does that. The caller does not hold
 * the lock. */
int prepare_make(struct rounds *rounds, const struct rounds_order *order, struct coll **ret_coll,
                 struct roll **ret_roll, struct hvd_err *err)
{
    const struct msg_member_list *members = order->members;
    struct coll_peer *peers;
    struct coll_roster roster;
    struct roll *roll = NULL;
    int rc = roll_make(rounds->groups, members, order->incarnation, &roll, err);

    if (rc)
        return rc;
    peers = mem_zalloc_array(members->count, sizeof(*peers));
    if (!peers) {
        roll_free(roll);
        return err_set(err, HVD_E_NOMEM,
                       "no memory to prepare a round of %zu members; free memory on this host",
                       members->count);
    }
    roster = (struct coll_roster){ .round = order->round,
                                   .rank = roll->rank,
                                   .size = roll->size,
                                   .peers = peers,
                                   .secret = order->secret.at,
                                   .secret_length = order->secret.length,
                                   .groups = roll->parts,
                                   .group_count = roll->part_count,
                                   .timeline = rounds->timeline };
    for (uint32_t i = 0; i < roster.size; i++) {
        const struct msg_member *member = &members->items[i];

        peers[i] = (struct coll_peer){ .incarnation = member->incarnation,
                                       .host = member->host,
                                       .contact = addresses_find(&member->addresses, "data"),
                                       .device = addresses_find(&member->addresses, "gpu") };
    }
    rc = coll_create(rounds->engine, &roster, ret_coll, err);
    mem_free(peers);
    if (rc)
        roll_free(roll);
    else
        *ret_roll = roll;
    return rc;
}

/* Gives up the next round, if one is being prepared. While the connecting thread works on it,
 * this function only marks it as abandoned, and that thread frees it. */
void prepare_give_up(struct rounds *rounds)
{
    struct next_round *next = rounds->next;

    rounds->next = NULL;
    if (!next)
        return;
    if (next->coll)
        coll_cancel(next->coll);
    if (next->taken && !next->done)
        next->abandoned = true;
    else
        next_round_free(next);
}

/* Returns the collectives of this round if they are prepared and connected. Otherwise the function
 * gives up the next round and returns NULL. */
struct coll *prepare_take(struct rounds *rounds, uint64_t round, struct roll **ret_roll)
{
    struct next_round *next = rounds->next;
    struct coll *coll;

    if (!next || next->round != round || !next->done) {
        prepare_give_up(rounds);
        return NULL;
    }
    rounds->next = NULL;
    coll = next->coll;
    *ret_roll = next->roll;
    next->coll = NULL;
    next->roll = NULL;
    next_round_free(next);
    return coll;
}

/* ---- the connecting thread ------------------------------------------------------------------- */

/* The connecting thread: waits for a round that a PREPARE has announced (a struct next_round),
 * makes the collectives of that round, and connects them. It works without the lock; so
 * rounds_cancel and rounds_abandon can cancel the collectives from the moment when next->coll is
 * set. */
static void *connect_next_rounds(void *arg)
{
    struct rounds *rounds = arg;

    rounds_lock(rounds);
    while (!rounds->closing) {
        struct next_round *next = rounds->next;
        struct hvd_err outcome = { 0 };
        struct coll *coll = NULL;
        struct roll *roll = NULL;
        struct rounds_order order;
        uint64_t round;
        int rc;

        if (!next || next->taken) {
            pthread_cond_wait(&rounds->changed, &rounds->lock);
            continue;
        }
        round = next->round;
        next->taken = true;
        rounds_unlock(rounds);
        order = (struct rounds_order){ .incarnation = next->incarnation,
                                       .round = round,
                                       .members = &next->prepare.u.prepare.members,
                                       .secret = next->prepare.u.prepare.secret };
        rc = prepare_make(rounds, &order, &coll, &roll, &outcome);
        rounds_lock(rounds);
        next->coll = coll;
        next->roll = roll;
        if (!rc && !next->abandoned) {
            /* A worker that joins lets its agent connect to the others, to fetch the state later. A
             * member of the previous round has the state (PROTOCOL.md, Rounds). */
            bool joins = rounds->round != next->prepare.u.prepare.previous;

            rounds_unlock(rounds);
            rc = coll_connect(coll, ROUNDS_CONNECT_US, &outcome);
            if (!rc)
                coll_await_device(coll, DEVICE_US);
            if (!rc && joins && rounds->reach)
                rc = rounds->reach(rounds->arg, &next->prepare, &outcome);
            rounds_lock(rounds);
        }
        outcome.code = rc;
        next->done = true;
        if (next->abandoned) {
            next_round_free(next);
            continue;
        }
        if (rc) {
            rounds->next = NULL;
            next_round_free(next);
        }
        rounds_unlock(rounds);
        rounds->prepared(rounds->arg, round, &outcome);
        rounds_lock(rounds);
    }
    rounds_unlock(rounds);
    return NULL;
}

/* Sets the engine, and starts the thread that connects the collectives of the next round. */
int rounds_use_engine(struct rounds *rounds, struct coll_engine *engine, struct hvd_err *err)
{
    if (thread_start(&rounds->thread, 0, connect_next_rounds, rounds))
        return err_set(err, HVD_E_LIMIT,
                       "no thread can be started to prepare a round; raise the limit of processes "
                       "(ulimit -u)");
    rounds->engine = engine;
    rounds->threaded = true;
    return 0;
}

/* Ends the connecting thread: from now on no round is prepared. Called before the session ends, to
 * which that thread reports. */
void rounds_close(struct rounds *rounds)
{
    if (!rounds || !rounds->threaded)
        return;
    rounds_lock(rounds);
    rounds->closing = true;
    prepare_give_up(rounds);
    pthread_cond_broadcast(&rounds->changed);
    rounds_unlock(rounds);
    pthread_join(rounds->thread, NULL);
    rounds->threaded = false;
}

/* Gives the round of a PREPARE message to the connecting thread, in place of an older round. If
 * there is no memory, the callback `prepared` is called at once, with the failure. */
void rounds_prepare(struct rounds *rounds, uint64_t incarnation, const struct msg *prepare)
{
    struct next_round *next = mem_zalloc(sizeof(*next));
    struct hvd_err err = { 0 };

    if (next && !msg_copy(prepare, &next->prepare)) {
        next->round = prepare->round;
        next->incarnation = incarnation;
        rounds_lock(rounds);
        prepare_give_up(rounds);
        rounds->next = next;
        pthread_cond_broadcast(&rounds->changed);
        rounds_unlock(rounds);
        return;
    }
    mem_free(next);
    err_set(&err, HVD_E_NOMEM,
            "no memory to prepare a round of %zu members; free memory on this host",
            prepare->u.prepare.members.count);
    rounds->prepared(rounds->arg, prepare->round, &err);
}

/* Called by the session's thread for ABANDON: the round that is being prepared, if it is this one
 * or an earlier one, will not begin. */
void rounds_abandon(struct rounds *rounds, uint64_t round)
{
    rounds_lock(rounds);
    if (rounds->next && rounds->next->round <= round)
        prepare_give_up(rounds);
    rounds_unlock(rounds);
}
