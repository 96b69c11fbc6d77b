/*
 * entry_type.c: the types that an entry of the state may have, with their sizes and names.
 *
 * The worker's library, the driver and the readers and writers of checkpoints call it. Invariant:
 * an unknown number is no error here, because a newer version may know more types.
 */
#include "proto/entry_type.h"

#include "base/base.h"
#include "base/limits.h"

struct entry_type {
    const char *text;
    size_t bytes;
};

static const struct entry_type types[] = {
    [ENTRY_TYPE_BYTES] = {"bytes",     1},
    [ENTRY_TYPE_OF(HVD_UINT8)] = { "uint8",    1},
    [ENTRY_TYPE_OF(HVD_INT8)] = { "int8",     1},
    [ENTRY_TYPE_OF(HVD_INT32)] = { "int32",    4},
    [ENTRY_TYPE_OF(HVD_INT64)] = { "int64",    8},
    [ENTRY_TYPE_OF(HVD_FLOAT16)] = { "float16",  2},
    [ENTRY_TYPE_OF(HVD_BFLOAT16)] = { "bfloat16", 2},
    [ENTRY_TYPE_OF(HVD_FLOAT32)] = { "float32",  4},
    [ENTRY_TYPE_OF(HVD_FLOAT64)] = { "float64",  8},
    [ENTRY_TYPE_OF(HVD_INT16)] = { "int16",    2},
    [ENTRY_TYPE_OF(HVD_UINT16)] = { "uint16",   2},
    [ENTRY_TYPE_OF(HVD_UINT32)] = { "uint32",   4},
    [ENTRY_TYPE_OF(HVD_UINT64)] = { "uint64",   8},
    [ENTRY_TYPE_OF(HVD_BOOL)] = { "bool",     1},
};

_Static_assert(ARRAY_SIZE(types) == ENTRY_TYPE_OF(HVD_BOOL) + 1, "a row for each type");
_Static_assert(ARRAY_SIZE(types) <= LIMIT_ENTRY_TYPE + 1, "each type fits into a message");

/* Returns the number of a type in messages and checkpoints. A new hvd_dtype that this switch does
 * not name is a compile error (-Wswitch): add a case here, and a row in `types`. */
uint32_t entry_type_of(hvd_dtype dtype)
{
    switch (dtype) {
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
    case HVD_BOOL: return ENTRY_TYPE_OF(dtype);
    }
    return ENTRY_TYPE_BYTES;
}

/* Returns the size of one element of this type; 0: this version does not know the type. */
size_t entry_type_bytes(uint32_t type)
{
    return type < ARRAY_SIZE(types) ? types[type].bytes : 0;
}

const char *entry_type_text(uint32_t type)
{
    return type < ARRAY_SIZE(types) ? types[type].text : "an unknown type";
}
