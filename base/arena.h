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
    bool starved; /* a request was refused because no memory is left */
};

void arena_init(struct arena *arena, size_t cap);
void arena_release(struct arena *arena); /* wipes the memory, as messages may hold keys */

/* arena_alloc and arena_alloc_array return zeroed memory that is aligned for any type; NULL: the
 * cap is reached, or no memory is left. */
void *arena_alloc(struct arena *arena, size_t bytes) MUST_CHECK;
void *arena_alloc_array(struct arena *arena, size_t count, size_t size) MUST_CHECK;

/* Writes a formatted line into memory of the arena and returns it. Control characters become
 * blanks. The line with its NUL has at most `max` bytes (`max` is at most 1025); a longer line is
 * cut and ends in "..." (text_line in text.h). NULL: the cap is reached, or no memory is left. */
const char *arena_line(struct arena *arena, size_t max, const char *format, va_list args)
    PRINTF_LIKE(3, 0);

#endif
