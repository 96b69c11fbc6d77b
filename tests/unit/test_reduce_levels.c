/*
 * test_reduce_levels.c: the kernels (reduction loops) of every vector level that this machine has:
 * all give the same bits as a plain loop. The world is the input with the expected output; a way is
 * an order of calls.
 */
#include "base/mem.h"
#include "base/rng.h"
#include "collectives/reduce/facts.h"
#include "collectives/reduce/half.h"
#include "collectives/reduce/levels.h"
#include "collectives/reduce/reduce.h"
#include "tests/lib/test.h"

#include <math.h>
#include <string.h>

#define MOST_NUMBERS 4097
#define MOST_FROM    5
#define HALVES       (UINT16_MAX + 1)

/* ---- the right result of each number, computed alone ---- */

struct number {
    double real; /* of float64 only: the other types would be rounded twice */
    float single;
    int64_t whole;
};

/* Reads the number at `at`; give writes one. */
static struct number take(hvd_dtype type, const uint8_t *at)
{
    struct number number = { 0 };
    int64_t sign =
        reduce_type(type)->has_sign ? INT64_MIN >> (64 - 8 * reduce_type_bytes(type)) : 0;
    uint16_t half;

    switch (type) {
    case HVD_UINT8:
    case HVD_INT8:
    case HVD_INT16:
    case HVD_UINT16:
    case HVD_INT32:
    case HVD_UINT32:
    case HVD_INT64:
    case HVD_UINT64:
    case HVD_BOOL: /* the lowest bytes; all supported machines are little-endian */
        memcpy(&number.whole, at, reduce_type_bytes(type));
        if (number.whole & sign)
            number.whole |= sign;
        break;
    case HVD_FLOAT16:
    case HVD_BFLOAT16:
        memcpy(&half, at, sizeof(half));
        number.single = type == HVD_FLOAT16 ? half_to_float(half) : bfloat_to_float(half);
        break;
    case HVD_FLOAT32: memcpy(&number.single, at, sizeof(number.single)); break;
    case HVD_FLOAT64: memcpy(&number.real, at, sizeof(number.real)); break;
    }
    return number;
}

static void give(hvd_dtype type, uint8_t *at, struct number number)
{
    uint16_t half =
        type == HVD_FLOAT16 ? half_from_float(number.single) : bfloat_from_float(number.single);

    if (!reduce_type_is_real(type)) /* the lowest bytes; all supported machines are little-endian */
        memcpy(at, &number.whole, reduce_type_bytes(type));
    else if (type == HVD_FLOAT64)
        memcpy(at, &number.real, sizeof(number.real));
    else if (type == HVD_FLOAT32)
        memcpy(at, &number.single, sizeof(number.single));
    else
        memcpy(at, &half, sizeof(half));
}

static struct number scale(struct number number, double factor)
{
    number.real *= factor;
    number.single *= (float)factor;
    return number;
}

static bool is_less(bool has_sign, int64_t a, int64_t b)
{
    return has_sign ? a < b : (uint64_t)a < (uint64_t)b;
}

static struct number combine(hvd_op op, bool has_sign, struct number a, struct number b)
{
    switch (op) {
    case HVD_AND: return (struct number){ .whole = a.whole & b.whole };
    case HVD_OR: return (struct number){ .whole = a.whole | b.whole };
    case HVD_XOR: return (struct number){ .whole = a.whole ^ b.whole };
    case HVD_MIN:
        return (struct number){ b.real < a.real ? b.real : a.real,
                                b.single < a.single ? b.single : a.single,
                                is_less(has_sign, b.whole, a.whole) ? b.whole : a.whole };
    case HVD_MAX:
        return (struct number){ b.real > a.real ? b.real : a.real,
                                b.single > a.single ? b.single : a.single,
                                is_less(has_sign, a.whole, b.whole) ? b.whole : a.whole };
    case HVD_PRODUCT:
        return (struct number){ a.real * b.real, a.single * b.single,
                                (int64_t)((uint64_t)a.whole * (uint64_t)b.whole) };
    default:
        return (struct number){ a.real + b.real, a.single + b.single,
                                (int64_t)((uint64_t)a.whole + (uint64_t)b.whole) };
    }
}

static void expect_one(const struct reduction *how, uint8_t *to, const uint8_t *const *from,
                       size_t from_count, size_t at)
{
    struct number sum = { 0 };

    for (size_t i = 0; i < from_count; i++) {
        struct number number = take(how->type, from[i] + at);

        if (how->prescale != 1)
            number = scale(number, how->prescale);
        if (how->type == HVD_BOOL && from_count > 1)
            number.whole = number.whole != 0;
        sum = i ? combine(how->op, reduce_type(how->type)->has_sign, sum, number) : number;
    }
    if (how->op == HVD_AVERAGE) {
        sum.real /= how->size;
        sum.single /= (float)how->size;
        sum.whole = how->type == HVD_UINT64 ? (int64_t)((uint64_t)sum.whole / how->size)
                                            : sum.whole / (int64_t)how->size;
    }
    if (how->postscale != 1)
        sum = scale(sum, how->postscale);
    give(how->type, to + at, sum);
}

/* ---- numbers ---- */

struct world {
    struct rng rng;
    uint8_t *from[MOST_FROM];
    uint8_t *expected[MOST_FROM]; /* [i]: the result of the first i + 1 inputs */
};

static void world_release(struct world *world)
{
    for (size_t i = 0; i < MOST_FROM; i++) {
        mem_free(world->from[i]);
        mem_free(world->expected[i]);
    }
}

static bool world_init(struct world *world)
{
    const size_t bytes = (MOST_NUMBERS + 1) * sizeof(int64_t);

    *world = (struct world){ 0 };
    rng_seed(&world->rng, 11);
    for (size_t i = 0; i < MOST_FROM; i++) {
        world->from[i] = mem_zalloc(bytes);
        world->expected[i] = mem_zalloc(bytes);
        if (!world->from[i] || !world->expected[i])
            return false;
    }
    return true;
}

/* Fills the input with random bits. Of the floating numbers many are special values; nearly all
 * values of the 16-bit types occur. */
static void fill(struct world *world, hvd_dtype type)
{
    static const double special[] = { 0.0,      -0.0,      1,     -1,   NAN,
                                      INFINITY, -INFINITY, 1e-40, 3e38, 0x1p-149 };
    size_t bytes = reduce_type_bytes(type);

    for (size_t i = 0; i < MOST_FROM; i++)
        for (size_t j = 0; j < MOST_NUMBERS; j++) {
            uint64_t bits = rng_next(&world->rng);
            double real = special[bits % ARRAY_SIZE(special)];
            struct number number = { real, (float)real, 0 };

            memcpy(world->from[i] + j * bytes, &bits, bytes);
            if (reduce_type_is_real(type) && bits >> 32 & 1)
                give(type, world->from[i] + j * bytes, number);
        }
}

static void expect(struct world *world, const struct reduction *how)
{
    size_t bytes = reduce_type_bytes(how->type);

    for (size_t from_count = 1; from_count <= MOST_FROM; from_count++)
        for (size_t i = 0; i < MOST_NUMBERS; i++)
            expect_one(how, world->expected[from_count - 1], (const uint8_t *const *)world->from,
                       from_count, i * bytes);
}

/* true: equal to the bit. Of two NaN operands the instruction may return either, so any NaN is
 * right. */
static bool is_expected(const struct world *world, const struct reduction *how, const uint8_t *to,
                        size_t from_count, size_t count)
{
    const uint8_t *expected = world->expected[from_count - 1];
    size_t bytes = reduce_type_bytes(how->type);
    bool chosen =
        (how->op == HVD_MIN || how->op == HVD_MAX) && how->prescale == 1 && how->postscale == 1;

    if (!count || memcmp(to, expected, count * bytes) == 0)
        return true;
    if (!reduce_type_is_real(how->type) || chosen)
        return false;
    for (size_t i = 0; i < count * bytes; i += bytes) {
        struct number is = take(how->type, to + i), should = take(how->type, expected + i);

        if (memcmp(to + i, expected + i, bytes) != 0 &&
            !(isnan(is.single) && isnan(should.single)) && !(isnan(is.real) && isnan(should.real)))
            return false;
    }
    return true;
}

/* ---- the ways to reduce ---- */

/* Blocks whose last byte is the end of their memory, so that a sanitizer sees an access behind
 * them. */
struct room {
    uint8_t *blocks[2 * MOST_FROM];
    uint8_t *from[MOST_FROM], *work[MOST_FROM];
};

static void room_release(struct room *room)
{
    for (size_t i = 0; i < ARRAY_SIZE(room->blocks); i++)
        mem_free(room->blocks[i]);
}

static bool room_init(struct room *room, const struct world *world, const struct reduction *how,
                      size_t count, size_t offset)
{
    size_t bytes = count * reduce_type_bytes(how->type);
    size_t work_bytes = count * reduce_work_bytes(how);

    *room = (struct room){ 0 };
    for (size_t i = 0; i < MOST_FROM; i++) {
        uint8_t *from = mem_alloc(offset + bytes + !bytes);
        uint8_t *work = mem_alloc(offset + work_bytes + !work_bytes);

        room->blocks[2 * i] = from;
        room->blocks[2 * i + 1] = work;
        if (!from || !work)
            return false;
        room->from[i] = from + offset;
        room->work[i] = work + offset;
        memcpy(room->from[i], world->from[i], bytes);
    }
    return true;
}

typedef const uint8_t *way_fn(struct room *room, size_t from_count, size_t count,
                              const struct reduction *how);

static const uint8_t *in_steps(struct room *room, size_t from_count, size_t count,
                               const struct reduction *how)
{
    for (size_t i = 0; i < from_count; i++)
        reduce_widen(room->work[i], room->from[i], count, how);
    for (size_t i = 1; i < from_count; i++) /* into the left number, and into the right one */
        reduce_two(room->work[i % 2 ? i : 0], room->work[i % 2 ? 0 : i - 1], room->work[i], count,
                   how);
    reduce_narrow(room->from[0], room->work[from_count % 2 ? 0 : from_count - 1], count, how);
    return room->from[0];
}

static const uint8_t *gathered(struct room *room, size_t from_count, size_t count,
                               const struct reduction *how)
{
    reduce_gather(room->work[0], (const void *const *)room->from, from_count, count, how);
    reduce_narrow(room->from[0], room->work[0], count, how);
    return room->from[0];
}

static const uint8_t *gathered_in_place(struct room *room, size_t from_count, size_t count,
                                        const struct reduction *how)
{
    if (reduce_work_type(how) != how->type)
        return gathered(room, from_count, count, how);
    reduce_gather(room->from[0], (const void *const *)room->from, from_count, count, how);
    reduce_narrow(room->from[0], room->from[0], count, how);
    return room->from[0];
}

static const uint8_t *finished(struct room *room, size_t from_count, size_t count,
                               const struct reduction *how)
{
    reduce_finish((void *const *)room->work, 1, (const void *const *)room->from, from_count, count,
                  how);
    return room->work[0];
}

/* finished_in_all: the last input is read last, and may be overwritten first. */
static const uint8_t *finished_in_all(struct room *room, size_t from_count, size_t count,
                                      const struct reduction *how)
{
    void *to[MOST_FROM + 2];

    for (size_t i = 0; i < from_count; i++)
        to[i] = room->from[from_count - 1 - i];
    to[from_count] = room->work[0];
    to[from_count + 1] = to[0];
    reduce_finish(to, from_count + 2, (const void *const *)room->from, from_count, count, how);
    for (size_t i = 1; count && i <= from_count; i++)
        if (memcmp(to[0], to[i], count * reduce_type_bytes(how->type)) != 0)
            return NULL;
    return to[0];
}

static const uint8_t *finished_in_two(struct room *room, size_t from_count, size_t count,
                                      const struct reduction *how)
{
    void *to[] = { room->work[1], room->from[0] };

    reduce_finish(to, 2, (const void *const *)room->from, from_count, count, how);
    if (count && memcmp(to[0], to[1], count * reduce_type_bytes(how->type)) != 0)
        return NULL;
    return to[0];
}

/* Reduces by each way, in fresh blocks that begin `offset` bytes into their memory. true: all
 * results are right. */
static bool every_way_is_right(const struct world *world, const struct reduction *how,
                               size_t from_count, size_t count, size_t offset)
{
    static way_fn *const ways[] = { in_steps, gathered,        gathered_in_place,
                                    finished, finished_in_all, finished_in_two };
    bool right = true;

    for (size_t i = 0; right && i < ARRAY_SIZE(ways); i++) {
        struct room room;
        const uint8_t *to = NULL;

        if (room_init(&room, world, how, count, offset))
            to = ways[i](&room, from_count, count, how);
        right = to && is_expected(world, how, to, from_count, count);
        room_release(&room);
    }
    return right;
}

/* Returns the next count to test: each small one, for whole vectors and the rest behind them, then
 * some sizes of blocks. */
static size_t next_count(size_t count)
{
    return count < 70 ? count + 1 : count == 70 ? 1000 : count == 1000 ? MOST_NUMBERS : SIZE_MAX;
}

static bool is_right(const struct world *world, const struct reduction *how)
{
    const size_t offsets[] = { 0, 1, reduce_type_bytes(how->type) };
    size_t turn = 0;

    for (size_t count = 0; count != SIZE_MAX; count = next_count(count))
        for (size_t i = 0; i < ARRAY_SIZE(offsets); i++)
            if (!every_way_is_right(world, how, 1 + turn++ % MOST_FROM, count, offsets[i]))
                return false;
    return true;
}

/* ---- the cases ---- */

TEST_FLAGS(every_level_is_right, TEST_NO_TORTURE)
{
    static const struct reduction variants[] = {
        {.size = 3,  .prescale = 1,    .postscale = 1  },
        { .size = 4, .prescale = 1,    .postscale = 1  },
        { .size = 1, .prescale = 0.5,  .postscale = 3  },
        { .size = 7, .prescale = -0.3, .postscale = 0.7},
    };
    struct world world;

    CHECK(t, world_init(&world));
    for (hvd_dtype type = HVD_UINT8; type < HVD_DTYPE_COUNT; type++) {
        fill(&world, type);
        for (size_t i = 0; i < ARRAY_SIZE(variants) * HVD_OP_COUNT; i++) {
            struct reduction how = variants[i % ARRAY_SIZE(variants)];

            how.type = type;
            how.op = (hvd_op)(i / ARRAY_SIZE(variants));
            if (!reduce_knows(how.type, how.op))
                continue;
            expect(&world, &how);
            for (enum reduce_level level = 0; level < REDUCE_LEVELS; level++) {
                if (!reduce_level_is_here(level))
                    continue;
                reduce_level_use(level);
                if (!is_right(&world, &how))
                    test_fail(t, __FILE__, __LINE__, "%s: %s of %s, variant %zu is wrong",
                              reduce_level_name(level), reduce_op_name(how.op),
                              reduce_type_name(type), i % ARRAY_SIZE(variants));
                CHECK(t, !t->failed);
            }
        }
    }
out:
    world_release(&world);
    reduce_level_use(reduce_level_best());
}

/* Each level turns each 16-bit number into the float of half.h, NaNs too. */
TEST_FLAGS(every_level_widens_alike, TEST_NO_TORTURE)
{
    const struct reduction how = { HVD_FLOAT16, HVD_SUM, 1, 1, 1 };
    uint16_t *halves = mem_alloc(HALVES * sizeof(*halves));
    uint32_t *bits = mem_alloc(HALVES * sizeof(*bits));

    CHECK(t, halves && bits);
    for (uint32_t i = 0; i < HALVES; i++)
        halves[i] = (uint16_t)i;
    for (enum reduce_level level = 0; level < REDUCE_LEVELS; level++) {
        if (!reduce_level_is_here(level))
            continue;
        reduce_level_use(level);
        reduce_widen(bits, halves, HALVES, &how);
        for (uint32_t i = 0; i < HALVES; i++)
            CHECK_INT(t, bits[i], ==, half_bits_of(half_to_float((uint16_t)i)));
    }
out:
    mem_free(halves);
    mem_free(bits);
    reduce_level_use(reduce_level_best());
}

/* All upper halves of float32 numbers, with those lower halves that decide the rounding. */
TEST_FLAGS(every_level_narrows_alike, TEST_NO_TORTURE)
{
    static const uint32_t low[] = { 0, 1, 0x7fff, 0x8000, 0x8001, 0xf000, 0xffff };
    static const hvd_dtype types[] = { HVD_FLOAT16, HVD_BFLOAT16 };
    uint32_t *bits = mem_alloc(HALVES * sizeof(*bits)), *work = mem_alloc(HALVES * sizeof(*work));
    uint16_t *halves = mem_alloc(HALVES * sizeof(*halves));

    CHECK(t, bits && work && halves);
    for (size_t i = 0; i < ARRAY_SIZE(low) * ARRAY_SIZE(types) * REDUCE_LEVELS; i++) {
        enum reduce_level level = (enum reduce_level)(i % REDUCE_LEVELS);
        const struct reduction how = { types[i / REDUCE_LEVELS % 2], HVD_SUM, 1, 1, 1 };

        if (!reduce_level_is_here(level))
            continue;
        reduce_level_use(level);
        for (uint32_t j = 0; j < HALVES; j++)
            bits[j] = j << 16 | low[i / REDUCE_LEVELS / 2];
        memcpy(work, bits, HALVES * sizeof(*bits));
        reduce_narrow(halves, work, HALVES, &how);
        for (uint32_t j = 0; j < HALVES; j++) {
            float value = half_of_bits(bits[j]);

            CHECK_INT(t, halves[j], ==,
                      how.type == HVD_FLOAT16 ? half_from_float(value) : bfloat_from_float(value));
        }
    }
out:
    mem_free(bits);
    mem_free(work);
    mem_free(halves);
    reduce_level_use(reduce_level_best());
}

TEST(levels_have_names)
{
    CHECK_TEXT(t, reduce_level_name(REDUCE_PLAIN), "plain");
    CHECK_TEXT(t, reduce_level_name(REDUCE_AVX512), "avx512");
    CHECK_TEXT(t, reduce_level_name(REDUCE_LEVELS), "?");
    CHECK(t, reduce_level_is_here(REDUCE_PLAIN) && !reduce_level_is_here(REDUCE_LEVELS));
    CHECK(t, reduce_level_is_here(reduce_level_best()));
out:;
}
