/*
 * gpu.c: the GPU of this process, the program's stream (hvd_set_stream), and the events that order
 * a request behind the work which was queued when it was started.
 *
 * Called by worker.c, run.c, state_device.c and requests.c. Invariant: the device is set once and
 * never changes, so it is read without a lock.
 */
#include "worker/gpu.h"

void gpu_use_init(struct gpu_use *use)
{
    use->engine = NULL;
    use->own = NULL;
    pthread_mutex_init(&use->lock, NULL);
    atomic_init(&use->device, NULL);
    atomic_init(&use->stream, HVD_NO_STREAM);
}

/* Destroys the library's own stream, if it was created. Called when no work can be queued any
 * more. */
void gpu_use_release(struct gpu_use *use)
{
    const struct gpu_device *device = atomic_load(&use->device);

    if (use->own && !gpu_enter(device, NULL)) {
        (void)device->cuda->stream_destroy(use->own);
        gpu_leave(device);
    }
    pthread_mutex_destroy(&use->lock);
}

/* Makes the error of a program that gives memory or a stream (`what`) of a second GPU to the
 * library. */
static int refuse_second(const struct gpu_device *known, const struct gpu_device *device,
                         const char *what, struct hvd_err *err)
{
    return err_set(err, HVD_E_INVAL,
                   "%s is of GPU %d (%s), and this process works with GPU %d (%s); let each "
                   "process use one GPU",
                   what, device->ordinal, device->name, known->ordinal, known->name);
}

/* Makes this device the one GPU of the process. The call fails if the process uses another GPU
 * already, also if another thread has set that one at the same moment. */
int gpu_use_device(struct gpu_use *use, const struct gpu_device *device, const char *what,
                   struct hvd_err *err)
{
    const struct gpu_device *known = atomic_load(&use->device);
    int rc = 0;

    if (known)
        return known == device ? 0 : refuse_second(known, device, what, err);
    if (use->engine)
        rc = coll_engine_use_device(use->engine, device, err);
    if (!rc && !atomic_compare_exchange_strong(&use->device, &known, device) && known != device)
        rc = refuse_second(known, device, what, err);
    return rc;
}

/* Sets the stream that the program has chosen: from now on calls on GPU memory are ordered in it.
 * HVD_NO_STREAM: the program has none. */
int gpu_use_stream(struct gpu_use *use, struct CUstream_st *stream, struct hvd_err *err)
{
    int rc = 0;

    if (stream != HVD_NO_STREAM) {
        const struct gpu_device *device = gpu_device_of_stream(stream);
        struct CUctx_st *context = NULL;

        if (!device)
            return err_set(
                err, HVD_E_INVAL,
                "hvd_set_stream: the stream does not belong to a GPU; pass a stream of the CUDA "
                "driver or runtime, or HVD_NO_STREAM");
        /* Events and memory belong to one context of the GPU: those of the library, which are of
         * the primary context, would fail in a stream of another context. */
        if (device->cuda->stream_context(stream, &context) != CUDA_OK || context != device->context)
            return err_set(err, HVD_E_INVAL,
                           "hvd_set_stream: the stream is of a context that is not the primary one "
                           "of GPU %d (%s); create it in the primary context "
                           "(cuDevicePrimaryCtxRetain), which the CUDA runtime uses",
                           device->ordinal, device->name);
        rc = gpu_use_device(use, device, "hvd_set_stream: the stream", err);
    }
    if (!rc)
        atomic_store(&use->stream, stream);
    return rc;
}

/* true: the program has set a stream, and calls are ordered in it. false: *ret_stream is the
 * default stream (NULL), and callers wait for results. */
bool gpu_use_streamed(const struct gpu_use *use, struct CUstream_st **ret_stream)
{
    struct CUstream_st *stream = atomic_load(&use->stream);
    bool streamed = stream != HVD_NO_STREAM;

    *ret_stream = streamed ? stream : NULL;
    return streamed;
}

/* ---- requests: queued now, done later -------------------------------------------------------- */

/* Records an event in the stream; creates the event at its first use. The caller has called
 * gpu_enter. */
static int record_event(const struct cuda *cuda, struct CUevent_st **event,
                        struct CUstream_st *stream)
{
    int code = *event ? CUDA_OK : cuda->event_create(event, CUDA_EVENT_UNTIMED);

    return code == CUDA_OK ? cuda->event_record(*event, stream) : code;
}

/* Ends what gpu_enter has begun, and turns the CUDA code of the calls between into a code and a
 * text of the library. */
static int leave_and_judge(const struct gpu_device *device, int code, struct hvd_err *err)
{
    gpu_leave(device);
    return cuda_judge(device->cuda, code, "putting a request in order with its stream", err);
}

/* Called when a request is started: notes the work that is in the program's stream now. The
 * request will run after that work. */
int gpu_note(struct gpu_use *use, struct gpu_marks *marks, struct hvd_err *err)
{
    const struct gpu_device *device = atomic_load(&use->device);
    int rc = gpu_enter(device, err);

    if (rc)
        return rc;
    (void)gpu_use_streamed(use, &marks->stream);
    return leave_and_judge(device, record_event(device->cuda, &marks->before, marks->stream), err);
}

/* Called by the thread that makes a request: the library's own stream waits for the work that
 * gpu_note has noted. *ret_ours is the library's stream, in which the request is then queued. */
int gpu_take_up(struct gpu_use *use, const struct gpu_marks *marks, struct CUstream_st **ret_ours,
                struct hvd_err *err)
{
    const struct gpu_device *device = atomic_load(&use->device);
    int rc = gpu_enter(device, err);
    int code = CUDA_OK;

    if (rc)
        return rc;
    pthread_mutex_lock(&use->lock);
    if (!use->own)
        code = device->cuda->stream_create(&use->own, CUDA_STREAM_NON_BLOCKING, 0);
    pthread_mutex_unlock(&use->lock);
    if (code == CUDA_OK)
        code = device->cuda->stream_wait(use->own, marks->before, 0 /* no flags */);
    rc = leave_and_judge(device, code, err);
    if (!rc)
        *ret_ours = use->own;
    return rc;
}

/* Called when a request is queued in the library's own stream: records an event behind it, for
 * gpu_pass_on. */
int gpu_done(struct gpu_use *use, struct gpu_marks *marks, struct hvd_err *err)
{
    const struct gpu_device *device = atomic_load(&use->device);
    int rc = gpu_enter(device, err);

    return rc ? rc
              : leave_and_judge(device, record_event(device->cuda, &marks->after, use->own), err);
}

/* Makes later work in the program's stream wait for the result of the request (gpu_done). */
int gpu_pass_on(struct gpu_use *use, const struct gpu_marks *marks, struct hvd_err *err)
{
    const struct gpu_device *device = atomic_load(&use->device);
    int rc = gpu_enter(device, err);

    if (rc)
        return rc;
    return leave_and_judge(device, device->cuda->stream_wait(marks->stream, marks->after, 0), err);
}

void gpu_marks_release(struct gpu_marks *marks)
{
    const struct cuda *cuda = cuda_known();

    if (marks->before)
        (void)cuda->event_destroy(marks->before);
    if (marks->after)
        (void)cuda->event_destroy(marks->after);
    *marks = (struct gpu_marks){ .before = NULL };
}
