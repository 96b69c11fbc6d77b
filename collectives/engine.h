/*
 * engine.h: what a process needs for all its rounds: where its peers find it, a thread for what
 * takes time, and what its links have in common. One for a process.
 */
#ifndef COLLECTIVES_ENGINE_H
#define COLLECTIVES_ENGINE_H

#include "base/err.h"

struct coll_engine;
struct gpu_device;

enum coll_carrier { COLL_BY_BEST, COLL_BY_GLOO, COLL_BY_TCP }; /* TCP: without Gloo */

enum coll_gpu { COLL_GPU_AUTO, COLL_GPU_NCCL, COLL_GPU_CPU }; /* how memory of a device travels */

/* The device does not end what it was told to end: this process is of no more use. Once, by any
 * thread; must not wait. */
typedef void coll_stuck_fn(void *arg, const char *why);

/* What people should know, though nothing has failed. By whoever calls; must not wait. */
typedef void coll_remark_fn(void *arg, const char *text);

struct coll_options {
    const char *host;          /* the numeric address that peers reach this machine by */
    enum coll_carrier carrier; /* the link: HVD_CPU_OPERATIONS */
    bool flat;                 /* over the link also inside a host: when a carrier was asked for */
    bool fixed_order;    /* sums in rank order: the bits depend on the size of the round alone */
    size_t fusion_bytes; /* so much of several buffers travels as one; 0: the default */

    enum coll_gpu gpu;    /* by NCCL if that can be had; or not at all without; or never */
    int64_t gpu_bound_us; /* what was begun on a device ends so soon, or it is stuck; 0: 10 s */
    int64_t slow_us;      /* a communicator that takes so long to make is remarked on; 0: none is */
    coll_stuck_fn *stuck; /* NULL: nobody is told */
    coll_remark_fn *remark; /* the same */
    void *arg;
};

/* The contact is what peers need to know beyond the address, to be carried to them unread:
 * "10.0.0.7:4002/SECRET" (PROTOCOL.md, "Addresses"). */
int coll_engine_open(const struct coll_options *options, struct coll_engine **ret_engine,
                     struct hvd_err *err) MUST_CHECK;
/* After every coll of it; waits for the reaper. */
void coll_engine_close(struct coll_engine *engine);
const char *coll_engine_contact(const struct coll_engine *engine);

/* The device of this process, from now on; nothing if it is already. HVD_E_INVAL: another one is;
 * HVD_E_UNSUPPORTED: NCCL is asked for, and cannot be used. Any thread. */
int coll_engine_use_device(struct coll_engine *engine, const struct gpu_device *device,
                           struct hvd_err *err) MUST_CHECK;
/* What peers need to know of it: "GPU-4fa1... nccl=22809" (PROTOCOL.md, "Addresses"). NULL: there
 * is none, or nothing of it is used. Stays. */
const char *coll_engine_device_text(struct coll_engine *engine);

#endif
