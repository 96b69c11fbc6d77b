/*
 * stream.h: copies bytes and adds them to a checksum at the same time. A large copy bypasses the
 * caches where the processor can do that: the copy is not read soon, and the data of the training
 * stays in the caches.
 */
#ifndef STATE_SNAPSHOT_STREAM_H
#define STATE_SNAPSHOT_STREAM_H

#include "state/sum.h"

/* Copies bytes, which must not overlap, and adds them to *sum. `much` is true: the bytes belong to
 * a copy that is larger than the caches. For small pieces the checksum is computed from `to`, so it
 * fits the copy even when another thread writes to `from` at the same time. */
void stream_copy(void *to, const void *from, size_t bytes, bool much, struct sum *sum);

#endif
