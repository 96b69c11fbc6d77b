/*
 * shelf.h: buffers in the memory of a stand-in device, one device for each member, and the calls on
 * them. The player sees them as the host does; the call gets them as the device does.
 */
#ifndef TESTS_COLL_SHELF_H
#define TESTS_COLL_SHELF_H

#include "collectives/coll.h"
#include "gpu/device.h"
#include "tests/coll/plan.h"

#define SHELF_BLOCKS (2 * PLAN_PIECES)

enum shelf_way { SHELF_NONE, SHELF_BY_HOST, SHELF_BY_NCCL };

struct shelf {
    enum shelf_way way;
    const struct gpu_device *device;
    struct {
        uint8_t *host; /* NULL: free */
        uint8_t *device;
        size_t bytes;
    } blocks[SHELF_BLOCKS];
    struct coll_piece pieces[PLAN_PIECES];
};

/* In the process that uses it. Aborts where there is no stand-in. */
void shelf_open(struct shelf *shelf, enum shelf_way way, uint32_t rank);

void *shelf_alloc(struct shelf *shelf, size_t bytes);
void shelf_free(struct shelf *shelf, void *host);

/* What NCCL rounds in its own way is called on memory of the host. */
void shelf_call(struct shelf *shelf, struct coll_call *call);

#endif
