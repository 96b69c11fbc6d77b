/*
 * store_calls.c: the calls of hvd/store.h while they wait for their answers: who has which channel,
 * and how each call ends. store.c makes the calls, in any thread of the program; worker.c brings
 * the answers in the session's thread. Invariant: a call has a channel of its own, and changes have
 * channel 0, one after the other, so that their numbers grow in the order in which they are sent.
 */
#include "worker/store_calls.h"

#include "base/mem.h"
#include "base/time.h"
#include "os/thread.h"

#include <stdio.h>
#include <string.h>

int store_create(struct store **ret_store)
{
    struct store *store = mem_zalloc(sizeof(*store));

    if (!store || thread_cond_init(&store->changed)) {
        mem_free(store);
        return HVD_E_NOMEM;
    }
    pthread_mutex_init(&store->lock, NULL);
    *ret_store = store;
    return 0;
}

void store_free(struct store *store)
{
    if (!store)
        return;
    value_table_release(&store->alone);
    pthread_cond_destroy(&store->changed);
    pthread_mutex_destroy(&store->lock);
    mem_free(store);
}

/* Writes the answer of a call into its channel, where its thread finds it. The caller holds the
 * lock. */
static void channel_end(struct channel *channel, int code, const char *text, struct msg_bytes value)
{
    channel->done = true;
    channel->code = code;
    snprintf(channel->text, sizeof(channel->text), "%s", text);
    channel->length = value.length;
    if (value.length)
        memcpy(channel->value, value.at, value.length);
}

/* ---- called by the session's thread ---------------------------------------------------------- */

/* Called for STORED: gives the answer to the call that has this channel and number. A call that was
 * given up meanwhile has left the channel, and the answer is dropped. */
void store_answer(struct store *store, const struct msg_stored *stored)
{
    struct channel *channel = &store->channels[stored->channel];

    pthread_mutex_lock(&store->lock);
    if (channel->taken && !channel->done && channel->number == stored->number)
        channel_end(channel, stored->code, stored->text, stored->value);
    pthread_cond_broadcast(&store->changed);
    pthread_mutex_unlock(&store->lock);
}

/* Notes that this round and all before it are over, and wakes the threads whose calls then end. In
 * a program that runs alone the values of rounds that are over are deleted. */
void store_cancel(struct store *store, uint64_t round)
{
    pthread_mutex_lock(&store->lock);
    if (store->cancelled < round)
        store->cancelled = round;
    value_table_keep(&store->alone, round + 1, 0);
    pthread_cond_broadcast(&store->changed);
    pthread_mutex_unlock(&store->lock);
}

/* ---- called for the program ------------------------------------------------------------------ */

/* Waits until an answer has come, a round has ended or a channel is free, with the lock released.
 * false: the deadline has passed. */
bool store_sleep(struct store *store, int64_t deadline_us)
{
    if (deadline_us != TIME_NEVER)
        return !thread_cond_wait(&store->changed, &store->lock, deadline_us);
    pthread_cond_wait(&store->changed, &store->lock);
    return true;
}

/* Returns why a call about a value of this round (0: of the job) cannot go on: HVD_E_LOST or
 * HVD_E_REVOKED; 0: it can go on. The caller holds the lock. */
int store_over(const struct store *store, uint64_t round, const char **ret_why)
{
    *ret_why = store->cancelled == UINT64_MAX ? "the agent of this host is gone"
                                              : "the round of this value is over";
    return store->cancelled == UINT64_MAX       ? HVD_E_LOST
           : round && round <= store->cancelled ? HVD_E_REVOKED
                                                : 0;
}

/* Takes a free channel for a call: channel 0, or, for a call that waits for a value (waits true),
 * one of the others. Returns NULL, and the reason, if the deadline or the end of the round comes
 * first. The caller holds the lock. */
struct channel *store_take(struct store *store, bool waits, uint64_t round, int64_t deadline_us,
                           int *ret_code, const char **ret_why)
{
    size_t first = waits ? 1 : 0, end = waits ? LIMIT_STORE_CALLS : 1;
    bool in_time = true;

    while (!(*ret_code = store_over(store, round, ret_why)) && in_time) {
        for (size_t i = first; i < end; i++)
            if (!store->channels[i].taken) {
                store->channels[i].taken = true;
                store->channels[i].done = false;
                store->channels[i].number = ++store->numbers;
                store->channels[i].round = round;
                return &store->channels[i];
            }
        in_time = store_sleep(store, deadline_us);
    }
    if (!*ret_code) {
        *ret_code = HVD_E_TIMEOUT;
        *ret_why = "too many threads wait for values";
    }
    return NULL;
}

/* Makes a call in a program that runs alone, whose values are in a table of its own. A wait for a
 * value that is missing stays undone. The caller holds the lock. */
void store_apply_alone(struct store *store, struct channel *channel, const struct msg_store *call)
{
    struct value_outcome outcome;
    int rc = value_table_apply(&store->alone, channel->round, call, &outcome);

    if (call->op != STORE_WAIT || rc != HVD_E_NOTFOUND)
        channel_end(channel, rc, rc == HVD_E_NOMEM ? err_text(rc) : outcome.text, outcome.value);
    if (!rc && value_table_changes(call))
        pthread_cond_broadcast(&store->changed);
}
