/*
 * pointers.c: tells what the stand-in of the driver knows of an address: device memory, pinned host
 * memory, managed memory, or unknown memory.
 */
#include "tests/standin/driver_internal.h"

/* For an unknown pointer the real driver succeeds with empty answers, and so does this. */
struct known {
    int type; /* 0: unknown */
    bool managed;
    int ordinal;
};

static struct known know(const void *at)
{
    struct CUctx_st *device = memory_device(at);
    struct host_range *range = host_range_of(at, 1);

    if (device)
        return (struct known){ .type = CUDA_TYPE_DEVICE, .ordinal = device->ordinal };
    if (!range)
        return (struct known){ .ordinal = -2 };
    return (struct known){ .type = range->kind == HOST_MANAGED ? (int)CUDA_TYPE_DEVICE : 1,
                           .managed = range->kind == HOST_MANAGED,
                           .ordinal = range->ordinal };
}

int cu_pointer_attributes(unsigned count, const int *attributes, void **ret_values, cuda_address at)
{
    struct known known;
    int code = standin_enter();

    if (code)
        return code;
    known = know((const void *)(uintptr_t)at);
    for (unsigned i = 0; i < count; i++) {
        switch (attributes[i]) {
        case CUDA_POINTER_TYPE: *(unsigned *)ret_values[i] = (unsigned)known.type; break;
        case CUDA_POINTER_MANAGED: *(bool *)ret_values[i] = known.managed; break;
        case CUDA_POINTER_DEVICE: *(int *)ret_values[i] = known.ordinal; break;
        default:
            standin_misuse("pointer attribute %d, which gpu/cuda.h does not name", attributes[i]);
        }
    }
    standin_leave();
    return CUDA_OK;
}
