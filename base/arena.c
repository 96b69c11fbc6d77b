#include "base/arena.h"

#include "base/mem.h"

/* Chunks double, so that a large message costs few allocations and a small one little memory. */
#define CHUNK_BYTES_MIN 2048

struct arena_chunk {
    struct arena_chunk *next;
    size_t size; /* of data */
    size_t used;
    max_align_t data[];
};

void arena_init(struct arena *arena, size_t cap)
{
    *arena = (struct arena){ .cap = cap };
}

void arena_release(struct arena *arena)
{
    if (!arena)
        return;
    while (arena->chunks) {
        struct arena_chunk *next = arena->chunks->next;

        mem_free(arena->chunks);
        arena->chunks = next;
    }
    arena_init(arena, arena->cap);
}

static struct arena_chunk *add_chunk(struct arena *arena, size_t bytes)
{
    size_t size = arena->taken;
    struct arena_chunk *chunk;

    if (size < CHUNK_BYTES_MIN)
        size = CHUNK_BYTES_MIN;
    if (size < bytes)
        size = bytes;
    if (size > arena->cap - arena->taken)
        size = bytes; /* near the cap, take what is needed and no more */
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
    return chunk;
}

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
    if (!chunk || bytes > chunk->size - chunk->used)
        chunk = add_chunk(arena, bytes);
    if (!chunk)
        return NULL;
    block = (char *)chunk->data + chunk->used;
    chunk->used += bytes;
    return block;
}

void *arena_alloc_array(struct arena *arena, size_t count, size_t size)
{
    if (size && count > SIZE_MAX / size) {
        arena->full = true;
        return NULL;
    }
    return arena_alloc(arena, count * size);
}
