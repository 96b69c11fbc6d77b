#include "collectives/shm/pool.h"

#include "base/mem.h"
#include "base/panic.h"
#include "collectives/shm/memory.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#define POOL_MAGIC     UINT64_C(0x6c6f6f706476682d) /* "-hvdpool" */
#define PAGE_BYTES     4096
#define POOL_VIEWS_MAX 16384 /* of others' allocations: each takes one of 65530 mappings */

/* The first page of an allocation's memory; the bytes follow it. */
struct pool_head {
    uint64_t magic;
    _Atomic uint32_t freed; /* by its owner: others may let go of it */
};

struct allocation {
    struct memory memory;
    struct memory_place place;
};

/* Those of this process, by address. count is atomic so that who has none need not lock. */
static struct {
    pthread_rwlock_t lock;
    struct allocation *items;
    _Atomic size_t count;
    size_t room;
} pool = { .lock = PTHREAD_RWLOCK_INITIALIZER };

static const uint8_t *begin_of(const struct allocation *allocation)
{
    return allocation->memory.at + PAGE_BYTES;
}

static size_t bytes_of(const struct memory *memory)
{
    return memory->bytes - PAGE_BYTES;
}

/* The number of allocations that begin at or below it. Locked. */
static size_t up_to(const uint8_t *at)
{
    size_t low = 0, high = pool.count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if ((uintptr_t)begin_of(&pool.items[middle]) <= (uintptr_t)at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* ---- our own ---- */

static int insert(const struct allocation *allocation)
{
    size_t at;
    int rc = 0;

    pthread_rwlock_wrlock(&pool.lock);
    if (pool.count == pool.room) {
        size_t room = pool.room ? 2 * pool.room : 8;
        struct allocation *items = mem_resize(pool.items, room * sizeof(*items));

        if (items) {
            pool.items = items;
            pool.room = room;
        } else {
            rc = HVD_E_NOMEM;
        }
    }
    if (!rc) {
        at = up_to(begin_of(allocation));
        memmove(&pool.items[at + 1], &pool.items[at], (pool.count - at) * sizeof(*pool.items));
        pool.items[at] = *allocation;
        pool.count++;
    }
    pthread_rwlock_unlock(&pool.lock);
    return rc;
}

void *pool_alloc(size_t bytes, struct hvd_err *err)
{
    struct allocation allocation;
    struct pool_head *head;

    if (bytes > SIZE_MAX / 2) {
        (void)err_set(err, HVD_E_NOMEM, "shared memory of %zu bytes: ask for less", bytes);
        return NULL;
    }
    bytes = bytes ? (bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES : PAGE_BYTES;
    if (memory_create("hvd-alloc", PAGE_BYTES + bytes, &allocation.memory, &allocation.place, err))
        return NULL;
    head = (void *)allocation.memory.at;
    head->magic = POOL_MAGIC;
    if (insert(&allocation)) {
        (void)err_set(err, HVD_E_NOMEM, "shared memory of %zu bytes: out of memory", bytes);
        memory_release(&allocation.memory);
        return NULL;
    }
    return allocation.memory.at + PAGE_BYTES;
}

static struct allocation taken_out(const uint8_t *at)
{
    struct allocation allocation;
    size_t above;

    pthread_rwlock_wrlock(&pool.lock);
    above = up_to(at);
    if (above == 0 || begin_of(&pool.items[above - 1]) != at)
        PANIC("%p is not of pool_alloc, or has been freed", (const void *)at);
    allocation = pool.items[above - 1];
    memmove(&pool.items[above - 1], &pool.items[above], (pool.count - above) * sizeof(*pool.items));
    if (--pool.count == 0) {
        mem_free(pool.items);
        pool.items = NULL;
        pool.room = 0;
    }
    pthread_rwlock_unlock(&pool.lock);
    return allocation;
}

void pool_free(void *memory)
{
    struct allocation allocation;
    struct pool_head *head;

    if (!memory)
        return;
    allocation = taken_out(memory);
    head = (void *)allocation.memory.at;
    atomic_store(&head->freed, 1);
    memory_empty(&allocation.memory, PAGE_BYTES);
    memory_release(&allocation.memory);
}

bool pool_locate(const void *at, size_t bytes, struct pool_locator *ret_locator)
{
    const struct allocation *found;
    size_t above, offset;
    bool inside = false;

    if (pool.count == 0)
        return false;
    pthread_rwlock_rdlock(&pool.lock);
    above = up_to(at);
    if (above > 0) {
        found = &pool.items[above - 1];
        offset = (uintptr_t)at - (uintptr_t)begin_of(found);
        inside = offset <= bytes_of(&found->memory) && bytes <= bytes_of(&found->memory) - offset;
        if (inside)
            *ret_locator =
                (struct pool_locator){ found->place.pid,   found->place.fd, found->place.device,
                                       found->place.inode, offset,          bytes };
    }
    pthread_rwlock_unlock(&pool.lock);
    return inside;
}

/* ---- those of others ---- */

struct view {
    struct memory memory;
    struct memory_place place;
};

struct pool_views {
    struct view *items;
    size_t count, room;
    size_t trimmed; /* the first of them, when they were trimmed */
    size_t last;    /* where the last one was found: calls come in the same order */
};

int pool_views_create(struct pool_views **ret_views, struct hvd_err *err)
{
    struct pool_views *views = mem_zalloc(sizeof(*views));

    if (!views)
        return err_set(err, HVD_E_NOMEM, "views of shared memory: out of memory");
    *ret_views = views;
    return 0;
}

void pool_views_free(struct pool_views *views)
{
    if (!views)
        return;
    for (size_t i = 0; i < views->count; i++)
        memory_release(&views->items[i].memory);
    mem_free(views->items);
    mem_free(views);
}

static bool is_freed(const struct view *view)
{
    const struct pool_head *head = (const void *)view->memory.at;

    return atomic_load(&head->freed) != 0;
}

void pool_views_trim(struct pool_views *views)
{
    size_t kept = 0;

    if (views->trimmed == views->count)
        return;
    for (size_t i = 0; i < views->count; i++) {
        if (is_freed(&views->items[i]))
            memory_release(&views->items[i].memory);
        else
            views->items[kept++] = views->items[i];
    }
    views->count = kept;
    views->trimmed = kept;
}

static bool is_of(const struct view *view, const struct pool_locator *locator)
{
    return view->place.inode == locator->inode && view->place.pid == locator->pid &&
           view->place.fd == locator->fd && view->place.device == locator->device;
}

static const struct view *known(struct pool_views *views, const struct pool_locator *locator)
{
    for (size_t i = 1; i <= views->count; i++) {
        size_t at = (views->last + i) % views->count;

        if (is_of(&views->items[at], locator)) {
            views->last = at;
            return &views->items[at];
        }
    }
    return NULL;
}

static int make_room(struct pool_views *views, struct hvd_err *err)
{
    size_t room = views->room ? 2 * views->room : 16;
    struct view *items;

    if (views->count < views->room)
        return 0;
    if (views->count >= POOL_VIEWS_MAX)
        return err_set(
            err, HVD_E_LIMIT,
            "the processes of this host use more than %d buffers of hvd_alloc; use fewer "
            "and larger ones",
            POOL_VIEWS_MAX);
    items = mem_resize(views->items, room * sizeof(*items));
    if (!items)
        return err_set(err, HVD_E_NOMEM, "views of shared memory: out of memory");
    views->items = items;
    views->room = room;
    return 0;
}

static int see(struct pool_views *views, const struct pool_locator *locator, struct hvd_err *err)
{
    struct view view = {
        .place = {locator->pid, locator->fd, locator->device, locator->inode}
    };
    const struct pool_head *head;
    int rc = make_room(views, err);

    if (!rc)
        rc = memory_open(&view.place, false, &view.memory, err);
    if (rc)
        return rc;
    head = (const void *)view.memory.at;
    if (view.memory.bytes < PAGE_BYTES || head->magic != POOL_MAGIC) {
        memory_release(&view.memory);
        return err_set(err, HVD_E_PROTO, "process %d: its memory is not of hvd_alloc",
                       locator->pid);
    }
    views->items[views->count++] = view;
    return 0;
}

int pool_view(struct pool_views *views, const struct pool_locator *locator, const void **ret_at,
              struct hvd_err *err)
{
    const struct view *view = known(views, locator);
    size_t bytes;
    int rc;

    if (!view) {
        rc = see(views, locator, err);
        if (rc)
            return rc;
        view = &views->items[views->count - 1];
    }
    bytes = bytes_of(&view->memory);
    if (locator->at > bytes || locator->bytes > bytes - locator->at)
        return err_set(err, HVD_E_PROTO,
                       "process %d: %llu bytes at %llu of its memory, which has %zu", locator->pid,
                       (unsigned long long)locator->bytes, (unsigned long long)locator->at, bytes);
    *ret_at = view->memory.at + PAGE_BYTES + locator->at;
    return 0;
}
