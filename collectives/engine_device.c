/* engine_device.c: the device that a process works with. */
#include "base/mem.h"
#include "base/time.h"
#include "collectives/device.h"
#include "collectives/nccl/hand.h"

#include <stdio.h>

/* So long the default is. */
#define BOUND_US (10 * TIME_S)

int64_t coll_engine_bound_us(const struct coll_engine *engine)
{
    return engine && engine->options.gpu_bound_us ? engine->options.gpu_bound_us : BOUND_US;
}

void coll_engine_stuck(void *arg, const char *why)
{
    const struct coll_engine *engine = arg;

    if (engine && engine->options.stuck)
        engine->options.stuck(engine->options.arg, why);
}

/* ---- NCCL ------------------------------------------------------------------------------------ */

static int tell(struct coll_engine *engine, const struct gpu_device *device)
{
    char uuid[GPU_UUID_TEXT_MAX];
    char text[GPU_UUID_TEXT_MAX + 32];

    gpu_uuid_text(device, uuid);
    (void)snprintf(text, sizeof(text), "%s nccl=%d", uuid, engine->nccl_version);
    engine->gpu_text = mem_strdup(text);
    return engine->gpu_text ? 0 : HVD_E_NOMEM;
}

static int open_hand(struct coll_engine *engine, const struct gpu_device *device,
                     struct hvd_err *err)
{
    const struct hand_options options = { .device = device,
                                          .bound_us = coll_engine_bound_us(engine),
                                          .stuck = coll_engine_stuck,
                                          .arg = engine };
    const struct nccl *nccl;
    int rc;

    if (engine->options.fixed_order)
        return err_set(err, HVD_E_UNSUPPORTED,
                       "NCCL does not sum in the order of ranks; leave --fixed-order or "
                       "--gpu-operations nccl");
    rc = nccl_open(&nccl, err);
    if (!rc)
        rc = hand_open(&options, &engine->hand, err);
    if (!rc)
        engine->nccl_version = nccl->version;
    if (!rc && tell(engine, device))
        rc = err_set(err, HVD_E_NOMEM, "out of memory");
    return rc;
}

/* ---- the device ------------------------------------------------------------------------------ */

/* Without NCCL everything goes through the host, unless that was not what was asked for. */
static int use(struct coll_engine *engine, const struct gpu_device *device, struct hvd_err *err)
{
    struct hvd_err *why = &engine->no_hand_why;
    int rc = engine->options.gpu == COLL_GPU_CPU ? 0 : open_hand(engine, device, why);

    if (rc == HVD_E_UNSUPPORTED && engine->options.gpu == COLL_GPU_AUTO)
        rc = 0;
    if (rc)
        err_set(err, rc, "%s", why->text);
    if (!rc)
        atomic_store(&engine->gpu, device);
    else
        coll_engine_close_device(engine);
    return rc;
}

int coll_engine_use_device(struct coll_engine *engine, const struct gpu_device *device,
                           struct hvd_err *err)
{
    const struct gpu_device *known = atomic_load(&engine->gpu);
    int rc = 0;

    if (!known) {
        pthread_mutex_lock(&engine->gpu_mutex);
        if (!atomic_load(&engine->gpu))
            rc = use(engine, device, err);
        pthread_mutex_unlock(&engine->gpu_mutex);
        known = atomic_load(&engine->gpu);
    }
    if (!rc && known != device)
        rc = err_set(err, HVD_E_INVAL,
                     "memory of GPU %d (%s), and this process works with GPU %d (%s); let each "
                     "process use one",
                     device->ordinal, device->name, known->ordinal, known->name);
    return rc;
}

/* An engine's serves its rounds one after the other: operations of two never go at once. */
int coll_staging(struct coll *coll, const struct gpu_device *device, struct staging **ret_staging,
                 struct hvd_err *err)
{
    struct coll_engine *engine = coll->engine;
    int rc = 0;

    if (!coll->staging && !engine) {
        rc = staging_open(device, &coll->staging, err);
    } else if (!coll->staging) {
        pthread_mutex_lock(&engine->gpu_mutex);
        if (!engine->staging)
            rc = staging_open(device, &engine->staging, err);
        coll->staging = engine->staging;
        pthread_mutex_unlock(&engine->gpu_mutex);
    }
    if (!rc)
        *ret_staging = coll->staging;
    return rc;
}

void coll_engine_close_device(struct coll_engine *engine)
{
    hand_close(engine->hand);
    engine->hand = NULL;
    mem_free(engine->gpu_text);
    engine->gpu_text = NULL;
    staging_close(engine->staging);
    engine->staging = NULL;
}

const char *coll_engine_device_text(struct coll_engine *engine)
{
    const char *text;

    pthread_mutex_lock(&engine->gpu_mutex);
    text = engine->gpu_text;
    pthread_mutex_unlock(&engine->gpu_mutex);
    return text;
}
