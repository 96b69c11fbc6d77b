/*
 * coll_internal.h: the object of a round (struct coll), for the files of collectives/.
 *
 *     run.c       a call: check.c, then dispatch.c (memory of the host) or device.c (of a GPU)
 *     dispatch.c  an operation, by its kind: allreduce.c, broadcast.c, allgather.c, ...
 *     opening.c   compares fingerprints      stages.c   goes chunk by chunk over a board
 *     coll.c      creates and frees a round  connect.c  meets and links the members (partners.c)
 *     failure.c   the first failure of a round; tells it to threads and peers
 *
 * README.md has the whole picture.
 */
#ifndef COLLECTIVES_COLL_INTERNAL_H
#define COLLECTIVES_COLL_INTERNAL_H

#include "base/limits.h"
#include "collectives/coll.h"
#include "collectives/coll_channel.h"
#include "collectives/coll_circle.h"
#include "collectives/coll_group.h"
#include "collectives/coll_members.h"
#include "collectives/engine_internal.h"
#include "collectives/shm/pool.h"

#include <pthread.h>
#include <stdatomic.h>

/* Memory in which the operations of a round work. Only the owner thread uses it. */
struct coll_memory {
    struct pool_views *views; /* mappings of other members' memory; NULL: none yet */
    struct staging *staging;  /* for calls on a GPU: the engine's, or our own; NULL: none yet */
    uint8_t *scratch;         /* see coll_scratch */
    size_t scratch_bytes;
};

/* The operation in progress, for a thread that watches it (coll_wait_look). */
struct coll_activity {
    _Atomic(const char *) operation; /* name of the kind; NULL: no operation is in progress */
    _Atomic(struct coll_group *) group;
    atomic_uint_fast64_t number; /* the operation's number in the round */
};

struct coll { /* the owner thread is the one that makes the calls of the round (coll_run) */
    struct coll_engine *engine;
    uint64_t round;
    uint32_t rank, size;
    struct timeline *timeline; /* NULL: no timeline */
    struct coll_members members;
    struct link_round identity; /* what the two sides of a link prove to each other */
    struct coll_group *groups;
    /* how many groups there are; the array has entries for `group_room`; groups[0] has all members
     */
    atomic_size_t group_count;
    size_t group_room;
    struct coll_circle circle; /* in which all members of the round meet */
    struct reaper_task freeing;
    atomic_size_t staying; /* how many circles meet has not left yet; set by coll_free */
    bool devices_told;     /* true: every member has a GPU, as the roster says */
    bool by_nccl;          /* true: a call went through NCCL; used by the owner thread only */
    bool agreed;           /* true: an operation has shown that all members are in this round */

    pthread_mutex_t mutex; /* protects the fields from here to `failed` */
    pthread_cond_t changed;
    bool finished;                                 /* true: coll_bye has told the peers */
    struct hvd_err failure;                        /* the first failure of the round */
    struct coll_channel *channels[LIMIT_CHANNELS]; /* of this member (channel.c) */
    size_t channel_count;
    bool reported; /* true: a call has returned the failure to the caller */
    atomic_bool failed;

    struct traffic traffic; /* messages over the round's link; for the owner thread only */
    struct coll_memory memory;
    struct coll_activity activity;
    struct timeline_arrival arrival; /* of the call in progress; for the owner thread only */
};

/* ---- failure.c: functions for any thread ---- */

/* Records a failure of the round; only the first one counts. It ends the operation in progress, and
 * the peers are told of it. Always returns `code`. rank: the culprit, or MEET_NOBODY. */
int coll_fail(struct coll *coll, int code, uint32_t rank, const char *format, ...)
    PRINTF_LIKE(4, 5);
/* Returns the code with which a call must end: 0: the round has not failed; else the failure's
 * code, or HVD_E_REVOKED if a call has returned that code already, or if it is HVD_E_LOST or
 * _TIMEOUT. */
int coll_failure(struct coll *coll, struct hvd_err *err);
bool coll_has_failed(const struct coll *coll);
void coll_await_reason(struct coll *coll); /* waits a second for a lost peer's reason */
/* Waits until the state of the round changes, the round fails, or until_us is reached. */
void coll_pause_until(struct coll *coll, int64_t until_us);
int coll_lost(void *arg, uint32_t rank);         /* the `lost` callback of traffic.h */
int coll_channel_lost(void *arg, uint32_t rank); /* the `lost` callback for a channel's traffic */
/* Returns the code with which another process of this host has failed a segment of this round; 0:
 * no process has. ret_rank and ret_why may be NULL. For the owner thread, or with the mutex
 * locked. */
int coll_segment_failure(struct coll *coll, uint32_t *ret_rank, struct hvd_err *ret_why);

/* In partners.c. */
int coll_choose_partners(struct coll *coll) MUST_CHECK; /* HVD_E_NOMEM */
/* Makes a link to these ranks; it is not connected yet. *ret_link is set with the mutex locked, so
 * that a failure of the round, from any thread, cancels the link. */
int coll_make_link(struct coll *coll, const uint32_t *ranks, size_t count, struct link **ret_link,
                   struct hvd_err *err) MUST_CHECK;
/* Waits until all peers of the link are connected. If a peer is not in time, the round fails.
 * shown: shows a thread that watches for which rank this member waits. */
int coll_await_link(struct coll *coll, struct link *link, struct traffic *shown,
                    int64_t deadline_us) MUST_CHECK;

#endif
