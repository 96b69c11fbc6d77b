/*
 * hand_crew.h: members of one communicator in this process: each is a thread with a hand, and a
 * device of the stand-in, of its own.
 */
#ifndef TESTS_LIB_HAND_CREW_H
#define TESTS_LIB_HAND_CREW_H

#include "collectives/nccl/hand.h"
#include "tests/lib/test.h"

#include <pthread.h>
#include <stdatomic.h>

#define HAND_CREW_MAX     4
#define HAND_CREW_LONG_US (30 * INT64_C(1000000)) /* nothing here takes that long */

struct hand_crew;
typedef void hand_act_fn(struct hand_crew *crew, uint32_t rank);

struct hand_seat {
    struct hand_crew *crew;
    uint32_t rank;
    pthread_t thread;
    atomic_uint stuck; /* how often that was told */
};

struct hand_crew {
    uint32_t size;
    const struct cuda *cuda;
    const struct gpu_device *devices[HAND_CREW_MAX];
    struct hand *hands[HAND_CREW_MAX];
    struct comm *comms[HAND_CREW_MAX];
    int rc[HAND_CREW_MAX];
    struct hvd_err err[HAND_CREW_MAX];
    bool away[HAND_CREW_MAX]; /* does not act */
    hand_act_fn *act;
    const void *arg; /* of the acts */
    pthread_mutex_t mutex;
    pthread_cond_t acted;
    uint32_t acting; /* who has not acted yet */
    struct hand_seat seats[HAND_CREW_MAX];
};

/* The stand-ins are found from here on, and have no faults. A revoke and an abort may take bound_us
 * (0: HAND_CREW_LONG_US). crew->size 0: nothing is open. */
int hand_crew_open(struct hand_crew *crew, uint32_t size, int64_t bound_us);
void hand_crew_close(struct hand_crew *crew); /* its communicators, too */
void hand_crew_use_old(void);                 /* NCCL that has no revoke; before the first one */

/* A communicator of all; make also waits until it is ready on all. */
int hand_crew_begin(struct hand_crew *crew);
int hand_crew_make(struct hand_crew *crew);
void hand_crew_part(struct hand_crew *crew);
void hand_crew_revoke(struct hand_crew *crew);

/* Each that is not away acts, and notes in rc what it has come to; who fails revokes it for all, as
 * a round does. */
void hand_crew_start(struct hand_crew *crew, hand_act_fn *act);
bool hand_crew_await_until(struct hand_crew *crew,
                           int64_t until_us); /* false: not all have acted */
void hand_crew_await(struct hand_crew *crew);
void hand_crew_run(struct hand_crew *crew, hand_act_fn *act);

/* Memory of a member's device, and what is in it. */
int hand_crew_alloc(struct hand_crew *crew, uint32_t rank, size_t bytes, void **ret_at);
void hand_crew_free(struct hand_crew *crew, uint32_t rank, void *at); /* NULL is allowed */
int hand_crew_put(struct hand_crew *crew, uint32_t rank, void *to, const void *from, size_t bytes);
int hand_crew_get(struct hand_crew *crew, uint32_t rank, void *to, const void *from, size_t bytes);

#endif
