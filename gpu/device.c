#include "gpu/device.h"

#include "base/limits.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct gpu_device devices[LIMIT_GPUS];
static const struct gpu_device *_Atomic known[LIMIT_GPUS]; /* what is complete of them */

/* ---- which there are ------------------------------------------------------------------------- */

static int describe(struct gpu_device *device, struct hvd_err *err)
{
    const struct cuda *cuda = device->cuda;
    int handle = 0;
    int code = cuda->device_get(&handle, device->ordinal);

    if (code == CUDA_OK)
        code = cuda->device_name(device->name, sizeof(device->name), handle);
    if (code == CUDA_OK)
        code = cuda->device_uuid(&device->uuid, handle);
    if (code == CUDA_OK)
        code = cuda->context_retain(&device->context, handle);
    if (code == CUDA_OK)
        return 0;
    return err_prefix(err, cuda_judge(cuda, code, "it cannot be used", err), "GPU %d",
                      device->ordinal);
}

/* The lock is held. */
static int find(int ordinal, struct hvd_err *err)
{
    struct gpu_device device = { .ordinal = ordinal };
    int rc = cuda_open(&device.cuda, err);

    if (!rc)
        rc = describe(&device, err);
    if (rc)
        return rc;
    devices[ordinal] = device;
    atomic_store(&known[ordinal], &devices[ordinal]);
    return 0;
}

int gpu_device_get(int ordinal, const struct gpu_device **ret_device, struct hvd_err *err)
{
    int rc = 0;

    if (ordinal < 0 || ordinal >= LIMIT_GPUS)
        return err_set(err, HVD_E_UNSUPPORTED, "GPU %d: a process can use those below %d", ordinal,
                       LIMIT_GPUS);
    if (!atomic_load(&known[ordinal])) {
        pthread_mutex_lock(&lock);
        if (!atomic_load(&known[ordinal]))
            rc = find(ordinal, err);
        pthread_mutex_unlock(&lock);
    }
    if (!rc)
        *ret_device = atomic_load(&known[ordinal]);
    return rc;
}

static const struct gpu_device *device_or_none(int ordinal)
{
    const struct gpu_device *device = NULL;

    return gpu_device_get(ordinal, &device, NULL) ? NULL : device;
}

/* ---- of what --------------------------------------------------------------------------------- */

const struct gpu_device *gpu_device_current(void)
{
    const struct cuda *cuda = cuda_if_used();
    struct CUctx_st *context = NULL;
    int ordinal = 0;

    if (!cuda || cuda->context_current(&context) || !context || cuda->context_device(&ordinal))
        return NULL;
    return device_or_none(ordinal);
}

const struct gpu_device *gpu_device_of_stream(struct CUstream_st *stream)
{
    const struct cuda *cuda = cuda_if_used();
    const struct gpu_device *device;
    struct CUctx_st *context = NULL;
    struct CUctx_st *before = NULL;

    if (!cuda || cuda->stream_context(stream, &context) || !context || cuda->context_push(context))
        return NULL;
    device = gpu_device_current();
    (void)cuda->context_pop(&before);
    return device;
}

const struct gpu_device *gpu_device_of(const void *at)
{
    static const int attributes[] = { CUDA_POINTER_TYPE, CUDA_POINTER_MANAGED,
                                      CUDA_POINTER_DEVICE };
    const struct cuda *cuda = cuda_known();
    unsigned type = 0;
    unsigned managed = 0; /* the driver writes an int or a bool */
    int ordinal = -1;
    void *values[] = { &type, &managed, &ordinal };

    if (!cuda || !at ||
        cuda->pointer_attributes(ARRAY_SIZE(attributes), attributes, values,
                                 (cuda_address)(uintptr_t)at))
        return NULL;
    if (type != CUDA_TYPE_DEVICE || managed)
        return NULL;
    return device_or_none(ordinal);
}

/* ---- using one ------------------------------------------------------------------------------- */

int gpu_enter(const struct gpu_device *device, struct hvd_err *err)
{
    return cuda_judge(device->cuda, device->cuda->context_push(device->context), device->name, err);
}

void gpu_leave(const struct gpu_device *device)
{
    struct CUctx_st *context = NULL;

    (void)device->cuda->context_pop(&context);
}

void gpu_uuid_text(const struct gpu_device *device, char text[GPU_UUID_TEXT_MAX])
{
    size_t used = (size_t)snprintf(text, GPU_UUID_TEXT_MAX, "GPU-");

    for (size_t i = 0; i < sizeof(device->uuid.bytes); i++)
        used +=
            (size_t)snprintf(text + used, GPU_UUID_TEXT_MAX - used, "%02x", device->uuid.bytes[i]);
}
