/*
 * rounds_prepare.c: the collectives of the next round, made and connected by a thread of their own
 * while the running round trains (PROTOCOL.md: PREPARE, PREPARED, ABANDON).
 *
 * rounds.c calls here; the session's thread says which round to prepare or to abandon. A struct
 * opening is such a next round, from its PREPARE message until the round is entered or given up.
 * Invariant: there is at most one struct opening; and the callback `prepared` is called once for
 * each, unless the round was abandoned.
 */
#include "base/mem.h"
#include "base/time.h"
#include "os/thread.h"
#include "worker/addresses.h"
#include "worker/rounds_internal.h"

/* How long the preparation waits for the connections of the GPUs. The running round trains
 * during this time. GPUs that need longer are connected when the new round has begun. */
#define DEVICE_US (20 * TIME_S)

static void opening_free(struct opening *opening)
{
    coll_free(opening->coll);
    roll_free(opening->roll);
    msg_release(&opening->prepare);
    mem_free(opening);
}

/* Makes the roll and the collectives of a round from its list of members. The caller connects them.
 * The caller does not hold the lock. */
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
    struct opening *opening = rounds->next;

    rounds->next = NULL;
    if (!opening)
        return;
    if (opening->coll)
        coll_cancel(opening->coll);
    if (opening->taken && !opening->done)
        opening->abandoned = true;
    else
        opening_free(opening);
}

/* Returns the collectives of this round if they are prepared and connected. Otherwise the function
 * gives up the opening and returns NULL. */
struct coll *prepare_take(struct rounds *rounds, uint64_t round, struct roll **ret_roll)
{
    struct opening *opening = rounds->next;
    struct coll *coll;

    if (!opening || opening->round != round || !opening->done) {
        prepare_give_up(rounds);
        return NULL;
    }
    rounds->next = NULL;
    coll = opening->coll;
    *ret_roll = opening->roll;
    opening->coll = NULL;
    opening->roll = NULL;
    opening_free(opening);
    return coll;
}

/* ---- the connecting thread ------------------------------------------------------------------- */

/* The connecting thread: waits for a round that a PREPARE has announced (a struct opening),
 * makes the collectives of that round, and connects them. It does not hold the lock meanwhile;
 * so rounds_cancel and rounds_abandon can cancel these collectives from the moment when
 * opening->coll is set. */
static void *connect_openings(void *arg)
{
    struct rounds *rounds = arg;

    rounds_lock(rounds);
    while (!rounds->closing) {
        struct opening *opening = rounds->next;
        struct hvd_err outcome = { 0 };
        struct coll *coll = NULL;
        struct roll *roll = NULL;
        struct rounds_order order;
        uint64_t round;
        int rc;

        if (!opening || opening->taken) {
            pthread_cond_wait(&rounds->changed, &rounds->lock);
            continue;
        }
        round = opening->round;
        opening->taken = true;
        rounds_unlock(rounds);
        order = (struct rounds_order){ .incarnation = opening->incarnation,
                                       .round = round,
                                       .members = &opening->prepare.u.prepare.members,
                                       .secret = opening->prepare.u.prepare.secret };
        rc = prepare_make(rounds, &order, &coll, &roll, &outcome);
        rounds_lock(rounds);
        opening->coll = coll;
        opening->roll = roll;
        if (!rc && !opening->abandoned) {
            /* A worker that joins lets its agent connect to the others, to fetch the state later. A
             * member of the previous round has the state (PROTOCOL.md, Rounds). */
            bool joins = rounds->round != opening->prepare.u.prepare.previous;

            rounds_unlock(rounds);
            rc = coll_connect(coll, ROUNDS_CONNECT_US, &outcome);
            if (!rc)
                coll_await_device(coll, DEVICE_US);
            if (!rc && joins && rounds->reach)
                rc = rounds->reach(rounds->arg, &opening->prepare, &outcome);
            rounds_lock(rounds);
        }
        outcome.code = rc;
        opening->done = true;
        if (opening->abandoned) {
            opening_free(opening);
            continue;
        }
        if (rc) {
            rounds->next = NULL;
            opening_free(opening);
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
    if (thread_start(&rounds->thread, 0, connect_openings, rounds))
        return err_set(err, HVD_E_LIMIT,
                       "no thread can be started to prepare a round; raise the limit of processes "
                       "(ulimit -u)");
    rounds->engine = engine;
    rounds->threaded = true;
    return 0;
}

/* Ends the connecting thread: from now on no round is prepared. */
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

/* Hands the round of a PREPARE message to the connecting thread, in place of an older one. Without
 * memory `prepared` gets the failure at once. */
void rounds_prepare(struct rounds *rounds, uint64_t incarnation, const struct msg *prepare)
{
    struct opening *opening = mem_zalloc(sizeof(*opening));
    struct hvd_err err = { 0 };

    if (opening && !msg_copy(prepare, &opening->prepare)) {
        opening->round = prepare->round;
        opening->incarnation = incarnation;
        rounds_lock(rounds);
        prepare_give_up(rounds);
        rounds->next = opening;
        pthread_cond_broadcast(&rounds->changed);
        rounds_unlock(rounds);
        return;
    }
    mem_free(opening);
    err_set(&err, HVD_E_NOMEM,
            "no memory to prepare a round of %zu members; free memory on this host",
            prepare->u.prepare.members.count);
    rounds->prepared(rounds->arg, prepare->round, &err);
}

void rounds_abandon(struct rounds *rounds, uint64_t round)
{
    rounds_lock(rounds);
    if (rounds->next && rounds->next->round <= round)
        prepare_give_up(rounds);
    rounds_unlock(rounds);
}
