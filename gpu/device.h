/*
 * device.h: the devices that this process uses, and which memory is whose. A device is known from
 * the first time that it is asked for until the process ends; its context is the primary one, that
 * of the CUDA runtime and of frameworks.
 */
#ifndef GPU_DEVICE_H
#define GPU_DEVICE_H

#include "gpu/cuda.h"

#define GPU_NAME_MAX 96

struct gpu_device {
    const struct cuda *cuda;
    struct CUctx_st *context;
    int ordinal; /* as this process counts them */
    struct cuda_uuid uuid;
    char name[GPU_NAME_MAX]; /* "NVIDIA H100 80GB HBM3" */
};

/* HVD_E_UNSUPPORTED: no driver, or no such device; HVD_E_IO, HVD_E_NOMEM. Any thread. */
int gpu_device_get(int ordinal, const struct gpu_device **ret_device,
                   struct hvd_err *err) MUST_CHECK;

/* That of the calling thread's current context; NULL: it has none, or CUDA is not used here. */
const struct gpu_device *gpu_device_current(void);
const struct gpu_device *gpu_device_of_stream(struct CUstream_st *stream);

/* Whose memory this is; NULL: the host's. So is managed memory, which both can reach. A pointer
 * that nobody knows is the host's. Costs a branch where CUDA is not known to be used (cuda.h). */
const struct gpu_device *gpu_device_of(const void *at);

/* Between these the calling thread works with the device. They nest. 0, or as cuda_judge. */
int gpu_enter(const struct gpu_device *device, struct hvd_err *err) MUST_CHECK;
void gpu_leave(const struct gpu_device *device);

/* "GPU-4fa1..." */
#define GPU_UUID_TEXT_MAX 48
void gpu_uuid_text(const struct gpu_device *device, char text[GPU_UUID_TEXT_MAX]);

#endif
