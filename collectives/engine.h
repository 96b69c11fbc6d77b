/*
 * engine.h: the engine: the objects that a process needs for all its rounds: the address where
 * peers reach it, the reaper thread, which closes connections in the background, and the device
 * that its links share. There is one engine in a process.
 */
#ifndef COLLECTIVES_ENGINE_H
#define COLLECTIVES_ENGINE_H

#include "base/err.h"
#include "base/limits.h"
#include "collectives/link/link.h"

struct coll_engine;
struct gpu_device;

/* Which links the members use. GLOO: those of Gloo; BEST and TCP: this library's own TCP */
enum coll_carrier { COLL_BY_BEST, COLL_BY_GLOO, COLL_BY_TCP };

enum coll_gpu { COLL_GPU_AUTO, COLL_GPU_NCCL, COLL_GPU_CPU }; /* what carries calls on GPU memory */

/* Called once, by any thread, when the GPU does not end its work. The process must then be
 * replaced. The callback must not wait. */
typedef void coll_stuck_fn(void *arg, const char *why);

/* Called with a message for the operator that is no error. The callback runs on the thread that
 * makes the collective call, and must not wait. */
typedef void coll_remark_fn(void *arg, const char *text);

/* One algorithm of an allreduce that the members of a round have tried. When the members have
 * chosen the fastest algorithm, rank 0 calls coll_tried_fn once for each algorithm, on the thread
 * that makes the collective call. */
struct coll_tried {
    uint64_t round;
    uint32_t size, hosts;
    size_t bytes;          /* size of the allreduce after which the members have chosen */
    const char *algorithm; /* borrowed */
    double us;             /* the time that the algorithm has taken, in microseconds */
    bool chosen;           /* true: the members use this algorithm from now on */
};
typedef void coll_tried_fn(void *arg, const struct coll_tried *tried);

#define COLL_FUSION_BYTES ((size_t)64 * 1024 * 1024)

struct coll_options {
    const char *host;          /* the numeric address at which this process listens for peers */
    const char *told;          /* the one that peers are told, if NAT is between; NULL: `host` */
    enum coll_carrier carrier; /* the kind of links (HVD_CPU_OPERATIONS) */
    /* true: members of one host use links too, not shared memory: each rank counts as a host of its
     * own */
    bool flat;
    enum link_security security; /* how numbers travel between hosts (HVD_DATA_SECURITY) */
    /* true: sums are computed in the order of ranks, so the bits of a result depend only on the
     * number of ranks, not on hosts */
    bool fixed_order;
    /* several buffers of one call are sent together, in blocks of at most so many bytes; 0:
     * COLL_FUSION_BYTES */
    size_t fusion_bytes;
    bool unfused; /* true: each buffer of a call with several is reduced by itself */

    /* what carries calls on GPU memory. AUTO: NCCL, or else the host; NCCL: never the host */
    enum coll_gpu gpu;
    int64_t gpu_bound_us; /* GPU work that takes longer than this counts as stuck; 0: 10 s */
    /* `remark` reports a communicator that takes longer than this to start; 0: none is reported */
    int64_t slow_us;
    coll_stuck_fn *stuck;   /* may be NULL */
    coll_remark_fn *remark; /* may be NULL */
    coll_tried_fn *tried;   /* may be NULL */
    void *arg;
};

/* Opens the engine and makes its contact: the text that peers need to reach this process, such as
 * "10.0.0.7:4002/SECRET" (PROTOCOL.md, "Addresses"). The driver sends the contact to the peers over
 * TLS. */
int coll_engine_open(const struct coll_options *options, struct coll_engine **ret_engine,
                     struct hvd_err *err) MUST_CHECK;
/* Closes the engine. All its rounds must have been freed. Waits until the reaper has finished. */
void coll_engine_close(struct coll_engine *engine);
const char *coll_engine_contact(const struct coll_engine *engine); /* for the driver */

/* Sets the device of this process; no effect if it is set to the same device already. HVD_E_INVAL:
 * the process has another device; HVD_E_UNSUPPORTED: the options demand NCCL, but NCCL cannot be
 * used. Any thread may make this call. */
int coll_engine_use_device(struct coll_engine *engine, const struct gpu_device *device,
                           struct hvd_err *err) MUST_CHECK;
/* The text about the GPU of this process for its peers: "GPU-4fa1... nccl=22809" (PROTOCOL.md,
 * "Addresses"). NULL: no device, or NCCL is not used. The text lives as long as the engine. */
const char *coll_engine_device_text(struct coll_engine *engine);

#endif
