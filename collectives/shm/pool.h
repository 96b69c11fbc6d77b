/*
 * pool.h: memory of this process that other processes of the machine can read (hvd_alloc).
 * Collectives use buffers in this memory where they are, without a copy to shared memory. The pool
 * outlives rounds.
 *
 *     pool_alloc ──► pool_locate, told to other processes ──► pool_view, in another process
 */
#ifndef COLLECTIVES_SHM_POOL_H
#define COLLECTIVES_SHM_POOL_H

#include "base/err.h"

/* Allocates memory of this process that others can read: 64-byte aligned, zeroed, in whole pages.
 * Any thread may call this function. NULL: `err` says why. */
void *pool_alloc(size_t bytes, struct hvd_err *err);
void pool_free(void *memory); /* NULL is allowed; panics on memory that is not from pool_alloc */

/* Tells another process where a range of this process's memory is. pool_locate returns false if the
 * range is not inside one buffer of pool_alloc. */
struct pool_locator {
    int32_t pid, fd;
    uint64_t device, inode; /* identify the file: see memory.h */
    uint64_t at, bytes; /* the range in the file: its offset after the first page, and its length */
};
bool pool_locate(const void *at, size_t bytes, struct pool_locator *ret_locator);

/* Read-only mappings of other processes' ranges; a range is mapped when it is first needed. Only
 * one thread at a time may use them. */
struct pool_views;
int pool_views_create(struct pool_views **ret_views, struct hvd_err *err) MUST_CHECK;
void pool_views_free(struct pool_views *views);

/* Returns in *ret_at where this process can read the range; maps it if necessary. HVD_E_LOST: the
 * other process has ended, or has freed the memory; HVD_E_DENIED: this process may not open it;
 * HVD_E_PROTO: the locator is wrong; HVD_E_LIMIT: too many mappings or open files. *ret_at is valid
 * until the views are freed or, once its owner has freed the memory, until the views are trimmed.
 */
int pool_view(struct pool_views *views, const struct pool_locator *locator, const void **ret_at,
              struct hvd_err *err) MUST_CHECK;

/* Unmaps memory that its owner has freed. The caller uses no view during this call. It is cheap
 * when no memory was mapped since the last call. */
void pool_views_trim(struct pool_views *views);

#endif
