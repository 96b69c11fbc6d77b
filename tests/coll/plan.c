/*
 * plan.c: draws a random collective from a seed: layout, kind, type, operation, counts, groups,
 * scales. The same seed draws the same collective in every process.
 */
#include "tests/coll/plan.h"

#include "base/panic.h"
#include "base/rng.h"
#include "collectives/reduce/facts.h"
#include "tests/lib/gloo_here.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* counts near this size are tried, because chunks and stages end there */
#define STAGE_BYTES      ((size_t)512 * 1024)
#define LARGE_BYTES      ((size_t)6 * 1024 * 1024)
#define SIZES            9 /* sizes from 1 on that are gone through */
#define SLOTS            4 /* batches for each size */
#define FIRST_BATCHES    (SIZES * SLOTS)
#define ODD_SIZES_ONE_IN 12 /* one batch in so many has 10 to 17 members */

/* ---- batches ---- */

static const char *const uneven[SIZES + 1] = {
    "", "a", "ab", "aab", "aaab", "aabbb", "aabbcc", "abbcccc", "abbccccc", "aaabbbbcc"
};

static void layout_of_text(struct processes_layout *layout, const char *text)
{
    for (uint32_t i = 0; i < layout->size; i++)
        layout->host[i] = (uint8_t)(text[i] - 'a');
}

static void layout_apart(struct processes_layout *layout)
{
    for (uint32_t i = 0; i < layout->size; i++)
        layout->host[i] = (uint8_t)i;
}

/* Draws which rank is on which host: neighbours together, or mixed, as no driver would do. */
static void layout_random(struct processes_layout *layout, struct rng *rng)
{
    uint64_t way = rng_below(rng, 10), hosts = 2 + rng_below(rng, 3);

    if (way == 0) {
        layout_apart(layout);
        return;
    }
    for (uint32_t i = 1; i < layout->size && way > 1; i++) {
        if (way == 2)
            layout->host[i] = (uint8_t)(i % hosts);
        else
            layout->host[i] =
                (uint8_t)(layout->host[i - 1] + (rng_below(rng, layout->size) < hosts - 1));
    }
}

static void first_batch(struct batch *batch)
{
    batch->layout.size = 1 + (uint32_t)(batch->number / SLOTS);
    batch->carrier = batch->layout.size / 2 % 2 && gloo_here() ? COLL_BY_GLOO : COLL_BY_TCP;
    switch (batch->number % SLOTS) {
    case 0: break;
    case 1: layout_of_text(&batch->layout, uneven[batch->layout.size]); break;
    case 2: layout_apart(&batch->layout); break;
    default:
        batch->flat = batch->layout.size % 2;
        for (uint32_t i = 0; i < batch->layout.size; i++)
            batch->layout.host[i] = (uint8_t)(i * 2 / batch->layout.size);
    }
}

static void random_batch(struct batch *batch, struct rng *shared, struct rng *own)
{
    static const size_t fusion[] = { 0, 0, 4096, 100000 };

    batch->layout.size = (uint32_t)(2 + rng_below(shared, SIZES - 1));
    if (rng_below(shared, ODD_SIZES_ONE_IN) == 0)
        batch->layout.size = (uint32_t)(SIZES + 1 + rng_below(shared, PROCESSES_MAX - SIZES));
    batch->fixed_order = rng_below(shared, 3) == 0;
    layout_random(&batch->layout, own);
    batch->flat = rng_below(own, 5) == 0;
    batch->carrier = (enum coll_carrier)rng_below(own, 3);
    if (batch->carrier == COLL_BY_GLOO && !gloo_here())
        batch->carrier = COLL_BY_BEST;
    batch->fusion_bytes = fusion[rng_below(own, 4)];
}

static void make_groups(struct batch *batch, struct rng *rng)
{
    uint32_t size = batch->layout.size;

    for (size_t g = 0; g <= BATCH_GROUPS; g++) {
        uint32_t count = 0, step = (uint32_t)(2 + rng_below(rng, 2));

        for (uint32_t i = 0; i < size; i++) {
            /* 0: all members; 1, 2: two groups without a common member (2 is empty in a round of
             * one member); 3: neighbours; 4: any members. */
            bool in = g == 0 || (g == 1 && i % 2 == 0) || (g == 2 && i % 2 == 1) ||
                      (g == 3 && i < (size + 1) / 2) || (g == 4 && rng_below(rng, step));

            if (in)
                batch->ranks[g][count++] = i;
        }
        batch->groups[g] = (struct coll_ranks){ batch->ranks[g], count };
    }
}

void batch_make(struct batch *batch, uint64_t seed, uint64_t number)
{
    struct rng shared, own;

    memset(batch, 0, sizeof(*batch));
    batch->number = number;
    rng_seed(&shared, numbers_mix(seed, number / 2));
    rng_seed(&own, numbers_mix(seed + 1, number));
    if (number < FIRST_BATCHES)
        first_batch(batch);
    else
        random_batch(batch, &shared, &own);
    batch->opened = number % 3 == 2;
    batch->apart = number % 6 == 5;
    batch->key = numbers_mix(seed + 2, batch->fixed_order ? number / 2 : number + (1u << 31));
    make_groups(batch, &shared);
}

bool batch_is_second_twin(const struct batch *batch)
{
    return batch->fixed_order && batch->number % 2;
}

/* ---- every operation, with every type and operator --- */

struct shape {
    enum coll_kind kind;
    enum plan_form form;
    bool reduces, typed;
    bool brief; /* the first batches have it with the first types and ops alone */
};

/* clang-format off */
static const struct shape shapes[] = {
    { COLL_ALLREDUCE,        PLAN_PLAIN,     true,  true,  false },
    { COLL_ALLREDUCE,        PLAN_OF_PIECES, true,  true,  true },
    { COLL_REDUCESCATTER,    PLAN_PLAIN,     true,  true,  true },
    { COLL_REDUCESCATTER,    PLAN_COUNTS,    true,  true,  true },
    { COLL_BROADCAST,        PLAN_PLAIN,     false, true,  false },
    { COLL_ALLGATHER,        PLAN_PLAIN,     false, true,  true },
    { COLL_ALLGATHER,        PLAN_COUNTS,    false, true,  true },
    { COLL_ALLTOALL,         PLAN_PLAIN,     false, true,  true },
    { COLL_ALLTOALL,         PLAN_COUNTS,    false, true,  true },
    { COLL_JOIN,             PLAN_PLAIN,     true,  true,  true },
    { COLL_BARRIER,          PLAN_PLAIN,     false, false, false },
    { COLL_ALLGATHER_RAGGED, PLAN_COUNTS,    false, true,  true },
    { COLL_ALLTOALL_RAGGED,  PLAN_COUNTS,    false, true,  true },
    { COLL_BROADCAST,        PLAN_OF_PIECES, false, true,  true },
    { COLL_REDUCE,           PLAN_PLAIN,     false, true,  true }, /* with any op */
    { COLL_GATHER,           PLAN_PLAIN,     false, true,  true },
    { COLL_GATHER,           PLAN_COUNTS,    false, true,  true },
    { COLL_SCATTER,          PLAN_PLAIN,     false, true,  true },
    { COLL_SCATTER,          PLAN_COUNTS,    false, true,  true },
    { COLL_SEND,             PLAN_PLAIN,     false, true,  true }, /* between pairs of members */
};
/* clang-format on */

#define TYPES ((size_t)HVD_DTYPE_COUNT)
#define OPS   ((size_t)HVD_OP_COUNT)

static size_t types_of(const struct shape *shape)
{
    return !shape->typed ? 1 : shape->brief ? (size_t)HVD_FLOAT64 + 1 : TYPES;
}

static size_t variants_of(const struct shape *shape)
{
    return types_of(shape) * (!shape->reduces ? 1 : shape->brief ? (size_t)HVD_PRODUCT + 1 : OPS);
}

/* The type has another op in place of one that it does not have. */
static hvd_op op_of(hvd_dtype type, size_t op)
{
    while (!numbers_have(type, (hvd_op)op))
        op = (op + 5) % OPS;
    return (hvd_op)op;
}

/* Sets kind, form, type and operator number `index`; random plans use this too, and then choose
 * type and operator of all. */
static void set_shape(struct plan *plan, size_t index)
{
    for (size_t i = 0;; i = (i + 1) % ARRAY_SIZE(shapes)) {
        const struct shape *shape = &shapes[i];

        if (index >= variants_of(shape)) {
            index -= variants_of(shape);
            continue;
        }
        plan->kind = shape->kind;
        plan->form = shape->form;
        if (shape->typed)
            plan->numbers.type = (hvd_dtype)(index % types_of(shape));
        if (shape->kind == COLL_REDUCE)
            plan->numbers.op = op_of(plan->numbers.type, plan->number % OPS);
        if (shape->reduces)
            plan->numbers.op = op_of(plan->numbers.type, index / types_of(shape));
        return;
    }
}

/* ---- numbers of elements --- */

static size_t random_count(struct rng *rng, size_t bytes, bool many)
{
    switch (rng_below(rng, many ? 24 : 16)) {
    case 0: return 0;
    case 1: return 1;
    case 2:
    case 3:
    case 4:
    case 5: return rng_below(rng, 20);
    case 6:
    case 7:
    case 8:
    case 9: return rng_below(rng, 2000);
    case 10:
    case 11:
    case 12: return rng_below(rng, 20000 / bytes);
    case 13: return rng_below(rng, 200000 / bytes);
    case 14: /* one more or less than what fits into a chunk or stage */
        return (STAGE_BYTES >> rng_below(rng, 8)) / bytes + rng_below(rng, 3) - 1;
    case 15: return rng_below(rng, many ? LARGE_BYTES / bytes : 100000 / bytes);
    default: return rng_below(rng, 300);
    }
}

static void share_out(struct plan *plan, struct rng *rng)
{
    size_t left = plan->count;

    plan->piece_count = 1 + rng_below(rng, PLAN_PIECES);
    for (size_t i = 0; i + 1 < plan->piece_count; i++) {
        plan->pieces[i] = rng_below(rng, 4) ? rng_below(rng, left / 2 + 1) : 0;
        left -= plan->pieces[i];
    }
    plan->pieces[plan->piece_count - 1] = left;
}

static void set_counts(struct plan *plan, const struct batch *batch, struct rng *rng)
{
    size_t bytes = numbers_bytes(plan->numbers.type), size = batch->layout.size;
    bool each = plan->kind == COLL_ALLGATHER || plan->kind == COLL_SEND ||
                plan->kind == COLL_GATHER || plan->kind == COLL_SCATTER ||
                plan->kind == COLL_ALLTOALL || plan->kind == COLL_REDUCESCATTER ||
                coll_kind_is_ragged(plan->kind);
    bool many = batch->number >= FIRST_BATCHES || plan->number % 32 == 0;

    plan->count = random_count(rng, bytes, many);
    if (plan->kind == COLL_JOIN)
        plan->count %= 3000;
    if (each && plan->count * bytes * size > LARGE_BYTES)
        plan->count /= size;
    for (uint32_t i = 0; i < size; i++) {
        plan->counts[i] = rng_below(rng, 4) ? rng_below(rng, plan->count + 1) : 0;
        plan->before[i] = (unsigned)rng_below(rng, PLAN_BEFORE + 1);
    }
    share_out(plan, rng);
}

static void set_scales(struct plan *plan, struct rng *rng)
{
    static const double scales[] = { 0, 1, 0.5, 2, -1, 0.125 };

    if (plan->kind != COLL_ALLREDUCE && plan->kind != COLL_REDUCESCATTER &&
        plan->kind != COLL_JOIN && plan->kind != COLL_REDUCE)
        return;
    if (!numbers_are_real(plan->numbers.type) || rng_below(rng, 3))
        return;
    plan->numbers.prescale = scales[rng_below(rng, ARRAY_SIZE(scales))];
    plan->numbers.postscale = scales[rng_below(rng, ARRAY_SIZE(scales))];
}

void plan_make(const struct batch *batch, uint64_t number, struct plan *plan)
{
    size_t variants = 0, index = number % BATCH_CASES;
    struct rng rng;

    memset(plan, 0, sizeof(*plan));
    plan->number = number;
    plan->numbers.key = numbers_mix(batch->key, index);
    rng_seed(&rng, plan->numbers.key);
    for (size_t i = 0; i < ARRAY_SIZE(shapes); i++)
        variants += variants_of(&shapes[i]);
    ASSERT(variants <= SLOTS * BATCH_CASES);
    /* the slots of a size share all operations, and each slot gets some of each kind */
    index = index * SLOTS + (batch->number + batch->number / SLOTS) % SLOTS;
    if (batch->number < FIRST_BATCHES && index < variants) {
        set_shape(plan, index);
    } else {
        set_shape(plan, rng_below(&rng, variants));
        plan->numbers.type = (hvd_dtype)rng_below(&rng, TYPES);
        plan->numbers.op = op_of(plan->numbers.type, rng_below(&rng, OPS));
    }
    plan->numbers.loose = rng_below(&rng, 3) == 0;
    set_scales(plan, &rng);
    plan->root = (uint32_t)rng_below(&rng, PROCESSES_MAX);
    plan->tag = rng_below(&rng, 2) ? rng_next(&rng) : 0;
    if (rng_below(&rng, 4) == 0)
        plan->group = 1 + rng_below(&rng, BATCH_GROUPS + 1);
    set_counts(plan, batch, &rng);
}

size_t plan_between(const struct plan *plan, uint32_t from, uint32_t to)
{
    uint64_t random = numbers_mix(numbers_mix(plan->numbers.key + 7, from), to);

    if (plan->form == PLAN_PLAIN)
        return plan->count;
    return random % 4 ? (random >> 8) % (plan->count + 1) : 0;
}

void plan_own(const struct plan *plan, const struct batch *batch, uint32_t rank,
              struct plan_own *ret_own)
{
    struct rng rng;

    rng_seed(&rng, numbers_mix(numbers_mix(batch->number, plan->number), rank));
    ret_own->in_place = rng_below(&rng, 2);
    ret_own->pooled = rng_below(&rng, 2);
    ret_own->in_offset = rng_below(&rng, 3) ? 0 : rng_below(&rng, 64);
    ret_own->out_offset = rng_below(&rng, 3) ? 0 : rng_below(&rng, 64);
    ret_own->spins = rng_below(&rng, 10) ? 0 : (unsigned)rng_below(&rng, 100000);
}

/* ---- text --- */

static const char *kind_text(const struct plan *plan)
{
    if (plan->form == PLAN_OF_PIECES)
        return plan->kind == COLL_ALLREDUCE ? "allreduce of pieces" : "broadcast of pieces";
    if (plan->form == PLAN_COUNTS && !coll_kind_is_rooted(plan->kind) &&
        !coll_kind_is_ragged(plan->kind))
        return plan->kind == COLL_ALLGATHER       ? "allgatherv"
               : plan->kind == COLL_REDUCESCATTER ? "reducescatterv"
                                                  : "alltoallv";
    return coll_kind_name(plan->kind);
}

void plan_show(const struct plan *plan, const struct batch *batch, char text[PLAN_TEXT_MAX])
{
    static const char *const carriers[] = { "", ", Gloo", ", TCP" };
    char hosts[PROCESSES_MAX + 1];

    processes_layout_show(&batch->layout, hosts);
    (void)snprintf(text, PLAN_TEXT_MAX,
                   "case %" PRIu64
                   ", hosts %s%s%s%s%s: %s, %zu %s, %s, root %u, group %zu, scales %g "
                   "%g%s",
                   plan->number, hosts, batch->flat ? ", flat" : "", carriers[batch->carrier],
                   batch->fixed_order ? ", fixed order" : "",
                   batch->apart    ? ", groups opened apart"
                   : batch->opened ? ", opened groups"
                                   : "",
                   kind_text(plan), plan->count, numbers_type(plan->numbers.type),
                   numbers_op(plan->numbers.op), plan->root, plan->group, plan->numbers.prescale,
                   plan->numbers.postscale, plan->numbers.loose ? ", inexact" : "");
}
