/*
 * device_buffers.c: allocates memory of the stand-in device, fills it before a call and reads it
 * after the call, so that collcheck runs the same plans on memory of a GPU.
 */
#include "tests/coll/device_buffers.h"

#include "base/panic.h"
#include "tests/lib/fake_gpu.h"

#include <string.h>

void device_buffers_open(struct device_buffers *device, enum device_buffers_way way, uint32_t rank)
{
    memset(device, 0, sizeof(*device));
    device->way = way;
    if (way == DEVICE_NONE)
        return;
    fake_gpu_use(PROCESSES_MAX);
    fake_gpu_load();
    ASSERT(!gpu_device_get((int)rank, &device->device, NULL));
    /* opens the files of the device, so that they do not count as leaks later */
    device_buffers_free(device, device_buffers_alloc(device, 1));
}

void *device_buffers_alloc(struct device_buffers *device, size_t bytes)
{
    const struct cuda *cuda = device->device->cuda;
    cuda_address at = 0;

    ASSERT(!gpu_enter(device->device, NULL) && !cuda->memory_alloc(&at, bytes));
    gpu_leave(device->device);
    for (size_t i = 0; i < DEVICE_BLOCKS; i++) {
        if (device->blocks[i].host)
            continue;
        memcpy(&device->blocks[i].device, &at, sizeof(at));
        device->blocks[i].bytes = bytes;
        device->blocks[i].host = fake_gpu_memory(device->blocks[i].device);
        return device->blocks[i].host;
    }
    PANIC("more than %d buffers at once", DEVICE_BLOCKS);
}

void device_buffers_free(struct device_buffers *device, void *host)
{
    for (size_t i = 0; i < DEVICE_BLOCKS; i++) {
        cuda_address at;

        if (device->blocks[i].host != host)
            continue;
        memcpy(&at, &device->blocks[i].device, sizeof(at));
        ASSERT(!gpu_enter(device->device, NULL) && !device->device->cuda->memory_free(at));
        gpu_leave(device->device);
        device->blocks[i].host = NULL;
        return;
    }
    PANIC("a buffer that is none");
}

/* The device's address for an address of the host; also for the end of a block, as for an empty
 * buffer. */
void *device_buffers_address(const struct device_buffers *device, const void *host)
{
    const uint8_t *at = host;

    for (size_t i = 0; host && i < DEVICE_BLOCKS; i++) {
        const uint8_t *block = device->blocks[i].host;

        if (block && at >= block && at <= block + device->blocks[i].bytes)
            return device->blocks[i].device + (at - block);
    }
    return NULL;
}

static bool is_rounded(const struct coll_call *call)
{
    return numbers_are_real(call->type) &&
           (call->op == HVD_AVERAGE || call->prescale != 0 || call->postscale != 0);
}

void device_buffers_call(struct device_buffers *device, struct coll_call *call)
{
    if (call->kind == COLL_BARRIER || call->kind == COLL_JOIN ||
        (device->way == DEVICE_BY_NCCL && is_rounded(call)))
        return;
    call->device = device->device;
    call->in = device_buffers_address(device, call->in);
    call->out = device_buffers_address(device, call->out);
    for (size_t i = 0; call->pieces && i < call->piece_count; i++)
        device->pieces[i] =
            (struct coll_piece){ device_buffers_address(device, call->pieces[i].in),
                                 device_buffers_address(device, call->pieces[i].out),
                                 call->pieces[i].count };
    if (call->pieces)
        call->pieces = device->pieces;
}
