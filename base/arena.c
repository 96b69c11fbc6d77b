/*
 * arena.c: memory that is freed all at once, with a cap. Called by the decoder, and by all code
 * whose many small objects live as long as one message or step. The fields full and starved say why
 * an allocation failed: the cap was reached, or no memory was left.
 */
#include "base/arena.h"

#include "base/limits.h"
#include "base/mem.h"
#include "base/panic.h"
#include "base/text.h"

#include <string.h>

/* The least size of a chunk. A new chunk is as large as all chunks before it together, so that a
 * large message needs few allocations and a small message needs little memory. */
#define CHUNK_BYTES_MIN 2048

struct arena_chunk {
    struct arena_chunk *next;
    size_t size; /* bytes of data */
    size_t used;
    max_align_t data[];
};

void arena_init(struct arena *arena, size_t cap)
{
    *arena = (struct arena){ .cap = cap };
}

/* Frees all memory that was taken from the arena. The arena is empty then, and can be used
 * again. */
void arena_release(struct arena *arena)
{
    if (!arena)
        return;
    while (arena->chunks) {
        struct arena_chunk *next = arena->chunks->next;

        /* the bytes may be of a message that has a key */
        explicit_bzero(arena->chunks->data, arena->chunks->used);
        mem_free(arena->chunks);
        arena->chunks = next;
    }
    arena_init(arena, arena->cap);
}

/* Returns zeroed memory of the arena. NULL: the cap is reached (`full`), or no memory is left
 * (`starved`). */
void *arena_alloc(struct arena *arena, size_t bytes)
{
    const size_t align = _Alignof(max_align_t);
    struct arena_chunk *chunk = arena->chunks;
    char *block;

    if (bytes > SIZE_MAX / 2) {
        arena->full = true;
        return NULL;
    }
    bytes = (bytes + align - 1) / align * align;
    if (!chunk || bytes > chunk->size - chunk->used) {
        size_t size = arena->taken > CHUNK_BYTES_MIN ? arena->taken : CHUNK_BYTES_MIN;

        if (size < bytes || size > arena->cap - arena->taken)
            size = bytes; /* near the cap only the needed bytes are taken */
        if (size > arena->cap - arena->taken) {
            arena->full = true;
            return NULL;
        }
        chunk = mem_zalloc(sizeof(*chunk) + size);
        if (!chunk) {
            arena->starved = true;
            return NULL;
        }
        chunk->size = size;
        chunk->next = arena->chunks;
        arena->chunks = chunk;
        arena->taken += size;
    }
    block = (char *)chunk->data + chunk->used;
    chunk->used += bytes;
    return block;
}

/* As arena_alloc, for `count` items of `size` bytes; a product that overflows counts as too
 * large. */
void *arena_alloc_array(struct arena *arena, size_t count, size_t size)
{
    if (size && count > SIZE_MAX / size) {
        arena->full = true;
        return NULL;
    }
    return arena_alloc(arena, count * size);
}

/* Formats a line into memory of the arena, cut to `max` bytes with its NUL. NULL: the cap is
 * reached, or no memory is left. */
const char *arena_line(struct arena *arena, size_t max, const char *format, va_list args)
{
    char line[LIMIT_TEXT_BYTES + 1];
    size_t length;
    char *text;

    ASSERT(max <= sizeof(line));
    length = text_line(line, max, format, args);
    text = arena_alloc(arena, length + 1);
    return text ? memcpy(text, line, length + 1) : NULL;
}
