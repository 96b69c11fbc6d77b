/* collective.c: the collectives of hvd.h, held against what a program may ask for. */
#include "worker/fail.h"
#include "worker/worker.h"

static int begin(struct worker **ret_worker, struct coll **ret_coll)
{
    struct worker *worker = worker_get();
    int rc;

    if (!worker)
        return HVD_E_STATE;
    rc = rounds_get(worker->rounds, false, ret_coll, fail_err());
    if (rc)
        return rc;
    atomic_fetch_add_explicit(&worker->calls, 1, memory_order_relaxed);
    *ret_worker = worker;
    return 0;
}

static int end(struct worker *worker, int code)
{
    atomic_fetch_add_explicit(&worker->calls, 1, memory_order_relaxed);
    rounds_put(worker->rounds, code);
    return code;
}

int hvd_allreduce(const void *in, void *out, size_t count, hvd_dtype type, hvd_op op)
{
    struct worker *worker;
    struct coll *coll;
    int rc = begin(&worker, &coll);

    return rc ? rc : end(worker, coll_allreduce(coll, in, out, count, type, op, fail_err()));
}

int hvd_broadcast(void *buf, size_t count, hvd_dtype type, int root)
{
    struct worker *worker;
    struct coll *coll;
    int rc = begin(&worker, &coll);

    return rc ? rc
              : end(worker, coll_broadcast(coll, buf, count, type, (uint32_t)root, fail_err()));
}

int hvd_allgather(const void *in, size_t count, void *out, const size_t *counts, hvd_dtype type)
{
    struct worker *worker;
    struct coll *coll;
    int rc = begin(&worker, &coll);

    return rc ? rc : end(worker, coll_allgather(coll, in, count, out, counts, type, fail_err()));
}

int hvd_barrier(void)
{
    struct worker *worker;
    struct coll *coll;
    int rc = begin(&worker, &coll);

    return rc ? rc : end(worker, coll_barrier(coll, fail_err()));
}
