/*
 * reduce.c: combines several arrays of numbers into one array, block by block: the numbers are
 * converted to the work type (widened), combined two by two, scaled, and converted back (narrowed).
 * The operations of collectives/ call it for each chunk. Facts about ops and types are in facts.c,
 * the loops are in kernels.c.
 *
 * The order of combining is that of the arguments on every machine, so the bits are the same
 * everywhere.
 */
#include "collectives/reduce/reduce.h"

#include "base/panic.h"
#include "collectives/reduce/half.h"
#include "collectives/reduce/kernels.h"

#include <math.h>
#include <string.h>

/* So many numbers go through all steps of a reduction (widen, combine, scale, narrow) at a time.
 * Two blocks of the widest type fit into the L1 cache together with the input and the output. */
#define BLOCK 1024

size_t reduce_type_bytes(hvd_dtype type)
{
    const struct reduce_type *facts = reduce_type(type);

    return facts ? facts->bytes : 0;
}

const char *reduce_type_name(hvd_dtype type)
{
    const struct reduce_type *facts = reduce_type(type);

    return facts ? facts->name : "?";
}

const char *reduce_op_name(hvd_op op)
{
    const struct reduce_op *facts = reduce_op(op);

    return facts ? facts->name : "?";
}

bool reduce_type_is_real(hvd_dtype type)
{
    const struct reduce_type *facts = reduce_type(type);

    return facts && facts->real;
}

bool reduce_is_op(hvd_op op)
{
    return reduce_op(op) != NULL;
}

/* true: numbers of this type can be reduced with this op: the table of kernels has a function for
 * both. All levels of instructions have the same functions, so the plain one answers for all. */
bool reduce_knows(hvd_dtype type, hvd_op op)
{
    const struct reduce_type *numbers = reduce_type(type);
    const struct reduce_op *how = reduce_op(op);

    return numbers && how && reduce_kernels_plain.two[numbers->work][how->combine];
}

/* Returns the type in which a reduction computes. AVERAGE has one of its own, as an average of
 * small integers needs a sum of 64 bits. */
hvd_dtype reduce_work_type(const struct reduction *how)
{
    const struct reduce_type *type = reduce_type(how->type);

    return reduce_op(how->op)->averages ? type->averages : type->work;
}

size_t reduce_work_bytes(const struct reduction *how)
{
    return reduce_type_bytes(reduce_work_type(how));
}

struct plan {
    const struct reduction *how;
    const struct reduce_kernels *kernels;
    reduce_two_fn *two;
    hvd_dtype work;
    size_t bytes, work_bytes; /* bytes of one number in its own type, in the work type */
    bool same;                /* true: the work type is the numbers' own type */
    bool prescaled, postscaled;
    /* AVERAGE: the sum is divided by `divisor` or multiplied by `factor`; the unused one is 1 */
    double divisor, factor;
    /* true: a sum or average without scales: its last step can also divide and narrow */
    bool summed;
};

/* Prepares a reduction: its work type, its kernels, and what must be done before and after the op.
 */
static struct plan plan_for(const struct reduction *how)
{
    const struct reduce_type *type = reduce_type(how->type);
    const struct reduce_op *op = reduce_op(how->op);
    struct plan plan = { .how = how, .kernels = reduce_kernels() };
    uint32_t size;
    bool inverse;

    ASSERT(type && op && (!op->averages || how->size));
    plan.work = reduce_work_type(how);
    plan.two = plan.kernels->two[plan.work][op->combine];
    plan.bytes = type->bytes;
    plan.work_bytes = reduce_type_bytes(plan.work);
    plan.same = plan.work == how->type;
    plan.prescaled = type->real && how->prescale != 1;
    plan.postscaled = type->real && how->postscale != 1;
    /* Dividing by a power of two gives the same bits as multiplying by its inverse, which is
     * faster. */
    size = op->averages ? how->size : 1;
    inverse = reduce_type(plan.work)->real && (size & (size - 1)) == 0;
    plan.divisor = inverse ? 1 : size;
    plan.factor = inverse ? 1.0 / size : 1;
    plan.summed = type->real && !plan.prescaled && !plan.postscaled && op->combine == REDUCE_ADD;
    return plan;
}

/* Memory for a block (BLOCK numbers) in any work type, of which the widest has 8 bytes. */
struct block {
    _Alignas(64) unsigned char bytes[BLOCK * sizeof(int64_t)];
};

/* from_at and to_at return the address of number `first` in an array of numbers of `bytes` bytes.
 */
static const void *from_at(const void *from, size_t first, size_t bytes)
{
    return (const unsigned char *)from + first * bytes;
}

static void *to_at(void *to, size_t first, size_t bytes)
{
    return (unsigned char *)to + first * bytes;
}

/* How many numbers the block has that begins at number `first` of `count`: the last may be shorter.
 */
static size_t block_length(size_t first, size_t count)
{
    return count - first < BLOCK ? count - first : BLOCK;
}

/* Converts one block to the work type and applies the prescale. `work` may be `from` if both types
 * are equal. */
static void widen_block(const struct plan *plan, void *work, const void *from, size_t count)
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

/* Divides a sum by the number of members if the op is AVERAGE, and applies the postscale. */
static void scale_result(const struct plan *plan, void *work, size_t count)
{
    if (plan->divisor != 1)
        plan->kernels->divide[plan->work](work, work, count, plan->divisor);
    if (plan->factor != 1)
        plan->kernels->multiply[plan->work](work, work, count, plan->factor);
    if (plan->postscaled)
        plan->kernels->multiply[plan->work](work, work, count, plan->how->postscale);
}

/* Scales the result in `work`, which is overwritten, and writes it to `to` in the numbers' own
 * type. */
static void narrow_block(const struct plan *plan, void *to, void *work, size_t count)
{
    scale_result(plan, work, count);
    if (!plan->same)
        plan->kernels->narrow[plan->how->type](to, work, count);
    else if (to != work)
        memcpy(to, work, count * plan->bytes);
}

/* Combines a block of numbers, from index `first` of each of from[], into work. There are three
 * ways to combine: directly, if the numbers have the work type and no prescale; by a kernel that
 * widens while it adds, for a plain sum; else widened into a block of its own first. */
static void gather_block(const struct plan *plan, void *work, const void *const *from,
                         size_t from_count, size_t first, size_t count)
{
    bool direct = plan->same && !plan->prescaled;
    const void *left = from_at(from[0], first, plan->bytes);
    struct block other;

    if (!direct || from_count == 1) {
        widen_block(plan, work, left, count);
        left = work;
    }
    for (size_t i = 1; i < from_count; i++) {
        const void *right = from_at(from[i], first, plan->bytes);

        if (direct) {
            plan->two(work, left, right, count);
        } else if (plan->summed) {
            plan->kernels->add[plan->how->type](work, left, right, count);
        } else {
            widen_block(plan, other.bytes, right, count);
            plan->two(work, left, other.bytes, count);
        }
        left = work;
    }
}

/* Converts `count` numbers to the work type, and applies the prescale (reduce.h), one block
 * after another. */
void reduce_widen(void *work, const void *from, size_t count, const struct reduction *how)
{
    struct plan plan = plan_for(how);

    for (size_t i = 0; i < count; i += BLOCK)
        widen_block(&plan, to_at(work, i, plan.work_bytes), from_at(from, i, plan.bytes),
                    block_length(i, count));
}

/* into = left op right (reduce.h). All arrays have the work type already, so nothing is converted
 * block by block. */
void reduce_two(void *into, const void *left, const void *right, size_t count,
                const struct reduction *how)
{
    struct plan plan = plan_for(how);

    plan.two(into, left, right, count);
}

/* Turns `count` numbers of the work type into results (reduce.h), block by block. The numbers in
 * `work` are overwritten. */
void reduce_narrow(void *to, void *work, size_t count, const struct reduction *how)
{
    struct plan plan = plan_for(how);

    for (size_t i = 0; i < count; i += BLOCK)
        narrow_block(&plan, to_at(to, i, plan.bytes), to_at(work, i, plan.work_bytes),
                     block_length(i, count));
}

/* Combines the arrays of from[] into `work`, in the work type and without the last scaling
 * (reduce.h). */
void reduce_gather(void *work, const void *const *from, size_t from_count, size_t count,
                   const struct reduction *how)
{
    struct plan plan = plan_for(how);

    ASSERT(from_count);
    for (size_t i = 0; i < count; i += BLOCK)
        gather_block(&plan, to_at(work, i, plan.work_bytes), from, from_count, i,
                     block_length(i, count));
}

/* Combines the arrays of from[], scales the result, and writes it to each array of to[] (reduce.h),
 * block by block, so that a block stays in the L1 cache. */
void reduce_finish(void *const *to, size_t to_count, const void *const *from, size_t from_count,
                   size_t count, const struct reduction *how)
{
    struct plan plan = plan_for(how);
    const struct reduce_last *last =
        from_count > 2 ? &plan.kernels->last[how->type] : &plan.kernels->last_two[how->type];
    struct block work;

    ASSERT(from_count && to_count);
    for (size_t i = 0; i < count; i += BLOCK) {
        void *first = to_at(to[0], i, plan.bytes);
        size_t block = block_length(i, count);
        const void *left = from_at(from[0], i, plan.bytes);
        const void *right = from_at(from[from_count - 1], i, plan.bytes);

        /* Combines, scales and narrows a block. `first` may be in any of from[]: all of a block is
         * read before it is written, except in the last step, which reads and writes number by
         * number. A single input goes through `work`, and so do numbers that must be widened or
         * prescaled and are no plain sum (plan.summed). Otherwise the last step combines the last
         * two arrays directly into `first`; for a plain sum it also averages and narrows. */
        if (from_count == 1 || (!plan.summed && (!plan.same || plan.prescaled))) {
            gather_block(&plan, work.bytes, from, from_count, i, block);
            narrow_block(&plan, first, work.bytes, block);
        } else {
            if (from_count > 2) {
                gather_block(&plan, work.bytes, from, from_count - 1, i, block);
                left = work.bytes;
            }
            if (plan.summed && plan.divisor != 1)
                last->over(first, left, right, block, plan.divisor);
            else if (plan.summed && (plan.factor != 1 || !plan.same))
                last->times(first, left, right, block, plan.factor);
            else
                plan.two(first, left, right, block);
            if (!plan.summed)
                scale_result(&plan, first, block);
        }
        for (size_t other = 1; other < to_count; other++) /* the block is still in the L1 cache */
            if (to[other] != to[0])
                memcpy(to_at(to[other], i, plan.bytes), first, block * plan.bytes);
    }
}

/* Fills `to` with the number that does not change a result. A floating number is chosen so that it
 * is neutral after the prescale has been applied to it. */
void reduce_identity(void *to, size_t count, const struct reduction *how)
{
    enum reduce_neutral neutral = reduce_op(how->op)->neutral;
    size_t bytes = reduce_type_bytes(how->type), bits = bytes * 8;
    /* a negative prescale turns the least number into the greatest one */
    double sign = how->prescale < 0 ? -1 : 1;
    bool has_sign = reduce_type(how->type)->has_sign;
    int64_t least = has_sign ? -(INT64_C(1) << ((bits - 2) & 63)) * 2 : 0;
    int64_t greatest = -(least + 1); /* without a sign: all bits, which are cut to the type */
    const double reals[REDUCE_NEUTRALS] = {
        [REDUCE_ONE] = how->prescale != 0 ? 1 / how->prescale : 1,
        [REDUCE_LEAST] = -INFINITY * sign,
        [REDUCE_GREATEST] = INFINITY * sign,
    };
    const int64_t wholes[REDUCE_NEUTRALS] = {
        [REDUCE_ONE] = 1,
        [REDUCE_LEAST] = least,
        [REDUCE_GREATEST] = greatest,
        [REDUCE_ALL_BITS] = -1,
    };
    double real = reals[neutral];
    int64_t whole = wholes[neutral];
    float single = (float)real;
    uint16_t half = how->type == HVD_FLOAT16 ? half_from_float(single) : bfloat_from_float(single);
    /* All machines are little-endian: the lowest bytes of `whole` are the number in a shorter type.
     */
    const void *number = NULL;

    switch (how->type) { /* points `number` to the value in this type */
    case HVD_UINT8:
    case HVD_INT8:
    case HVD_INT16:
    case HVD_UINT16:
    case HVD_INT32:
    case HVD_UINT32:
    case HVD_INT64:
    case HVD_UINT64:
    case HVD_BOOL: number = &whole; break;
    case HVD_FLOAT16:
    case HVD_BFLOAT16: number = &half; break;
    case HVD_FLOAT32: number = &single; break;
    case HVD_FLOAT64: number = &real; break;
    }
    for (size_t i = 0; i < count; i++)
        memcpy(to_at(to, i, bytes), number, bytes);
}
