/* memory.c: the memory of devices, and pinned and managed memory of the host. */
#include "tests/standin/standin.h"
#include "tests/standin/stream.h"

#include "base/mem.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define ALIGNMENT 512U
#define GARBAGE   0xdb /* the bytes of memory that was never written */

STANDIN_EXPORT standin_memory_fn standin_memory;
STANDIN_EXPORT standin_managed_fn standin_managed;

/* ---- memory of a device ---------------------------------------------------------------------- */

void device_map(struct CUctx_st *device, size_t bytes)
{
    int fd = memfd_create("stand-in device", MFD_CLOEXEC);

    device->bytes = bytes;
    if (fd < 0 || ftruncate(fd, (off_t)bytes))
        standin_misuse("no %zu bytes for a device", bytes);
    device->device_base = mmap(NULL, bytes, PROT_NONE, MAP_SHARED, fd, 0);
    device->shadow_base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (device->device_base == MAP_FAILED || device->shadow_base == MAP_FAILED)
        standin_misuse("%zu bytes of a device cannot be mapped", bytes);
    close(fd);
}

struct CUctx_st *memory_device(const void *at)
{
    for (int i = 0; i < standin.device_count; i++) {
        struct CUctx_st *device = &standin.devices[i];

        if ((const char *)at >= device->device_base &&
            (const char *)at < device->device_base + device->bytes)
            return device;
    }
    return NULL;
}

static struct block *block_at(const struct CUctx_st *device, size_t offset)
{
    for (struct block *block = device->blocks; block; block = block->next)
        if (offset >= block->offset && offset < block->offset + block->bytes)
            return block;
    return NULL;
}

/* Returns the host's address of device memory; misuse: the range is not allocated. */
void *memory_range(struct CUctx_st *device, const void *at, size_t bytes, const char *who)
{
    struct CUctx_st *there = memory_device(at);
    struct block *block;
    size_t offset;

    if (!there)
        standin_misuse("%s: %p is not device memory", who, at);
    if (device && there != device)
        standin_misuse("%s: %p is memory of device %d, not of %d", who, at, there->ordinal,
                       device->ordinal);
    offset = (size_t)((const char *)at - there->device_base);
    block = block_at(there, offset);
    if (!block)
        standin_misuse("%s: the device memory at %p is not allocated", who, at);
    if (bytes > block->offset + block->bytes - offset)
        standin_misuse("%s: %zu bytes at %p are more than there are of it", who, bytes, at);
    return there->shadow_base + offset;
}

void *standin_range(const struct CUctx_st *context, const void *at, size_t bytes, const char *who)
{
    struct CUctx_st *device = &standin.devices[context->ordinal];
    void *shadow;

    pthread_mutex_lock(&standin.lock);
    shadow = memory_range(device, at, bytes, who);
    pthread_mutex_unlock(&standin.lock);
    return shadow;
}

void *standin_memory(const void *device_memory)
{
    struct CUctx_st *device;
    struct block *block = NULL;
    size_t offset = 0;

    pthread_mutex_lock(&standin.lock);
    device = memory_device(device_memory);
    if (device) {
        offset = (size_t)((const char *)device_memory - device->device_base);
        block = block_at(device, offset);
    }
    pthread_mutex_unlock(&standin.lock);
    return block ? device->shadow_base + offset : NULL;
}

/* Finds the first gap that is large enough. */
static struct block *place(struct CUctx_st *device, size_t bytes)
{
    size_t room = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    struct block **link = &device->blocks;
    struct block *block;
    size_t offset = 0;

    for (; *link && (*link)->offset - offset < room; link = &(*link)->next)
        offset = ((*link)->offset + (*link)->bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if (offset > device->bytes || device->bytes - offset < room)
        return NULL;
    block = mem_zalloc(sizeof(*block));
    if (!block)
        standin_misuse("no memory");
    *block = (struct block){ .next = *link, .offset = offset, .bytes = bytes };
    *link = block;
    device->used += room;
    return block;
}

int cu_memory_info(size_t *ret_free, size_t *ret_total)
{
    struct CUctx_st *device;
    int code = standin_enter_context(&device);

    if (code)
        return code;
    *ret_total = device->bytes;
    *ret_free = device->bytes - device->used;
    standin_leave();
    return CUDA_OK;
}

int cu_memory_alloc(cuda_address *ret_at, size_t bytes)
{
    struct CUctx_st *device;
    struct block *block;
    int code = standin_enter_context(&device);

    if (code)
        return code;
    if (bytes == 0)
        standin_misuse("cuMemAlloc of no bytes");
    block = standin_fault("alloc", STANDIN_NO_RANK, NULL) ? NULL : place(device, bytes);
    if (block) {
        memset(device->shadow_base + block->offset, GARBAGE, bytes);
        *ret_at = (cuda_address)(uintptr_t)(device->device_base + block->offset);
        standin_count("memory", 1);
    }
    standin_leave();
    return block ? CUDA_OK : CUDA_OUT_OF_MEMORY;
}

static void free_managed(struct host_range **link);
static struct host_range **host_link(const void *at);

/* Like the real driver, it waits for all work that was given to the device before. */
int cu_memory_free(cuda_address at)
{
    const char *there = (const char *)(uintptr_t)at;
    struct CUctx_st *device;
    struct host_range **host;
    struct block **link;
    struct block *block;
    int code = standin_enter();
    size_t page;
    size_t from;
    size_t to;

    if (code || !at) {
        if (!code)
            standin_leave();
        return code;
    }
    host = host_link(there);
    if (*host && (*host)->kind == HOST_MANAGED) {
        free_managed(host);
        standin_leave();
        return CUDA_OK;
    }
    device = memory_device(there);
    if (!device)
        standin_misuse("cuMemFree of %p, which is not device memory", (const void *)there);
    context_await(device);
    link = &device->blocks;
    while (*link && (*link)->offset != (size_t)(there - device->device_base))
        link = &(*link)->next;
    block = *link;
    if (!block)
        standin_misuse("cuMemFree of %p, where nothing is allocated", (const void *)there);
    *link = block->next;
    device->used -= (block->bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    /* Gives the pages back to the system that have no other block on them. */
    page = (size_t)getpagesize();
    from = (block->offset + page - 1) / page * page;
    to = (block->offset + block->bytes) / page * page;
    if (to > from)
        (void)madvise(device->shadow_base + from, to - from, MADV_REMOVE);
    mem_free(block);
    standin_count("memory", -1);
    standin_leave();
    return CUDA_OK;
}

/* ---- pinned memory of the host --------------------------------------------------------------- */

static struct host_range **host_link(const void *at)
{
    struct host_range **link = &standin.host;

    while (*link && (*link)->at != at)
        link = &(*link)->next;
    return link;
}

struct host_range *host_range_of(const void *at, size_t bytes)
{
    const char *there = at;

    for (struct host_range *range = standin.host; range; range = range->next)
        if (there >= range->at && bytes <= range->bytes &&
            (size_t)(there - range->at) <= range->bytes - bytes)
            return range;
    return NULL;
}

static bool overlaps_host(const char *at, size_t bytes)
{
    for (struct host_range *range = standin.host; range; range = range->next)
        if (at < range->at + range->bytes && range->at < at + bytes)
            return true;
    return false;
}

static void host_add(enum host_kind kind, void *at, size_t bytes, int ordinal)
{
    struct host_range *range = mem_zalloc(sizeof(*range));

    if (!range)
        standin_misuse("no memory");
    *range = (struct host_range){
        .next = standin.host, .kind = kind, .at = at, .bytes = bytes, .ordinal = ordinal
    };
    standin.host = range;
    standin_count(kind == HOST_MANAGED ? "memory" : "pinned", 1);
}

static void host_remove(struct host_range **link)
{
    struct host_range *range = *link;

    *link = range->next;
    standin_count(range->kind == HOST_MANAGED ? "memory" : "pinned", -1);
    mem_free(range);
}

static void await_all(void)
{
    for (int i = 0; i < standin.device_count; i++)
        context_await(&standin.devices[i]);
}

int cu_host_alloc(void **ret_at, size_t bytes, unsigned flags)
{
    struct CUctx_st *device;
    void *at;
    int code = standin_enter_context(&device);

    if (code)
        return code;
    if (bytes == 0 || (flags & ~(unsigned)CUDA_PIN_PORTABLE))
        standin_misuse("cuMemHostAlloc of %zu bytes with flags %u", bytes, flags);
    at = standin_fault("pin", STANDIN_NO_RANK, NULL)
             ? MAP_FAILED
             : mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at != MAP_FAILED) {
        host_add(HOST_ALLOCATED, at, bytes, device->ordinal);
        *ret_at = at;
    }
    standin_leave();
    return at == MAP_FAILED ? CUDA_OUT_OF_MEMORY : CUDA_OK;
}

int cu_host_free(void *at)
{
    struct host_range **link;
    int code = standin_enter();

    if (code)
        return code;
    await_all();
    link = host_link(at);
    if (!*link || (*link)->kind != HOST_ALLOCATED)
        standin_misuse("cuMemFreeHost of %p, which cuMemHostAlloc never gave", at);
    munmap(at, (*link)->bytes);
    host_remove(link);
    standin_leave();
    return CUDA_OK;
}

int cu_pin(void *at, size_t bytes, unsigned flags)
{
    struct CUctx_st *device;
    int code = standin_enter_context(&device);

    if (code)
        return code;
    if (!at || bytes == 0 || (flags & ~(unsigned)CUDA_PIN_PORTABLE) || memory_device(at))
        standin_misuse("cuMemHostRegister of %zu bytes at %p with flags %u", bytes, at, flags);
    if (standin_fault("pin", STANDIN_NO_RANK, NULL))
        code = CUDA_OUT_OF_MEMORY;
    else if (overlaps_host(at, bytes))
        code = CUDA_ALREADY_PINNED;
    else
        host_add(HOST_PINNED, at, bytes, device->ordinal);
    standin_leave();
    return code;
}

/* true: the memory is still mapped (asked by mincore). The process must unpin memory before it
 * unmaps it. */
static bool is_mapped(const char *at)
{
    size_t page = (size_t)getpagesize();
    unsigned char resident;

    return mincore((void *)((uintptr_t)at / page * page), 1, &resident) == 0;
}

int cu_unpin(void *at)
{
    struct host_range **link;
    int code = standin_enter();

    if (code)
        return code;
    await_all();
    link = host_link(at);
    if (!*link || (*link)->kind != HOST_PINNED) {
        code = CUDA_NOT_PINNED;
    } else {
        if (!is_mapped(at))
            standin_misuse("the memory at %p was unmapped before it was unpinned", at);
        host_remove(link);
    }
    standin_leave();
    return code;
}

/* ---- managed memory, for host and device ----------------------------------------------------- */

void *standin_managed(size_t bytes)
{
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (at == MAP_FAILED)
        standin_misuse("no memory");
    pthread_mutex_lock(&standin.lock);
    host_add(HOST_MANAGED, at, bytes, 0);
    pthread_mutex_unlock(&standin.lock);
    return at;
}

static void free_managed(struct host_range **link)
{
    munmap((*link)->at, (*link)->bytes);
    host_remove(link);
}
