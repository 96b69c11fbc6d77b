/* collective.c: the collectives of hvd.h, in all their forms. What makes sense is said in call.h,
 * whose turn it is in rounds.h, what waits in requests.h. */
#include "collectives/shm/pool.h"
#include "worker/fail.h"
#include "worker/requests.h"
#include "worker/worker.h"

/* ---- calls ----------------------------------------------------------------------------------- */

int hvd_run(const hvd_call *call)
{
    struct worker *worker = worker_get();

    return worker ? requests_run(worker->rounds, call, fail_err()) : HVD_E_STATE;
}

int hvd_allreduce(const void *in, void *out, size_t count, hvd_dtype type, hvd_op op)
{
    return hvd_run(&(hvd_call){
        .kind = HVD_ALLREDUCE, .in = in, .out = out, .count = count, .type = type, .op = op });
}

int hvd_broadcast(void *buf, size_t count, hvd_dtype type, int root)
{
    return hvd_run(&(hvd_call){
        .kind = HVD_BROADCAST, .out = buf, .count = count, .type = type, .root = root });
}

int hvd_allgather(const void *in, size_t count, void *out, const size_t *counts, hvd_dtype type)
{
    return hvd_run(&(hvd_call){ .kind = HVD_ALLGATHER,
                                .in = in,
                                .count = count,
                                .out = out,
                                .counts = counts,
                                .type = type });
}

int hvd_reducescatter(const void *in, void *out, size_t count, const size_t *counts, hvd_dtype type,
                      hvd_op op)
{
    return hvd_run(&(hvd_call){ .kind = HVD_REDUCESCATTER,
                                .in = in,
                                .out = out,
                                .count = count,
                                .counts = counts,
                                .type = type,
                                .op = op });
}

int hvd_alltoall(const void *in, void *out, size_t count, hvd_dtype type)
{
    return hvd_run(
        &(hvd_call){ .kind = HVD_ALLTOALL, .in = in, .out = out, .count = count, .type = type });
}

int hvd_barrier(void)
{
    return hvd_run(&(hvd_call){ .kind = HVD_BARRIER });
}

int hvd_join(int *ret_last)
{
    return hvd_run(&(hvd_call){ .kind = HVD_JOIN, .last = ret_last });
}

/* ---- requests -------------------------------------------------------------------------------- */

int hvd_start(const hvd_call *call, hvd_request **ret_request)
{
    struct worker *worker = worker_get();

    if (!worker)
        return HVD_E_STATE;
    atomic_fetch_add_explicit(&worker->calls, 1, memory_order_relaxed);
    return requests_start(worker->rounds, call, ret_request, fail_err());
}

/* Asking again and again is no life: whoever does only that stands still. */
int hvd_test(hvd_request *request, int *ret_done)
{
    struct worker *worker = worker_get();

    return worker ? requests_test(worker->rounds, request, ret_done, fail_err()) : HVD_E_STATE;
}

int hvd_wait(hvd_request *request)
{
    struct worker *worker = worker_get();

    return worker ? requests_wait(worker->rounds, request, fail_err()) : HVD_E_STATE;
}

/* ---- groups ---------------------------------------------------------------------------------- */

int hvd_group_create(hvd_belongs_fn *belongs, void *arg, hvd_group **ret_group)
{
    struct worker *worker = worker_get();

    return worker ? groups_add(worker->groups, belongs, arg, ret_group, fail_err()) : HVD_E_STATE;
}

int hvd_group_create_of(const int *ranks, size_t count, hvd_group **ret_group)
{
    struct worker *worker = worker_get();

    return worker ? groups_add_ranks(worker->groups, ranks, count, ret_group, fail_err())
                  : HVD_E_STATE;
}

int hvd_group_rank(const hvd_group *group)
{
    struct worker *worker = worker_get();

    return worker ? rounds_group(worker->rounds, group, false, fail_err()) : HVD_E_STATE;
}

int hvd_group_size(const hvd_group *group)
{
    struct worker *worker = worker_get();

    return worker ? rounds_group(worker->rounds, group, true, fail_err()) : HVD_E_STATE;
}

/* ---- streams --------------------------------------------------------------------------------- */

int hvd_set_stream(struct CUstream_st *stream)
{
    struct worker *worker = worker_get();

    return worker ? gpu_use_stream(&worker->gpu, stream, fail_err()) : HVD_E_STATE;
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* Not the worker's: what it gives outlives hvd_shutdown. */
void *hvd_alloc(size_t bytes)
{
    return worker_is_fork() ? NULL : pool_alloc(bytes, fail_err());
}

/* A fork leaves it to the worker, whose it is. */
void hvd_free(void *memory)
{
    if (memory && !worker_is_fork())
        pool_free(memory);
}
