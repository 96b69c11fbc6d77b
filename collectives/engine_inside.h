/*
 * engine_inside.h: a process's engine, as the files of coll share it.
 */
#ifndef COLLECTIVES_ENGINE_INSIDE_H
#define COLLECTIVES_ENGINE_INSIDE_H

#include "collectives/engine.h"
#include "collectives/link/links.h"
#include "collectives/meet/meet.h"

#include <pthread.h>

struct coll_engine {
    struct coll_options options;
    struct meet *meet;
    struct reaper *reaper;
    char host[64];

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

size_t coll_segment_bytes(const struct coll_engine *engine); /* that suit its kind of links */

#endif
