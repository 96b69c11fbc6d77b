/*
 * vec.c: growing arrays, and binary search in sorted ones. Called through the macros of vec.h.
 * Capacity doubles up to the caller's maximum; a failure leaves the array as it was.
 */
#include "base/vec.h"

#include "base/err.h"
#include "base/mem.h"

#include <string.h>

#define FIRST_CAPACITY 8

/* Makes room for `more` items behind the `count` present ones. HVD_E_LIMIT: the array would have
 * more than `max` items. */
int vec_reserve(void *items_at, size_t *capacity, size_t count, size_t more, size_t max,
                size_t item_bytes)
{
    size_t wanted = *capacity ? *capacity : FIRST_CAPACITY;
    void *items;

    if (count > max || more > max - count)
        return HVD_E_LIMIT;
    if (count + more <= *capacity)
        return 0;
    /* an array of more than SIZE_MAX / 2 bytes cannot be allocated */
    if (max > SIZE_MAX / 2 / item_bytes)
        max = SIZE_MAX / 2 / item_bytes;
    if (count + more > max)
        return HVD_E_NOMEM;
    while (wanted < count + more)
        wanted *= 2;
    if (wanted > max)
        wanted = max;
    /* memcpy, because C does not allow access to a T * through a void ** */
    memcpy(&items, items_at, sizeof(items));
    items = mem_resize(items, wanted * item_bytes);
    if (!items)
        return HVD_E_NOMEM;
    memcpy(items_at, &items, sizeof(items));
    *capacity = wanted;
    return 0;
}

/* Frees the array behind the pointer at `items_at`; NULL and zeroes are left there. */
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

/* Searches a sorted array. Returns the index of the first item whose key is not below `key`, or
 * `count`: an item with this key is there, or would be inserted there. */
size_t vec_place(const void *items, size_t count, size_t item_bytes, vec_key_fn *key_of,
                 uint64_t key)
{
    size_t low = 0;
    size_t high = count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (key_of((const char *)items + middle * item_bytes) < key)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}
