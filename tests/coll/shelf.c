#include "tests/coll/shelf.h"

#include "base/panic.h"
#include "tests/lib/fake_gpu.h"

#include <string.h>

void shelf_open(struct shelf *shelf, enum shelf_way way, uint32_t rank)
{
    memset(shelf, 0, sizeof(*shelf));
    shelf->way = way;
    if (way == SHELF_NONE)
        return;
    fake_gpu_use(CREW_MAX);
    fake_gpu_load();
    ASSERT(!gpu_device_get((int)rank, &shelf->device, NULL));
    shelf_free(shelf, shelf_alloc(shelf, 1)); /* whatever it opens is open from here on */
}

void *shelf_alloc(struct shelf *shelf, size_t bytes)
{
    const struct cuda *cuda = shelf->device->cuda;
    cuda_address at = 0;

    ASSERT(!gpu_enter(shelf->device, NULL) && !cuda->memory_alloc(&at, bytes));
    gpu_leave(shelf->device);
    for (size_t i = 0; i < SHELF_BLOCKS; i++) {
        if (shelf->blocks[i].host)
            continue;
        memcpy(&shelf->blocks[i].device, &at, sizeof(at));
        shelf->blocks[i].bytes = bytes;
        shelf->blocks[i].host = fake_gpu_memory(shelf->blocks[i].device);
        return shelf->blocks[i].host;
    }
    PANIC("more than %d buffers at once", SHELF_BLOCKS);
}

void shelf_free(struct shelf *shelf, void *host)
{
    for (size_t i = 0; i < SHELF_BLOCKS; i++) {
        cuda_address at;

        if (shelf->blocks[i].host != host)
            continue;
        memcpy(&at, &shelf->blocks[i].device, sizeof(at));
        ASSERT(!gpu_enter(shelf->device, NULL) && !shelf->device->cuda->memory_free(at));
        gpu_leave(shelf->device);
        shelf->blocks[i].host = NULL;
        return;
    }
    PANIC("a buffer that is none");
}

/* Also the end of one: of no bytes. */
static void *on_device(const struct shelf *shelf, const void *host)
{
    const uint8_t *at = host;

    for (size_t i = 0; host && i < SHELF_BLOCKS; i++) {
        const uint8_t *block = shelf->blocks[i].host;

        if (block && at >= block && at <= block + shelf->blocks[i].bytes)
            return shelf->blocks[i].device + (at - block);
    }
    return NULL;
}

static bool is_rounded(const struct coll_call *call)
{
    return numbers_are_real(call->type) &&
           (call->op == HVD_AVERAGE || call->prescale != 0 || call->postscale != 0);
}

void shelf_call(struct shelf *shelf, struct coll_call *call)
{
    if (call->kind == COLL_BARRIER || call->kind == COLL_JOIN ||
        (shelf->way == SHELF_BY_NCCL && is_rounded(call)))
        return;
    call->device = shelf->device;
    call->in = on_device(shelf, call->in);
    call->out = on_device(shelf, call->out);
    for (size_t i = 0; call->pieces && i < call->piece_count; i++)
        shelf->pieces[i] =
            (struct coll_piece){ on_device(shelf, call->pieces[i].in),
                                 on_device(shelf, call->pieces[i].out), call->pieces[i].count };
    if (call->pieces)
        call->pieces = shelf->pieces;
}
