/*
 * engine_device.c: the GPU that a process works with: one GPU for the life of the process, from the
 * first call on memory of the GPU or from the worker's options. With the GPU come NCCL, if NCCL can
 * be used, and the memory through which numbers pass to the host.
 */
#include "base/mem.h"
#include "base/panic.h"
#include "base/time.h"
#include "collectives/device.h"
#include "collectives/nccl/nccl_thread.h"

#include <stdio.h>

#define BOUND_US (10 * TIME_S) /* the default of options.gpu_bound_us */

/* How long work of the GPU may take until it counts as stuck (--gpu-timeout). */
int64_t coll_engine_bound_us(const struct coll_engine *engine)
{
    return engine && engine->options.gpu_bound_us ? engine->options.gpu_bound_us : BOUND_US;
}

/* Called when the GPU does not end its work: the callback `stuck` of the options has this process
 * replaced. */
void coll_engine_stuck(void *arg, const char *why)
{
    const struct coll_engine *engine = arg;

    if (engine && engine->options.stuck)
        engine->options.stuck(engine->options.arg, why);
}

/* Sets the GPU of this process (engine.h). The first call opens NCCL and starts its thread; later
 * calls only compare the device. If NCCL cannot be used, `no_nccl_why` keeps the reason. */
int coll_engine_use_device(struct coll_engine *engine, const struct gpu_device *device,
                           struct hvd_err *err)
{
    const struct nccl_thread_options options = { .device = device,
                                                 .bound_us = coll_engine_bound_us(engine),
                                                 .stuck = coll_engine_stuck,
                                                 .arg = engine };
    const struct gpu_device *known = atomic_load(&engine->gpu);
    char uuid[GPU_UUID_TEXT_MAX], text[GPU_UUID_TEXT_MAX + 32];
    struct hvd_err *why = &engine->no_nccl_why;
    const struct nccl *nccl = NULL;
    int rc = 0;

    if (!known) {
        pthread_mutex_lock(&engine->gpu_mutex);
        known = atomic_load(&engine->gpu);
        if (!known && engine->options.gpu != COLL_GPU_CPU) {
            rc = engine->options.fixed_order
                     ? err_set(why, HVD_E_UNSUPPORTED,
                               "NCCL does not sum in the order of ranks; leave out either "
                               "--fixed-order or --gpu-operations nccl")
                     : nccl_open(&nccl, why);
            if (!rc)
                rc = nccl_thread_open(&options, &engine->nccl_thread, why);
            if (!rc) {
                ASSERT(nccl);
                engine->nccl_version = nccl->version;
                /* the text about the GPU that peers get (PROTOCOL.md, "Addresses") */
                gpu_uuid_text(device, uuid);
                (void)snprintf(text, sizeof(text), "%s nccl=%d", uuid, nccl->version);
                engine->gpu_text = mem_strdup(text);
                if (!engine->gpu_text)
                    rc = err_set(
                        why, HVD_E_NOMEM,
                        "no memory for the text that describes the GPU; free memory on this host");
            }
        }
        /* Without NCCL all calls go through the host (AUTO); but --gpu-operations nccl forbids the
         * host, so then it is an error. */
        if (rc == HVD_E_UNSUPPORTED && engine->options.gpu == COLL_GPU_AUTO)
            rc = 0;
        if (rc) {
            err_set(err, rc, "%s", why->text);
            coll_engine_close_device(engine);
        } else if (!known) {
            known = device;
            atomic_store(&engine->gpu, device);
        }
        pthread_mutex_unlock(&engine->gpu_mutex);
    }
    if (!rc && known != device)
        rc = err_set(err, HVD_E_INVAL,
                     "a buffer is in the memory of GPU %d (%s), but this process works with GPU %d "
                     "(%s); let each process use one GPU",
                     device->ordinal, device->name, known->ordinal, known->name);
    return rc;
}

/* Returns the host memory (staging) through which calls on this device copy their numbers. All
 * rounds use the engine's: two rounds never have operations at the same time. A round without an
 * engine, which has one member, has its own. */
int coll_staging(struct coll *coll, const struct gpu_device *device, struct staging **ret_staging,
                 struct hvd_err *err)
{
    struct coll_engine *engine = coll->engine;
    int rc = 0;

    if (!coll->memory.staging && !engine) {
        rc = staging_open(device, &coll->memory.staging, err);
    } else if (!coll->memory.staging) {
        pthread_mutex_lock(&engine->gpu_mutex);
        if (!engine->staging)
            rc = staging_open(device, &engine->staging, err);
        coll->memory.staging = engine->staging;
        pthread_mutex_unlock(&engine->gpu_mutex);
    }
    if (!rc)
        *ret_staging = coll->memory.staging;
    return rc;
}

/* Closes what coll_engine_use_device and coll_staging have opened; each of them may be missing. */
void coll_engine_close_device(struct coll_engine *engine)
{
    nccl_thread_close(engine->nccl_thread);
    engine->nccl_thread = NULL;
    mem_free(engine->gpu_text);
    engine->gpu_text = NULL;
    staging_close(engine->staging);
    engine->staging = NULL;
}

/* Returns the text about the GPU of this process for its peers (engine.h); NULL: there is none. */
const char *coll_engine_device_text(struct coll_engine *engine)
{
    const char *text;

    pthread_mutex_lock(&engine->gpu_mutex);
    text = engine->gpu_text;
    pthread_mutex_unlock(&engine->gpu_mutex);
    return text;
}
