/*
 * dispatch.h: whole operations. Each kind has a file of its own; dispatch.c starts an operation by
 * its kind.
 *
 *     run.c, device.c ──► dispatch.c ──► allreduce.c, broadcast.c, allgather.c, ...
 */
#ifndef COLLECTIVES_DISPATCH_H
#define COLLECTIVES_DISPATCH_H

#include "collectives/operation.h"

/* ---- the kinds: each function runs one operation and returns a code for coll_run ---- */

int allreduce_run(struct operation *operation) MUST_CHECK;
/* runs an allreduce on a rank that has joined (hvd_join): it takes part, without numbers */
int allreduce_go_on(struct operation *operation) MUST_CHECK;
int broadcast_run(struct operation *operation) MUST_CHECK;
int allgather_run(struct operation *operation) MUST_CHECK;
int reducescatter_run(struct operation *operation) MUST_CHECK;
int alltoall_run(struct operation *operation) MUST_CHECK;

/* Runs a whole allgather. Called by all members of the group. */
int allgather_whole(struct coll *coll, struct coll_group *group,
                    const struct coll_call *call) MUST_CHECK;
/* Runs an allgather that another operation needs first, for example to exchange counts. */
int allgather_before(struct operation *operation, const struct coll_call *call) MUST_CHECK;

/* In ragged.c. Runs a whole ragged operation, on memory of the host or of a GPU. *ret_by: "nccl" or
 * "through the host", for the timeline. */
int ragged_run(struct coll *coll, struct coll_group *group, const struct coll_call *call,
               const char **ret_by) MUST_CHECK;

/* In rooted.c. Runs a whole reduce, gather or scatter; *ret_by: as ragged_run. */
int rooted_run(struct coll *coll, struct coll_group *group, const struct coll_call *call,
               const char **ret_by) MUST_CHECK;

/* In opened.c. Opens or closes a group (COLL_OPEN, COLL_CLOSE). `all`: the group of all members. */
int opened_run(struct coll *coll, struct coll_group *all, const struct coll_call *call) MUST_CHECK;

/* Checks the counts of an alltoall on device memory. All members call it before the alltoall.
 * HVD_E_MISMATCH: one member gives another a count that the other does not expect. *ret_most: the
 * largest count between any two members. */
int alltoall_agree(struct coll *coll, struct coll_group *group, const struct coll_call *call,
                   size_t *ret_most) MUST_CHECK;

/* In mesh.c. Connects each member of the group with each other member; the group's mesh_lane then
 * has all members. */
int operation_mesh(struct operation *operation) MUST_CHECK;

/* ---- allreduce_choice.c ---- */

uint32_t allreduce_lanes(const struct operation *operation); /* how many lanes the operation uses */
/* chooses the algorithm of the operation */
void allreduce_choose(struct operation *operation);
/* notes the time of a trial; true: all algorithms have been tried */
bool allreduce_note(struct operation *operation);
/* reports the times of all algorithms after the members have settled (coll_tried_fn) */
void allreduce_tell_trials(const struct operation *operation);
/* true: the lane is opened later, by the first step of the allreduce, whose numbers the opening
 * message then also carries */
bool allreduce_opens_late(const struct operation *operation);

/* ---- dispatch.c ---- */

/* Runs a whole operation as a part of a call that this thread is already in. All members of the
 * group make this call. */
int operation_inside(struct coll *coll, struct coll_group *group,
                     const struct coll_call *call) MUST_CHECK;

/* Runs a join: the rank takes part in the operations of the other members, without numbers, until
 * all members have joined. */
int operation_join(struct coll *coll, struct coll_group *group,
                   const struct coll_call *call) MUST_CHECK;

/* Opens a call on device memory: compares the fingerprints, and adds up the votes of all members,
 * OPERATION_VOTES numbers each. Every member gets the sums. A rank that has joined does not vote.
 */
#define OPERATION_VOTES 3
int operation_vote(struct coll *coll, struct coll_group *group, const struct coll_call *call,
                   const int32_t own[OPERATION_VOTES],
                   int32_t ret_sums[OPERATION_VOTES]) MUST_CHECK;

/* In check.c. Checks the arguments of a call. An invalid call ends the round (coll_refuse). */
int coll_check_call(struct coll *coll, const struct coll_group *group, const struct coll_call *call,
                    struct hvd_err *err) MUST_CHECK;

#endif
