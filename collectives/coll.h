/*
 * coll.h: collectives between the members of one round. Each round has its own object. An object
 * that has failed is not repaired; the next round has a new object.
 *
 *     coll_create ──► coll_connect ──► coll_run, again and again ──► coll_settle ──► coll_free
 *                            coll_cancel, at any time
 *
 * One thread at a time may call these functions. Any thread may call coll_cancel, coll_refuse,
 * coll_is_whole and coll_wait_look. Every wait also ends when coll_cancel ends the round.
 */
#ifndef COLLECTIVES_COLL_H
#define COLLECTIVES_COLL_H

#include "collectives/call.h"
#include "collectives/engine.h"
#include "timeline/calls.h"

/* A member of the round, for coll_create, which copies the strings. */
struct coll_peer {
    uint64_t incarnation;
    const char *host;    /* peers with the same host share memory */
    const char *contact; /* NULL: the member has no contact and cannot be connected */
    /* the member's text about its GPU (coll_engine_device_text); NULL: the member uses no GPU */
    const char *device;
};

struct coll_roster { /* what the worker knows of a round, when its object is created */
    uint64_t round;
    uint32_t rank, size;
    const struct coll_peer *peers; /* in the order of ranks */
    const uint8_t *secret; /* LIMIT_ROUND_SECRET_BYTES, known to members only; unused for size 1 */
    size_t secret_length;
    /* the groups besides the group of all members; equal on all members */
    const struct coll_ranks *groups;
    size_t group_count;
    /* gets an event for each call; must outlive the round. NULL: no timeline */
    struct timeline *timeline;
};

struct coll;

/* Makes the object of a round, without connections. `engine` may be NULL for a round of size 1. */
int coll_create(struct coll_engine *engine, const struct coll_roster *roster,
                struct coll **ret_coll, struct hvd_err *err) MUST_CHECK;

/* Connects this member with its peers. All members call coll_connect at about the same time, in any
 * order. 0 on success; HVD_E_REVOKED: the round was cancelled; HVD_E_TIMEOUT, HVD_E_LOST: the err
 * names the first peer that could not be connected. */
int coll_connect(struct coll *coll, int64_t timeout_us, struct hvd_err *err) MUST_CHECK;

/* Waits until the GPUs of all members are connected too, or one of the GPUs cannot be. Either all
 * members call coll_await_device or none does, after coll_connect. For a round that is prepared
 * while another round trains. Afterwards the round can be used, unless it has failed. */
void coll_await_device(struct coll *coll, int64_t timeout_us);

/* Waits until no call of this round can touch device memory: then the round is settled, and all
 * memory belongs to the training program again. No other thread may be in a call. If the round has
 * failed, the work on the device is ended early; otherwise coll_settle waits for its end.
 * 0: settled.
 * HVD_E_REVOKED: settled; but a streamed call failed after it had returned, here or on a peer, and
 *     no call has reported the failure yet. All peers know of the failure now.
 * HVD_E_TIMEOUT, HVD_E_IO: not settled: the device does not end its work. The process must be
 *     replaced (engine.h). */
int coll_settle(struct coll *coll, struct hvd_err *err) MUST_CHECK;

/* Ends the round. Any thread may call coll_cancel, any number of times; it never waits. The
 * operation in progress and all later ones return HVD_E_REVOKED, in this process within 20 ms.
 * Peers that wait for this member get an error. */
void coll_cancel(struct coll *coll);

/* true: no operation on the device has been ended early so far; operations may still run. The
 * result turns false before the first operation is ended early. So if it is still true when the
 * device has done all its work, device memory holds the computed values. Waits for nothing. */
bool coll_is_whole(struct coll *coll);

/* Called by a member that makes no further call, after coll_settle: waits for all members with
 * which this member has called NCCL, because their kernels may still read memory of this process.
 * The wait ends early if another member makes a further call, and after the time that a GPU may
 * take (`gpu_bound_us` in engine.h). */
void coll_part(struct coll *coll);

/* Tells the peers that this member makes no further call, so that the end of this process is no
 * failure for them. Waits until that is sent, for no answer. Does nothing after a failure. */
void coll_bye(struct coll *coll);

/* Frees the object. The caller makes sure that no thread is in a call and that no thread calls
 * coll_cancel any more. The engine's reaper thread does the part of the work that takes time. */
void coll_free(struct coll *coll);

/* Runs one collective, as described in hvd.h. After any failure the object behaves as if it were
 * cancelled: calls return HVD_E_REVOKED. The death of a peer is HVD_E_REVOKED too, and the err
 * names the peer. HVD_E_MISMATCH: other members run a different operation; HVD_E_INVAL;
 * HVD_E_LIMIT; HVD_E_NOMEM. On device memory also HVD_E_IO, and HVD_E_UNSUPPORTED: the options
 * demand NCCL, but NCCL cannot be used. The next call reports a streamed call that fails later. */
int coll_run(struct coll *coll, const struct coll_call *call, struct hvd_err *err) MUST_CHECK;

/* Returns the number of groups of the round. A call of kind COLL_OPEN, which all members make,
 * opens a group; its number is what coll_group_count returned before the call. A closed group keeps
 * its number until the round ends. A round refuses to open more than LIMIT_OPENED groups. */
size_t coll_group_count(const struct coll *coll);

/* Ends the round because of an invalid call: the other members would wait for this member for ever.
 * Any thread may call coll_refuse. Returns the code for the caller: HVD_E_INVAL, or HVD_E_REVOKED
 * if the round had failed before. */
int coll_refuse(struct coll *coll, struct hvd_err *err, const char *format, ...) PRINTF_LIKE(3, 4);

/* coll_wait_look describes the operation in progress and the members that it waits for. Any thread
 * may call coll_wait_look, as long as the object exists. */
#define COLL_MISSING_MAX 64
struct coll_wait {
    const char *operation; /* "allreduce", "connect"; NULL: none is in progress */
    /* round and number of the operation; the number counts from 1 in a round */
    uint64_t round, number;
    uint64_t progress; /* grows with every byte sent or received, and every peer that connects */
    uint64_t missing[COLL_MISSING_MAX]; /* incarnations of the members that are waited for */
    size_t missing_count;
};
void coll_wait_look(struct coll *coll, struct coll_wait *ret_wait);

#endif
