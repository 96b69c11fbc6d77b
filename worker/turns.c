/* turns.c: one thread at a time is in the collectives of the running round. */
#include "worker/fail.h"
#include "worker/rounds_inside.h"

#include <inttypes.h>

/* ---- under the lock -------------------------------------------------------------------------- */

int turns_allow(const struct rounds *rounds, bool inside, struct hvd_err *err)
{
    if (!rounds->coll || (!rounds->open && !inside))
        return err_set(err, HVD_E_STATE,
                       "a collective outside of a round; call it from train, which "
                       "hvd_elastic_run calls");
    if (rounds->news > 0 && !inside)
        return err_set(err, HVD_E_STATE,
                       "a collective after a commit or check has returned %s; return that from "
                       "train",
                       err_name(rounds->news));
    if (rounds->failed)
        return err_set(err, HVD_E_REVOKED,
                       "a collective of round %" PRIu64
                       " has failed before (%s); return from train",
                       rounds->round, rounds->why.text);
    return 0;
}

int turns_take(struct rounds *rounds, struct hvd_err *err)
{
    if (atomic_fetch_or(&rounds->turn, TURN_TAKEN) & TURN_TAKEN)
        return err_set(err, HVD_E_BUSY,
                       "another thread is in a collective; all ranks must make them in the same "
                       "order, so one thread at a time");
    return 0;
}

void turns_settle(struct rounds *rounds)
{
    bool shut = !rounds->coll || !rounds->open || rounds->news > 0 || rounds->failed ||
                rounds->requests.first;

    if (shut)
        atomic_fetch_or(&rounds->turn, TURN_SHUT);
    else
        atomic_fetch_and(&rounds->turn, ~TURN_SHUT);
}

void turns_give(struct rounds *rounds)
{
    atomic_fetch_and(&rounds->turn, ~TURN_TAKEN);
    pthread_cond_broadcast(&rounds->changed);
}

void turns_await(struct rounds *rounds)
{
    while (atomic_load(&rounds->turn) & TURN_TAKEN)
        pthread_cond_wait(&rounds->changed, &rounds->lock);
}

/* What ends only because train has returned is no failure of the round. */
void turns_note(struct rounds *rounds, int code, const struct hvd_err *why)
{
    if (code && rounds->open && !rounds->failed) {
        rounds->failed = code;
        rounds->why = *why;
    }
    turns_settle(rounds);
}

/* ---- without the lock ------------------------------------------------------------------------ */

bool turns_try(struct rounds *rounds)
{
    unsigned none = 0;

    return atomic_compare_exchange_strong_explicit(&rounds->turn, &none, TURN_TAKEN,
                                                   memory_order_acquire, memory_order_relaxed);
}

void turns_end(struct rounds *rounds, int code)
{
    uint_fast64_t calls = atomic_load_explicit(&rounds->calls, memory_order_relaxed);
    unsigned taken = TURN_TAKEN;

    atomic_store_explicit(&rounds->calls, calls + 1, memory_order_relaxed);
    if (!code && atomic_compare_exchange_strong_explicit(
                     &rounds->turn, &taken, 0, memory_order_release, memory_order_relaxed))
        return;
    pthread_mutex_lock(&rounds->lock);
    turns_note(rounds, code, fail_err());
    turns_give(rounds);
    pthread_mutex_unlock(&rounds->lock);
}

/* ---- for others ------------------------------------------------------------------------------ */

int rounds_get(struct rounds *rounds, bool inside, struct coll **ret_coll, struct hvd_err *err)
{
    int rc;

    pthread_mutex_lock(&rounds->lock);
    rc = turns_allow(rounds, inside, err);
    if (!rc)
        rc = turns_take(rounds, err);
    if (!rc)
        *ret_coll = rounds->coll;
    pthread_mutex_unlock(&rounds->lock);
    return rc;
}

void rounds_put(struct rounds *rounds, int code)
{
    turns_end(rounds, code);
}

void rounds_open(struct rounds *rounds, bool open)
{
    pthread_mutex_lock(&rounds->lock);
    rounds->open = open;
    turns_settle(rounds);
    if (!open)
        requests_drop(rounds, "train has returned before it was done; wait for each request");
    pthread_mutex_unlock(&rounds->lock);
}

void rounds_finish(struct rounds *rounds)
{
    struct coll *coll;

    pthread_mutex_lock(&rounds->lock);
    rounds->open = false;
    turns_settle(rounds);
    coll = rounds->coll;
    if (!coll || turns_take(rounds, NULL)) /* a thread that is inside still will not end it */
        coll = NULL;
    pthread_mutex_unlock(&rounds->lock);
    if (!coll)
        return;
    coll_part(coll);
    coll_bye(coll);
    turns_end(rounds, 0);
}

void rounds_tell(struct rounds *rounds, int news)
{
    pthread_mutex_lock(&rounds->lock);
    rounds->news = news;
    turns_settle(rounds);
    pthread_mutex_unlock(&rounds->lock);
}

void rounds_why(struct rounds *rounds, struct hvd_err *ret_why)
{
    pthread_mutex_lock(&rounds->lock);
    (void)err_set(ret_why, rounds->failed, "%s", rounds->why.text);
    pthread_mutex_unlock(&rounds->lock);
}

int rounds_failed(struct rounds *rounds)
{
    return atomic_load_explicit(&rounds->failed, memory_order_relaxed);
}

int rounds_judge(struct rounds *rounds, struct hvd_err *err)
{
    struct hvd_err why;
    int rc = 0;

    pthread_mutex_lock(&rounds->lock);
    if (rounds->coll && !coll_is_whole(rounds->coll)) {
        rc = err_set(&why, HVD_E_REVOKED,
                     "round %" PRIu64 " has died before all of its collectives had ended",
                     rounds->round);
        turns_note(rounds, rc, &why);
        if (err)
            *err = why;
    }
    pthread_mutex_unlock(&rounds->lock);
    return rc;
}

uint64_t rounds_calls(struct rounds *rounds)
{
    return atomic_load_explicit(&rounds->calls, memory_order_relaxed);
}

bool rounds_look(struct rounds *rounds, struct coll_wait *ret_wait)
{
    pthread_mutex_lock(&rounds->lock);
    ret_wait->operation = NULL;
    if (rounds->coll)
        coll_wait_look(rounds->coll, ret_wait);
    pthread_mutex_unlock(&rounds->lock);
    return ret_wait->operation != NULL;
}

int rounds_group(struct rounds *rounds, const hvd_group *group, bool size, struct hvd_err *err)
{
    size_t index = 0;
    int rc;

    if (group && !groups_find(rounds->groups, group, &index))
        return err_set(err, HVD_E_INVAL,
                       "the group is none that was made since hvd_init; use what "
                       "hvd_group_create has given");
    pthread_mutex_lock(&rounds->lock);
    if (!rounds->roll) {
        rc = err_set(err, HVD_E_STATE, "there has been no round yet; ask from train");
    } else if (!group) {
        rc = (int)(size ? rounds->roll->size : rounds->roll->rank);
    } else {
        const struct roll_group *in = &rounds->roll->groups[index];

        if (in->part)
            rc = (int)(size ? roll_size(rounds->roll, in->part) : in->place);
        else
            rc = size ? 0 : -1;
    }
    pthread_mutex_unlock(&rounds->lock);
    return rc;
}
