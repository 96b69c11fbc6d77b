/*
 * device.c: the devices that this process uses, and to which device memory belongs; called wherever
 * a buffer, a stream or a state may belong to a device. A device is described at its first use; the
 * description never changes, and later calls only load its address.
 */
#include "gpu/device.h"

#include "base/limits.h"
#include "gpu/library.h"

#include <stdatomic.h>
#include <stdio.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct gpu_device devices[LIMIT_GPUS];
static const void *_Atomic known[LIMIT_GPUS]; /* &devices[i] once that is complete; NULL: not yet */

/* Describes the GPU that CUDA numbers *arg (an int), in devices[]. library_once calls this for each
 * GPU until it succeeds. */
static int find_device(void *arg, const void **ret_found, struct hvd_err *err)
{
    struct gpu_device device = { .ordinal = *(const int *)arg };
    int handle = 0, code;
    int rc = cuda_open(&device.cuda, err);

    if (rc)
        return rc;
    code = device.cuda->device_get(&handle, device.ordinal);
    if (code == CUDA_OK)
        code = device.cuda->device_name(device.name, sizeof(device.name), handle);
    if (code == CUDA_OK)
        code = device.cuda->device_uuid(&device.uuid, handle);
    if (code == CUDA_OK)
        code = device.cuda->context_retain(&device.context, handle);
    rc = cuda_judge(device.cuda, code, "the GPU cannot be used", err);
    if (rc)
        return err_prefix(err, rc, "GPU %d", device.ordinal);
    devices[device.ordinal] = device;
    *ret_found = &devices[device.ordinal];
    return 0;
}

/* Returns the GPU that CUDA numbers `ordinal` (device.h). The first call for a GPU describes it;
 * later calls only load its address. */
int gpu_device_get(int ordinal, const struct gpu_device **ret_device, struct hvd_err *err)
{
    int rc;

    if (ordinal < 0 || ordinal >= LIMIT_GPUS)
        return err_set(err, HVD_E_UNSUPPORTED,
                       "GPU %d: only GPUs with a number below %d can be used; choose GPUs with "
                       "CUDA_VISIBLE_DEVICES",
                       ordinal, LIMIT_GPUS);
    rc = library_once(&lock, &known[ordinal], find_device, &ordinal, err);
    if (!rc)
        *ret_device = atomic_load(&known[ordinal]);
    return rc;
}

/* Returns the GPU with this number; NULL: it cannot be used. For callers to whom the reason does
 * not matter: memory of such a GPU counts as memory of the host. */
static const struct gpu_device *device_or_none(int ordinal)
{
    const struct gpu_device *device = NULL;

    return gpu_device_get(ordinal, &device, NULL) ? NULL : device;
}

/* Returns the GPU of the calling thread's current context; NULL: there is no context, or this
 * process does not use CUDA. */
const struct gpu_device *gpu_device_current(void)
{
    const struct cuda *cuda = cuda_if_used();
    struct CUctx_st *context = NULL;
    int ordinal = 0;

    if (!cuda || cuda->context_current(&context) || !context || cuda->context_device(&ordinal))
        return NULL;
    return device_or_none(ordinal);
}

/* Returns the GPU of a stream: makes the stream's context current for a moment and asks which GPU
 * the current context has. NULL: the stream has no context, or this process does not use CUDA. */
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

/* Returns the GPU whose memory `at` points to; NULL: memory of the host. Managed memory counts as
 * memory of the host (device.h). */
const struct gpu_device *gpu_device_of(const void *at)
{
    static const int attributes[] = { CUDA_POINTER_TYPE, CUDA_POINTER_MANAGED,
                                      CUDA_POINTER_DEVICE };
    const struct cuda *cuda = cuda_known();
    unsigned type = 0;
    unsigned managed = 0; /* the driver writes an int or a bool here, so all bytes begin as 0 */
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

/* Makes the GPU's context current for the calling thread, until gpu_leave (device.h). */
int gpu_enter(const struct gpu_device *device, struct hvd_err *err)
{
    return cuda_judge(device->cuda, device->cuda->context_push(device->context), device->name, err);
}

/* Makes the context current again that was current before gpu_enter. */
void gpu_leave(const struct gpu_device *device)
{
    struct CUctx_st *context = NULL;

    (void)device->cuda->context_pop(&context);
}

/* Writes the UUID of the GPU as text: "GPU-", then 32 hexadecimal digits. */
void gpu_uuid_text(const struct gpu_device *device, char text[GPU_UUID_TEXT_MAX])
{
    size_t used = (size_t)snprintf(text, GPU_UUID_TEXT_MAX, "GPU-");

    for (size_t i = 0; i < sizeof(device->uuid.bytes); i++)
        used +=
            (size_t)snprintf(text + used, GPU_UUID_TEXT_MAX - used, "%02x", device->uuid.bytes[i]);
}
