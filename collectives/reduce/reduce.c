#include "collectives/reduce/reduce.h"

#include "base/panic.h"
#include "collectives/reduce/half.h"

#include <string.h>

/* The types in which work is done; unsigned ones wrap around as both kinds of whole numbers do. */
#define SUM(a, b)     ((a) + (b))
#define MIN(a, b)     ((b) < (a) ? (b) : (a))
#define MAX(a, b)     ((b) > (a) ? (b) : (a))
#define PRODUCT(a, b) ((a) * (b))

struct type_facts {
    const char *name;
    size_t bytes;
};

static const struct type_facts types[] = {
    [HVD_UINT8] = {"uint8",     1},
      [HVD_INT8] = { "int8",     1},
    [HVD_INT32] = { "int32",    4},
      [HVD_INT64] = { "int64",    8},
    [HVD_FLOAT16] = { "float16",  2},
      [HVD_BFLOAT16] = { "bfloat16", 2},
    [HVD_FLOAT32] = { "float32",  4},
      [HVD_FLOAT64] = { "float64",  8},
};

static const char *const ops[] = {
    [HVD_SUM] = "sum", [HVD_AVERAGE] = "average", [HVD_MIN] = "min",
    [HVD_MAX] = "max", [HVD_PRODUCT] = "product",
};

size_t reduce_type_bytes(hvd_dtype type)
{
    return (size_t)type < ARRAY_SIZE(types) ? types[type].bytes : 0;
}

const char *reduce_type_name(hvd_dtype type)
{
    return (size_t)type < ARRAY_SIZE(types) ? types[type].name : "?";
}

const char *reduce_op_name(hvd_op op)
{
    return (size_t)op < ARRAY_SIZE(ops) ? ops[op] : "?";
}

bool reduce_knows(hvd_dtype type, hvd_op op)
{
    return reduce_type_bytes(type) && (size_t)op < ARRAY_SIZE(ops);
}

hvd_dtype reduce_work_type(hvd_dtype type, hvd_op op)
{
    if (type == HVD_FLOAT16 || type == HVD_BFLOAT16)
        return HVD_FLOAT32;
    if (op == HVD_AVERAGE && (type == HVD_UINT8 || type == HVD_INT8 || type == HVD_INT32))
        return HVD_INT64;
    return type;
}

/* ---- from a type to its work type and back ---- */

#define CONVERT(name, to_type, from_type, expression)                  \
    static void name(to_type *to, const from_type *from, size_t count) \
    {                                                                  \
        for (size_t i = 0; i < count; i++) {                           \
            const from_type x = from[i];                               \
            to[i] = (to_type)(expression);                             \
        }                                                              \
    }

CONVERT(widen_half, float, uint16_t, half_to_float(x))
CONVERT(widen_bfloat, float, uint16_t, bfloat_to_float(x))
CONVERT(widen_u8, int64_t, uint8_t, x)
CONVERT(widen_i8, int64_t, int8_t, x)
CONVERT(widen_i32, int64_t, int32_t, x)
CONVERT(narrow_half, uint16_t, float, half_from_float(x))
CONVERT(narrow_bfloat, uint16_t, float, bfloat_from_float(x))
CONVERT(narrow_u8, uint8_t, int64_t, x)
CONVERT(narrow_i8, int8_t, int64_t, x)
CONVERT(narrow_i32, int32_t, int64_t, x)

void reduce_widen(void *work, const void *from, size_t count, hvd_dtype type, hvd_op op)
{
    if (reduce_work_type(type, op) == type) {
        if (count && work != from)
            memcpy(work, from, count * types[type].bytes);
        return;
    }
    switch (type) {
    case HVD_FLOAT16: widen_half(work, from, count); break;
    case HVD_BFLOAT16: widen_bfloat(work, from, count); break;
    case HVD_UINT8: widen_u8(work, from, count); break;
    case HVD_INT8: widen_i8(work, from, count); break;
    case HVD_INT32: widen_i32(work, from, count); break;
    default: ASSERT(false);
    }
}

#define DIVIDE(name, type)                                    \
    static void name(type *work, size_t count, uint32_t size) \
    {                                                         \
        for (size_t i = 0; i < count; i++)                    \
            work[i] /= (type)size;                            \
    }

DIVIDE(divide_i64, int64_t)
DIVIDE(divide_f32, float)
DIVIDE(divide_f64, double)

static void divide(void *work, size_t count, hvd_dtype type, uint32_t size)
{
    switch (type) {
    case HVD_INT64: divide_i64(work, count, size); break;
    case HVD_FLOAT32: divide_f32(work, count, size); break;
    case HVD_FLOAT64: divide_f64(work, count, size); break;
    default: ASSERT(false);
    }
}

void reduce_narrow(void *to, void *work, size_t count, hvd_dtype type, hvd_op op, uint32_t size)
{
    if (op == HVD_AVERAGE)
        divide(work, count, reduce_work_type(type, op), size);
    if (reduce_work_type(type, op) == type) {
        if (count && to != work)
            memcpy(to, work, count * types[type].bytes);
        return;
    }
    switch (type) {
    case HVD_FLOAT16: narrow_half(to, work, count); break;
    case HVD_BFLOAT16: narrow_bfloat(to, work, count); break;
    case HVD_UINT8: narrow_u8(to, work, count); break;
    case HVD_INT8: narrow_i8(to, work, count); break;
    case HVD_INT32: narrow_i32(to, work, count); break;
    default: ASSERT(false);
    }
}

/* ---- two by two ---- */

#define REDUCE(name, type, wrapped, combine)                                        \
    static void name(type *into, const type *left, const type *right, size_t count) \
    {                                                                               \
        for (size_t i = 0; i < count; i++)                                          \
            into[i] = (type)combine((wrapped)left[i], (wrapped)right[i]);           \
    }

/* wrapped: the type in which a sum may overflow. */
#define REDUCE_ALL(suffix, type, wrapped)            \
    REDUCE(sum_##suffix, type, wrapped, SUM)         \
    REDUCE(product_##suffix, type, wrapped, PRODUCT) \
    REDUCE(min_##suffix, type, type, MIN)            \
    REDUCE(max_##suffix, type, type, MAX)

REDUCE_ALL(u8, uint8_t, uint32_t)
REDUCE_ALL(i8, int8_t, uint32_t)
REDUCE_ALL(i32, int32_t, uint32_t)
REDUCE_ALL(i64, int64_t, uint64_t)
REDUCE_ALL(f32, float, float)
REDUCE_ALL(f64, double, double)

#define CASES(suffix)                                                    \
    switch (op) {                                                        \
    case HVD_SUM:                                                        \
    case HVD_AVERAGE: sum_##suffix(into, left, right, count); break;     \
    case HVD_MIN: min_##suffix(into, left, right, count); break;         \
    case HVD_MAX: max_##suffix(into, left, right, count); break;         \
    case HVD_PRODUCT: product_##suffix(into, left, right, count); break; \
    }                                                                    \
    break

void reduce_two(void *into, const void *left, const void *right, size_t count, hvd_dtype work,
                hvd_op op)
{
    switch (work) {
    case HVD_UINT8: CASES(u8);
    case HVD_INT8: CASES(i8);
    case HVD_INT32: CASES(i32);
    case HVD_INT64: CASES(i64);
    case HVD_FLOAT32: CASES(f32);
    case HVD_FLOAT64: CASES(f64);
    default: ASSERT(false);
    }
}
