/*
 * pool.h: memory of this process that other processes of its machine can read: buffers in it need
 * not be copied to a stage (hvd_alloc). It outlives rounds.
 *
 *     pool_alloc ──► pool_locate, told to others ──► pool_view, theirs
 */
#ifndef COLLECTIVES_SHM_POOL_H
#define COLLECTIVES_SHM_POOL_H

#include "base/err.h"

/* Any thread; of this process. 64-byte aligned, zeroed, in whole pages. */
void *pool_alloc(size_t bytes, struct hvd_err *err);
void pool_free(void *memory); /* NULL is allowed; panics on what is not of pool_alloc */

/* Where a range of this process lies, for another. */
struct pool_locator {
    int32_t pid, fd;
    uint64_t device, inode; /* that it is still the same */
    uint64_t at, bytes;     /* of the range in it */
};
bool pool_locate(const void *at, size_t bytes, struct pool_locator *ret_locator);

/* Ranges of others, mapped when they are first seen; read only. For one thread at a time. */
struct pool_views;
int pool_views_create(struct pool_views **ret_views, struct hvd_err *err) MUST_CHECK;
void pool_views_free(struct pool_views *views);

/* HVD_E_LOST: that process or its memory is gone; HVD_E_DENIED, HVD_E_PROTO, HVD_E_LIMIT. Valid
 * until the views are freed or, if its owner has freed it, trimmed. */
int pool_view(struct pool_views *views, const struct pool_locator *locator, const void **ret_at,
              struct hvd_err *err) MUST_CHECK;

/* When nothing is read: lets go of what its owners have freed, which else would stay mapped, though
 * it holds nothing. It costs nothing where nothing new has been seen since the last time. */
void pool_views_trim(struct pool_views *views);

#endif
