/*
 * test_reduce.c: collectives/reduce: the rounding of halves (16-bit numbers), every type and
 * operation, the order of sums, and identities.
 */
#include "collectives/reduce/facts.h"
#include "collectives/reduce/half.h"
#include "collectives/reduce/reduce.h"
#include "tests/lib/fixture.h"

#include <math.h>
#include <string.h>

/* Every fp16 number becomes the float that its bits mean, and back. */
TEST(half_is_exact)
{
    for (uint32_t bits = 0; bits <= UINT16_MAX; bits++) {
        uint32_t exponent = bits >> 10 & 0x1f, fraction = bits & 0x3ff;
        float sign = bits & 0x8000 ? -1.0f : 1.0f;
        float value = half_to_float((uint16_t)bits);

        if (exponent == 31 && fraction) {
            CHECK(t, isnan(value) && isnan(half_to_float(half_from_float(value))));
            continue;
        }
        if (exponent == 31)
            CHECK(t, isinf(value) && (value > 0) == (sign > 0));
        else if (exponent)
            CHECK(t, value == sign * ldexpf((float)(fraction | 0x400), (int)exponent - 25));
        else
            CHECK(t, value == sign * ldexpf((float)fraction, -24));
        CHECK_INT(t, half_from_float(value), ==, bits);
    }
}

/* A float between two halves becomes the nearer one, or in the middle the even one. */
TEST(half_rounds_to_even)
{
    for (uint32_t bits = 0; bits < 0x7bff; bits++) {
        float low = half_to_float((uint16_t)bits), high = half_to_float((uint16_t)(bits + 1));
        float middle = (low + high) / 2;
        uint32_t even = bits & 1 ? bits + 1 : bits;

        CHECK_INT(t, half_from_float(middle), ==, even);
        CHECK_INT(t, half_from_float(nextafterf(middle, low)), ==, bits);
        CHECK_INT(t, half_from_float(nextafterf(middle, high)), ==, bits + 1);
        CHECK_INT(t, half_from_float(-middle), ==, even | 0x8000);
    }
    CHECK_INT(t, half_from_float(65504.0f), ==, 0x7bff);
    CHECK_INT(t, half_from_float(65519.9f), ==, 0x7bff);
    CHECK_INT(t, half_from_float(65520.0f), ==, 0x7c00);
    CHECK_INT(t, half_from_float(1e30f), ==, 0x7c00);
    CHECK_INT(t, half_from_float(-1e30f), ==, 0xfc00);
    CHECK_INT(t, half_from_float(1e-30f), ==, 0);
}

TEST(bfloat_rounds_to_even)
{
    for (uint32_t bits = 0; bits < 0x7f7f; bits++) {
        float low = bfloat_to_float((uint16_t)bits), high = bfloat_to_float((uint16_t)(bits + 1));
        float middle = (float)(((double)low + (double)high) / 2);

        CHECK_INT(t, bfloat_from_float(low), ==, bits);
        CHECK_INT(t, bfloat_from_float(middle), ==, bits & 1 ? bits + 1 : bits);
    }
    CHECK(t, isnan(bfloat_to_float(bfloat_from_float(NAN))));
    CHECK_INT(t, bfloat_from_float(INFINITY), ==, 0x7f80);
}

/* Reads the number; put writes a number of the type. */
static double back(hvd_dtype type, const void *at)
{
    uint16_t half;
    float single;
    double value;
    int64_t wide;
    int32_t whole;

    switch (type) {
    case HVD_UINT8: return *(const uint8_t *)at;
    case HVD_INT8: return *(const int8_t *)at;
    case HVD_BOOL: return *(const uint8_t *)at;
    case HVD_INT16: memcpy(&half, at, sizeof(half)); return (int16_t)half;
    case HVD_UINT16: memcpy(&half, at, sizeof(half)); return half;
    case HVD_INT32: memcpy(&whole, at, sizeof(whole)); return whole;
    case HVD_UINT32: memcpy(&whole, at, sizeof(whole)); return (uint32_t)whole;
    case HVD_INT64: memcpy(&wide, at, sizeof(wide)); return (double)wide;
    case HVD_UINT64: memcpy(&wide, at, sizeof(wide)); return (double)(uint64_t)wide;
    case HVD_FLOAT16: memcpy(&half, at, sizeof(half)); return (double)half_to_float(half);
    case HVD_BFLOAT16: memcpy(&half, at, sizeof(half)); return (double)bfloat_to_float(half);
    case HVD_FLOAT32: memcpy(&single, at, sizeof(single)); return (double)single;
    case HVD_FLOAT64: memcpy(&value, at, sizeof(value)); return value;
    }
    return 0;
}

static void put(hvd_dtype type, void *at, double number)
{
    uint16_t half;
    float single = (float)number;
    int64_t wide = number < 0x1p63 ? (int64_t)number : (int64_t)(uint64_t)number;

    switch (type) {
    case HVD_UINT8:
    case HVD_INT8:
    case HVD_INT16:
    case HVD_UINT16:
    case HVD_INT32:
    case HVD_UINT32:
    case HVD_INT64:
    case HVD_UINT64:
    case HVD_BOOL: memcpy(at, &wide, reduce_type_bytes(type)); break; /* the lowest bytes */
    case HVD_FLOAT16:
        half = half_from_float(single);
        memcpy(at, &half, sizeof(half));
        break;
    case HVD_BFLOAT16:
        half = bfloat_from_float(single);
        memcpy(at, &half, sizeof(half));
        break;
    case HVD_FLOAT32: memcpy(at, &single, sizeof(single)); break;
    case HVD_FLOAT64: memcpy(at, &number, sizeof(number)); break;
    }
}

static const struct reduction sum_of_reals = { HVD_FLOAT32, HVD_SUM, 2, 1, 1 };

/* Returns left op right, computed step by step, with the factors. */
static double scaled(hvd_dtype type, hvd_op op, double left, double right, double prescale,
                     double postscale)
{
    const struct reduction how = { type, op, 2, prescale, postscale };
    uint8_t first[8], second[8], first_work[8], second_work[8], result[8];

    put(type, first, left);
    put(type, second, right);
    reduce_widen(first_work, first, 1, &how);
    reduce_widen(second_work, second, 1, &how);
    reduce_two(first_work, first_work, second_work, 1, &how);
    reduce_narrow(result, first_work, 1, &how);
    return back(type, result);
}

static double reduced(hvd_dtype type, hvd_op op, double left, double right)
{
    return scaled(type, op, left, right, 1, 1);
}

TEST(every_type_and_op)
{
    for (hvd_dtype type = HVD_UINT8; type < HVD_BOOL; type++) {
        bool whole = !reduce_type_is_real(type);

        CHECK(t, reduced(type, HVD_SUM, 3, 8) == 11);
        CHECK(t, reduced(type, HVD_AVERAGE, 3, 8) == (whole ? 5 : 5.5));
        CHECK(t, reduced(type, HVD_MIN, 3, 8) == 3 && reduced(type, HVD_MIN, 8, 3) == 3);
        CHECK(t, reduced(type, HVD_MAX, 3, 8) == 8 && reduced(type, HVD_MAX, 8, 3) == 8);
        CHECK(t, reduced(type, HVD_PRODUCT, 3, 8) == 24);
        if (whole) {
            CHECK(t, reduced(type, HVD_AND, 12, 10) == 8 && reduced(type, HVD_OR, 12, 10) == 14);
            CHECK(t, reduced(type, HVD_XOR, 12, 10) == 6);
        }
        if (reduce_type(type)->has_sign) {
            CHECK(t, reduced(type, HVD_SUM, -3, 8) == 5);
            CHECK(t, reduced(type, HVD_AVERAGE, -3, -4) == (whole ? -3 : -3.5));
            CHECK(t, reduced(type, HVD_MIN, -3, 8) == -3);
        }
    }
}

/* An HVD_BOOL is true by any byte but 0; what is written is 0 or 1. */
TEST(truths)
{
    static const struct {
        hvd_op op;
        double results[4]; /* of false and false, false and true, true and false, both */
    } rows[] = {
        {HVD_AND,  { 0, 0, 0, 1 }},
        { HVD_MIN, { 0, 0, 0, 1 }},
        { HVD_OR,  { 0, 1, 1, 1 }},
        { HVD_MAX, { 0, 1, 1, 1 }},
        { HVD_XOR, { 0, 1, 1, 0 }},
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        for (int two = 0; two < 4; two++)
            for (int byte = 1; byte < 256; byte += 127)
                CHECK(t, reduced(HVD_BOOL, rows[i].op, two & 2 ? 2 : 0, two & 1 ? byte : 0) ==
                             rows[i].results[two]);
}

/* Sums of whole numbers wrap around. Averages do not, because they are computed in 64 bits. */
TEST(whole_numbers_wrap)
{
    CHECK(t, reduced(HVD_UINT8, HVD_SUM, 200, 100) == 44);
    CHECK(t, reduced(HVD_INT8, HVD_SUM, 100, 100) == -56);
    CHECK(t, reduced(HVD_INT32, HVD_SUM, INT32_MAX, 1) == (double)INT32_MIN);
    CHECK(t, reduced(HVD_INT32, HVD_PRODUCT, 65536, 65536) == 0);
    CHECK(t, reduced(HVD_INT64, HVD_SUM, -0x1p63, -1) == 0x1p63 - 1 ||
                 reduced(HVD_INT64, HVD_SUM, -0x1p63, -1) == 0x1p63);
    CHECK(t, reduced(HVD_INT16, HVD_SUM, INT16_MAX, 1) == INT16_MIN);
    CHECK(t, reduced(HVD_UINT16, HVD_PRODUCT, UINT16_MAX, UINT16_MAX) == 1);
    CHECK(t, reduced(HVD_UINT32, HVD_SUM, UINT32_MAX, 2) == 1);
    CHECK(t, reduced(HVD_UINT64, HVD_MAX, 0x1p63, 1) == 0x1p63);
    CHECK(t, reduced(HVD_UINT64, HVD_MIN, 0x1p63, 1) == 1);
    CHECK(t, reduced(HVD_UINT64, HVD_AVERAGE, 0x1p63, 0x1p62) == 0x1p62 + 0x1p61);
    CHECK(t, reduced(HVD_UINT32, HVD_AVERAGE, UINT32_MAX, UINT32_MAX) == UINT32_MAX);
    CHECK(t, reduced(HVD_INT16, HVD_AVERAGE, INT16_MIN, INT16_MIN) == INT16_MIN);
    CHECK(t, reduced(HVD_UINT8, HVD_AVERAGE, 200, 100) == 150);
    CHECK(t, reduced(HVD_INT8, HVD_AVERAGE, -100, -100) == -100);
    CHECK(t, reduced(HVD_INT32, HVD_AVERAGE, INT32_MAX, INT32_MAX) == INT32_MAX);
}

/* Real numbers are scaled before and after the sum; whole numbers are not. */
TEST(only_reals_are_scaled)
{
    for (hvd_dtype type = HVD_UINT8; type < HVD_BOOL; type++) {
        bool real = reduce_type_is_real(type);

        CHECK(t, real == (type >= HVD_FLOAT16 && type <= HVD_FLOAT64));
        CHECK(t, scaled(type, HVD_SUM, 3, 8, 0.5, 4) == (real ? 22 : 11));
        CHECK(t, scaled(type, HVD_AVERAGE, 3, 9, 0.5, 4) == (real ? 12 : 6));
        CHECK(t, scaled(type, HVD_PRODUCT, 3, 8, 0.5, 4) == 24);
        CHECK(t, scaled(type, HVD_MAX, 3, 8, 0.5, 1) == (real ? 4 : 8));
        if (real)
            CHECK(t, scaled(type, HVD_MAX, 3, 8, -1, 1) == -3);
    }
}

/* fp16 and bf16 are summed in fp32, so the bits that each step in 16 bits would lose are kept. */
TEST(halves_are_summed_in_fp32)
{
    static const hvd_dtype halves[] = { HVD_FLOAT16, HVD_BFLOAT16 };

    for (size_t i = 0; i < ARRAY_SIZE(halves); i++) {
        const struct reduction how = { halves[i], HVD_SUM, 1, 1, 1 };
        uint8_t big[2], small[2], to[2];
        const void *from[5] = { big, small, small, small, small };

        put(halves[i], big, 2048);
        put(halves[i], small, 1);
        reduce_finish((void *[]){ to }, 1, from, 1, 1, &how);
        CHECK(t, back(halves[i], to) == 2048);
        reduce_finish((void *[]){ to }, 1, from, 5, 1, &how);
        CHECK(t, back(halves[i], to) == (halves[i] == HVD_FLOAT16 ? 2052 : 2048));
        CHECK_INT(t, reduce_work_type(&how), ==, HVD_FLOAT32);
        CHECK_INT(t, reduce_work_bytes(&how), ==, 4);
    }
}

/* Sums follow the order of the arguments: fp32 loses the 1 beside 2^24 only if the 1 comes
 * second. */
TEST(order_is_kept)
{
    const float big = 0x1p24f, one = 1, minus = -0x1p24f;
    float to = 0;

    reduce_finish((void *[]){ &to }, 1, (const void *[]){ &big, &one, &minus }, 3, 1,
                  &sum_of_reals);
    CHECK(t, to == 0);
    reduce_finish((void *[]){ &to }, 1, (const void *[]){ &big, &minus, &one }, 3, 1,
                  &sum_of_reals);
    CHECK(t, to == 1);
    reduce_gather(&to, (const void *[]){ &minus, &big, &one }, 3, 1, &sum_of_reals);
    CHECK(t, to == 1);
}

static bool is_changed_by_identity(hvd_dtype type, hvd_op op, double number, double prescale)
{
    const struct reduction how = { type, op, 1, prescale, 1 };
    uint8_t identity[8], own[8], alone[8], first[8], last[8];
    size_t bytes = reduce_type_bytes(type);

    put(type, own, number);
    reduce_identity(identity, 1, &how);
    reduce_finish((void *[]){ alone }, 1, (const void *[]){ own }, 1, 1, &how);
    reduce_finish((void *[]){ first }, 1, (const void *[]){ identity, own }, 2, 1, &how);
    reduce_finish((void *[]){ last }, 1, (const void *[]){ own, identity }, 2, 1, &how);
    return memcmp(alone, first, bytes) != 0 || memcmp(alone, last, bytes) != 0;
}

TEST(identity_changes_nothing)
{
    static const double numbers[] = { 0, 1, 3, 100, 127, -1, -100, -128, INFINITY, -INFINITY };

    for (hvd_dtype type = HVD_UINT8; type < HVD_DTYPE_COUNT; type++)
        for (hvd_op op = HVD_SUM; op < HVD_OP_COUNT; op++)
            for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
                if (!reduce_knows(type, op) || (!reduce_type(type)->has_sign && numbers[i] < 0) ||
                    (type == HVD_BOOL && numbers[i] > 1) ||
                    (!reduce_type_is_real(type) && isinf(numbers[i])))
                    continue;
                CHECK(t, !is_changed_by_identity(type, op, numbers[i], 1));
                CHECK(t, !is_changed_by_identity(type, op, numbers[i], 0.25));
                CHECK(t, numbers[i] == 0 || !is_changed_by_identity(type, op, numbers[i], -2));
            }
}

/* As many as are asked for, and no more. */
TEST(identity_fills)
{
    const struct reduction how = { HVD_INT32, HVD_MIN, 1, 1, 1 };
    int32_t numbers[5] = { 7, 7, 7, 7, 7 };

    reduce_identity(numbers + 1, 3, &how);
    CHECK(t, numbers[0] == 7 && numbers[4] == 7);
    CHECK(t, numbers[1] == INT32_MAX && numbers[2] == INT32_MAX && numbers[3] == INT32_MAX);
}

TEST(the_unknown_is_refused)
{
    CHECK(t, reduce_knows(HVD_UINT8, HVD_SUM) && reduce_knows(HVD_FLOAT64, HVD_PRODUCT));
    CHECK(t, !reduce_knows((hvd_dtype)13, HVD_SUM) && !reduce_knows(HVD_INT8, (hvd_op)8));
    CHECK(t, !reduce_knows(HVD_BOOL, HVD_SUM) && !reduce_knows(HVD_BOOL, HVD_AVERAGE) &&
                 !reduce_knows(HVD_BOOL, HVD_PRODUCT) && reduce_knows(HVD_BOOL, HVD_MIN));
    CHECK(t, !reduce_knows(HVD_FLOAT16, HVD_AND) && !reduce_knows(HVD_FLOAT64, HVD_XOR));
    CHECK(t, !reduce_knows((hvd_dtype)-1, HVD_SUM) && !reduce_knows(HVD_INT8, (hvd_op)-1));
    CHECK_TEXT(t, reduce_type_name((hvd_dtype)99), "?");
    CHECK_TEXT(t, reduce_op_name((hvd_op)99), "?");
    CHECK_TEXT(t, reduce_type_name(HVD_BFLOAT16), "bfloat16");
    CHECK_INT(t, reduce_type_bytes((hvd_dtype)99), ==, 0);
}
