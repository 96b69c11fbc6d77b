/*
 * entry_type.h: the type of an entry of the state, as messages and checkpoints carry it: 0 for
 * bytes of no known type, else 1 + enum hvd_dtype.
 */
#ifndef PROTO_ENTRY_TYPE_H
#define PROTO_ENTRY_TYPE_H

#include "base/err.h"

#define ENTRY_TYPE_BYTES     0
#define ENTRY_TYPE_OF(dtype) ((uint32_t)(dtype) + 1)

/* Returns ENTRY_TYPE_OF(dtype); ENTRY_TYPE_BYTES: there is no such type. */
uint32_t entry_type_of(hvd_dtype dtype);

/* Returns the size of one element; 1 for ENTRY_TYPE_BYTES; 0: an unknown type, of a newer
 * version. */
size_t entry_type_bytes(uint32_t type);

/* Returns the name of a type for texts: "float32", "bytes" or "an unknown type". */
const char *entry_type_text(uint32_t type);

#endif
