/*
 * coll.h: collectives between the members of one round. One object for each round, never repaired:
 * it is replaced together with its round.
 *
 *     coll_create ──► coll_connect ──► coll_run, again and again ──► coll_free
 *                            coll_cancel, at any time
 *
 * Everything but coll_cancel, coll_refuse and coll_wait_look is for one thread at a time. Whatever
 * waits inside looks at three things: progress, cancellation, deadline.
 */
#ifndef COLLECTIVES_COLL_H
#define COLLECTIVES_COLL_H

#include "collectives/call.h"
#include "collectives/engine.h"
#include "timeline/call.h"

/* Who takes part, in rank order. Borrowed during coll_create. */
struct coll_peer {
    uint64_t incarnation;
    const char *host;    /* peers with the same one share memory */
    const char *contact; /* NULL: it gave none, and cannot be connected */
    const char *device;  /* what it has told of its GPU (engine.h); NULL: it uses none */
};

struct coll_ranks { /* rising; count 0: nobody of this round */
    const uint32_t *items;
    uint32_t count;
};

struct coll_roster {
    uint64_t round;
    uint32_t rank, size;
    const struct coll_peer *peers;
    const struct coll_ranks *groups; /* besides all; the same on all members */
    size_t group_count;
    struct timeline *timeline; /* where its calls are shown, as long as it lives; NULL: nowhere */
};

struct coll;

/* Opens nothing yet. Of size 1: needs no engine (NULL). */
int coll_create(struct coll_engine *engine, const struct coll_roster *roster,
                struct coll **ret_coll, struct hvd_err *err) MUST_CHECK;

/* All members connect at about the same time, in any order. 0; HVD_E_REVOKED: cancelled;
 * HVD_E_TIMEOUT and HVD_E_LOST: names the first peer that was not met. */
int coll_connect(struct coll *coll, int64_t timeout_us, struct hvd_err *err) MUST_CHECK;

/* By all members, or none, once it is connected: until their GPUs are too, or one of them cannot
 * be. For a round that is prepared beside another; after a death there is nothing to wait beside.
 * However it ends, the round can be used, if it has not failed. */
void coll_await_device(struct coll *coll, int64_t timeout_us);

/* With nobody inside: nothing of what was called moves on the device any more, so its memory is the
 * program's again. Of a round that has failed what was begun there is given up; else it is waited
 * for. HVD_E_REVOKED: it is so, but something that a call had only queued has come to nothing, by a
 * failure here or of a peer, and no call has told of it: now the others know, too. HVD_E_TIMEOUT,
 * HVD_E_IO: it is not, as the device does not end it (engine.h: stuck). */
int coll_settle(struct coll *coll, struct hvd_err *err) MUST_CHECK;

/* Any thread, any number of times, at once and without waiting: whatever is in progress, and all
 * that comes later, returns HVD_E_REVOKED, here within 20 ms. Peers that wait for us see an error.
 */
void coll_cancel(struct coll *coll);

/* Of what was called and runs on a device, was nothing ended before its end? What is found there
 * while this is true is what was computed: it turns false first. Any thread, without waiting. */
bool coll_is_whole(struct coll *coll);

/* By who makes no further call, once it is settled: until all of those are there with whom
 * something was called by NCCL. A kernel of theirs may still need what only this process keeps
 * alive. It does not wait for who calls something else instead, nor longer than a GPU may take
 * (engine.h). */
void coll_part(struct coll *coll);

/* This member makes no further call: when it is gone, those who do not need it are not disturbed.
 * Returns when they have been told, and waits for none of them. Nothing once it has failed. */
void coll_bye(struct coll *coll);

/* No thread is inside by then, and none will cancel. What takes time is done by the engine's
 * reaper. */
void coll_free(struct coll *coll);

/* ---- what they compute together ---- */

/* As in hvd.h. After any failure the object is as if it were cancelled: HVD_E_REVOKED. A peer that
 * has died is HVD_E_REVOKED too, and the err names it. HVD_E_MISMATCH: the others do something
 * else; HVD_E_INVAL; HVD_E_NOMEM. On memory of a device: HVD_E_IO; HVD_E_UNSUPPORTED: NCCL is asked
 * for, and cannot be used; what of a streamed call fails later is told by the next one. */
int coll_run(struct coll *coll, const struct coll_call *call, struct hvd_err *err) MUST_CHECK;

/* A call that makes no sense ends the round: the others would wait for this rank. Any thread. What
 * the owner is to be told: HVD_E_INVAL, or HVD_E_REVOKED if the round had failed before. */
int coll_refuse(struct coll *coll, struct hvd_err *err, const char *format, ...) PRINTF_LIKE(3, 4);

/* For whoever watches: what is in progress, and for whom it waits. Any thread, as long as the
 * object lives. */
#define COLL_MISSING_MAX 64
struct coll_wait {
    const char *operation;  /* "allreduce", "connect"; NULL: none is in progress */
    uint64_t round, number; /* of the operation, counted from 1 in each round: has it moved? */
    uint64_t progress;      /* grows with every byte that moves, and every peer that is met */
    uint64_t missing[COLL_MISSING_MAX]; /* incarnations */
    size_t missing_count;
};
void coll_wait_look(struct coll *coll, struct coll_wait *ret_wait);

#endif
