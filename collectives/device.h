/*
 * device.h: calls on memory of a device.
 *
 *     device.c         do all mean the same, and which way do they go?
 *     device_host.c    through the host            staging.c     the memory for that
 *     device_group.c   by NCCL: for whom           nccl/         its communicators
 */
#ifndef COLLECTIVES_DEVICE_H
#define COLLECTIVES_DEVICE_H

#include "collectives/operation.h"
#include "collectives/staging.h"

/* ---- device.c -------------------------------------------------------------------------------- */

/* What has failed on the device since a streamed call had returned is a failure of the round, and
 * the next call's. */
void device_notice(struct coll *coll);

/* ret_by: what has carried it, for people. */
int device_run(struct coll *coll, struct coll_group *group, const struct coll_call *call,
               const char **ret_by) MUST_CHECK;

/* One call, on its way. */
struct passage {
    struct coll *coll;
    struct coll_group *group;
    const struct coll_call *call;
    struct staging *staging;
    struct hvd_err *err; /* of the device */
    size_t most;         /* ALLTOALL by counts: from any one to any other */
};

static inline cuda_address device_address(const void *at)
{
    return (cuda_address)(uintptr_t)at;
}

/* Until the slot's mark has come; HVD_E_REVOKED: the round has failed. */
int device_await(struct passage *passage, size_t slot) MUST_CHECK;

/* ---- device_host.c --------------------------------------------------------------------------- */

/* All but the rest is done when it returns: that is queued. The caller has entered the device. */
int device_by_host(struct passage *passage) MUST_CHECK;

/* ---- device_group.c -------------------------------------------------------------------------- */

/* Ties the members' devices together, if that can be: by all of them. */
int device_tie(struct coll *coll, struct coll_group *group) MUST_CHECK;

/* What this member can say of the group's communicator. CANNOT: in this round never again. Of the
 * owner. */
enum device_stand { DEVICE_UNTIED, DEVICE_STARTING, DEVICE_READY, DEVICE_CANNOT };
enum device_stand device_stand(struct coll *coll, struct coll_group *group);
/* why: NULL: a member of it has said so, who knows. */
void device_give_up(struct coll_group *group, const char *why);
/* To people, once in a round: calls go through the host, and why, if this member is to say so. */
void device_remark(const struct coll *coll, struct coll_group *group, enum device_stand stand);

/* For all groups of a round. Any thread, at once: */
void device_revoke_all(struct coll *coll);
/* How what was called by NCCL has failed, if it was not only revoked: 0, HVD_E_LOST, HVD_E_IO,
 * HVD_E_NOMEM. */
int device_failure(struct coll *coll, struct hvd_err *err) MUST_CHECK;
uint64_t device_progress(const struct coll_group *group);

/* With nobody inside: */
int device_settle_all(struct coll *coll, struct hvd_err *err) MUST_CHECK;
void device_free_all(struct coll *coll);
/* All members do the same thing in this round: so all have left what was before it. */
void device_agreed(struct coll *coll);

/* ---- engine_device.c ------------------------------------------------------------------------- */

/* For calls on memory of this device. */
int coll_staging(struct coll *coll, const struct gpu_device *device, struct staging **ret_staging,
                 struct hvd_err *err) MUST_CHECK;

#endif
