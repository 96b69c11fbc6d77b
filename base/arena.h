/*
 * arena.h: memory that is given out piece by piece, zero-filled, and freed as a whole. An arena
 * refuses to grow past a cap, so a small input cannot make a decoder use much memory.
 */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include "base/base.h"

#include <stdarg.h>

struct arena {
    struct arena_chunk *chunks; /* list of chunks, the newest first */
    size_t taken;               /* bytes of all chunks together */
    size_t cap;
    bool full;    /* a request was refused because of the cap */
    bool starved; /* a request was refused because memory is out */
};

void arena_init(struct arena *arena, size_t cap);
void arena_release(struct arena *arena); /* wipes the memory, as messages may hold keys */

/* Both return zeroed memory that is aligned for any type; NULL when memory or the cap is out. */
void *arena_alloc(struct arena *arena, size_t bytes) MUST_CHECK;
void *arena_alloc_array(struct arena *arena, size_t count, size_t size) MUST_CHECK;

/* Formats a line as text_line does, of less than `max` bytes (`max` is at most 1025), in the arena;
 * NULL when memory or the cap is out. */
const char *arena_line(struct arena *arena, size_t max, const char *format, va_list args)
    PRINTF_LIKE(3, 0);

#endif
