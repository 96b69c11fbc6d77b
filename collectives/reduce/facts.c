/*
 * facts.c: the rows of facts.h. The two switches have no default: the compiler refuses a value of
 * hvd_op or hvd_dtype that they do not name (-Wswitch), and the assertions refuse a missing row.
 */
#include "collectives/reduce/facts.h"

#include "gpu/nccl.h"

/* clang-format off */
static const struct reduce_op ops[] = {
    /*                name       combine               neutral          averages  NCCL */
    [HVD_SUM]     = { "sum",     REDUCE_ADD,           REDUCE_ZERO,     false,    NCCL_SUM },
    [HVD_AVERAGE] = { "average", REDUCE_ADD,           REDUCE_ZERO,     true,     NCCL_AVERAGE },
    [HVD_MIN]     = { "min",     REDUCE_TAKE_LEAST,    REDUCE_GREATEST, false,    NCCL_MIN },
    [HVD_MAX]     = { "max",     REDUCE_TAKE_GREATEST, REDUCE_LEAST,    false,    NCCL_MAX },
    [HVD_PRODUCT] = { "product", REDUCE_MULTIPLY,      REDUCE_ONE,      false,    NCCL_PRODUCT },
    [HVD_AND]     = { "and",     REDUCE_BITS_AND,      REDUCE_ALL_BITS, false,    REDUCE_NOT_BY_NCCL },
    [HVD_OR]      = { "or",      REDUCE_BITS_OR,       REDUCE_ZERO,     false,    REDUCE_NOT_BY_NCCL },
    [HVD_XOR]     = { "xor",     REDUCE_BITS_XOR,      REDUCE_ZERO,     false,    REDUCE_NOT_BY_NCCL },
};

static const struct reduce_type types[] = {
    /*                 name      bytes real   sign   work         for averages NCCL */
    [HVD_UINT8]    = { "uint8",    1, false, false, HVD_UINT8,   HVD_INT64,   NCCL_UINT8 },
    [HVD_INT8]     = { "int8",     1, false, true,  HVD_INT8,    HVD_INT64,   NCCL_INT8 },
    [HVD_INT32]    = { "int32",    4, false, true,  HVD_INT32,   HVD_INT64,   NCCL_INT32 },
    [HVD_INT64]    = { "int64",    8, false, true,  HVD_INT64,   HVD_INT64,   NCCL_INT64 },
    [HVD_FLOAT16]  = { "float16",  2, true,  true,  HVD_FLOAT32, HVD_FLOAT32, NCCL_FLOAT16 },
    [HVD_BFLOAT16] = { "bfloat16", 2, true,  true,  HVD_FLOAT32, HVD_FLOAT32, NCCL_BFLOAT16 },
    [HVD_FLOAT32]  = { "float32",  4, true,  true,  HVD_FLOAT32, HVD_FLOAT32, NCCL_FLOAT32 },
    [HVD_FLOAT64]  = { "float64",  8, true,  true,  HVD_FLOAT64, HVD_FLOAT64, NCCL_FLOAT64 },
    [HVD_INT16]    = { "int16",    2, false, true,  HVD_INT16,   HVD_INT64,   REDUCE_NOT_BY_NCCL },
    [HVD_UINT16]   = { "uint16",   2, false, false, HVD_UINT16,  HVD_INT64,   REDUCE_NOT_BY_NCCL },
    [HVD_UINT32]   = { "uint32",   4, false, false, HVD_UINT32,  HVD_INT64,   NCCL_UINT32 },
    [HVD_UINT64]   = { "uint64",   8, false, false, HVD_UINT64,  HVD_UINT64,  NCCL_UINT64 },
    [HVD_BOOL]     = { "bool",     1, false, false, HVD_BOOL,    HVD_BOOL,    REDUCE_NOT_BY_NCCL },
};
/* clang-format on */

_Static_assert(ARRAY_SIZE(ops) == HVD_OP_COUNT, "a row for each op");
_Static_assert(ARRAY_SIZE(types) == HVD_DTYPE_COUNT, "a row for each type");

/* Returns the facts about this op; NULL: there is no such op. */
const struct reduce_op *reduce_op(hvd_op op)
{
    switch (op) {
    case HVD_SUM:
    case HVD_AVERAGE:
    case HVD_MIN:
    case HVD_MAX:
    case HVD_PRODUCT:
    case HVD_AND:
    case HVD_OR:
    case HVD_XOR: return &ops[op];
    }
    return NULL;
}

/* Returns the facts about this type; NULL: there is no such type. */
const struct reduce_type *reduce_type(hvd_dtype type)
{
    switch (type) {
    case HVD_UINT8:
    case HVD_INT8:
    case HVD_INT32:
    case HVD_INT64:
    case HVD_FLOAT16:
    case HVD_BFLOAT16:
    case HVD_FLOAT32:
    case HVD_FLOAT64:
    case HVD_INT16:
    case HVD_UINT16:
    case HVD_UINT32:
    case HVD_UINT64:
    case HVD_BOOL: return &types[type];
    }
    return NULL;
}
