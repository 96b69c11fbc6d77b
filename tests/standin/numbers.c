/*
 * numbers.c: reduces numbers of every type of NCCL, halves and 8-bit integers included, in the
 * order of ranks.
 */
#include "tests/standin/numbers.h"

#include "tests/standin/driver.h"

#include <string.h>

#define AT_ONCE 512U

size_t numbers_bytes(int type)
{
    switch (type) {
    case NCCL_INT8:
    case NCCL_UINT8: return 1;
    case NCCL_FLOAT16:
    case NCCL_BFLOAT16: return 2;
    case NCCL_INT32:
    case NCCL_UINT32:
    case NCCL_FLOAT32: return 4;
    case NCCL_INT64:
    case NCCL_UINT64:
    case NCCL_FLOAT64: return 8;
    default: return 0;
    }
}

/* ---- floats of sixteen bits ------------------------------------------------------------------ */

static float from_bits(uint32_t bits)
{
    float number;

    memcpy(&number, &bits, sizeof(number));
    return number;
}

static uint32_t to_bits(float number)
{
    uint32_t bits;

    memcpy(&bits, &number, sizeof(bits));
    return bits;
}

static float from_half(uint16_t half)
{
    uint32_t sign = (half & 0x8000U) << 16;
    uint32_t exponent = (half >> 10) & 0x1fU;
    uint32_t fraction = half & 0x3ffU;

    if (exponent == 0x1f)
        return from_bits(sign | 0x7f800000U | (fraction << 13));
    if (exponent == 0) { /* subnormal: fraction x 2^-24 */
        float tiny = (float)fraction * from_bits(0x33800000U);

        return sign ? -tiny : tiny;
    }
    return from_bits(sign | ((exponent + 112) << 23) | (fraction << 13));
}

/* Rounds to the nearest half; to the even one of two that are equally near. */
static uint16_t to_half(float number)
{
    uint32_t bits = to_bits(number);
    uint32_t sign = (bits >> 16) & 0x8000U;
    uint32_t rest = bits & 0x7fffffffU;

    if (rest > 0x7f800000U)
        return (uint16_t)(sign | 0x7e00U);
    if (rest >= 0x477ff000U)
        return (uint16_t)(sign | 0x7c00U);
    if (rest < 0x38800000U) { /* so small that adding 1/2 rounds it correctly */
        float shifted = from_bits(rest) + 0.5F;

        return (uint16_t)(sign | (to_bits(shifted) - to_bits(0.5F)));
    }
    rest += 0xfffU + ((rest >> 13) & 1U);
    return (uint16_t)(sign | ((rest - 0x38000000U) >> 13));
}

static float from_brain(uint16_t brain)
{
    return from_bits((uint32_t)brain << 16);
}

static uint16_t to_brain(float number)
{
    uint32_t bits = to_bits(number);

    if ((bits & 0x7fffffffU) > 0x7f800000U)
        return (uint16_t)((bits >> 16) | 0x40U);
    return (uint16_t)((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16);
}

/* ---- arithmetic in the three widths ---------------------------------------------------------- */

/* Integers wrap around, so they are added as unsigned. */
#define PLUS_OF(kind, one, other)   (kind)((one) + (other))
#define TIMES_OF(kind, one, other)  (kind)((one) * (other))
#define PLUS_INT(kind, one, other)  (kind)((uint64_t)(one) + (uint64_t)(other))
#define TIMES_INT(kind, one, other) (kind)((uint64_t)(one) * (uint64_t)(other))

#define FOLD(name, kind, plus, times)                                           \
    static void name(int op, kind *sum, const kind *next, size_t count)         \
    {                                                                           \
        for (size_t i = 0; i < count; i++)                                      \
            switch (op) {                                                       \
            case NCCL_PRODUCT: sum[i] = times(kind, sum[i], next[i]); break;    \
            case NCCL_MAX: sum[i] = next[i] > sum[i] ? next[i] : sum[i]; break; \
            case NCCL_MIN: sum[i] = next[i] < sum[i] ? next[i] : sum[i]; break; \
            default: sum[i] = plus(kind, sum[i], next[i]); break;               \
            }                                                                   \
    }
FOLD(fold_floats, float, PLUS_OF, TIMES_OF)
FOLD(fold_doubles, double, PLUS_OF, TIMES_OF)
FOLD(fold_integers, int64_t, PLUS_INT, TIMES_INT)
FOLD(fold_naturals, uint64_t, PLUS_INT, TIMES_INT)

/* ---- loading and storing elements ------------------------------------------------------------ */

union many {
    float floats[AT_ONCE];
    double doubles[AT_ONCE];
    int64_t integers[AT_ONCE];
    uint64_t naturals[AT_ONCE];
};

static int64_t from_int8(uint8_t bits)
{
    return (int64_t)(bits ^ 0x80U) - 0x80;
}

#define LOAD(field, kind, convert)                                                 \
    for (size_t i = 0; i < count; i++) {                                           \
        kind element;                                                              \
                                                                                   \
        memcpy(&element, (const char *)in + i * sizeof(element), sizeof(element)); \
        many->field[i] = convert(element);                                         \
    }                                                                              \
    break

static void load(union many *many, int type, const void *in, size_t count)
{
    switch (type) {
    case NCCL_INT8: LOAD(integers, uint8_t, from_int8);
    case NCCL_UINT8: LOAD(integers, uint8_t, );
    case NCCL_INT32: LOAD(integers, int32_t, );
    case NCCL_UINT32: LOAD(naturals, uint32_t, );
    case NCCL_INT64: LOAD(integers, int64_t, );
    case NCCL_UINT64: LOAD(naturals, uint64_t, );
    case NCCL_FLOAT16: LOAD(floats, uint16_t, from_half);
    case NCCL_BFLOAT16: LOAD(floats, uint16_t, from_brain);
    case NCCL_FLOAT32: LOAD(floats, float, );
    case NCCL_FLOAT64: LOAD(doubles, double, );
    default: standin_misuse("type %d", type);
    }
}

#define STORE(field, kind, convert)                                           \
    for (size_t i = 0; i < count; i++) {                                      \
        kind element = convert(many->field[i]);                               \
                                                                              \
        memcpy((char *)out + i * sizeof(element), &element, sizeof(element)); \
    }                                                                         \
    break

static void store(const union many *many, int type, void *out, size_t count)
{
    switch (type) {
    case NCCL_INT8: STORE(integers, int8_t, (int8_t));
    case NCCL_UINT8: STORE(integers, uint8_t, (uint8_t));
    case NCCL_INT32: STORE(integers, int32_t, (int32_t));
    case NCCL_UINT32: STORE(naturals, uint32_t, (uint32_t));
    case NCCL_INT64: STORE(integers, int64_t, );
    case NCCL_UINT64: STORE(naturals, uint64_t, );
    case NCCL_FLOAT16: STORE(floats, uint16_t, to_half);
    case NCCL_BFLOAT16: STORE(floats, uint16_t, to_brain);
    case NCCL_FLOAT32: STORE(floats, float, );
    case NCCL_FLOAT64: STORE(doubles, double, );
    default: standin_misuse("type %d", type);
    }
}

static bool is_double(int type)
{
    return type == NCCL_FLOAT64;
}

static bool is_float(int type)
{
    return type == NCCL_FLOAT16 || type == NCCL_BFLOAT16 || type == NCCL_FLOAT32;
}

void numbers_scale(struct reduction *reduction, int type, const void *scale)
{
    union many one;

    load(&one, type, scale, 1);
    *reduction = (struct reduction){ .op = NCCL_SUM, .scaled = true };
    if (is_double(type))
        reduction->scale = one.doubles[0];
    else if (is_float(type))
        reduction->scale = (double)one.floats[0];
    else
        reduction->integer = one.integers[0];
}

/* ---- whole reductions ------------------------------------------------------------------------ */

static void scale(const struct reduction *reduction, int type, union many *many, size_t count)
{
    for (size_t i = 0; i < count && reduction->scaled; i++)
        if (is_double(type))
            many->doubles[i] *= reduction->scale;
        else if (is_float(type))
            many->floats[i] *= (float)reduction->scale;
        else
            many->integers[i] = TIMES_INT(int64_t, many->integers[i], reduction->integer);
}

void numbers_reduce(const struct reduction *reduction, int type, unsigned members,
                    const void *const *in, void *out, size_t count)
{
    size_t bytes = numbers_bytes(type);

    for (size_t done = 0; done < count; done += AT_ONCE) {
        size_t now = count - done < AT_ONCE ? count - done : AT_ONCE;
        union many sum;
        union many next;

        load(&sum, type, (const char *)in[0] + done * bytes, now);
        scale(reduction, type, &sum, now);
        for (unsigned i = 1; i < members; i++) {
            load(&next, type, (const char *)in[i] + done * bytes, now);
            scale(reduction, type, &next, now);
            if (is_double(type))
                fold_doubles(reduction->op, sum.doubles, next.doubles, now);
            else if (is_float(type))
                fold_floats(reduction->op, sum.floats, next.floats, now);
            else if (type == NCCL_UINT32 || type == NCCL_UINT64)
                fold_naturals(reduction->op, sum.naturals, next.naturals, now);
            else
                fold_integers(reduction->op, sum.integers, next.integers, now);
        }
        if (reduction->op == NCCL_AVERAGE) {
            /* The average of integers is the sum divided by the members, as in NCCL. */
            for (size_t i = 0; i < now; i++)
                if (is_double(type))
                    sum.doubles[i] /= members;
                else if (is_float(type))
                    sum.floats[i] /= (float)members;
                else
                    sum.integers[i] /= (int64_t)members;
        }
        store(&sum, type, (char *)out + done * bytes, now);
    }
}
