/*
 * numbers.c: fills buffers of every type with numbers whose reduction is known, reads and writes
 * single numbers, and computes the plain reference that collcheck compares with.
 */
#include "tests/coll/numbers.h"

#include "collectives/reduce/facts.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- types ---- */

struct kind {
    const char *name;
    size_t bytes;
    int digits; /* digits after the binary point of floating types; 0: an integer type */
    int least;  /* exponent of the smallest normal number */
    int work;   /* digits of the type in which sums are computed */
    bool has_sign;
};

/* clang-format off */
static const struct kind kinds[] = {
    [HVD_UINT8]    = { "uint8",    1, 0,  0,     0,  false },
    [HVD_INT8]     = { "int8",     1, 0,  0,     0,  true },
    [HVD_INT32]    = { "int32",    4, 0,  0,     0,  true },
    [HVD_INT64]    = { "int64",    8, 0,  0,     0,  true },
    [HVD_FLOAT16]  = { "float16",  2, 10, -14,   23, true },
    [HVD_BFLOAT16] = { "bfloat16", 2, 7,  -126,  23, true },
    [HVD_FLOAT32]  = { "float32",  4, 23, -126,  23, true },
    [HVD_FLOAT64]  = { "float64",  8, 52, -1022, 52, true },
    [HVD_INT16]    = { "int16",    2, 0,  0,     0,  true },
    [HVD_UINT16]   = { "uint16",   2, 0,  0,     0,  false },
    [HVD_UINT32]   = { "uint32",   4, 0,  0,     0,  false },
    [HVD_UINT64]   = { "uint64",   8, 0,  0,     0,  false },
    [HVD_BOOL]     = { "bool",     1, 0,  0,     0,  false },
};
/* clang-format on */

_Static_assert(ARRAY_SIZE(kinds) == HVD_DTYPE_COUNT, "a row for each type");

size_t numbers_bytes(hvd_dtype type)
{
    return kinds[type].bytes;
}

bool numbers_are_real(hvd_dtype type)
{
    return kinds[type].digits != 0;
}

bool numbers_have(hvd_dtype type, hvd_op op)
{
    bool bits = op == HVD_AND || op == HVD_OR || op == HVD_XOR;

    if (numbers_are_real(type))
        return !bits;
    return type != HVD_BOOL || bits || op == HVD_MIN || op == HVD_MAX;
}

const char *numbers_type(hvd_dtype type)
{
    return kinds[type].name;
}

const char *numbers_op(hvd_op op)
{
    static const char *const names[] = { "sum",     "average", "min", "max",
                                         "product", "and",     "or",  "xor" };

    _Static_assert(ARRAY_SIZE(names) == HVD_OP_COUNT, "a name for each op");
    return names[op];
}

/* ---- the two floating types that C does not have: a sign, an exponent, digits --- */

static long double short_value(const struct kind *kind, uint16_t bits)
{
    long double sign = bits & 0x8000 ? -1 : 1;
    int exponent = (bits & 0x7fff) >> kind->digits, all = 0x7fff >> kind->digits;
    int digits = bits & ((1 << kind->digits) - 1);

    if (exponent == all)
        return digits ? (long double)NAN : sign * (long double)INFINITY;
    if (exponent == 0)
        return sign * ldexpl(digits, kind->least - kind->digits);
    return sign * ldexpl(digits + (1 << kind->digits), exponent - 1 + kind->least - kind->digits);
}

static uint16_t short_bits(const struct kind *kind, long double value)
{
    uint16_t sign = signbit(value) ? 0x8000 : 0;
    uint16_t infinite = (uint16_t)((0x7fff >> kind->digits) << kind->digits);
    long double size = fabsl(value), bits;
    int exponent;

    if (isinf(value))
        return sign | infinite;
    exponent = size > 0 ? ilogbl(size) : kind->least;
    if (exponent < kind->least)
        exponent = kind->least;
    bits = ldexpl(exponent - kind->least, kind->digits) +
           rintl(ldexpl(size, kind->digits - exponent)); /* to the nearest, to even */
    return bits >= infinite ? sign | infinite : (uint16_t)(sign | (uint16_t)bits);
}

/* ---- reading and writing elements --- */

/* An integer as 64 bits, its sign in all the upper ones. */
static int64_t read_whole(const struct kind *kind, const void *at)
{
    uint64_t bits = 0, sign = UINT64_C(1) << (kind->bytes * 8 - 1);

    memcpy(&bits, at, kind->bytes);
    return (int64_t)(kind->has_sign ? (bits ^ sign) - sign : bits);
}

struct number numbers_read(hvd_dtype type, const void *at)
{
    struct number number = { 0, 0 };
    uint16_t u16;
    float f32;
    double f64;

    if (!numbers_are_real(type)) {
        number.whole = read_whole(&kinds[type], at);
    } else if (type == HVD_FLOAT32) {
        memcpy(&f32, at, sizeof(f32));
        number.real = (long double)f32;
    } else if (type == HVD_FLOAT64) {
        memcpy(&f64, at, sizeof(f64));
        number.real = f64;
    } else {
        memcpy(&u16, at, sizeof(u16));
        number.real = short_value(&kinds[type], u16);
    }
    return number;
}

static void write_real(hvd_dtype type, long double value, void *at)
{
    float f32 = (float)value;
    double f64 = (double)value;
    uint16_t u16;

    if (type == HVD_FLOAT32) {
        memcpy(at, &f32, sizeof(f32));
    } else if (type == HVD_FLOAT64) {
        memcpy(at, &f64, sizeof(f64));
    } else {
        u16 = short_bits(&kinds[type], value);
        memcpy(at, &u16, sizeof(u16));
    }
}

/* Writes the lowest bytes of the value: machines are little-endian, and integer sums wrap around.
 */
static void write_whole(hvd_dtype type, uint64_t value, void *at)
{
    memcpy(at, &value, kinds[type].bytes);
}

/* ---- input --- */

uint64_t numbers_mix(uint64_t a, uint64_t b)
{
    uint64_t x = (a ^ (b + UINT64_C(0x9e3779b97f4a7c15) + (a << 6) + (a >> 2))) *
                 UINT64_C(0xbf58476d1ce4e5b9);

    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

/* A number so small that every sum and every product of such numbers is exact, in any order. */
static long double strict_real(const struct numbers *how, uint32_t rank, uint64_t random)
{
    static const long double factors[] = { 1, -1, 2, 0.5L };
    int64_t limit = 1000;

    if (how->op == HVD_PRODUCT)
        return rank < 9 ? factors[random % 4] : factors[random % 2];
    return (long double)((int64_t)(random % (uint64_t)(2 * limit + 1)) - limit);
}

/* A number of random, very different magnitude. */
static long double loose_real(const struct numbers *how, uint64_t random)
{
    int spread = how->op == HVD_PRODUCT ? 1 : 12;
    int exponent = (int)(random >> 8) % spread - spread / 2 - (how->op == HVD_PRODUCT ? 0 : 2);
    long double part = 1 + ldexpl((long double)(random >> 32), -32);

    if (random % 61 == 0)
        return random & 64 ? 0.0L : -0.0L;
    return ldexpl(random & 1 ? part : -part, exponent);
}

void numbers_put(const struct numbers *how, uint32_t rank, uint64_t place, void *at)
{
    uint64_t random = numbers_mix(numbers_mix(how->key, rank), place % NUMBERS_PERIOD);
    long double real;

    if (!numbers_are_real(how->type)) {
        if (how->type == HVD_INT64 && how->op == HVD_AVERAGE) /* the sum must not overflow */
            random = (uint64_t)((int64_t)random >> 8);
        if (how->type == HVD_UINT64 && how->op == HVD_AVERAGE)
            random >>= 8;
        if (how->type == HVD_BOOL) /* half of them true, some of these by another byte than 1 */
            random = random >> 8 & 1 ? 1 + (random & 1) * (random >> 9 & 0xfe) : 0;
        write_whole(how->type, random, at);
        return;
    }
    real = how->loose ? loose_real(how, random) : strict_real(how, rank, random);
    if (how->type == HVD_FLOAT16 && !how->loose && how->op != HVD_PRODUCT)
        real = truncl(real / 2); /* sums of 17 such numbers stay below the largest fp16 */
    if (how->type == HVD_BFLOAT16 && !how->loose && how->op != HVD_PRODUCT)
        real = truncl(real / 8); /* keeps eight digits */
    write_real(how->type, real, at);
}

void numbers_fill(const struct numbers *how, uint32_t rank, uint64_t first, size_t count, void *at)
{
    size_t bytes = kinds[how->type].bytes, ready = count < NUMBERS_PERIOD ? count : NUMBERS_PERIOD;

    for (size_t i = 0; i < ready; i++)
        numbers_put(how, rank, first + i, (uint8_t *)at + i * bytes);
    for (size_t i = ready; i < count; i += ready) {
        size_t next = count - i < ready ? count - i : ready;

        memcpy((uint8_t *)at + i * bytes, at, next * bytes);
    }
}

/* ---- expected results --- */

static bool is_less(bool has_sign, uint64_t a, uint64_t b)
{
    return has_sign ? (int64_t)a < (int64_t)b : a < b;
}

static uint64_t two_wholes(hvd_op op, bool has_sign, uint64_t a, uint64_t b)
{
    switch (op) {
    case HVD_SUM:
    case HVD_AVERAGE: return a + b;
    case HVD_MIN: return is_less(has_sign, b, a) ? b : a;
    case HVD_MAX: return is_less(has_sign, a, b) ? b : a;
    case HVD_PRODUCT: return a * b;
    case HVD_AND: return a & b;
    case HVD_OR: return a | b;
    case HVD_XOR: return a ^ b;
    }
    return 0;
}

static long double two_reals(hvd_op op, long double a, long double b)
{
    switch (op) {
    case HVD_SUM:
    case HVD_AVERAGE: return a + b;
    case HVD_MIN: return b < a ? b : a;
    case HVD_MAX: return b > a ? b : a;
    case HVD_PRODUCT: return a * b;
    case HVD_AND:
    case HVD_OR:
    case HVD_XOR: break; /* not of reals */
    }
    return 0;
}

static struct number input(const struct numbers *how, uint32_t rank, uint64_t place)
{
    uint8_t bytes[8] = { 0 };

    numbers_put(how, rank, place, bytes);
    return numbers_read(how->type, bytes);
}

static uint64_t reduce_wholes(const struct numbers *how, const uint32_t *ranks, uint32_t count,
                              uint32_t size, uint64_t place)
{
    bool has_sign = kinds[how->type].has_sign;
    uint64_t sum = (uint64_t)input(how, ranks[0], place).whole;

    if (how->type == HVD_BOOL)
        sum = sum != 0;
    for (uint32_t i = 1; i < count; i++) {
        uint64_t next = (uint64_t)input(how, ranks[i], place).whole;

        sum = two_wholes(how->op, has_sign, sum, how->type == HVD_BOOL ? next != 0 : next);
    }
    if (how->op != HVD_AVERAGE)
        return sum;
    return has_sign ? (uint64_t)((int64_t)sum / (int64_t)size) : sum / size;
}

static double scale_of(double scale)
{
    return scale != 0 ? scale : 1;
}

/* The reduced value. *ret_volume: the sum of magnitudes; the error of the sum is a part of it. */
static long double reduce_reals(const struct numbers *how, const uint32_t *ranks, uint32_t count,
                                uint32_t size, uint64_t place, long double *ret_volume)
{
    long double scale = scale_of(how->prescale), volume = 0, sum = 0;

    for (uint32_t i = 0; i < count; i++) {
        long double next = input(how, ranks[i], place).real * scale;

        sum = i ? two_reals(how->op, sum, next) : next;
        volume += fabsl(next);
    }
    if (how->op == HVD_PRODUCT)
        volume = fabsl(sum);
    scale = scale_of(how->postscale) / (how->op == HVD_AVERAGE ? size : 1);
    *ret_volume = volume * fabsl(scale);
    return sum * scale;
}

static bool is_near(const struct numbers *how, uint32_t count, long double right,
                    long double volume, long double got)
{
    const struct kind *kind = &kinds[how->type];
    long double rounded, slack;
    uint8_t bytes[8];

    write_real(how->type, right, bytes);
    rounded = numbers_read(how->type, bytes).real;
    if (got == rounded)
        return true;
    if (isinf(rounded) || isnan(got) || isinf(got) || (!how->loose && how->op != HVD_AVERAGE))
        return false;
    /* half a digit for each step in the working type, and one digit for the result */
    slack = ldexpl(volume, -kind->work) * (count + 3) + ldexpl(fabsl(right), -kind->digits) +
            ldexpl(1, kind->least - kind->digits + 1);
    return fabsl(got - right) <= slack;
}

bool numbers_reduced(const struct numbers *how, const uint32_t *ranks, uint32_t count,
                     uint32_t size, uint64_t place, const void *got)
{
    long double right, volume;
    uint8_t bytes[8];

    if (numbers_are_real(how->type)) {
        right = reduce_reals(how, ranks, count, size, place, &volume);
        return is_near(how, count, right, volume, numbers_read(how->type, got).real);
    }
    if (how->type == HVD_BOOL) /* another true byte than 1 may have stayed as it is */
        return !reduce_wholes(how, ranks, count, size, place) == !*(const uint8_t *)got;
    write_whole(how->type, reduce_wholes(how, ranks, count, size, place), bytes);
    return !memcmp(bytes, got, kinds[how->type].bytes);
}

bool numbers_same(const struct numbers *how, uint32_t rank, uint64_t place, const void *got)
{
    uint8_t bytes[8];

    numbers_put(how, rank, place, bytes);
    return !memcmp(bytes, got, kinds[how->type].bytes);
}

/* ---- text --- */

void numbers_show(hvd_dtype type, const void *at, char text[48])
{
    struct number number = numbers_read(type, at);

    if (numbers_are_real(type))
        (void)snprintf(text, 48, "%.17Lg", number.real);
    else
        (void)snprintf(text, 48, "%" PRId64, number.whole);
}

void numbers_show_reduced(const struct numbers *how, const uint32_t *ranks, uint32_t count,
                          uint32_t size, uint64_t place, char text[48])
{
    long double volume;
    uint8_t bytes[8];

    if (numbers_are_real(how->type)) {
        (void)snprintf(text, 48, "%.17Lg", reduce_reals(how, ranks, count, size, place, &volume));
        return;
    }
    write_whole(how->type, reduce_wholes(how, ranks, count, size, place), bytes);
    numbers_show(how->type, bytes, text);
}
