/*
 * device.h: calls on memory of a GPU.
 *
 *     device.c         do all members make the same call? does it go through NCCL or the host?
 *     device_host.c    a call through the host         staging.c   the host memory for it
 *     device_group.c   which groups use NCCL           nccl/       the communicators of NCCL
 */
#ifndef COLLECTIVES_DEVICE_H
#define COLLECTIVES_DEVICE_H

#include "collectives/dispatch.h"
#include "collectives/staging.h"

/* ---- device.c -------------------------------------------------------------------------------- */

/* Checks whether a streamed call has failed on the device after its return. If so, the round fails,
 * and the next call reports that failure. */
void device_notice(struct coll *coll);

/* Runs a call on device memory. *ret_by: "nccl" or "through the host", for the timeline. */
int device_run(struct coll *coll, struct coll_group *group, const struct coll_call *call,
               const char **ret_by) MUST_CHECK;

/* ---- device_host.c --------------------------------------------------------------------------- */

/* A call whose numbers are copied through host memory. */
struct passage {
    struct coll *coll;
    struct coll_group *group;
    const struct coll_call *call;
    struct staging *staging;
    struct hvd_err *err; /* gets the code and text of an error of the device */
    /* ALLTOALL with counts: the largest count that any member gives to another */
    size_t most;
};

int device_by_host(struct passage *passage) MUST_CHECK;

/* ---- device_group.c -------------------------------------------------------------------------- */

/* Begins the NCCL communicator of the group, if every member can use NCCL. All members of the group
 * make this call. */
int device_begin_comm(struct coll *coll, struct coll_group *group) MUST_CHECK;

/* The state of the group's communicator on this member. DEVICE_CANNOT stays for the whole round.
 * Only the owner thread calls this function. */
enum device_comm_state { DEVICE_NOT_BEGUN, DEVICE_STARTING, DEVICE_READY, DEVICE_CANNOT };
enum device_comm_state device_comm_state(struct coll *coll, struct coll_group *group);
/* Marks the group as unable to use NCCL in this round. why: the reason; NULL: another member cannot
 * use NCCL, and only that member knows the reason. */
void device_give_up(struct coll_group *group, const char *why);
/* Tells the operator, once in a round, that calls go through the host, and why. Only the member
 * that knows the reason tells it. */
void device_remark(const struct coll *coll, struct coll_group *group, enum device_comm_state state);
/* Returns a count that grows with every call of the group that has ended on the device. Any thread
 * may call this function. */
uint64_t device_progress(const struct coll_group *group);

/* In engine_device.c. Returns the host memory through which calls on this device copy their
 * numbers. */
int coll_staging(struct coll *coll, const struct gpu_device *device, struct staging **ret_staging,
                 struct hvd_err *err) MUST_CHECK;

#endif
