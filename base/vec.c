#include "base/vec.h"

#include "base/err.h"
#include "base/mem.h"

#include <string.h>

#define FIRST_CAPACITY 8

int vec_reserve(void *items_at, size_t *capacity, size_t count, size_t more, size_t max,
                size_t item_bytes)
{
    size_t wanted = *capacity ? *capacity : FIRST_CAPACITY;
    void *items;

    if (count > max || more > max - count)
        return HVD_E_LIMIT;
    if (count + more <= *capacity)
        return 0;
    if (max > SIZE_MAX / 2 / item_bytes)
        max = SIZE_MAX / 2 / item_bytes;
    if (count + more > max)
        return HVD_E_NOMEM;
    while (wanted < count + more)
        wanted *= 2;
    if (wanted > max)
        wanted = max;
    /* memcpy: a T * may not be read or written through a void ** */
    memcpy(&items, items_at, sizeof(items));
    items = mem_resize(items, wanted * item_bytes);
    if (!items)
        return HVD_E_NOMEM;
    memcpy(items_at, &items, sizeof(items));
    *capacity = wanted;
    return 0;
}

void vec_release(void *items_at, size_t *count, size_t *capacity)
{
    void *items;

    memcpy(&items, items_at, sizeof(items));
    mem_free(items);
    items = NULL;
    memcpy(items_at, &items, sizeof(items));
    *count = 0;
    *capacity = 0;
}
