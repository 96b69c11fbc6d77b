/*
 * vec.h: a growable array with a cap.
 *
 *     struct workers VEC(struct worker);
 *     rc = VEC_RESERVE(&workers, 1, LIMIT_WORKERS);   then   workers.items[workers.count++] = w;
 */
#ifndef BASE_VEC_H
#define BASE_VEC_H

#include "base/base.h"

#define VEC(type)        \
    {                    \
        type *items;     \
        size_t count;    \
        size_t capacity; \
    }

/* Makes room for `more` further items. 0, HVD_E_NOMEM, or HVD_E_LIMIT past max items; unchanged on
 * failure. */
#define VEC_RESERVE(vec, more, max) \
    vec_reserve(&(vec)->items, &(vec)->capacity, (vec)->count, (more), (max), sizeof(*(vec)->items))

/* Frees the array, but not the memory that its items own. */
#define VEC_RELEASE(vec) vec_release(&(vec)->items, &(vec)->count, &(vec)->capacity)

/* Loops over the items in order. `it` is a pointer that the caller has declared. */
#define VEC_EACH(it, vec) \
    for (size_t it##_i = 0; it##_i < (vec)->count && ((it) = &(vec)->items[it##_i]); it##_i++)

/* The functions behind the macros. items_at is the address of the `items` pointer, of any type. */
int vec_reserve(void *items_at, size_t *capacity, size_t count, size_t more, size_t max,
                size_t item_bytes) MUST_CHECK;
void vec_release(void *items_at, size_t *count, size_t *capacity);

/* For an array that is sorted by key: returns the index of the first item whose key is not below
 * `key`. An item with this key is at that index, or would be inserted there. */
typedef uint64_t vec_key_fn(const void *item);
size_t vec_place(const void *items, size_t count, size_t item_bytes, vec_key_fn *key_of,
                 uint64_t key);
#define VEC_PLACE(vec, key_of, key) \
    vec_place((vec)->items, (vec)->count, sizeof(*(vec)->items), (key_of), (key))

#endif
