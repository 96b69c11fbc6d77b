#include "collectives/nccl/calls.h"

#include "base/mem.h"
#include "collectives/nccl/hand.h"
#include "collectives/reduce/half.h"
#include "collectives/reduce/reduce.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* ---- in what numbers ---- */

static const int types[] = {
    [HVD_UINT8] = NCCL_UINT8,     [HVD_INT8] = NCCL_INT8,       [HVD_INT32] = NCCL_INT32,
    [HVD_INT64] = NCCL_INT64,     [HVD_FLOAT16] = NCCL_FLOAT16, [HVD_BFLOAT16] = NCCL_BFLOAT16,
    [HVD_FLOAT32] = NCCL_FLOAT32, [HVD_FLOAT64] = NCCL_FLOAT64,
};

static const int ops[] = {
    [HVD_SUM] = NCCL_SUM, [HVD_AVERAGE] = NCCL_AVERAGE, [HVD_MIN] = NCCL_MIN,
    [HVD_MAX] = NCCL_MAX, [HVD_PRODUCT] = NCCL_PRODUCT,
};

static bool reduces(const struct coll_call *call)
{
    return call->kind == COLL_ALLREDUCE || call->kind == COLL_REDUCESCATTER;
}

/* 0 stands for 1. */
static double scales_of(const struct coll_call *call)
{
    return (call->prescale != 0 ? call->prescale : 1) *
           (call->postscale != 0 ? call->postscale : 1);
}

static double factor_of(const struct coll_call *call, uint32_t size)
{
    return call->op == HVD_AVERAGE ? scales_of(call) / size : scales_of(call);
}

/* As a number that has all its digits. */
static bool holds(hvd_dtype type, double factor)
{
    double least = type == HVD_FLOAT16 ? 0x1p-14 : type == HVD_FLOAT64 ? DBL_MIN : FLT_MIN;
    double greatest = type == HVD_FLOAT16    ? 65504
                      : type == HVD_BFLOAT16 ? 0x1.fep127
                      : type == HVD_FLOAT32  ? FLT_MAX
                                             : DBL_MAX;

    return fabs(factor) >= least && fabs(factor) <= greatest;
}

bool comm_knows(const struct coll_call *call, uint32_t size)
{
    if (call->kind == COLL_BARRIER || call->kind == COLL_JOIN)
        return false;
    if (!reduces(call))
        return true;
    if (!reduce_type_is_real(call->type))
        return call->op != HVD_AVERAGE;
    if (scales_of(call) == 1)
        return true;
    return (call->op == HVD_SUM || call->op == HVD_AVERAGE) &&
           holds(call->type, factor_of(call, size));
}

static uint64_t factor_bytes(hvd_dtype type, double factor)
{
    float single = (float)factor;
    uint16_t half = type == HVD_FLOAT16 ? half_from_float(single) : bfloat_from_float(single);
    uint64_t bytes = 0;

    if (type == HVD_FLOAT16 || type == HVD_BFLOAT16)
        memcpy(&bytes, &half, sizeof(half));
    else if (type == HVD_FLOAT32)
        memcpy(&bytes, &single, sizeof(single));
    else
        memcpy(&bytes, &factor, sizeof(factor));
    return bytes;
}

static void plan_reduction(struct calls *calls, const struct coll_call *call, uint32_t size)
{
    calls->op = ops[call->op];
    calls->scaled = reduce_type_is_real(call->type) && scales_of(call) != 1;
    if (calls->scaled)
        calls->factor = factor_bytes(call->type, factor_of(call, size));
}

/* ---- in what steps ---- */

/* The room is there. None for nothing. */
static void add(struct calls *calls, enum step_kind kind, uint32_t peer, const void *in, void *out,
                size_t count)
{
    if (count)
        calls->steps[calls->count++] =
            (struct step){ .kind = kind, .peer = (int)peer, .in = in, .out = out, .count = count };
}

static const void *in_at(const struct coll_call *call, size_t first)
{
    return (const uint8_t *)call->in + first * reduce_type_bytes(call->type);
}

static void *out_at(const struct coll_call *call, size_t first)
{
    return (uint8_t *)call->out + first * reduce_type_bytes(call->type);
}

static void plan_allreduce(struct calls *calls, const struct coll_call *call)
{
    if (!call->pieces)
        add(calls, STEP_ALLREDUCE, 0, call->in, call->out, call->count);
    for (size_t i = 0; call->pieces && i < call->piece_count; i++)
        add(calls, STEP_ALLREDUCE, 0, call->pieces[i].in, call->pieces[i].out,
            call->pieces[i].count);
}

/* Counts that are all the same are none, for what NCCL has a call of its own for. */
static bool is_even(const struct coll_call *call, uint32_t size)
{
    for (uint32_t i = 0; call->counts && i < size; i++)
        if (call->counts[i] != call->count)
            return false;
    return true;
}

static void plan_allgather(struct calls *calls, const struct coll_call *call, uint32_t rank,
                           uint32_t size)
{
    bool even = is_even(call, size);
    size_t at = 0;

    if (even)
        add(calls, STEP_ALLGATHER, 0, call->in, call->out, call->count);
    for (uint32_t i = 0; !even && i < size; i++) {
        const void *in = i == rank ? call->in : out_at(call, at);

        add(calls, STEP_BROADCAST, i, in, out_at(call, at), call->counts[i]);
        at += call->counts[i];
    }
}

static void plan_reducescatter(struct calls *calls, const struct coll_call *call, uint32_t rank,
                               uint32_t size)
{
    bool even = is_even(call, size);
    size_t at = 0;

    if (even)
        add(calls, STEP_REDUCESCATTER, 0, call->in, call->out, call->count);
    for (uint32_t i = 0; !even && i < size; i++) {
        add(calls, STEP_REDUCE, i, in_at(call, at), i == rank ? call->out : NULL, call->counts[i]);
        at += call->counts[i];
    }
}

static void plan_alltoall(struct calls *calls, const struct coll_call *call, uint32_t size)
{
    size_t from = 0, to = 0;

    for (uint32_t i = 0; i < size; i++) {
        size_t send = call->counts ? call->counts[i] : call->count;
        size_t receive = call->counts ? call->out_counts[i] : call->count;

        add(calls, STEP_SEND, i, in_at(call, from), NULL, send);
        add(calls, STEP_RECEIVE, i, NULL, out_at(call, to), receive);
        from += send;
        to += receive;
    }
}

static size_t most_steps(const struct coll_call *call, uint32_t size)
{
    if (call->kind == COLL_ALLTOALL)
        return 2 * (size_t)size;
    if (call->counts)
        return size;
    return call->pieces ? call->piece_count : 1;
}

static int make_room(struct calls *calls, size_t count)
{
    struct step *steps;

    if (count <= calls->room)
        return 0;
    steps = mem_zalloc_array(count, sizeof(*steps));
    if (!steps)
        return HVD_E_NOMEM;
    calls_release(calls);
    calls->steps = steps;
    calls->room = count;
    return 0;
}

void calls_init(struct calls *calls)
{
    *calls = (struct calls){ .steps = calls->few, .room = CALLS_FEW };
}

void calls_release(struct calls *calls)
{
    if (calls->steps != calls->few)
        mem_free(calls->steps);
    calls_init(calls);
}

int calls_plan(struct calls *calls, const struct coll_call *call, uint32_t rank, uint32_t size)
{
    int rc = make_room(calls, most_steps(call, size));

    if (rc)
        return rc;
    calls->name = accord_kind_name(call->kind);
    calls->count = 0;
    calls->scaled = calls->op_made = false;
    calls->type = types[call->type];
    if (reduces(call))
        plan_reduction(calls, call, size);
    switch (call->kind) {
    case COLL_ALLREDUCE: plan_allreduce(calls, call); break;
    case COLL_BROADCAST:
        add(calls, STEP_BROADCAST, call->root, call->out, call->out, call->count);
        break;
    case COLL_ALLGATHER: plan_allgather(calls, call, rank, size); break;
    case COLL_REDUCESCATTER: plan_reducescatter(calls, call, rank, size); break;
    case COLL_ALLTOALL: plan_alltoall(calls, call, size); break;
    default: break; /* comm_knows says no */
    }
    return 0;
}

/* ---- by NCCL ---- */

static int issue(const struct calls *calls, const struct step *step, const struct nccl *nccl,
                 struct ncclComm *comm, struct CUstream_st *stream)
{
    const void *in = step->in;
    void *out = step->out;
    int type = calls->type;

    switch (step->kind) {
    case STEP_ALLREDUCE:
        return nccl->allreduce(in, out, step->count, type, calls->op, comm, stream);
    case STEP_BROADCAST:
        return nccl->broadcast(in, out, step->count, type, step->peer, comm, stream);
    case STEP_REDUCE:
        return nccl->reduce(in, out, step->count, type, calls->op, step->peer, comm, stream);
    case STEP_ALLGATHER: return nccl->allgather(in, out, step->count, type, comm, stream);
    case STEP_REDUCESCATTER:
        return nccl->reducescatter(in, out, step->count, type, calls->op, comm, stream);
    case STEP_SEND: return nccl->send(in, step->count, type, step->peer, comm, stream);
    case STEP_RECEIVE: return nccl->recv(out, step->count, type, step->peer, comm, stream);
    }
    return NCCL_INTERNAL_ERROR;
}

static bool is_bad(int code)
{
    return code != NCCL_OK && code != NCCL_IN_PROGRESS;
}

/* A group that has begun is ended, whatever happens: it is a state of the thread. */
static int issue_all(struct calls *calls, const struct nccl *nccl, struct ncclComm *comm,
                     struct CUstream_st *stream)
{
    int code = nccl->group_start();
    int end;

    if (is_bad(code))
        return code;
    for (size_t i = 0; i < calls->count && !is_bad(code); i++)
        code = issue(calls, &calls->steps[i], nccl, comm, stream);
    end = nccl->group_end();
    return is_bad(code) ? code : end;
}

int calls_issue(struct calls *calls, const struct nccl *nccl, struct ncclComm *comm,
                struct CUstream_st *stream)
{
    int code = NCCL_OK;

    if (calls->scaled)
        code = nccl->make_scaled_sum(&calls->op, &calls->factor, calls->type, NCCL_SCALAR_ON_HOST,
                                     comm);
    if (is_bad(code))
        return code;
    calls->op_made = calls->scaled;
    return issue_all(calls, nccl, comm, stream);
}

int calls_forget_op(struct calls *calls, const struct nccl *nccl, struct ncclComm *comm)
{
    if (!calls->op_made)
        return NCCL_OK;
    calls->op_made = false;
    return nccl->free_op(calls->op, comm);
}
