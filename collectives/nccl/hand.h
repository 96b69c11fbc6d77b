/*
 * hand.h: the thread that makes all calls of NCCL for one device, so that no two of them meet, and
 * that waits for the device, so that nobody else has to spin.
 *
 *     comm_begin ──► STARTING ──► READY ──comm_run, again and again──► comm_free
 *                        └─► FAILED          comm_revoke, at any time
 *
 * A communicator is of one round, and never repaired. What a death leaves of it on the device, a
 * kernel that waits for ever, is ended by comm_revoke; its memory is given back by an abort, on a
 * thread of its own, as that may wait.
 */
#ifndef COLLECTIVES_NCCL_HAND_H
#define COLLECTIVES_NCCL_HAND_H

#include "collectives/coll.h"
#include "gpu/device.h"
#include "gpu/nccl.h"

/* The device does not do what it is told: a revoke or an abort has taken longer than the bound, a
 * call has while something was to be ended, or the driver knows no more what runs on it. Once; by a
 * thread of ours, or the one that waits in comm_settle or hand_close; must not wait, and call
 * nothing of here. The process is of no more use: who ends it does not have to close anything. */
typedef void hand_stuck_fn(void *arg, const char *why);

struct hand_options {
    const struct gpu_device *device;
    int64_t bound_us; /* a revoke, an abort and any single call of NCCL or the driver */
    hand_stuck_fn *stuck;
    void *arg;
};

struct hand;

/* HVD_E_UNSUPPORTED: no NCCL. */
int hand_open(const struct hand_options *options, struct hand **ret_hand,
              struct hvd_err *err) MUST_CHECK;
/* After every comm of it; waits for their aborts, except for what is stuck, which stays as it is.
 */
void hand_close(struct hand *hand);

/* ---- one communicator ------------------------------------------------------------------------ */

struct comm;

/* For one round of one group; whoever asks must live until it is there: NCCL starts a thread for
 * each id, which listens until all members have come. An id that nobody uses, as the others could
 * not be told of it, leaves that thread and its socket to the end of the process: NCCL has no call
 * that takes an id back. What of them an abort ends before all have come is not yet tried on NCCL.
 */
int comm_make_id(struct hand *hand, struct nccl_id *ret_id, struct hvd_err *err) MUST_CHECK;

struct comm_spec {
    struct nccl_id id;
    uint64_t round;      /* see hand_agreed */
    uint32_t rank, size; /* in the group */
};
/* At once: it is made in the background. */
int comm_begin(struct hand *hand, const struct comm_spec *spec, struct comm **ret_comm,
               struct hvd_err *err) MUST_CHECK;

enum comm_state { COMM_STARTING, COMM_READY, COMM_FAILED }; /* FAILED: revoked, too */
enum comm_state comm_look(struct comm *comm,
                          struct hvd_err *ret_why);              /* any thread; why: or NULL */
enum comm_state comm_await(struct comm *comm, int64_t until_us); /* while it is STARTING */

/* Whether NCCL comes to the same as the CPU (but for rounding); what it does not goes through the
 * host. Depends only on what all members agree about. It does not know
 *     - averages of whole numbers: the sum of less than 64 bits would wrap around, and that every
 *       NCCL divides a negative one as we do, towards zero, is not known
 *     - scales of a minimum, a maximum or a product
 *     - scales that together (and with an average's size) are more or less than the type can hold:
 *       they become one factor of that type, which each number is multiplied by before the sum */
bool comm_knows(const struct coll_call *call, uint32_t size);

/* By one thread at a time; all members make the same calls. The call's memory is the device's; it
 * is one that comm_knows; what makes no sense has been refused before. after: what the call's data
 * waits for, queued in that stream so far. streamed: returns once it is queued, and `after` waits
 * for the result; else returns when the result is there. 0; HVD_E_REVOKED; HVD_E_LOST: NCCL says
 * that a peer is gone; HVD_E_IO, HVD_E_NOMEM. After a failure everybody revokes it. What failed
 * after a streamed call had returned is what the next one returns, and what comm_look says. */
int comm_run(struct comm *comm, const struct coll_call *call, struct CUstream_st *after,
             bool streamed, struct hvd_err *err) MUST_CHECK;

/* Any thread, any number of times, at once: what is in progress, and all that comes later, returns
 * HVD_E_REVOKED; what runs on the device ends. */
void comm_revoke(struct comm *comm);

/* Was nothing that it has launched ended before its end? What is found on the device while this is
 * true is what was computed: it turns false before anything is ended. Any thread, at once. */
bool comm_is_whole(struct comm *comm);

/* Until nothing of it runs on the device: of what was streamed, and of what was revoked. What has
 * not been revoked may take as long as the others let it; what has, or has failed, takes no longer
 * than the bound. 0, whatever its calls have come to; HVD_E_TIMEOUT: stuck has been called. */
int comm_settle(struct comm *comm, struct hvd_err *err) MUST_CHECK;

/* For whoever looks: grows with every call that has ended on the device. Any thread. */
uint64_t comm_progress(const struct comm *comm);

/* No thread is inside by then. It is aborted once the hand hears that all agree, and until then at
 * the service of neighbours whose kernels have not ended; if it is not settled it is revoked. */
void comm_free(struct comm *comm);

/* All members are in this round, and have settled all that is of those before it: who has done
 * something with all of them in it knows that. Until then what is freed keeps its memory, and what
 * NCCL does for it goes on: a kernel of a neighbour may still need it when our own has ended. Any
 * thread; hand_close does without. */
void hand_agreed(struct hand *hand, uint64_t round);

#endif
