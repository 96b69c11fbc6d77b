/*
 * dispatch.c: runs a whole operation by its kind. run.c calls it for the training program;
 * device*.c and other files call it for operations by which the members agree on something. Also
 * here: the votes of a call on memory of a GPU, the trials of an allreduce's algorithms, and the
 * operations of a rank that has joined.
 */
#include "collectives/dispatch.h"

#include <string.h>

/* Prepares the next operation of the group. An allreduce on host memory also gets its algorithm.
 * For a call on memory of a GPU only votes are reduced here: with the first algorithm of the list.
 */
static struct operation begin_operation(struct coll *coll, struct coll_group *group,
                                        const struct coll_call *call)
{
    struct operation operation = operation_make(coll, group, call);

    if (call->kind == COLL_ALLREDUCE && !call->device)
        allreduce_choose(&operation);
    return operation;
}

/* Ends an operation, and closes it on the lane (the links to the other hosts). When each algorithm
 * of this size class was timed often enough, which all members notice after the same operation,
 * they choose the fastest one. For that an allreduce finds, for each algorithm, the least time that
 * any member has measured. The least time is the true one, because the member that comes last to an
 * operation waits for no other member. */
static int end_operation(struct operation *operation, int rc)
{
    struct coll_group *group = operation->group;
    struct coll_call call = {
        .kind = COLL_ALLREDUCE, .type = HVD_FLOAT32, .op = HVD_MIN, .count = operation->algorithms
    };
    struct operation least;

    rc = lane_close(&group->lane, rc);
    if (rc || !allreduce_note(operation))
        return rc;
    call.out = trial_times(&group->trials, operation->bytes);
    call.in = call.out;
    least = begin_operation(operation->coll, group, &call);
    rc = lane_close(&group->lane, allreduce_run(&least));
    if (!rc) {
        trial_settle(&group->trials, operation->bytes, operation->algorithms);
        allreduce_tell_trials(operation);
    }
    return rc;
}

/* Runs the rest of a barrier after its opening; on one host the opening is the whole barrier.
 * Between hosts the first member of each host waits for the other hosts; the other members of the
 * host wait for their first member in a second board step. */
static int barrier_go_on(struct operation *operation)
{
    struct coll_group *group = operation->group;
    int rc = 0;

    if (group->group.host_count > 1 && group->group.local == 0)
        rc = lane_barrier(&group->lane);
    if (!rc)
        rc = operation_settle(operation);
    if (group->board && group->group.host_count > 1 && !rc)
        rc = board_step(group->board);
    if (group->board)
        group->turn = operation->turn + 1;
    return rc;
}

/* Runs one operation. The caller is already in a call of the program, so no other operation of the
 * group runs at the same time. */
int operation_inside(struct coll *coll, struct coll_group *group, const struct coll_call *call)
{
    struct operation operation = begin_operation(coll, group, call);
    int rc = HVD_E_INTERNAL;
    uint32_t last;

    switch (call->kind) {
    case COLL_ALLREDUCE: rc = allreduce_run(&operation); break;
    case COLL_BROADCAST: rc = broadcast_run(&operation); break;
    case COLL_ALLGATHER: rc = allgather_run(&operation); break;
    case COLL_REDUCESCATTER: rc = reducescatter_run(&operation); break;
    case COLL_ALLTOALL: rc = alltoall_run(&operation); break;
    case COLL_BARRIER:
    case COLL_END:
        rc = operation_open(&operation, &last);
        /* HVD_E_STATE: this member ends (COLL_END), but a member of another host makes a call. The
         * other members of this host learn that in the next board step, for which they wait: so
         * this member makes that step too. */
        if (rc == HVD_E_STATE && operation.on_lane && group->board)
            rc = board_step(group->board) ? HVD_E_REVOKED : rc;
        if (!rc)
            rc = barrier_go_on(&operation);
        break;
    case COLL_JOIN:             /* see operation_join */
    case COLL_ALLGATHER_RAGGED: /* see ragged_run */
    case COLL_ALLTOALL_RAGGED:  /* see ragged_run */
    case COLL_REDUCE:           /* see rooted_run */
    case COLL_GATHER:           /* see rooted_run */
    case COLL_SCATTER:          /* see rooted_run */
    case COLL_SEND:             /* see coll_transfer */
    case COLL_RECEIVE:          /* see coll_transfer */
    case COLL_OPEN:             /* see opened_run */
    case COLL_CLOSE: break;     /* see opened_run */
    }
    return end_operation(&operation, rc);
}

/* Opens a call on memory of a GPU with an allreduce of the members' votes (*ret_sums: their sums).
 * 0, or the code of a failed operation. */
int operation_vote(struct coll *coll, struct coll_group *group, const struct coll_call *call,
                   const int32_t own[OPERATION_VOTES], int32_t ret_sums[OPERATION_VOTES])
{
    int32_t sums[OPERATION_VOTES];
    const struct coll_call sum = { .kind = COLL_ALLREDUCE,
                                   .type = HVD_INT32,
                                   .op = HVD_SUM,
                                   .in = own,
                                   .out = sums,
                                   .count = OPERATION_VOTES };
    struct operation operation = begin_operation(coll, group, call);
    int rc;

    /* `call` is the allreduce of the votes; but the fingerprint, which the members compare, is that
     * of the call itself */
    operation.call = &sum;
    rc = lane_close(&group->lane, allreduce_run(&operation));
    if (!rc)
        memcpy(ret_sums, sums, sizeof(sums));
    return rc;
}

/* Runs hvd_join of this rank: the rank takes part in the operations of the other members, and gives
 * no numbers of its own to them, until all members have called hvd_join. Operations are counted.
 * `since`: this rank has called hvd_join instead of the operation with this count; the members
 * compare their counts, and so find the rank that called hvd_join last. */
int operation_join(struct coll *coll, struct coll_group *group, const struct coll_call *call)
{
    uint64_t since = group->number + 1;
    uint32_t last = 0;
    int rc = 0;

    while (!rc) {
        struct operation operation = begin_operation(coll, group, call);

        operation.joined = true;
        operation.fingerprint.last = coll->rank;
        operation.fingerprint.last_number = since;
        rc = operation_open(&operation, &last);
        if (rc == HVD_DONE) {
            group->turn = operation.turn + 1;
        } else if (!rc && operation.fingerprint.kind == COLL_ALLREDUCE) {
            if (!operation.fingerprint.on_device)
                allreduce_choose(&operation);
            rc = allreduce_go_on(&operation);
        } else if (!rc) {
            rc = barrier_go_on(&operation);
        }
        rc = end_operation(&operation, rc);
        /* All other members have said that they make no further call (COLL_END), so no operation
         * will follow: wait for the end of the round. */
        if (!rc && operation.fingerprint.kind == COLL_END)
            rc = operation_await_end(coll);
    }
    if (rc == HVD_DONE && call->ret_last)
        *call->ret_last = last;
    return rc == HVD_DONE ? 0 : rc;
}
