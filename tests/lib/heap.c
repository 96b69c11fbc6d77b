/*
 * heap.c: counts the blocks that base/mem.h gives out, and fails an allocation when fault.h says
 * so. A case that leaves a block behind is a failed case.
 */
#include "tests/lib/heap.h"

#include "base/mem.h"
#include "tests/lib/fault.h"

#include <stdlib.h>
#include <string.h>

/* atomic: threads also free blocks that the event loop has given to them */
static _Atomic size_t blocks;

static void *heap_alloc(void *arg, size_t bytes)
{
    void *block;

    (void)arg;
    if (fault_now(FAULT_ALLOC))
        return NULL;
    block = malloc(bytes);
    if (block) {
        memset(block, 0xa5, bytes); /* so that code which expects zeros fails */
        blocks++;
    }
    return block;
}

static void *heap_zalloc(void *arg, size_t bytes)
{
    void *block;

    (void)arg;
    block = fault_now(FAULT_ALLOC) ? NULL : calloc(1, bytes);
    blocks += block != NULL;
    return block;
}

static void *heap_resize(void *arg, void *block, size_t bytes)
{
    if (!block)
        return heap_alloc(arg, bytes);
    return fault_now(FAULT_ALLOC) ? NULL : realloc(block, bytes);
}

static void heap_free(void *arg, void *block)
{
    (void)arg;
    blocks--;
    free(block);
}

void heap_use(void)
{
    static const struct mem_ops ops = { heap_alloc, heap_resize, heap_free, NULL, heap_zalloc };

    mem_set_ops(&ops);
}

size_t heap_blocks(void)
{
    return blocks;
}
