/*
 * collective.c: the functions of hvd.h for collectives, requests, groups, streams, news of the
 * round and shared memory.
 *
 * Called by the program. Each function finds the worker and passes the call on: call.h checks it,
 * rounds.h knows whether the caller may make it now, requests.h makes it.
 */
#include "collectives/shm/pool.h"
#include "worker/fail.h"
#include "worker/news.h"
#include "worker/requests.h"
#include "worker/rounds_groups.h"
#include "worker/worker.h"

/* ---- calls ----------------------------------------------------------------------------------- */

int hvd_run(const hvd_call *call)
{
    struct worker *worker = worker_enter();

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

/* Makes one of the two ragged collectives (each rank decides how much it gives). On success
 * *ret_out gets the memory with the result. `part` has the other fields of the call. If ret_out or
 * ret_counts is NULL, call.c refuses the call, as it refuses every wrong call. */
static int collective_ragged(const hvd_call *part, void **ret_out, size_t *ret_counts)
{
    hvd_received received = { .memory = NULL }; /* memory NULL: the library allocates the result */
    hvd_call call = *part;
    int rc;

    received.counts = ret_counts;
    call.received = ret_out ? &received : NULL;
    rc = hvd_run(&call);
    if (!rc && ret_out)
        *ret_out = received.data;
    return rc;
}

int hvd_allgather_ragged(const void *in, size_t count, hvd_dtype type, void **ret_out,
                         size_t *ret_counts)
{
    const hvd_call call = { .kind = HVD_ALLGATHER_RAGGED, .in = in, .count = count, .type = type };

    return collective_ragged(&call, ret_out, ret_counts);
}

int hvd_alltoall_ragged(const void *in, const size_t *counts, hvd_dtype type, void **ret_out,
                        size_t *ret_counts)
{
    const hvd_call call = { .kind = HVD_ALLTOALL_RAGGED, .in = in, .counts = counts, .type = type };

    return collective_ragged(&call, ret_out, ret_counts);
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

/* Starts a request. The count `calls` grows, because the watchdog, which looks for training loops
 * that make no progress, takes that for progress. */
int hvd_start(const hvd_call *call, hvd_request **ret_request)
{
    struct worker *worker = worker_enter();

    if (!worker)
        return HVD_E_STATE;
    atomic_fetch_add_explicit(&worker->calls, 1, memory_order_relaxed);
    return requests_start(worker->rounds, call, ret_request, fail_err());
}

/* A call of hvd_test does not count as progress of the training loop: a loop that calls nothing but
 * hvd_test waits for something, and the watchdog must report that. */
int hvd_test(hvd_request *request, int *ret_done)
{
    struct worker *worker = worker_enter();

    return worker ? requests_test(worker->rounds, request, ret_done, fail_err()) : HVD_E_STATE;
}

int hvd_wait(hvd_request *request)
{
    struct worker *worker = worker_enter();

    return worker ? requests_wait(worker->rounds, request, fail_err()) : HVD_E_STATE;
}

int hvd_wait_for(hvd_request *request, int64_t timeout_us)
{
    struct worker *worker = worker_enter();

    return worker ? requests_wait_for(worker->rounds, request, timeout_us, fail_err())
                  : HVD_E_STATE;
}

/* ---- groups ---------------------------------------------------------------------------------- */

/* Creates a group: before hvd_elastic_run begins the group is added for all rounds; afterwards
 * it is opened in the running round only. */
static int create_group(const struct group_rule *rule, hvd_group **ret_group)
{
    struct worker *worker = worker_enter();

    if (!worker)
        return HVD_E_STATE;
    if (groups_are_sealed(worker->groups))
        return rounds_open_group(worker->rounds, rule, ret_group, fail_err());
    return rule->listed
               ? groups_add_ranks(worker->groups, rule->ranks, rule->count, ret_group, fail_err())
               : groups_add(worker->groups, rule->belongs, rule->arg, ret_group, fail_err());
}

int hvd_group_create(hvd_belongs_fn *belongs, void *arg, hvd_group **ret_group)
{
    return create_group(&(struct group_rule){ .belongs = belongs, .arg = arg }, ret_group);
}

int hvd_group_create_of(const int *ranks, size_t count, hvd_group **ret_group)
{
    return create_group(&(struct group_rule){ .listed = true, .ranks = ranks, .count = count },
                        ret_group);
}

int hvd_group_open(const int *ranks, size_t count, uint64_t tag, hvd_group **ret_group)
{
    struct worker *worker = worker_enter();

    return worker ? rounds_open_apart(worker->rounds, ranks, count, tag, ret_group, fail_err())
                  : HVD_E_STATE;
}

int hvd_group_close(hvd_group *group)
{
    struct worker *worker = worker_enter();

    return worker ? rounds_close_group(worker->rounds, group, fail_err()) : HVD_E_STATE;
}

int hvd_group_rank(const hvd_group *group)
{
    struct worker *worker = worker_get();

    return worker ? rounds_group(worker->rounds, group, false /* the rank */, fail_err())
                  : HVD_E_STATE;
}

int hvd_group_size(const hvd_group *group)
{
    struct worker *worker = worker_get();

    return worker ? rounds_group(worker->rounds, group, true /* the size */, fail_err())
                  : HVD_E_STATE;
}

int hvd_set_stream(struct CUstream_st *stream)
{
    struct worker *worker = worker_enter();

    return worker ? gpu_use_stream(&worker->gpu, stream, fail_err()) : HVD_E_STATE;
}

/* ---- the running round ----------------------------------------------------------------------- */

int hvd_news(void)
{
    const struct worker *worker = worker_get();

    return worker ? rounds_news(worker->rounds) : HVD_E_STATE;
}

int hvd_news_fd(void)
{
    const struct worker *worker = worker_enter();

    return worker ? rounds_news_fd(worker->rounds, fail_err()) : HVD_E_STATE;
}

int hvd_revoke(const char *why)
{
    const struct worker *worker = worker_enter();

    if (!worker)
        return HVD_E_STATE;
    return rounds_revoke(worker->rounds, why && why[0] ? why : "the program gave no reason",
                         fail_err());
}

int hvd_fail(const char *text)
{
    const struct worker *worker = worker_enter();

    if (!worker)
        return HVD_E_STATE;
    if (!text)
        return fail(HVD_E_INVAL, "hvd_fail: the text is NULL; pass the reason in words");
    return rounds_keep_reason(worker->rounds, text, fail_err());
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* The memory does not belong to the worker (hvd_init makes one), so it outlives hvd_shutdown. NULL
 * also in a forked child. */
void *hvd_alloc(size_t bytes)
{
    fail_begin();
    return worker_is_fork() ? NULL : pool_alloc(bytes, fail_err());
}

/* Does nothing in a forked child: the memory belongs to the parent, which still uses it. */
void hvd_free(void *memory)
{
    if (memory && !worker_is_fork())
        pool_free(memory);
}
