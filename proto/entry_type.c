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
};

_Static_assert(ARRAY_SIZE(types) == ENTRY_TYPE_OF(HVD_FLOAT64) + 1, "a row for each type");
_Static_assert(ARRAY_SIZE(types) <= LIMIT_ENTRY_TYPE + 1, "each type fits into a message");

size_t entry_type_bytes(uint32_t type)
{
    return type < ARRAY_SIZE(types) ? types[type].bytes : 0;
}

const char *entry_type_text(uint32_t type)
{
    return type < ARRAY_SIZE(types) ? types[type].text : "an unknown type";
}
