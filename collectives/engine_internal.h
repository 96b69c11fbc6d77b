/*
 * engine_internal.h: the engine of a process, for the files of collectives/ that share it.
 */
#ifndef COLLECTIVES_ENGINE_INTERNAL_H
#define COLLECTIVES_ENGINE_INTERNAL_H

#include "collectives/engine.h"
#include "collectives/link/links.h"
#include "collectives/meet/meet.h"

#include <pthread.h>
#include <stdatomic.h>

struct nccl_thread;
struct staging;

struct coll_engine {
    struct coll_options options;
    struct meet *meet;
    struct reaper *reaper;
    char host[64], told[64]; /* what options.host and options.told point to */

    pthread_mutex_t gpu_mutex; /* protects the fields below it; never held together with `mutex` */
    const struct gpu_device *_Atomic gpu; /* the GPU of this process; NULL: none is used so far */
    struct nccl_thread *nccl_thread;      /* NULL: NCCL is not used, or cannot be used */
    struct hvd_err no_nccl_why;           /* why nccl_thread is NULL, if a GPU is used */
    int nccl_version;
    /* true: the operator has been told that NCCL sends in clear; used by the thread that makes
     * calls */
    bool nccl_in_clear_told;
    char *gpu_text;          /* coll_engine_device_text; NULL: no GPU, or NCCL is not used */
    struct staging *staging; /* NULL: no call has gone through the host yet */

    pthread_mutex_t mutex; /* protects the fields below it */
    pthread_cond_t changed;
    size_t colls;               /* how many rounds are not freed yet */
    struct link_device *device; /* NULL: no round has needed a device yet */
    struct reaper_task opener;  /* the task that opens `device` */
    struct hvd_err opening_err; /* how the last opening of `device` ended */
    bool opening;               /* true: the reaper is opening `device` */
};

/* Returns the device of the links. The first call opens the device, on the reaper's thread. */
int coll_engine_device(struct coll_engine *engine, struct link_device **ret_device,
                       struct hvd_err *err) MUST_CHECK;
/* Returns the length of the segments into which long messages are cut, which depends on this
 * engine's kind of links. */
size_t coll_segment_bytes(const struct coll_engine *engine);

/* In engine_device.c. `engine` may be NULL, except in coll_engine_close_device: a process that is
 * alone in its round has no engine. */
void coll_engine_close_device(struct coll_engine *engine);
int64_t coll_engine_bound_us(const struct coll_engine *engine);
void coll_engine_stuck(void *arg, const char *why); /* calls the `stuck` callback of the options */

#endif
