#include "collectives/staging.h"

#include "base/mem.h"

struct staging {
    const struct gpu_device *device;
    struct CUstream_st *stream;
    struct CUevent_st *marks[STAGING_SLOTS];
    struct CUevent_st *order; /* between our stream and another */
    uint8_t *memory;          /* pinned: in and out of each slot */
};

#define MEMORY_BYTES ((size_t)2 * STAGING_SLOTS * STAGING_BYTES)

uint8_t *staging_in(const struct staging *staging, size_t slot)
{
    return staging->memory + 2 * slot * STAGING_BYTES;
}

uint8_t *staging_out(const struct staging *staging, size_t slot)
{
    return staging_in(staging, slot) + STAGING_BYTES;
}

/* ---- life ------------------------------------------------------------------------------------ */

static int make_event(const struct cuda *cuda, struct CUevent_st **ret_event, struct hvd_err *err)
{
    return cuda_judge(cuda, cuda->event_create(ret_event, CUDA_EVENT_UNTIMED),
                      "an event for what passes through the host", err);
}

static int fill(struct staging *staging, struct hvd_err *err)
{
    const struct cuda *cuda = staging->device->cuda;
    void *memory = NULL;
    int rc = cuda_judge(cuda, cuda->stream_create(&staging->stream, CUDA_STREAM_NON_BLOCKING, 0),
                        "a stream for what passes through the host", err);

    for (size_t i = 0; i < STAGING_SLOTS && !rc; i++)
        rc = make_event(cuda, &staging->marks[i], err);
    if (!rc)
        rc = make_event(cuda, &staging->order, err);
    if (!rc)
        rc = cuda_judge(cuda, cuda->host_alloc(&memory, MEMORY_BYTES, CUDA_PIN_PORTABLE),
                        "pinned memory for what passes through the host", err);
    staging->memory = memory;
    return rc;
}

static void empty(struct staging *staging)
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

int staging_open(const struct gpu_device *device, struct staging **ret_staging, struct hvd_err *err)
{
    struct staging *staging = mem_zalloc(sizeof(*staging));
    int rc;

    if (!staging)
        return err_set(err, HVD_E_NOMEM, "out of memory");
    staging->device = device;
    rc = gpu_enter(device, err);
    if (!rc) {
        rc = fill(staging, err);
        if (rc)
            empty(staging);
        gpu_leave(device);
    }
    if (rc)
        mem_free(staging);
    else
        *ret_staging = staging;
    return rc;
}

/* What still moves keeps its memory: then the process is of no more use. */
void staging_close(struct staging *staging)
{
    if (!staging || staging_idle(staging, NULL))
        return;
    if (!gpu_enter(staging->device, NULL)) {
        empty(staging);
        gpu_leave(staging->device);
    }
    mem_free(staging);
}

/* ---- order ----------------------------------------------------------------------------------- */

static int chain(const struct staging *staging, struct CUstream_st *first, struct CUstream_st *then,
                 struct hvd_err *err)
{
    const struct cuda *cuda = staging->device->cuda;
    int code = cuda->event_record(staging->order, first);

    if (code == CUDA_OK)
        code = cuda->stream_wait(then, staging->order, 0);
    return cuda_judge(cuda, code, "the order of two streams", err);
}

int staging_after(struct staging *staging, struct CUstream_st *stream, struct hvd_err *err)
{
    return chain(staging, stream, staging->stream, err);
}

int staging_before(struct staging *staging, struct CUstream_st *stream, struct hvd_err *err)
{
    return chain(staging, staging->stream, stream, err);
}

int staging_mark(struct staging *staging, size_t slot, struct hvd_err *err)
{
    const struct cuda *cuda = staging->device->cuda;

    return cuda_judge(cuda, cuda->event_record(staging->marks[slot], staging->stream),
                      "a mark in the stream", err);
}

static int judge_query(const struct cuda *cuda, int code, struct hvd_err *err)
{
    if (code == CUDA_NOT_READY)
        return HVD_E_BUSY;
    return cuda_judge(cuda, code, "what passes through the host", err);
}

int staging_look(struct staging *staging, size_t slot, struct hvd_err *err)
{
    const struct cuda *cuda = staging->device->cuda;

    return judge_query(cuda, cuda->event_query(staging->marks[slot]), err);
}

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

/* ---- moving ---------------------------------------------------------------------------------- */

int staging_load(struct staging *staging, cuda_address from, uint8_t *to, size_t bytes,
                 struct hvd_err *err)
{
    const struct cuda *cuda = staging->device->cuda;

    return cuda_judge(cuda, cuda->to_host(to, from, bytes, staging->stream), "from the device",
                      err);
}

int staging_store(struct staging *staging, const uint8_t *from, cuda_address to, size_t bytes,
                  struct hvd_err *err)
{
    const struct cuda *cuda = staging->device->cuda;

    return cuda_judge(cuda, cuda->to_device(to, from, bytes, staging->stream), "to the device",
                      err);
}

int staging_copy(struct staging *staging, cuda_address from, cuda_address to, size_t bytes,
                 struct hvd_err *err)
{
    const struct cuda *cuda = staging->device->cuda;

    return cuda_judge(cuda, cuda->on_device(to, from, bytes, staging->stream), "on the device",
                      err);
}
