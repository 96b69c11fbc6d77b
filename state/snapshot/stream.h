/*
 * stream.h: copying much, with the checksum of what is copied. What is written goes past the caches
 * where the machine can do that: nobody reads it soon, and what the training needs stays in them.
 */
#ifndef STATE_SNAPSHOT_STREAM_H
#define STATE_SNAPSHOT_STREAM_H

#include "base/limits.h"
#include "state/sum.h"

/* A whole chunk; to is aligned to a page. Returns its checksum. */
uint64_t stream_chunk(uint8_t *to, const uint8_t *from);

#endif
