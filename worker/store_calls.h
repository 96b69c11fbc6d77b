/*
 * store_calls.h: the calls of hvd/store.h that wait for an answer of the driver. The session's
 * thread brings the answers, and says which rounds are over.
 */
#ifndef WORKER_STORE_CALLS_H
#define WORKER_STORE_CALLS_H

#include "base/err.h"
#include "proto/value_table.h"

#include <pthread.h>

/* The place of one call that waits for its answer, and then the answer. */
struct channel {
    bool taken, done;
    uint64_t number, round;
    int code;
    char text[ERR_TEXT_MAX];
    size_t length;
    uint8_t value[LIMIT_STORE_VALUE_BYTES];
};

struct store {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t numbers;   /* the number that the last call has got; calls are counted up */
    uint64_t cancelled; /* the number of a round: that round and all before it are over */
    struct channel channels[LIMIT_STORE_CALLS];
    struct value_table alone; /* the values of a program that runs without hvd-elastic */
};

int store_create(struct store **ret_store) MUST_CHECK; /* HVD_E_NOMEM */
void store_free(struct store *store); /* no call may be in progress; NULL is allowed */

/* Gives an answer to the call that has its channel and number, and ends that call; no other call is
 * touched. */
void store_answer(struct store *store, const struct msg_stored *stored);
/* Ends the calls of this round and of all before it. UINT64_MAX: the agent is gone, which ends all
 * calls, also later ones. */
void store_cancel(struct store *store, uint64_t round);

/* ---- called by store.c, which holds the lock ---- */

/* Takes a free channel: channel 0, or another one for a call that waits. NULL, and the reason: the
 * deadline or the end of the round comes first. */
struct channel *store_take(struct store *store, bool waits, uint64_t round, int64_t deadline_us,
                           int *ret_code, const char **ret_why) MUST_CHECK;
/* Waits until something has changed, with the lock released. false: the deadline has passed. */
bool store_sleep(struct store *store, int64_t deadline_us) MUST_CHECK;
/* Returns the code of why a call about a value of this round (0: of the job) cannot go on; 0: it
 * can go on. */
int store_over(const struct store *store, uint64_t round, const char **ret_why) MUST_CHECK;
/* Makes a call of hvd/store.h in a program that runs alone: the table `alone` answers. */
void store_apply_alone(struct store *store, struct channel *channel, const struct msg_store *call);

#endif
