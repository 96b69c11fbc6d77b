/*
 * gpu.h: the one GPU that this process uses, and the program's stream. The first stream, state
 * entry or collective buffer that the program gives to the library decides which GPU that is.
 */
#ifndef WORKER_GPU_H
#define WORKER_GPU_H

#include "collectives/engine.h"
#include "gpu/device.h"

#include <pthread.h>
#include <stdatomic.h>

struct gpu_use {
    pthread_mutex_t lock;    /* a thread holds it while it creates `own` */
    struct CUstream_st *own; /* the library's own stream, for requests; NULL: not created yet */
    /* NULL: the worker is alone, and makes no collectives with others */
    struct coll_engine *engine;
    /* the one GPU; NULL: the program has not shown yet which GPU it uses */
    const struct gpu_device *_Atomic device;
    /* the stream that the program has set; HVD_NO_STREAM: none, so callers wait for results */
    _Atomic(struct CUstream_st *) stream;
};

void gpu_use_init(struct gpu_use *use);
/* called at the end, when no thread queues work any more */
void gpu_use_release(struct gpu_use *use);

/* Makes this device the one device of the process. HVD_E_INVAL: the process uses another device;
 * HVD_E_UNSUPPORTED: the device cannot be used as HVD_GPU_OPERATIONS demands. `what` names the
 * object in the error text, for example "the stream". Any thread may call this function. */
int gpu_use_device(struct gpu_use *use, const struct gpu_device *device, const char *what,
                   struct hvd_err *err) MUST_CHECK;

/* Sets the program's stream; hvd_set_stream has the rules. */
int gpu_use_stream(struct gpu_use *use, struct CUstream_st *stream, struct hvd_err *err) MUST_CHECK;

/* true: *ret_stream is the stream that the program has set, in which calls are ordered. false: the
 * program has set no stream: *ret_stream is the default stream, calls come after the work that is
 * queued in it, and callers wait for results. */
bool gpu_use_streamed(const struct gpu_use *use, struct CUstream_st **ret_stream);

/*
 * A request is started now and done later, by another thread, in a stream of the library. The
 * request runs after the work that was in the program's stream when it was started, but not after
 * later work.
 *
 *     program's   ──x──note──y──z───────────────pass_on──w
 *     ours                └──► take_up──work──done┘            w sees the result of work;
 *                                                              y never waits for it
 */
struct gpu_marks {
    struct CUevent_st *before, *after; /* the marks in the streams; NULL: not created yet */
    struct CUstream_st *stream;        /* the program's stream */
};

/* Each request calls gpu_note, gpu_take_up, gpu_done and gpu_pass_on in this order (see the picture
 * above); any thread may call them. Fails with HVD_E_NOMEM, HVD_E_IO. */
int gpu_note(struct gpu_use *use, struct gpu_marks *marks, struct hvd_err *err) MUST_CHECK;
int gpu_take_up(struct gpu_use *use, const struct gpu_marks *marks, struct CUstream_st **ret_ours,
                struct hvd_err *err) MUST_CHECK;
int gpu_done(struct gpu_use *use, struct gpu_marks *marks, struct hvd_err *err) MUST_CHECK;
int gpu_pass_on(struct gpu_use *use, const struct gpu_marks *marks, struct hvd_err *err) MUST_CHECK;
void gpu_marks_release(struct gpu_marks *marks);

#endif
