/*
 * stream.h: copying, and the checksum on the way. Much of it goes past the caches where the machine
 * can do that: nobody reads it soon, and what the training needs stays in them.
 */
#ifndef STATE_SNAPSHOT_STREAM_H
#define STATE_SNAPSHOT_STREAM_H

#include "state/sum.h"

/* They must not overlap. The bytes are added to the sum: small pieces as they were written, so that
 * they have their checksum even if somebody writes to `from` meanwhile. much: this is a part of
 * more than a cache holds. */
void stream_copy(void *to, const void *from, size_t bytes, bool much, struct sum *sum);

#endif
