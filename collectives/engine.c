#include "collectives/engine_inside.h"

#include "base/mem.h"
#include "collectives/lane/traffic.h"

#include <string.h>

static void release(struct coll_engine *engine)
{
    meet_close(engine->meet);
    reaper_close(engine->reaper);
    link_device_close(engine->device);
    coll_engine_close_device(engine);
    pthread_mutex_destroy(&engine->gpu_mutex);
    pthread_cond_destroy(&engine->changed);
    pthread_mutex_destroy(&engine->mutex);
    mem_free(engine);
}

int coll_engine_open(const struct coll_options *options, struct coll_engine **ret_engine,
                     struct hvd_err *err)
{
    struct coll_engine *engine;
    int rc;

    if (!options->host || strlen(options->host) >= sizeof(engine->host))
        return err_set(err, HVD_E_INVAL, "no numeric address to meet the other workers at");
    engine = mem_zalloc(sizeof(*engine));
    if (!engine)
        return err_set(err, HVD_E_NOMEM, "out of memory");
    memcpy(engine->host, options->host, strlen(options->host) + 1);
    engine->options = *options;
    engine->options.host = engine->host;
    pthread_mutex_init(&engine->mutex, NULL);
    pthread_mutex_init(&engine->gpu_mutex, NULL);
    pthread_cond_init(&engine->changed, NULL);
    rc = meet_open(engine->host, &engine->meet, err);
    if (!rc)
        rc = reaper_open(&engine->reaper, err);
    if (rc) {
        release(engine);
        return err_prefix(err, rc, "collectives");
    }
    *ret_engine = engine;
    return 0;
}

void coll_engine_close(struct coll_engine *engine)
{
    if (!engine)
        return;
    pthread_mutex_lock(&engine->mutex);
    while (engine->colls)
        pthread_cond_wait(&engine->changed, &engine->mutex);
    pthread_mutex_unlock(&engine->mutex);
    release(engine);
}

const char *coll_engine_contact(const struct coll_engine *engine)
{
    return meet_contact(engine->meet);
}

/* ---- the device of links ---- */

/* TCP of our own connects and closes in tenths of a millisecond, and a peer that dies while it
 * connects cannot end this process (./dev bench link; ARCHITECTURE.md, "Decisions"). */
static enum link_kind kind_of(const struct coll_options *options)
{
    return options->carrier == COLL_BY_GLOO ? LINK_GLOO : LINK_TCP;
}

/* Measured by bench_allreduce: Gloo's thread likes to be woken less often. */
#define TCP_SEGMENT_BYTES ((size_t)256 * 1024)

size_t coll_segment_bytes(const struct coll_engine *engine)
{
    return kind_of(&engine->options) == LINK_TCP ? TCP_SEGMENT_BYTES : SEGMENT_BYTES;
}

/* On the reaper's thread: Gloo's inherits from it. */
static void open_device(void *arg)
{
    struct coll_engine *engine = arg;
    struct link_device *device = NULL;
    struct hvd_err err = { .text = "" };
    int rc = link_device_open(kind_of(&engine->options), engine->host, &device, &err);

    pthread_mutex_lock(&engine->mutex);
    engine->device = rc ? NULL : device;
    (void)err_set(&engine->opening_err, rc, "%s", err.text);
    engine->opening = false;
    pthread_cond_broadcast(&engine->changed);
    pthread_mutex_unlock(&engine->mutex);
}

/* One that could not be opened is tried again the next time. */
int coll_engine_device(struct coll_engine *engine, struct link_device **ret_device,
                       struct hvd_err *err)
{
    int rc = 0;

    pthread_mutex_lock(&engine->mutex);
    if (!engine->device && !engine->opening) {
        engine->opening = true;
        engine->opener = (struct reaper_job){ .run = open_device, .arg = engine };
        reaper_add(engine->reaper, &engine->opener);
    }
    while (engine->opening)
        pthread_cond_wait(&engine->changed, &engine->mutex);
    if (engine->device)
        *ret_device = engine->device;
    else
        rc = err_set(err, engine->opening_err.code, "%s", engine->opening_err.text);
    pthread_mutex_unlock(&engine->mutex);
    return rc;
}
