/*
 * mem.c: the memory allocation of the whole product. Called by all code; tests set an allocator
 * that fails at the k-th call (mem_set_ops). A request of zero bytes returns a block, too, so NULL
 * always means failure.
 */
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

/* The operations of libc, in the form of struct mem_ops; they need no `arg`. */
static void *libc_alloc(void *arg, size_t bytes)
{
    (void)arg;
    return malloc(bytes);
}

/* calloc does not write to pages that are new from the kernel: they are zero, and a large block
 * costs only the pages that its owner uses. */
static void *libc_zalloc(void *arg, size_t bytes)
{
    (void)arg;
    return calloc(1, bytes);
}

static void *libc_resize(void *arg, void *block, size_t bytes)
{
    (void)arg;
    return realloc(block, bytes);
}

static void libc_free(void *arg, void *block)
{
    (void)arg;
    free(block);
}

static const struct mem_ops libc_ops = { libc_alloc, libc_resize, libc_free, NULL, libc_zalloc };
static struct mem_ops current = { libc_alloc, libc_resize, libc_free, NULL, libc_zalloc };

/* Replaces the operations for all memory; NULL sets those of libc. Tests make them fail. */
void mem_set_ops(const struct mem_ops *ops)
{
    current = ops ? *ops : libc_ops;
}

/* Returns a block that is not zeroed; NULL: no memory is left. Zero bytes give a block, too. */
void *mem_alloc(size_t bytes)
{
    return current.alloc(current.arg, bytes ? bytes : 1);
}

/* Returns zeroed bytes; NULL: no memory is left. Operations without zalloc use alloc and memset. */
void *mem_zalloc(size_t bytes)
{
    void *block;

    if (current.zalloc)
        return current.zalloc(current.arg, bytes ? bytes : 1);
    block = mem_alloc(bytes);
    if (block)
        memset(block, 0, bytes);
    return block;
}

/* Returns the block with another size, perhaps at another address; NULL: the old block is
 * unchanged. */
void *mem_resize(void *block, size_t bytes)
{
    return current.resize(current.arg, block, bytes ? bytes : 1);
}

/* Returns count * size zeroed bytes; NULL also if the product does not fit in a size_t. */
void *mem_zalloc_array(size_t count, size_t size)
{
    if (size && count > SIZE_MAX / size)
        return NULL;
    return mem_zalloc(count * size);
}

/* Returns a copy of `length` bytes with a NUL behind them; NULL: no memory is left. */
char *mem_strndup(const char *text, size_t length)
{
    char *copy = length < SIZE_MAX ? mem_alloc(length + 1) : NULL;

    if (!copy)
        return NULL;
    if (length)
        memcpy(copy, text, length);
    copy[length] = '\0';
    return copy;
}

char *mem_strdup(const char *text)
{
    return mem_strndup(text, strlen(text));
}

void mem_free(void *block)
{
    if (block)
        current.free(current.arg, block);
}
