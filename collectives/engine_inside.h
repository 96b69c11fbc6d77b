/*
 * engine_inside.h: a process's engine, as the files of coll share it.
 */
#ifndef COLLECTIVES_ENGINE_INSIDE_H
#define COLLECTIVES_ENGINE_INSIDE_H

#include "collectives/engine.h"
#include "collectives/link/links.h"
#include "collectives/meet/meet.h"

#include <pthread.h>
#include <stdatomic.h>

struct hand;
struct staging;

struct coll_engine {
    struct coll_options options;
    struct meet *meet;
    struct reaper *reaper;
    char host[64];

    pthread_mutex_t gpu_mutex; /* of what follows; never taken with the other */
    const struct gpu_device *_Atomic gpu;
    struct hand *hand; /* NULL: NCCL is not used, or cannot be */
    struct hvd_err no_hand_why;
    int nccl_version;
    char *gpu_text;          /* what peers are told; NULL: nothing */
    struct staging *staging; /* NULL: nothing has gone through the host yet */

    pthread_mutex_t mutex; /* of what follows */
    pthread_cond_t changed;
    size_t colls;
    struct link_device *device; /* NULL: no round has needed one yet */
    struct reaper_job opener;
    struct hvd_err opening_err;
    bool opening;
};

/* Opens it on the reaper's thread when it is needed first. */
int coll_engine_device(struct coll_engine *engine, struct link_device **ret_device,
                       struct hvd_err *err) MUST_CHECK;

/* engine_device.c. engine NULL: a process alone. */
void coll_engine_close_device(struct coll_engine *engine);
int64_t coll_engine_bound_us(const struct coll_engine *engine);
void coll_engine_stuck(void *arg, const char *why); /* tells whoever is to be told */

size_t coll_segment_bytes(const struct coll_engine *engine); /* that suit its kind of links */

#endif
