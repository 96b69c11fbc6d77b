/*
 * calls.c: turns a coll_call into calls of NCCL. comm.c plans the calls on the caller's thread;
 * comm_state.c issues them on the NCCL thread, as one group.
 */
#include "collectives/nccl/calls.h"

#include "base/mem.h"
#include "collectives/nccl/nccl_thread.h"
#include "collectives/reduce/facts.h"
#include "collectives/reduce/half.h"
#include "collectives/reduce/reduce.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* true: the call computes with its numbers; any other call only moves them. */
static bool reduces(const struct coll_call *call)
{
    return call->kind == COLL_ALLREDUCE || call->kind == COLL_REDUCESCATTER;
}

/* The product of both scales; a scale of 0 counts as 1, because the caller has given none. */
static double scales_of(const struct coll_call *call)
{
    return (call->prescale != 0 ? call->prescale : 1) *
           (call->postscale != 0 ? call->postscale : 1);
}

/* The factor by which NCCL multiplies each number before the sum: the product of the scales, for an
 * average divided by the number of members. */
static double factor_of(const struct coll_call *call, uint32_t size)
{
    return reduce_op(call->op)->averages ? scales_of(call) / size : scales_of(call);
}

/* true: NCCL computes the same result as the CPU (nccl_thread.h lists the cases). */
bool comm_knows(const struct coll_call *call, uint32_t size)
{
    double least, greatest, factor;

    if (call->kind == COLL_BARRIER || call->kind == COLL_JOIN)
        return false;
    if (!reduces(call))
        return true;
    if (reduce_op(call->op)->nccl == REDUCE_NOT_BY_NCCL ||
        reduce_type(call->type)->nccl == REDUCE_NOT_BY_NCCL)
        return false;
    if (!reduce_type_is_real(call->type))
        return !reduce_op(call->op)->averages;
    if (scales_of(call) == 1)
        return true;
    /* The type must hold the factor as a normal number: a subnormal number would lose digits. */
    least = call->type == HVD_FLOAT16 ? 0x1p-14 : call->type == HVD_FLOAT64 ? DBL_MIN : FLT_MIN;
    greatest = call->type == HVD_FLOAT16    ? 65504
               : call->type == HVD_BFLOAT16 ? 0x1.fep127
               : call->type == HVD_FLOAT32  ? FLT_MAX
                                            : DBL_MAX;
    factor = fabs(factor_of(call, size));
    return reduce_op(call->op)->combine == REDUCE_ADD && factor >= least && factor <= greatest;
}

/* Returns the bytes of the factor as one number of the type. NCCL reads them from host memory, as
 * many as the type has. */
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

/* Adds a step (one NCCL call) to the plan, which must have room for it. A step with `count` 0 is
 * left out. */
static void add_step(struct calls *calls, enum step_kind kind, uint32_t peer, const void *in,
                     void *out, size_t count)
{
    if (count)
        calls->steps[calls->count++] =
            (struct step){ .kind = kind, .peer = (int)peer, .in = in, .out = out, .count = count };
}

/* The address of number `first` of the call's input. */
static const void *in_at(const struct coll_call *call, size_t first)
{
    return (const uint8_t *)call->in + first * reduce_type_bytes(call->type);
}

/* The address of number `first` of the call's output. */
static void *out_at(const struct coll_call *call, size_t first)
{
    return (uint8_t *)call->out + first * reduce_type_bytes(call->type);
}

/* Plans an allgather or a reducescatter. NCCL has a call for equal counts only: for different
 * counts the plan is a broadcast from each member, or a reduce to each member. */
static void plan_parts(struct calls *calls, const struct coll_call *call, uint32_t rank,
                       uint32_t size)
{
    bool gathers = call->kind == COLL_ALLGATHER, even = true;
    size_t at = 0;

    for (uint32_t i = 0; call->counts && i < size; i++)
        even = even && call->counts[i] == call->count;
    if (even)
        add_step(calls, gathers ? STEP_ALLGATHER : STEP_REDUCESCATTER, 0, call->in, call->out,
                 call->count);
    for (uint32_t i = 0; !even && i < size; i++) {
        if (gathers)
            add_step(calls, STEP_BROADCAST, i, i == rank ? call->in : out_at(call, at),
                     out_at(call, at), call->counts[i]);
        else
            add_step(calls, STEP_REDUCE, i, in_at(call, at), i == rank ? call->out : NULL,
                     call->counts[i]);
        at += call->counts[i];
    }
}

/* Prepares an empty plan, which has room for CALLS_FEW steps without allocated memory. */
void calls_init(struct calls *calls)
{
    *calls = (struct calls){ .steps = calls->few, .room = CALLS_FEW };
}

/* Frees the memory of the plan; it is empty then, and can be used again. */
void calls_release(struct calls *calls)
{
    if (calls->steps != calls->few)
        mem_free(calls->steps);
    calls_init(calls);
}

/* Turns the call into the calls of NCCL that this rank makes (calls.h); calls_issue makes them
 * later, on the NCCL thread. The plan must not point into `call`, which may be gone by then. */
int calls_plan(struct calls *calls, const struct coll_call *call, uint32_t rank, uint32_t size)
{
    /* the most calls of NCCL that this call can become; an alltoall: a send and a receive for each
     * member */
    size_t most = call->kind == COLL_ALLTOALL ? 2 * (size_t)size
                  : call->counts              ? size
                  : call->pieces              ? call->piece_count
                                              : 1;
    size_t from = 0, to = 0;

    if (most > calls->room) {
        struct step *steps = mem_zalloc_array(most, sizeof(*steps));

        if (!steps)
            return HVD_E_NOMEM;
        calls_release(calls);
        calls->steps = steps;
        calls->room = most;
    }
    calls->name = coll_kind_name(call->kind);
    calls->count = 0;
    calls->scaled = calls->op_made = false;
    calls->type = reduce_type(call->type)->nccl;
    calls->unit = 1;
    /* NCCL lacks the type, and only moves these numbers: they are passed to it as bytes */
    if (calls->type == REDUCE_NOT_BY_NCCL) {
        calls->type = NCCL_UINT8;
        calls->unit = reduce_type_bytes(call->type);
    }
    if (reduces(call)) {
        calls->op = reduce_op(call->op)->nccl;
        calls->scaled = reduce_type_is_real(call->type) && scales_of(call) != 1;
        if (calls->scaled)
            calls->factor = factor_bytes(call->type, factor_of(call, size));
    }

    switch (call->kind) {
    case COLL_ALLREDUCE:
        if (!call->pieces)
            add_step(calls, STEP_ALLREDUCE, 0, call->in, call->out, call->count);
        for (size_t i = 0; call->pieces && i < call->piece_count; i++)
            add_step(calls, STEP_ALLREDUCE, 0, call->pieces[i].in, call->pieces[i].out,
                     call->pieces[i].count);
        break;
    case COLL_BROADCAST:
        if (!call->pieces)
            add_step(calls, STEP_BROADCAST, call->root, call->out, call->out, call->count);
        for (size_t i = 0; call->pieces && i < call->piece_count; i++)
            add_step(calls, STEP_BROADCAST, call->root, call->pieces[i].out, call->pieces[i].out,
                     call->pieces[i].count);
        break;
    case COLL_ALLGATHER:
    case COLL_REDUCESCATTER: plan_parts(calls, call, rank, size); break;
    case COLL_ALLTOALL: /* NCCL has no alltoall; the sends include one to the member itself */
        for (uint32_t i = 0; i < size; i++) {
            size_t send = call->counts ? call->counts[i] : call->count;
            size_t receive = call->counts ? call->out_counts[i] : call->count;

            add_step(calls, STEP_SEND, i, in_at(call, from), NULL, send);
            add_step(calls, STEP_RECEIVE, i, NULL, out_at(call, to), receive);
            from += send;
            to += receive;
        }
        break;
    default: break; /* comm_knows refuses all other kinds */
    }
    return 0;
}

/* true: NCCL has failed; in progress is no failure. */
static bool is_bad(int code)
{
    return code != NCCL_OK && code != NCCL_IN_PROGRESS;
}

/* Makes the planned calls, as one group of NCCL. A scaled sum needs an op of NCCL of its own, which
 * calls_forget_op destroys after the launch. */
int calls_issue(struct calls *calls, const struct nccl *nccl, struct ncclComm *comm,
                struct CUstream_st *stream)
{
    int type = calls->type, code = NCCL_OK, end;

    if (calls->scaled)
        code = nccl->make_scaled_sum(&calls->op, &calls->factor, type, NCCL_SCALAR_ON_HOST, comm);
    if (is_bad(code))
        return code;
    calls->op_made = calls->scaled;

    /* NCCL keeps a group that has begun in the thread, so the group must be ended even after an
     * error */
    code = nccl->group_start();
    if (is_bad(code))
        return code;
    for (size_t i = 0; i < calls->count && !is_bad(code); i++) {
        const struct step *step = &calls->steps[i];
        const void *in = step->in;
        void *out = step->out;
        size_t count = step->count * calls->unit;

        switch (step->kind) {
        case STEP_ALLREDUCE:
            code = nccl->allreduce(in, out, count, type, calls->op, comm, stream);
            break;
        case STEP_BROADCAST:
            code = nccl->broadcast(in, out, count, type, step->peer, comm, stream);
            break;
        case STEP_REDUCE:
            code = nccl->reduce(in, out, count, type, calls->op, step->peer, comm, stream);
            break;
        case STEP_ALLGATHER: code = nccl->allgather(in, out, count, type, comm, stream); break;
        case STEP_REDUCESCATTER:
            code = nccl->reducescatter(in, out, count, type, calls->op, comm, stream);
            break;
        case STEP_SEND: code = nccl->send(in, count, type, step->peer, comm, stream); break;
        case STEP_RECEIVE: code = nccl->recv(out, count, type, step->peer, comm, stream); break;
        }
    }
    end = nccl->group_end();
    return is_bad(code) ? code : end;
}

/* Destroys the op that calls_issue has made for a scale, if it has made one. Returns NCCL's code.
 */
int calls_forget_op(struct calls *calls, const struct nccl *nccl, struct ncclComm *comm)
{
    if (!calls->op_made)
        return NCCL_OK;
    calls->op_made = false;
    return nccl->free_op(calls->op, comm);
}
