/*
 * device.h: the devices that this process uses, and which memory belongs to which device. A device
 * is known from the first call that names it until the process ends. Its context is the primary
 * context, which the CUDA runtime and the frameworks use too.
 */
#ifndef GPU_DEVICE_H
#define GPU_DEVICE_H

#include "base/buf.h"
#include "gpu/cuda.h"

#define GPU_NAME_MAX 96

struct gpu_device {
    const struct cuda *cuda;
    struct CUctx_st *context;
    int ordinal; /* index of the device, as CUDA counts the devices of this process */
    struct cuda_uuid uuid;
    char name[GPU_NAME_MAX]; /* "NVIDIA H100 80GB HBM3" */
};

/* Returns the device that CUDA numbers `ordinal`. HVD_E_UNSUPPORTED: no driver, or no such device;
 * HVD_E_IO, HVD_E_NOMEM: the CUDA driver has refused a call for this device. Any thread may call
 * this function. */
int gpu_device_get(int ordinal, const struct gpu_device **ret_device,
                   struct hvd_err *err) MUST_CHECK;

/* gpu_device_current returns the device of the calling thread's current context;
 * gpu_device_of_stream returns that of a stream. NULL: there is no context, or this process does
 * not use CUDA. */
const struct gpu_device *gpu_device_current(void);
const struct gpu_device *gpu_device_of_stream(struct CUstream_st *stream);

/* Returns the device to which the memory at `at` belongs; NULL: host memory. Managed memory, which
 * host and device can both reach, counts as host memory; so does a pointer that the driver does not
 * know. While this process is not known to use CUDA (cuda.h), the call costs only one branch. */
const struct gpu_device *gpu_device_of(const void *at);

/* gpu_enter makes the device current for the calling thread until gpu_leave. Calls may nest.
 * Returns 0, or an error of cuda_judge. */
int gpu_enter(const struct gpu_device *device, struct hvd_err *err) MUST_CHECK;
void gpu_leave(const struct gpu_device *device);

/* Writes the device's UUID as text: "GPU-4fa1..." */
#define GPU_UUID_TEXT_MAX 48
void gpu_uuid_text(const struct gpu_device *device, char text[GPU_UUID_TEXT_MAX]);

/* In found.c. Appends a line for the driver, for each device, and for NCCL, for --check-build. A
 * line with [X] names a thing that can be used; a line with [ ] says why it cannot be used. Loads
 * the driver and NCCL. */
int gpu_found(struct buf *out) MUST_CHECK;

#endif
