#include "collectives/reduce/reduce.h"

#include "base/panic.h"
#include "collectives/reduce/half.h"
#include "collectives/reduce/kernels.h"

#include <math.h>
#include <string.h>

/* Numbers that are taken through all steps at a time: two blocks of the widest stay in the L1 cache
 * beside what is read and written. */
#define BLOCK 1024

struct type_facts {
    const char *name;
    size_t bytes;
};

static const struct type_facts types[REDUCE_TYPES] = {
    [HVD_UINT8] = {"uint8",     1},
      [HVD_INT8] = { "int8",     1},
    [HVD_INT32] = { "int32",    4},
      [HVD_INT64] = { "int64",    8},
    [HVD_FLOAT16] = { "float16",  2},
      [HVD_BFLOAT16] = { "bfloat16", 2},
    [HVD_FLOAT32] = { "float32",  4},
      [HVD_FLOAT64] = { "float64",  8},
};

static const char *const ops[REDUCE_OPS] = {
    [HVD_SUM] = "sum", [HVD_AVERAGE] = "average", [HVD_MIN] = "min",
    [HVD_MAX] = "max", [HVD_PRODUCT] = "product",
};

size_t reduce_type_bytes(hvd_dtype type)
{
    return (size_t)type < REDUCE_TYPES ? types[type].bytes : 0;
}

const char *reduce_type_name(hvd_dtype type)
{
    return (size_t)type < REDUCE_TYPES ? types[type].name : "?";
}

const char *reduce_op_name(hvd_op op)
{
    return (size_t)op < REDUCE_OPS ? ops[op] : "?";
}

bool reduce_type_is_real(hvd_dtype type)
{
    return type == HVD_FLOAT16 || type == HVD_BFLOAT16 || type == HVD_FLOAT32 ||
           type == HVD_FLOAT64;
}

bool reduce_knows(hvd_dtype type, hvd_op op)
{
    return reduce_type_bytes(type) && (size_t)op < REDUCE_OPS;
}

hvd_dtype reduce_work_type(const struct reduction *how)
{
    if (how->type == HVD_FLOAT16 || how->type == HVD_BFLOAT16)
        return HVD_FLOAT32;
    if (how->op == HVD_AVERAGE && !reduce_type_is_real(how->type))
        return HVD_INT64;
    return how->type;
}

size_t reduce_work_bytes(const struct reduction *how)
{
    return types[reduce_work_type(how)].bytes;
}

/* ---- what is to be done to each block ---- */

struct plan {
    const struct reduction *how;
    const struct reduce_kernels *kernels;
    reduce_two_fn *two;
    hvd_dtype work;
    size_t bytes, work_bytes; /* of one number */
    bool same;                /* work is done in the type itself */
    bool prescaled, postscaled;
    double divisor, factor; /* of an average: one of them, the other is 1 */
    bool summed;            /* the last step of a sum may do all that is left to do */
};

/* A number over a power of two is the number times its inverse, to the bit, and that is quicker. */
static void divide_or_multiply(struct plan *plan)
{
    uint32_t size = plan->how->op == HVD_AVERAGE ? plan->how->size : 1;
    bool inverse = plan->work != HVD_INT64 && (size & (size - 1)) == 0;

    plan->divisor = inverse ? 1 : size;
    plan->factor = inverse ? 1.0 / size : 1;
}

static struct plan plan_for(const struct reduction *how)
{
    bool real = reduce_type_is_real(how->type);
    struct plan plan = { .how = how, .kernels = reduce_kernels(), .work = reduce_work_type(how) };

    ASSERT(reduce_knows(how->type, how->op) && (how->op != HVD_AVERAGE || how->size));
    plan.two = plan.kernels->two[plan.work][how->op];
    plan.bytes = types[how->type].bytes;
    plan.work_bytes = types[plan.work].bytes;
    plan.same = plan.work == how->type;
    plan.prescaled = real && how->prescale != 1;
    plan.postscaled = real && how->postscale != 1;
    divide_or_multiply(&plan);
    plan.summed = real && !plan.prescaled && !plan.postscaled &&
                  (how->op == HVD_SUM || how->op == HVD_AVERAGE);
    return plan;
}

/* Room for a block of any work type. */
struct block {
    _Alignas(64) unsigned char bytes[BLOCK * sizeof(int64_t)];
};

static const void *from_at(const void *from, size_t first, size_t bytes)
{
    return (const unsigned char *)from + first * bytes;
}

static void *to_at(void *to, size_t first, size_t bytes)
{
    return (unsigned char *)to + first * bytes;
}

static size_t block_at(size_t first, size_t count)
{
    return count - first < BLOCK ? count - first : BLOCK;
}

static void widen(const struct plan *plan, void *work, const void *from, size_t count)
{
    if (!plan->same) {
        plan->kernels->widen[plan->how->type](work, from, count);
        from = work;
    }
    if (plan->prescaled)
        plan->kernels->multiply[plan->work](work, from, count, plan->how->prescale);
    else if (work != from)
        memcpy(work, from, count * plan->work_bytes);
}

/* The average, and scaled. */
static void settle(const struct plan *plan, void *work, size_t count)
{
    if (plan->divisor != 1)
        plan->kernels->divide[plan->work](work, work, count, plan->divisor);
    if (plan->factor != 1)
        plan->kernels->multiply[plan->work](work, work, count, plan->factor);
    if (plan->postscaled)
        plan->kernels->multiply[plan->work](work, work, count, plan->how->postscale);
}

static void narrow(const struct plan *plan, void *to, void *work, size_t count)
{
    settle(plan, work, count);
    if (!plan->same)
        plan->kernels->narrow[plan->how->type](to, work, count);
    else if (to != work)
        memcpy(to, work, count * plan->bytes);
}

/* Numbers from `first` on of each of from[], into work. */
static void gather(const struct plan *plan, void *work, const void *const *from, size_t from_count,
                   size_t first, size_t count)
{
    bool direct = plan->same && !plan->prescaled;
    const void *left = from_at(from[0], first, plan->bytes);
    struct block other;

    if (!direct || from_count == 1) {
        widen(plan, work, left, count);
        left = work;
    }
    for (size_t i = 1; i < from_count; i++) {
        const void *right = from_at(from[i], first, plan->bytes);

        if (direct) {
            plan->two(work, left, right, count);
        } else if (plan->summed) {
            plan->kernels->add[plan->how->type](work, left, right, count);
        } else {
            widen(plan, other.bytes, right, count);
            plan->two(work, left, other.bytes, count);
        }
        left = work;
    }
}

/* Of sums the last step does the rest. */
static void finish_sum(const struct plan *plan, void *to, const void *const *from,
                       size_t from_count, size_t first, size_t count)
{
    const struct reduce_last *last = &plan->kernels->last_two[plan->how->type];
    const void *left = from_at(from[0], first, plan->bytes);
    const void *right = from_at(from[from_count - 1], first, plan->bytes);
    struct block work;

    if (from_count > 2) {
        last = &plan->kernels->last[plan->how->type];
        gather(plan, work.bytes, from, from_count - 1, first, count);
        left = work.bytes;
    }
    if (plan->divisor != 1)
        last->over(to, left, right, count, plan->divisor);
    else if (plan->factor != 1 || !plan->same)
        last->times(to, left, right, count, plan->factor);
    else
        plan->two(to, left, right, count);
}

/* What is written may be any of from[]: of each block all are read before, but for the last. */
static void finish(const struct plan *plan, void *to, const void *const *from, size_t from_count,
                   size_t first, size_t count)
{
    const void *last = from_at(from[from_count - 1], first, plan->bytes);
    const void *left = from_at(from[0], first, plan->bytes);
    struct block work;

    if (!plan->same || plan->prescaled || from_count == 1) {
        gather(plan, work.bytes, from, from_count, first, count);
        narrow(plan, to, work.bytes, count);
        return;
    }
    if (from_count > 2) {
        gather(plan, work.bytes, from, from_count - 1, first, count);
        left = work.bytes;
    }
    plan->two(to, left, last, count);
    settle(plan, to, count);
}

/* ---- the contract ---- */

void reduce_widen(void *work, const void *from, size_t count, const struct reduction *how)
{
    struct plan plan = plan_for(how);

    for (size_t i = 0; i < count; i += BLOCK)
        widen(&plan, to_at(work, i, plan.work_bytes), from_at(from, i, plan.bytes),
              block_at(i, count));
}

void reduce_two(void *into, const void *left, const void *right, size_t count,
                const struct reduction *how)
{
    struct plan plan = plan_for(how);

    plan.two(into, left, right, count);
}

void reduce_narrow(void *to, void *work, size_t count, const struct reduction *how)
{
    struct plan plan = plan_for(how);

    for (size_t i = 0; i < count; i += BLOCK)
        narrow(&plan, to_at(to, i, plan.bytes), to_at(work, i, plan.work_bytes),
               block_at(i, count));
}

void reduce_gather(void *work, const void *const *from, size_t from_count, size_t count,
                   const struct reduction *how)
{
    struct plan plan = plan_for(how);

    ASSERT(from_count);
    for (size_t i = 0; i < count; i += BLOCK)
        gather(&plan, to_at(work, i, plan.work_bytes), from, from_count, i, block_at(i, count));
}

void reduce_finish(void *const *to, size_t to_count, const void *const *from, size_t from_count,
                   size_t count, const struct reduction *how)
{
    struct plan plan = plan_for(how);

    ASSERT(from_count && to_count);
    for (size_t i = 0; i < count; i += BLOCK) {
        void *first = to_at(to[0], i, plan.bytes);
        size_t block = block_at(i, count);

        if (plan.summed && from_count > 1)
            finish_sum(&plan, first, from, from_count, i, block);
        else
            finish(&plan, first, from, from_count, i, block);
        for (size_t other = 1; other < to_count; other++) /* from the L1 cache */
            if (to[other] != to[0])
                memcpy(to_at(to[other], i, plan.bytes), first, block * plan.bytes);
    }
}

/* ---- what changes nothing ---- */

/* Once it has been prescaled, that is. */
static double real_identity(const struct reduction *how)
{
    switch (how->op) {
    case HVD_MIN: return how->prescale < 0 ? -INFINITY : INFINITY;
    case HVD_MAX: return how->prescale < 0 ? INFINITY : -INFINITY;
    case HVD_PRODUCT: return how->prescale != 0 ? 1 / how->prescale : 1;
    default: return 0;
    }
}

static int64_t whole_identity(const struct reduction *how)
{
    size_t bits = types[how->type].bytes * 8;
    int64_t least = how->type == HVD_UINT8 ? 0 : -(INT64_C(1) << (bits - 2)) * 2;
    int64_t greatest = how->type == HVD_UINT8 ? UINT8_MAX : -(least + 1);

    switch (how->op) {
    case HVD_MIN: return greatest;
    case HVD_MAX: return least;
    case HVD_PRODUCT: return 1;
    default: return 0;
    }
}

/* One number, as it lies in memory. */
static void put_identity(unsigned char *number, const struct reduction *how)
{
    int64_t whole = whole_identity(how);
    int32_t shorter = (int32_t)whole;
    double real = real_identity(how);
    float single = (float)real;
    uint16_t half = how->type == HVD_FLOAT16 ? half_from_float(single) : bfloat_from_float(single);

    switch (how->type) {
    case HVD_UINT8:
    case HVD_INT8: number[0] = (unsigned char)whole; break;
    case HVD_INT32: memcpy(number, &shorter, sizeof(shorter)); break;
    case HVD_INT64: memcpy(number, &whole, sizeof(whole)); break;
    case HVD_FLOAT16:
    case HVD_BFLOAT16: memcpy(number, &half, sizeof(half)); break;
    case HVD_FLOAT32: memcpy(number, &single, sizeof(single)); break;
    case HVD_FLOAT64: memcpy(number, &real, sizeof(real)); break;
    }
}

void reduce_identity(void *to, size_t count, const struct reduction *how)
{
    unsigned char number[sizeof(int64_t)];
    size_t bytes = types[how->type].bytes;

    put_identity(number, how);
    for (size_t i = 0; i < count; i++)
        memcpy(to_at(to, i, bytes), number, bytes);
}
