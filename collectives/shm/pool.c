/*
 * pool.c: buffers of this process that other processes of its machine can read in place
 * (hvd_alloc), and views of such buffers of other processes. allreduce_direct.c tells the other
 * members where a buffer is, and opens their buffers. Allocations belong to the process, and any
 * thread may use them, under a lock. Views belong to a round.
 *
 * Invariant: a view can be read until it is trimmed, even if the owner has freed its buffer.
 */
#include "collectives/shm/pool.h"

#include "base/mem.h"
#include "base/panic.h"
#include "base/vec.h"
#include "collectives/shm/memory.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#define POOL_MAGIC UINT64_C(0x6c6f6f706476682d) /* "-hvdpool" */
#define PAGE_BYTES 4096
/* the most mappings of other processes' memory; Linux allows a process 65530 mappings in all */
#define POOL_VIEWS_MAX 16384

/* The first page of an allocation's memory holds this head; the program's bytes follow that page.
 */
struct pool_head {
    uint64_t magic;
    _Atomic uint32_t freed; /* set by the owner: other processes may unmap the memory */
};

struct allocation {
    struct memory memory;
    struct memory_place place;
};

/* The allocations of this process, sorted by address. `count` is atomic, so that a process without
 * allocations need not lock. */
static struct {
    pthread_rwlock_t lock;
    struct allocation *items;
    _Atomic size_t count;
    size_t capacity;
} pool = { .lock = PTHREAD_RWLOCK_INITIALIZER };

/* The address of the program's bytes, which begin after the page of the head. */
static const uint8_t *pool_begin_of(const struct allocation *allocation)
{
    return allocation->memory.at + PAGE_BYTES;
}

/* By this key, their address, the allocations are sorted (VEC_PLACE). */
static uint64_t pool_key(const void *item)
{
    return (uintptr_t)pool_begin_of(item);
}

/* How many allocations begin at this address or below it. The caller holds the lock. */
static size_t up_to(const uint8_t *at)
{
    return VEC_PLACE(&pool, pool_key, (uint64_t)(uintptr_t)at + 1);
}

/* Allocates memory that other processes can read (pool.h): a page with a pool_head, and the bytes
 * behind it. Returns the address of the bytes; NULL: `err` says why. */
void *pool_alloc(size_t bytes, struct hvd_err *err)
{
    struct allocation allocation;
    struct pool_head *head;
    bool has_room;
    size_t at;

    if (bytes > SIZE_MAX / 2) {
        (void)err_set(
            err, HVD_E_NOMEM,
            "shared memory of %zu bytes is more than a process can have; ask for fewer bytes",
            bytes);
        return NULL;
    }
    bytes = bytes ? (bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES : PAGE_BYTES;
    if (memory_create("hvd-alloc", PAGE_BYTES + bytes, &allocation.memory, &allocation.place, err))
        return NULL;
    head = (void *)allocation.memory.at;
    head->magic = POOL_MAGIC;
    /* Inserts the allocation; the list is sorted by address. */
    pthread_rwlock_wrlock(&pool.lock);
    has_room = !VEC_RESERVE(&pool, 1, SIZE_MAX);
    if (has_room) {
        at = up_to(pool_begin_of(&allocation));
        memmove(&pool.items[at + 1], &pool.items[at], (pool.count - at) * sizeof(*pool.items));
        pool.items[at] = allocation;
        pool.count++;
    }
    pthread_rwlock_unlock(&pool.lock);
    if (has_room)
        return allocation.memory.at + PAGE_BYTES;
    (void)err_set(err, HVD_E_NOMEM,
                  "shared memory of %zu bytes: out of memory; free memory on this host", bytes);
    memory_release(&allocation.memory);
    return NULL;
}

/* Frees memory of pool_alloc, also while other processes have it mapped; they read zeros then,
 * until they unmap it. NULL is allowed. */
void pool_free(void *memory)
{
    struct allocation allocation;
    struct pool_head *head;
    size_t above;

    if (!memory)
        return;
    pthread_rwlock_wrlock(&pool.lock);
    above = up_to(memory);
    if (above == 0 || pool_begin_of(&pool.items[above - 1]) != memory)
        PANIC("%p is not an address that hvd_alloc has returned, or was freed before", memory);
    allocation = pool.items[above - 1];
    memmove(&pool.items[above - 1], &pool.items[above], (pool.count - above) * sizeof(*pool.items));
    if (--pool.count == 0) {
        mem_free(pool.items);
        pool.items = NULL;
        pool.capacity = 0;
    }
    pthread_rwlock_unlock(&pool.lock);
    /* `freed` tells other processes to unmap this memory (pool_views_trim); until they do, they
     * read zeros. */
    head = (void *)allocation.memory.at;
    atomic_store(&head->freed, 1);
    memory_empty(&allocation.memory, PAGE_BYTES);
    memory_release(&allocation.memory);
}

/* Says where a range of this process's memory is, for other processes. false: the range is not
 * inside one allocation of pool_alloc. */
bool pool_locate(const void *at, size_t bytes, struct pool_locator *ret_locator)
{
    const struct allocation *found;
    size_t above, offset, room;
    bool inside = false;

    if (pool.count == 0)
        return false;
    pthread_rwlock_rdlock(&pool.lock);
    above = up_to(at);
    if (above > 0) {
        found = &pool.items[above - 1]; /* the last one that begins at `at` or below it */
        offset = (uintptr_t)at - (uintptr_t)pool_begin_of(found);
        room = found->memory.bytes - PAGE_BYTES;
        inside = offset <= room && bytes <= room - offset;
        if (inside)
            *ret_locator =
                (struct pool_locator){ found->place.pid,   found->place.fd, found->place.device,
                                       found->place.inode, offset,          bytes };
    }
    pthread_rwlock_unlock(&pool.lock);
    return inside;
}

/* Memory of another process that this process has mapped. */
struct view {
    struct memory memory;
    struct memory_place place;
};

struct pool_views {
    struct view *items;
    size_t count, capacity;
    size_t trimmed; /* how many views there were after the last trim */
    /* index of the view that was found last; the next call often needs the next view */
    size_t last;
};

/* Makes an empty list of views for a round: mappings of memory of other processes (pool.h). */
int pool_views_create(struct pool_views **ret_views, struct hvd_err *err)
{
    struct pool_views *views = mem_zalloc(sizeof(*views));

    if (!views)
        return err_set(
            err, HVD_E_NOMEM,
            "no memory to open the shared memory of other processes; free memory on this host");
    *ret_views = views;
    return 0;
}

/* Unmaps all memory of other processes that this round has mapped. NULL is allowed. */
void pool_views_free(struct pool_views *views)
{
    if (!views)
        return;
    for (size_t i = 0; i < views->count; i++)
        memory_release(&views->items[i].memory);
    mem_free(views->items);
    mem_free(views);
}

/* Unmaps the memory whose owner has freed it (pool.h). Does nothing when no view was added since
 * the last trim, so memory that its owner frees later stays mapped until a view is added. */
void pool_views_trim(struct pool_views *views)
{
    size_t kept = 0;

    if (views->trimmed == views->count)
        return;
    for (size_t i = 0; i < views->count; i++) {
        const struct pool_head *head = (const void *)views->items[i].memory.at;

        if (atomic_load(&head->freed))
            memory_release(&views->items[i].memory);
        else
            views->items[kept++] = views->items[i];
    }
    views->count = kept;
    views->trimmed = kept;
}

/* Returns in *ret_at the address at which this process can read a range of another process
 * (pool.h). Mapped memory is looked up first, from the view after the last one on, because calls
 * often come in the same order. */
int pool_view(struct pool_views *views, const struct pool_locator *locator, const void **ret_at,
              struct hvd_err *err)
{
    struct view found = {
        .place = {locator->pid, locator->fd, locator->device, locator->inode}
    };
    const struct pool_head *head;
    const struct view *view = NULL;
    size_t bytes;
    int rc;

    for (size_t i = 1; i <= views->count && !view; i++) {
        size_t at = (views->last + i) % views->count;
        const struct memory_place *place = &views->items[at].place;

        if (place->inode != locator->inode || place->pid != locator->pid ||
            place->fd != locator->fd || place->device != locator->device)
            continue;
        views->last = at;
        view = &views->items[at];
    }
    if (!view) { /* this process has not mapped that memory before */
        rc = VEC_RESERVE(views, 1, POOL_VIEWS_MAX);
        if (rc == HVD_E_LIMIT)
            return err_set(err, rc,
                           "the processes of this host use more than %d buffers of hvd_alloc; use "
                           "fewer and larger ones",
                           POOL_VIEWS_MAX);
        if (rc)
            return err_set(
                err, rc,
                "no memory to open the shared memory of other processes; free memory on this host");
        /* false: for reading only */
        rc = memory_open(&found.place, false, &found.memory, err);
        if (rc)
            return rc;
        head = (const void *)found.memory.at;
        if (found.memory.bytes < PAGE_BYTES || head->magic != POOL_MAGIC) {
            memory_release(&found.memory);
            return err_set(
                err, HVD_E_PROTO,
                "process %d: the shared memory of this process was not made by hvd_alloc; all "
                "workers must use the same release of libhvd",
                locator->pid);
        }
        view = &views->items[views->count++];
        views->items[views->count - 1] = found;
    }
    bytes = view->memory.bytes - PAGE_BYTES;
    /* the other process wrote the locator: never trust its range */
    if (locator->at > bytes || locator->bytes > bytes - locator->at)
        return err_set(err, HVD_E_PROTO,
                       "process %d has named %llu bytes at offset %llu of shared memory that has "
                       "only %zu bytes; all workers must use the same release of libhvd",
                       locator->pid, (unsigned long long)locator->bytes,
                       (unsigned long long)locator->at, bytes);
    *ret_at = view->memory.at + PAGE_BYTES + locator->at;
    return 0;
}
