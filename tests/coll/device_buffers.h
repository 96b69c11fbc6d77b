/*
 * device_buffers.h: buffers in the memory of a stand-in device, one device for each member, and
 * calls on the buffers. plan_run.c uses the host's address of a buffer; the collective call gets
 * the device's address.
 */
#ifndef TESTS_COLL_DEVICE_BUFFERS_H
#define TESTS_COLL_DEVICE_BUFFERS_H

#include "collectives/coll.h"
#include "gpu/device.h"
#include "tests/coll/plan.h"

#define DEVICE_BLOCKS (2 * PLAN_PIECES)

enum device_buffers_way { DEVICE_NONE, DEVICE_BY_HOST, DEVICE_BY_NCCL };

struct device_buffers {
    enum device_buffers_way way;
    const struct gpu_device *device;
    struct {
        uint8_t *host; /* the host's address; NULL: this block is free */
        uint8_t *device;
        size_t bytes;
    } blocks[DEVICE_BLOCKS];
    struct coll_piece pieces[PLAN_PIECES];
};

/* Opens the device of this rank, in the member's own process. Aborts where there is no stand-in. */
void device_buffers_open(struct device_buffers *device, enum device_buffers_way way, uint32_t rank);

void *device_buffers_alloc(struct device_buffers *device, size_t bytes);
void device_buffers_free(struct device_buffers *device, void *host);

/* The device's address for an address of the host. */
void *device_buffers_address(const struct device_buffers *device, const void *host);

/* Replaces the addresses in the call by those of the device. A reduction that NCCL rounds in
 * another way than the host stays on memory of the host. */
void device_buffers_call(struct device_buffers *device, struct coll_call *call);

#endif
