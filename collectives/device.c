/*
 * device.c: a call on memory of a GPU. The members open it on the host, as every call. So the round
 * notices a member that is missing, has died, has joined or makes another call. With the opening
 * the members vote: NCCL carries the call if all members are ready for NCCL; otherwise the call
 * goes through the host (device_host.c). All members get the same votes, so all choose the same.
 *
 * Also here: the end of a round on the device. coll_settle waits until no call uses the program's
 * memory any more; coll_part lets the members leave the round together.
 */
#include "collectives/device.h"
#include "base/time.h"
#include "collectives/nccl/nccl_thread.h"
#include "collectives/reduce/reduce.h"

#include "os/clock.h"
#include "os/thread.h"

#include <inttypes.h>

/* The votes of a member on "can NCCL carry this call?", as indices of an array that counts the
 * members with each vote. DEVICE_STARTING is none of them: such a member counts nowhere. */
enum vote { VOTE_READY, VOTE_CANNOT, VOTE_NOT_BEGUN };
_Static_assert(VOTE_NOT_BEGUN + 1 == OPERATION_VOTES, "there is room for each");

/* Lets the members vote whether NCCL carries this call. *ret_nccl: true if every member of the
 * group has voted "ready". A rank that has joined (hvd_join) does not vote; so while a rank has
 * joined, calls go through the host. */
static int vote_on_nccl(struct passage *passage, bool *ret_nccl)
{
    struct coll *coll = passage->coll;
    struct coll_group *group = passage->group;
    enum device_comm_state state = device_comm_state(coll, group);
    int32_t size = (int32_t)group->group.size;
    const int32_t own[OPERATION_VOTES] = { [VOTE_READY] = state == DEVICE_READY,
                                           [VOTE_CANNOT] = state == DEVICE_CANNOT,
                                           [VOTE_NOT_BEGUN] = state == DEVICE_NOT_BEGUN };
    int32_t votes[OPERATION_VOTES];
    int rc = operation_vote(coll, group, passage->call, own, votes);

    if (rc ||
        passage->call->by_host) /* the fingerprint has `by_host`, so it is equal on all members */
        return rc;
    *ret_nccl = votes[VOTE_READY] == size && comm_knows(passage->call, group->group.size);
    if (votes[VOTE_CANNOT])
        /* NULL: this member does not know the reason, but another member does */
        device_give_up(group, NULL);
    /* NCCL begins in the background: this call goes through the host, and later calls use NCCL */
    else if (votes[VOTE_NOT_BEGUN] == size)
        rc = device_begin_comm(coll, group);
    if (!rc && *ret_nccl)
        device_remark(coll, group, DEVICE_READY);
    if (rc || *ret_nccl)
        return rc;
    device_remark(coll, group, state);
    /* With --gpu-operations nccl a call must not go through the host, except while NCCL is being
     * prepared. */
    if (group->nccl.given_up && coll->engine && coll->engine->options.gpu == COLL_GPU_NCCL)
        rc = err_set(passage->err, HVD_E_UNSUPPORTED,
                     "%s; give --gpu-operations auto, so that such collectives go through the host",
                     group->nccl.why.text);
    return rc;
}

/* The names under which coll_wait_look shows a call that NCCL carries. A call gets this name only
 * after the vote, in which all members have arrived. */
static const char *const nccl_names[] = {
    [COLL_ALLREDUCE] = "allreduce by NCCL", [COLL_BROADCAST] = "broadcast by NCCL",
    [COLL_ALLGATHER] = "allgather by NCCL", [COLL_REDUCESCATTER] = "reducescatter by NCCL",
    [COLL_ALLTOALL] = "alltoall by NCCL",
};

/* true: no call on a device was ended early by a revoke; calls may still run (coll.h). */
bool coll_is_whole(struct coll *coll)
{
    for (size_t i = 0; i < coll->group_count; i++) {
        struct comm *comm = atomic_load(&coll->groups[i].nccl.comm);

        if (comm && !comm_is_whole(comm))
            return false;
    }
    return true;
}

/* Returns the code of an NCCL call that has failed, with the text in err; 0: no call has failed by
 * itself, though calls may have been revoked. */
static int device_failure(struct coll *coll, struct hvd_err *err)
{
    for (size_t i = 0; i < coll->group_count; i++) {
        struct coll_comm *nccl = &coll->groups[i].nccl;
        struct hvd_err why = { .code = 0 };

        if (!atomic_load(&nccl->used) || comm_look(atomic_load(&nccl->comm), &why) != COMM_FAILED ||
            why.code == HVD_E_REVOKED)
            continue;
        return err_set(err, why.code, "%s", why.text);
    }
    return 0;
}

/* Fails the round because of an error of the GPU. When NCCL says HVD_E_LOST, a member is gone, but
 * NCCL does not say which one. Some other member may know the rank: so this function first waits
 * for a reason from the other members, and names no rank (MEET_NOBODY) if no reason comes. */
static void fail_by_device(struct coll *coll, int code, const char *why)
{
    uint32_t rank = code == HVD_E_LOST ? MEET_NOBODY : coll->rank;

    if (code == HVD_E_LOST) /* another member may send which member is gone, and why */
        coll_await_reason(coll);
    (void)coll_fail(coll, code, rank, "rank %u: %s", coll->rank, why);
}

/* Fails the round if a streamed call has failed on the device after its return (device.h). */
void device_notice(struct coll *coll)
{
    struct hvd_err why = { .code = 0 };

    if (!coll_has_failed(coll) && device_failure(coll, &why))
        fail_by_device(coll, why.code, why.text);
}

/* Runs a call on memory of a GPU (device.h): finds out whether NCCL carries the call, and then runs
 * it through NCCL or through the host. *ret_by: which of the two, as text for the timeline. */
int device_run(struct coll *coll, struct coll_group *group, const struct coll_call *call,
               const char **ret_by)
{
    struct hvd_err why = { .text = "" };
    struct passage passage = { .coll = coll, .group = group, .call = call, .err = &why };
    struct coll_comm *comm = &group->nccl;
    bool nccl = false;
    int64_t begun_us;
    int rc = coll->engine ? coll_engine_use_device(coll->engine, call->device, &why) : 0;

    if (!rc && group->group.size > 1)
        rc = vote_on_nccl(&passage, &nccl);
    /* The fingerprint does not contain the counts of an alltoall. A kernel that gets less than it
     * expects would wait for ever, so the counts are compared here. */
    if (!rc && call->kind == COLL_ALLTOALL && call->counts)
        rc = alltoall_agree(coll, group, call, &passage.most);
    *ret_by = nccl ? "nccl" : "through the host";
    if (!rc && nccl) {
        atomic_store_explicit(&coll->activity.operation, nccl_names[call->kind],
                              memory_order_release);
        atomic_store(&comm->used, true);
        coll->by_nccl = true;
        begun_us = timeline_now_us(coll->timeline);
        rc = comm_run(atomic_load(&comm->comm), call, call->stream, call->streamed, &why);
        /* A streamed call returns as soon as NCCL has put it into the queue of the GPU. */
        timeline_phase(coll->timeline, call->streamed ? "queue" : "queue and NCCL", 0, begun_us,
                       timeline_now_us(coll->timeline));
    } else if (!rc) {
        rc = device_by_host(&passage);
    }
    if (rc && why.text[0])
        fail_by_device(coll, rc, why.text);
    return rc;
}

#define SETTLE_PAUSE_US (TIME_MS / 4) /* between two questions to the GPU */

/* The GPU does not end its work: the process will be replaced (coll_engine_stuck). Returns `code`,
 * with `why` in err. */
static int report_stuck(struct coll *coll, int code, const char *why, struct hvd_err *err)
{
    coll_engine_stuck(coll->engine, why);
    return err_set(err, code, "round %" PRIu64 ": %s", coll->round, why);
}

/* Waits until nothing of this round touches GPU memory any more (coll.h): first the calls of
 * NCCL, then the copies through the host. Last it looks for failures of calls that had already
 * returned to the program. */
int coll_settle(struct coll *coll, struct hvd_err *err)
{
    int64_t until_us = INT64_MAX;
    struct hvd_err why = { .text = "" };
    bool told;
    int rc = 0;

    for (size_t i = 0; i < coll->group_count && !rc; i++) {
        struct comm *comm = atomic_load(&coll->groups[i].nccl.comm);

        rc = comm ? comm_settle(comm, err) : 0;
    }
    if (rc)
        return rc;
    /* In a round that has not failed there is no time limit: copies that are queued behind the
     * program's own work take as long as that work takes. */
    while (coll->memory.staging && (rc = staging_idle(coll->memory.staging, &why)) == HVD_E_BUSY) {
        if (coll_has_failed(coll) && until_us == INT64_MAX)
            until_us = clock_now_us() + coll_engine_bound_us(coll->engine);
        if (clock_now_us() >= until_us)
            return report_stuck(coll, HVD_E_TIMEOUT,
                                "the GPU has not ended the copies of an operation within the time "
                                "of --gpu-timeout; "
                                "check the GPU with nvidia-smi, or give a longer time",
                                err);
        pthread_mutex_lock(&coll->mutex);
        (void)thread_cond_wait(&coll->changed, &coll->mutex, clock_now_us() + SETTLE_PAUSE_US);
        pthread_mutex_unlock(&coll->mutex);
    }
    if (rc)
        return report_stuck(coll, rc, why.text, err);
    /* A streamed call may have failed after its return. If this member makes no other call, no
     * call reports that failure. So it is looked for here, and the peers are told of it. */
    device_notice(coll);
    pthread_mutex_lock(&coll->mutex);
    told = coll->reported;
    pthread_mutex_unlock(&coll->mutex);
    /* 0 also if a call has reported the failure, or if all calls on the device have ended well */
    if (told || (coll_is_whole(coll) && !device_failure(coll, &why)) || !coll_failure(coll, &why))
        return 0;
    return err_set(err, HVD_E_REVOKED, "%s", why.text);
}

struct parting { /* shared by coll_part and its thread limit_waiting */
    struct coll *coll;
    bool done; /* true: coll_part has ended its wait; protected by the mutex of `coll` */
};

/* A thread that ends the wait of coll_part when the wait has taken longer than a GPU may take for
 * anything (coll_engine_bound_us). `done`: coll_part has ended by itself. This ends the wait in
 * this process alone; the other members do not notice it. */
static void *limit_waiting(void *arg)
{
    struct parting *parting = arg;
    struct coll *coll = parting->coll;
    int64_t until_us = clock_now_us() + coll_engine_bound_us(coll->engine);

    pthread_mutex_lock(&coll->mutex);
    while (!parting->done && clock_now_us() < until_us)
        (void)thread_cond_wait(&coll->changed, &coll->mutex, until_us);
    if (!parting->done && coll->circle.segment)
        segment_leave(coll->circle.segment);
    if (!parting->done && coll->circle.link)
        coll->circle.link->ops->cancel(coll->circle.link);
    pthread_mutex_unlock(&coll->mutex);
    return NULL;
}

/* Waits until all members have called coll_part, that is, until the calls of all members have
 * ended. A member that has its own result is still needed: threads of NCCL in its process send
 * the bytes that other members wait for. So no member may end these threads, or its process,
 * before all are ready. */
void coll_part(struct coll *coll)
{
    struct parting parting = { .coll = coll };
    pthread_t thread;
    int rc = 0;

    /* Without the thread that limits the wait this member does not wait at all. */
    if (!coll->by_nccl || coll_has_failed(coll) ||
        thread_start(&thread, 0, limit_waiting, &parting))
        return;
    /* A barrier (COLL_END) of each group that has called NCCL, in the order of the groups, which is
     * the same on all members. A barrier that fails only ends the waiting early. */
    for (size_t i = 0; i < coll->group_count && !rc; i++) {
        const struct coll_call call = { .kind = COLL_END, .group = i };

        if (atomic_load(&coll->groups[i].nccl.used))
            rc = operation_inside(coll, &coll->groups[i], &call);
    }
    pthread_mutex_lock(&coll->mutex);
    parting.done = true;
    pthread_cond_broadcast(&coll->changed);
    pthread_mutex_unlock(&coll->mutex);
    pthread_join(thread, NULL);
}
