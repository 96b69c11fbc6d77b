/*
 * gpu.h: which GPU this process works with, and in which of its streams. It works with one: that of
 * the first stream, entry of the state or buffer that it hands us.
 */
#ifndef WORKER_GPU_H
#define WORKER_GPU_H

#include "collectives/engine.h"
#include "gpu/device.h"

#include <pthread.h>
#include <stdatomic.h>

struct gpu_use {
    pthread_mutex_t lock;                    /* of its making */
    struct CUstream_st *own;                 /* of ours, for what is done later; NULL: not yet */
    struct coll_engine *engine;              /* NULL: alone */
    const struct gpu_device *_Atomic device; /* NULL: none is known */
    _Atomic(struct CUstream_st *) stream;    /* HVD_NO_STREAM: who calls waits for the result */
};

void gpu_use_init(struct gpu_use *use);
void gpu_use_release(struct gpu_use *use); /* nothing is queued any more */

/* Nothing if it is that already. HVD_E_INVAL: another one is; HVD_E_UNSUPPORTED: it cannot be used
 * as it is asked for. Any thread. what: for the text, "the stream". */
int gpu_use_device(struct gpu_use *use, const struct gpu_device *device, const char *what,
                   struct hvd_err *err) MUST_CHECK;

/* As hvd_set_stream. */
int gpu_use_stream(struct gpu_use *use, struct CUstream_st *stream, struct hvd_err *err) MUST_CHECK;

/* The stream that calls are ordered in. false: none was set; they come after the default stream,
 * which *ret_stream is, and their callers wait. */
bool gpu_use_streamed(const struct gpu_use *use, struct CUstream_st **ret_stream);

/*
 * What is asked for now and done later, by another thread, in a stream of ours: it comes after what
 * was queued in the program's stream when it was asked for, and nothing later.
 *
 *     program's   ──x──note──y──z───────────────pass_on──w
 *     ours                └──► take_up──work──done┘            w finds the work done, y never waits
 */
struct gpu_marks {
    struct CUevent_st *before, *after; /* NULL: not made yet */
    struct CUstream_st *stream;        /* the program's */
};

/* 0; HVD_E_NOMEM, HVD_E_IO. Each of them in the order of the picture, by any thread. */
int gpu_note(struct gpu_use *use, struct gpu_marks *marks, struct hvd_err *err) MUST_CHECK;
int gpu_take_up(struct gpu_use *use, const struct gpu_marks *marks, struct CUstream_st **ret_ours,
                struct hvd_err *err) MUST_CHECK;
int gpu_done(struct gpu_use *use, struct gpu_marks *marks, struct hvd_err *err) MUST_CHECK;
int gpu_pass_on(struct gpu_use *use, const struct gpu_marks *marks, struct hvd_err *err) MUST_CHECK;
void gpu_marks_release(struct gpu_marks *marks);

#endif
