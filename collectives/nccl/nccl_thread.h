/*
 * nccl_thread.h: the thread that makes all NCCL calls for one device, so that two calls never run
 * at the same time. The thread also waits for the device, so that no other thread has to poll it.
 *
 *     comm_begin ──► STARTING ──► READY ──comm_run, again and again──► comm_free
 *                        └─► FAILED          comm_revoke, at any time
 *
 * A communicator belongs to one round and is never repaired. After the death of a member a kernel
 * may wait on the device for ever: comm_revoke ends the kernel. An abort gives back the memory of a
 * communicator. It may wait for long, so it runs on a second thread, the aborter.
 */
#ifndef COLLECTIVES_NCCL_THREAD_H
#define COLLECTIVES_NCCL_THREAD_H

#include "collectives/coll.h"
#include "gpu/device.h"
#include "gpu/nccl.h"

/* Called once when the device is stuck: a revoke or an abort has taken longer than bound_us; or
 * another call of NCCL or the driver has taken longer, while a communicator was being ended; or the
 * CUDA driver no longer knows what runs on the device. The calling thread is one of this module, or
 * one that waits in comm_settle or nccl_thread_close. The callback must not wait and must not call
 * this module. The process must be replaced, and can be ended without closing anything. */
typedef void nccl_thread_stuck_fn(void *arg, const char *why);

struct nccl_thread_options {
    const struct gpu_device *device;
    /* the longest that a revoke, an abort, or a call of NCCL or the CUDA driver may take */
    int64_t bound_us;
    nccl_thread_stuck_fn *stuck;
    void *arg;
};

struct nccl_thread;

/* Starts the NCCL thread of a device, the aborter and the watchdog. HVD_E_UNSUPPORTED: no NCCL. */
int nccl_thread_open(const struct nccl_thread_options *options, struct nccl_thread **ret_thread,
                     struct hvd_err *err) MUST_CHECK;
/* Closes the thread after the last communicator is freed; waits for the communicators' aborts.
 * Stuck communicators are left as they are. */
void nccl_thread_close(struct nccl_thread *thread);

/* ---- one communicator ------------------------------------------------------------------------ */

struct comm;

/* Makes the id of a communicator for one round of one group. The caller must live until the
 * communicator is READY: NCCL starts a thread for each id that listens until all members have come.
 * If an id is never used, because the other members could not be told, its thread and socket remain
 * until the process ends: NCCL has no call that takes an id back. It has not been tested whether an
 * abort before all members have come ends that thread. */
int comm_make_id(struct nccl_thread *thread, struct nccl_id *ret_id,
                 struct hvd_err *err) MUST_CHECK;

struct comm_spec {
    struct nccl_id id;
    uint64_t round;      /* the communicator's round */
    uint32_t rank, size; /* this member's rank in the group, and the group's size */
};
/* Begins to make the communicator, in the background, and returns at once. */
int comm_begin(struct nccl_thread *thread, const struct comm_spec *spec, struct comm **ret_comm,
               struct hvd_err *err) MUST_CHECK;

/* comm_look, which any thread may call, returns the state at once; `ret_why` may be NULL.
 * comm_await waits while the state is STARTING, at most until `until_us`. */
enum comm_state { COMM_STARTING, COMM_READY, COMM_FAILED }; /* FAILED: also when revoked */
enum comm_state comm_look(struct comm *comm, struct hvd_err *ret_why);
enum comm_state comm_await(struct comm *comm, int64_t until_us);

/*
 * true: NCCL computes the same result as the CPU (except for rounding). Other calls go through the
 * host. The answer depends only on values that are equal on all members. false for:
 * - averages of integers: a sum in less than 64 bits would wrap around, and not every NCCL is known
 *   to divide a negative sum as the CPU path does, towards zero
 * - scales of a minimum, a maximum or a product
 * - scales whose product (with the size, for an average) does not fit into the type: NCCL
 *   multiplies each number by one factor of the type before the sum
 */
bool comm_knows(const struct coll_call *call, uint32_t size);

/* Runs a call, by one thread at a time; all members make the same calls. All memory belongs to the
 * device; comm_knows is true for the call; its arguments have been checked. `after`: a stream; the
 * call waits for all work that is queued in it so far. If `streamed` is true, comm_run returns when
 * the call is queued, and `after` waits for the result; otherwise comm_run returns when the result
 * is ready. HVD_E_REVOKED: the communicator was revoked; HVD_E_LOST: NCCL reports that a peer has
 * died; HVD_E_IO: NCCL or the driver has failed; HVD_E_NOMEM: no memory is left. After a failure
 * all members must revoke the communicator. A streamed call may fail after its return: then the
 * next call and comm_look say so. */
int comm_run(struct comm *comm, const struct coll_call *call, struct CUstream_st *after,
             bool streamed, struct hvd_err *err) MUST_CHECK;

/* Revokes the communicator: current and later calls return HVD_E_REVOKED, and NCCL stops the
 * kernels that run. Any thread may call this function, any number of times; it does not wait. */
void comm_revoke(struct comm *comm);

/* true: no launched call has been ended early so far; calls may still run. The result turns false
 * before the first launched call is ended early. Any thread may call this; it does not wait. */
bool comm_is_whole(struct comm *comm);

/* Waits until no kernel of the communicator runs on the device any more. Without a revoke the wait
 * takes as long as the other members take; after a revoke or a failure at most bound_us. 0, also
 * when calls have failed; HVD_E_TIMEOUT: the device is stuck, and `stuck` has been called. */
int comm_settle(struct comm *comm, struct hvd_err *err) MUST_CHECK;

/* Returns how many calls have ended on the device so far. Any thread may call this function. */
uint64_t comm_progress(const struct comm *comm);

/* Frees the communicator; no other thread may use it. An unsettled communicator is revoked. Its
 * memory is given back (aborted) only after nccl_thread_agreed, whose comment says why. */
void comm_free(struct comm *comm);

/* Says that all members are in this round and have settled the rounds before it. (A member that has
 * finished an operation with all other members in this round knows that.) Before this call a freed
 * communicator keeps its memory and NCCL's threads, because a kernel of another member may still
 * need them after this member's kernel has ended. Any thread may call this function;
 * nccl_thread_close does not need this call. */
void nccl_thread_agreed(struct nccl_thread *thread, uint64_t round);

#endif
