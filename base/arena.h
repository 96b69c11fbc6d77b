/*
 * arena.h: memory that is given out piece by piece, zero-filled, and freed as a whole. It refuses
 * to grow past a cap, so that what a small input unfolds to is bounded.
 */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include "base/base.h"

struct arena {
    struct arena_chunk *chunks; /* the newest first */
    size_t taken;               /* bytes of all chunks */
    size_t cap;
    bool full;    /* a request was refused because of the cap */
    bool starved; /* a request was refused because memory is out */
};

void arena_init(struct arena *arena, size_t cap);
void arena_release(struct arena *arena);

/* Zeroed, aligned for any type; NULL when memory or the cap is out. */
void *arena_alloc(struct arena *arena, size_t bytes) MUST_CHECK;
void *arena_alloc_array(struct arena *arena, size_t count, size_t size) MUST_CHECK;

#endif
