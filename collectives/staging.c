/*
 * staging.c: the pinned memory through which numbers of a GPU pass to the host and back, and the
 * stream that moves them. device_host.c queues copies and waits for their marks; the engine keeps
 * one staging for all rounds of the process, as pinning takes milliseconds.
 */
#include "collectives/staging.h"

#include "base/mem.h"

struct staging {
    const struct gpu_device *device;
    struct CUstream_st *stream;              /* all copies are queued in it */
    struct CUevent_st *marks[STAGING_SLOTS]; /* of each slot: see staging_mark */
    struct CUevent_st *order;                /* makes one stream wait for another */
    uint8_t *memory;                         /* pinned memory: `in` and `out` of each slot */
};

#define MEMORY_BYTES ((size_t)2 * STAGING_SLOTS * STAGING_BYTES)

/* The area of the slot into which numbers come from the GPU; the slot's area `out` follows it. */
uint8_t *staging_in(const struct staging *staging, size_t slot)
{
    return staging->memory + 2 * slot * STAGING_BYTES;
}

/* The area of the slot from which results go to the GPU. */
uint8_t *staging_out(const struct staging *staging, size_t slot)
{
    return staging_in(staging, slot) + STAGING_BYTES;
}

/* Frees the pinned memory, the events and the stream; each of them may be missing, after a failed
 * staging_open. The caller has entered the device. */
static void release_contents(struct staging *staging)
{
    const struct cuda *cuda = staging->device->cuda;

    if (staging->memory)
        (void)cuda->host_free(staging->memory);
    if (staging->order)
        (void)cuda->event_destroy(staging->order);
    for (size_t i = 0; i < STAGING_SLOTS; i++) {
        if (staging->marks[i])
            (void)cuda->event_destroy(staging->marks[i]);
    }
    if (staging->stream)
        (void)cuda->stream_destroy(staging->stream);
}

/* Opens the staging (staging.h): a stream for the copies, a mark for each slot, one more event that
 * orders streams (staging_order_streams), and pinned memory. The last of the STAGING_SLOTS + 1
 * events is `order`. */
int staging_open(const struct gpu_device *device, struct staging **ret_staging, struct hvd_err *err)
{
    struct staging *staging = mem_zalloc(sizeof(*staging));
    const struct cuda *cuda = device->cuda;
    void *memory = NULL;
    int rc;

    if (!staging)
        return err_set(err, HVD_E_NOMEM,
                       "no memory for copies through the host; free memory on this host");
    staging->device = device;
    rc = gpu_enter(device, err);
    if (rc) {
        mem_free(staging);
        return rc;
    }
    rc = cuda_judge(cuda, cuda->stream_create(&staging->stream, CUDA_STREAM_NON_BLOCKING, 0),
                    "a stream for copies through the host", err);
    for (size_t i = 0; i <= STAGING_SLOTS && !rc; i++)
        rc = cuda_judge(cuda,
                        cuda->event_create(i < STAGING_SLOTS ? &staging->marks[i] : &staging->order,
                                           CUDA_EVENT_UNTIMED),
                        "an event for copies through the host", err);
    if (!rc)
        rc = cuda_judge(cuda, cuda->host_alloc(&memory, MEMORY_BYTES, CUDA_PIN_PORTABLE),
                        "pinned memory for copies through the host", err);
    staging->memory = memory;
    if (rc)
        release_contents(staging);
    gpu_leave(device);
    if (rc)
        mem_free(staging);
    else
        *ret_staging = staging;
    return rc;
}

/* Frees the staging. While a copy is still running nothing is freed, because the copy uses the
 * memory; then the process must be replaced, which frees it. */
void staging_close(struct staging *staging)
{
    if (!staging || staging_idle(staging, NULL))
        return;
    if (!gpu_enter(staging->device, NULL)) {
        release_contents(staging);
        gpu_leave(staging->device);
    }
    mem_free(staging);
}

/* Makes later work of the stream `then` run after the work that is in the stream `first` now. The
 * event `order` may be used again at once, because the wait refers to the record that was made
 * before the wait. */
static int staging_order_streams(const struct staging *staging, struct CUstream_st *first,
                                 struct CUstream_st *then, struct hvd_err *err)
{
    const struct cuda *cuda = staging->device->cuda;
    int code = cuda->event_record(staging->order, first);

    if (code == CUDA_OK)
        code = cuda->stream_wait(then, staging->order, 0 /* no flags */);
    return cuda_judge(cuda, code, "the order of two streams", err);
}

/* Copies that are queued from now on run after all work that is in `stream` now. */
int staging_after(struct staging *staging, struct CUstream_st *stream, struct hvd_err *err)
{
    return staging_order_streams(staging, stream, staging->stream, err);
}

/* Work that is put into `stream` from now on runs after all copies that are queued now. */
int staging_before(struct staging *staging, struct CUstream_st *stream, struct hvd_err *err)
{
    return staging_order_streams(staging, staging->stream, stream, err);
}

/* Sets the mark of the slot, after all copies that are queued now; staging_look asks for it. */
int staging_mark(struct staging *staging, size_t slot, struct hvd_err *err)
{
    const struct cuda *cuda = staging->device->cuda;

    return cuda_judge(cuda, cuda->event_record(staging->marks[slot], staging->stream),
                      "an event in the stream of copies", err);
}

/* Translates the driver's answer about queued copies: 0: done; HVD_E_BUSY: not yet. */
static int judge_query(const struct cuda *cuda, int code, struct hvd_err *err)
{
    if (code == CUDA_NOT_READY)
        return HVD_E_BUSY;
    return cuda_judge(cuda, code, "a copy through the host", err);
}

/* Asks whether the copies that were queued before the slot's mark are done (staging.h). */
int staging_look(struct staging *staging, size_t slot, struct hvd_err *err)
{
    const struct cuda *cuda = staging->device->cuda;

    return judge_query(cuda, cuda->event_query(staging->marks[slot]), err);
}

/* Asks whether all queued copies are done (staging.h). 0: yes; HVD_E_BUSY: not yet; another code:
 * the driver has failed. */
int staging_idle(struct staging *staging, struct hvd_err *err)
{
    const struct cuda *cuda = staging->device->cuda;
    int rc = gpu_enter(staging->device, err);

    if (rc)
        return rc;
    rc = judge_query(cuda, cuda->stream_query(staging->stream), err);
    gpu_leave(staging->device);
    return rc;
}

/* Queues a copy from the device to host memory. */
int staging_load(struct staging *staging, cuda_address from, uint8_t *to, size_t bytes,
                 struct hvd_err *err)
{
    const struct cuda *cuda = staging->device->cuda;

    return cuda_judge(cuda, cuda->to_host(to, from, bytes, staging->stream),
                      "a copy from the device", err);
}

/* Queues a copy from host memory to the device. */
int staging_store(struct staging *staging, const uint8_t *from, cuda_address to, size_t bytes,
                  struct hvd_err *err)
{
    const struct cuda *cuda = staging->device->cuda;

    return cuda_judge(cuda, cuda->to_device(to, from, bytes, staging->stream),
                      "a copy to the device", err);
}

/* Queues a copy from memory of the device to memory of the same device. */
int staging_copy(struct staging *staging, cuda_address from, cuda_address to, size_t bytes,
                 struct hvd_err *err)
{
    const struct cuda *cuda = staging->device->cuda;

    return cuda_judge(cuda, cuda->on_device(to, from, bytes, staging->stream),
                      "a copy on the device", err);
}
