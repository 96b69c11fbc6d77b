/* device.c: calls on memory of a device. The opening is that of all calls: on the host, where a
 * member that is missing, dead, has joined or means something else is noticed. */
#include "collectives/device.h"
#include "base/time.h"
#include "collectives/nccl/hand.h"
#include "collectives/reduce/reduce.h"

#include "os/clock.h"
#include "os/thread.h"

#include <inttypes.h>
#include <sched.h>

/* Who waits for the device looks again and again for so long, then less often. */
#define SPIN_US        50
#define PAUSE_LEAST_US 20
#define PAUSE_MOST_US  TIME_MS

/* ---- waiting --------------------------------------------------------------------------------- */

/* true: the round has failed. */
static bool pause(struct coll *coll, int64_t since_us, int64_t *pause_us)
{
    int64_t now_us = clock_now_us();

    if (now_us - since_us < SPIN_US) {
        sched_yield();
        return coll_has_failed(coll);
    }
    *pause_us = *pause_us * 2 < PAUSE_MOST_US ? *pause_us * 2 : PAUSE_MOST_US;
    pthread_mutex_lock(&coll->mutex);
    if (!coll_has_failed(coll))
        (void)thread_cond_wait(&coll->changed, &coll->mutex, now_us + *pause_us);
    pthread_mutex_unlock(&coll->mutex);
    return coll_has_failed(coll);
}

int device_await(struct passage *passage, size_t slot)
{
    int64_t since_us = clock_now_us();
    int64_t pause_us = PAUSE_LEAST_US / 2;

    for (;;) {
        int rc = staging_look(passage->staging, slot, passage->err);

        if (rc != HVD_E_BUSY)
            return rc;
        if (pause(passage->coll, since_us, &pause_us))
            return HVD_E_REVOKED;
    }
}

/* ---- which way ------------------------------------------------------------------------------- */

enum vote { VOTE_READY, VOTE_CANNOT, VOTE_UNTIED }; /* how many members say so */
_Static_assert(VOTE_UNTIED + 1 == OPERATION_VOTES, "there is room for each");

/* Where NCCL is asked for, nothing else will do; but while it is being prepared. */
static int refuse_host(struct passage *passage)
{
    const struct coll *coll = passage->coll;

    if (!passage->group->no_comm || !coll->engine || coll->engine->options.gpu != COLL_GPU_NCCL)
        return 0;
    return err_set(passage->err, HVD_E_UNSUPPORTED,
                   "%s; give --gpu-operations auto to go through the host then",
                   passage->group->no_comm_why.text);
}

/* All members take the same way, as all see the same votes. Who has joined does not vote: so while
 * somebody has, they are never as many as the group has members. */
static int choose(struct passage *passage, bool *ret_nccl)
{
    struct coll *coll = passage->coll;
    struct coll_group *group = passage->group;
    enum device_stand stand = device_stand(coll, group);
    int32_t size = (int32_t)group->group.size;
    const int32_t own[OPERATION_VOTES] = { [VOTE_READY] = stand == DEVICE_READY,
                                           [VOTE_CANNOT] = stand == DEVICE_CANNOT,
                                           [VOTE_UNTIED] = stand == DEVICE_UNTIED };
    int32_t votes[OPERATION_VOTES];
    int rc = operation_vote(coll, group, passage->call, own, votes);

    if (rc)
        return rc;
    *ret_nccl = votes[VOTE_READY] == size && comm_knows(passage->call, group->group.size);
    if (votes[VOTE_CANNOT])
        device_give_up(group, NULL);
    else if (votes[VOTE_UNTIED] == size)
        rc = device_tie(coll, group);
    if (!rc && !*ret_nccl)
        device_remark(coll, group, stand);
    return rc || *ret_nccl ? rc : refuse_host(passage);
}

/* The opening does not know what an alltoall gives to whom, and a kernel that is given less than it
 * expects would wait for ever. */
static int agree_on_counts(struct passage *passage)
{
    const struct coll_call *call = passage->call;

    if (call->kind != COLL_ALLTOALL || !call->counts)
        return 0;
    return alltoall_agree(passage->coll, passage->group, call, &passage->most);
}

/* ---- doing it -------------------------------------------------------------------------------- */

static bool is_scaled(const struct coll_call *call)
{
    return call->prescale != 0 || call->postscale != 0;
}

static int copy(struct passage *passage, const void *from, void *to, size_t count)
{
    if (!count || from == to)
        return 0;
    return staging_copy(passage->staging, device_address(from), device_address(to),
                        count * reduce_type_bytes(passage->call->type), passage->err);
}

/* By who is alone in the group: what goes in comes out. */
static int copy_all(struct passage *passage)
{
    const struct coll_call *call = passage->call;
    int rc = 0;

    if (call->kind == COLL_BROADCAST)
        return 0;
    if (!call->pieces)
        return copy(passage, call->in, call->out, call->counts ? call->counts[0] : call->count);
    for (size_t i = 0; i < call->piece_count && !rc; i++)
        rc = copy(passage, call->pieces[i].in, call->pieces[i].out, call->pieces[i].count);
    return rc;
}

static int pass(struct passage *passage)
{
    const struct coll_call *call = passage->call;
    int rc = staging_after(passage->staging, call->stream, passage->err);

    if (rc)
        return rc;
    if (passage->group->group.size == 1 && !is_scaled(call))
        rc = copy_all(passage);
    else
        rc = device_by_host(passage);
    if (!rc && call->streamed)
        return staging_before(passage->staging, call->stream, passage->err);
    if (!rc)
        rc = staging_mark(passage->staging, 0, passage->err);
    return rc ? rc : device_await(passage, 0);
}

static int by_host(struct passage *passage)
{
    const struct gpu_device *device = passage->call->device;
    int rc = coll_staging(passage->coll, device, &passage->staging, passage->err);

    if (!rc)
        rc = gpu_enter(device, passage->err);
    if (rc)
        return rc;
    rc = pass(passage);
    gpu_leave(device);
    return rc;
}

/* For who looks on: all have come, so nobody is missing. */
static const char *const names[] = {
    [COLL_ALLREDUCE] = "allreduce by NCCL", [COLL_BROADCAST] = "broadcast by NCCL",
    [COLL_ALLGATHER] = "allgather by NCCL", [COLL_REDUCESCATTER] = "reducescatter by NCCL",
    [COLL_ALLTOALL] = "alltoall by NCCL",
};

static int by_nccl(struct passage *passage)
{
    const struct coll_call *call = passage->call;
    struct coll *coll = passage->coll;

    atomic_store_explicit(&coll->operation, names[call->kind], memory_order_release);
    atomic_store(&passage->group->used, true);
    coll->by_nccl = true;
    return comm_run(atomic_load(&passage->group->comm), call, call->stream, call->streamed,
                    passage->err);
}

static int fail(struct coll *coll, int code, const char *why)
{
    uint32_t rank = code == HVD_E_LOST ? MEET_NOBODY : coll->rank;

    if (code == HVD_E_LOST) /* who is gone, and why, is known better elsewhere */
        coll_await_reason(coll);
    return coll_fail(coll, code, rank, "rank %u: %s", coll->rank, why);
}

void device_notice(struct coll *coll)
{
    struct hvd_err why = { .code = 0 };

    if (!coll_has_failed(coll) && device_failure(coll, &why))
        (void)fail(coll, why.code, why.text);
}

int device_run(struct coll *coll, struct coll_group *group, const struct coll_call *call,
               const char **ret_by)
{
    struct hvd_err why = { .text = "" };
    struct passage passage = { .coll = coll, .group = group, .call = call, .err = &why };
    bool nccl = false;
    int rc = coll->engine ? coll_engine_use_device(coll->engine, call->device, &why) : 0;

    if (!rc && group->group.size > 1)
        rc = choose(&passage, &nccl);
    if (!rc)
        rc = agree_on_counts(&passage);
    *ret_by = nccl ? "nccl" : "through the host";
    if (!rc)
        rc = nccl ? by_nccl(&passage) : by_host(&passage);
    if (rc && why.text[0])
        (void)fail(coll, rc, why.text);
    return rc;
}

/* ---- the end --------------------------------------------------------------------------------- */

#define SETTLE_PAUSE_US (TIME_MS / 4)

static int stuck(struct coll *coll, int code, const char *why, struct hvd_err *err)
{
    coll_engine_stuck(coll->engine, why);
    return err_set(err, code, "round %" PRIu64 ": %s", coll->round, why);
}

/* Of a round that stands, what is queued behind the program's own work takes as long as that. */
static int settle_staging(struct coll *coll, struct hvd_err *err)
{
    int64_t until_us = INT64_MAX;
    struct hvd_err why = { .text = "" };
    int rc;

    while ((rc = staging_idle(coll->staging, &why)) == HVD_E_BUSY) {
        if (coll_has_failed(coll) && until_us == INT64_MAX)
            until_us = clock_now_us() + coll_engine_bound_us(coll->engine);
        if (clock_now_us() >= until_us)
            return stuck(coll, HVD_E_TIMEOUT, "the GPU does not end the copies that were begun",
                         err);
        pthread_mutex_lock(&coll->mutex);
        (void)thread_cond_wait(&coll->changed, &coll->mutex, clock_now_us() + SETTLE_PAUSE_US);
        pthread_mutex_unlock(&coll->mutex);
    }
    return rc ? stuck(coll, rc, why.text, err) : 0;
}

/* What was only queued when its call had returned may have come to nothing since, and its owner may
 * make no other call that could tell of it. The others wait for what has failed here. */
static int tell_late(struct coll *coll, struct hvd_err *err)
{
    struct hvd_err why;
    bool told;

    device_notice(coll);
    pthread_mutex_lock(&coll->mutex);
    told = coll->reported;
    pthread_mutex_unlock(&coll->mutex);
    if (told || (coll_is_whole(coll) && !device_failure(coll, &why)) || !coll_failure(coll, &why))
        return 0;
    return err_set(err, HVD_E_REVOKED, "%s", why.text);
}

int coll_settle(struct coll *coll, struct hvd_err *err)
{
    int rc = device_settle_all(coll, err);

    if (!rc && coll->staging)
        rc = settle_staging(coll, err);
    return rc ? rc : tell_late(coll, err);
}
