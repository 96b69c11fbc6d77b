/*
 * ticket.c: the ticket of a round: the thread that has it may be inside a collective, and no other
 * thread may.
 *
 * Called by requests.c for each call, and by rounds.c when a round changes. Invariant: while
 * TICKET_SHUT is set, the ticket is taken only under the lock, where all conditions of a call are
 * checked (ticket_allow). TICKET_SHUT is clear only if all conditions hold: then a call takes the
 * ticket without the lock, which is faster.
 */
#include "worker/fail.h"
#include "worker/rounds_internal.h"

#include <inttypes.h>

void rounds_lock(struct rounds *rounds)
{
    pthread_mutex_lock(&rounds->lock);
}

void rounds_unlock(struct rounds *rounds)
{
    pthread_mutex_unlock(&rounds->lock);
}

/* Checks whether a collective may be called now. inside true: the library itself calls, which may
 * do so also while train does not run. */
int ticket_allow(const struct rounds *rounds, bool inside, struct hvd_err *err)
{
    if (!rounds->coll || (!rounds->open && !inside))
        return err_set(err, HVD_E_STATE,
                       "a collective is called outside of a round; call collectives only in train, "
                       "the function that hvd_elastic_run calls");
    if (rounds->news > 0 && !inside)
        return err_set(err, HVD_E_STATE,
                       "a collective is called after a commit or check has returned %s; return "
                       "this value from train instead",
                       err_name(rounds->news));
    if (rounds->failed)
        return err_set(err, HVD_E_REVOKED,
                       "a collective of round %" PRIu64
                       " has failed already (%s); return HVD_E_REVOKED from train",
                       rounds->round, rounds->why.text);
    return 0;
}

/* Takes the ticket. HVD_E_BUSY: another thread has it. */
int ticket_take(struct rounds *rounds, struct hvd_err *err)
{
    if (atomic_fetch_or(&rounds->ticket, TICKET_TAKEN) & TICKET_TAKEN)
        return err_set(err, HVD_E_BUSY,
                       "another thread is in a collective; call collectives from one thread at a "
                       "time, as all ranks must call them in the same order");
    return 0;
}

/* Sets or clears TICKET_SHUT, and computes the news (news.h), which depend on the same fields.
 * While TICKET_SHUT is set, a thread may take the ticket only under the lock, where ticket_allow
 * looks at the fields that are tested here. */
void ticket_update(struct rounds *rounds)
{
    bool shut = !rounds->coll || !rounds->open || rounds->news > 0 || rounds->failed ||
                requests_pend(&rounds->requests);

    if (shut)
        atomic_fetch_or(&rounds->ticket, TICKET_SHUT);
    else
        atomic_fetch_and(&rounds->ticket, ~TICKET_SHUT);
    news_update(rounds);
}

/* Gives the ticket back, and wakes a thread that waits until no thread is in a collective. */
void ticket_give(struct rounds *rounds)
{
    atomic_fetch_and(&rounds->ticket, ~TICKET_TAKEN);
    pthread_cond_broadcast(&rounds->changed);
}

/* Waits until no thread has the ticket. The caller holds the lock, which is released meanwhile, and
 * has seen to it that TICKET_SHUT is set, so that no thread takes the ticket again. */
void ticket_await(struct rounds *rounds)
{
    while (atomic_load(&rounds->ticket) & TICKET_TAKEN)
        pthread_cond_wait(&rounds->changed, &rounds->lock);
}

/* Notes how a call has ended. The first failure while train runs is the failure of the round. A
 * call that fails after train has returned does not count, because the library itself has ended
 * it. */
void ticket_note(struct rounds *rounds, int code, const struct hvd_err *why)
{
    if (code && rounds->open && !rounds->failed) {
        rounds->failed = code;
        rounds->why = *why;
    }
    ticket_update(rounds);
}

/* Takes the ticket without the lock. false: another thread has it, or TICKET_SHUT is set, so the
 * caller must take the lock and look why. */
bool ticket_try(struct rounds *rounds)
{
    unsigned none = 0;

    return atomic_compare_exchange_strong_explicit(&rounds->ticket, &none, TICKET_TAKEN,
                                                   memory_order_acquire, memory_order_relaxed);
}

/* Counts a call that has ended with this code, and gives the ticket back. If the call has not
 * failed and TICKET_SHUT is clear, the lock is not taken. */
void ticket_end(struct rounds *rounds, int code)
{
    uint_fast64_t calls = atomic_load_explicit(&rounds->calls, memory_order_relaxed);
    unsigned taken = TICKET_TAKEN;

    atomic_store_explicit(&rounds->calls, calls + 1, memory_order_relaxed);
    if (!code && atomic_compare_exchange_strong_explicit(
                     &rounds->ticket, &taken, 0, memory_order_release, memory_order_relaxed))
        return;
    rounds_lock(rounds);
    ticket_note(rounds, code, fail_err());
    ticket_give(rounds);
    rounds_unlock(rounds);
}
