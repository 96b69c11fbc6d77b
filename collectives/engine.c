#include "base/mem.h"
#include "collectives/coll_inside.h"
#include "collectives/link/gloo_link.h"

#include <string.h>

/* On the reaper's thread: Gloo's inherits from it. */
static int open_device(void *arg, struct hvd_err *err)
{
    struct coll_engine *engine = arg;

    return gloo_device_open(engine->host, &engine->device, err);
}

static void release(struct coll_engine *engine)
{
    meet_close(engine->meet);
    reaper_close(engine->reaper);
    gloo_device_close(engine->device);
    pthread_cond_destroy(&engine->changed);
    pthread_mutex_destroy(&engine->mutex);
    mem_free(engine);
}

int coll_engine_open(const char *host, struct coll_engine **ret_engine, struct hvd_err *err)
{
    struct coll_engine *engine;
    int rc;

    if (!host || strlen(host) >= sizeof(engine->host))
        return err_set(err, HVD_E_INVAL, "no numeric address to meet the other workers at");
    engine = mem_zalloc(sizeof(*engine));
    if (!engine)
        return err_set(err, HVD_E_NOMEM, "out of memory");
    memcpy(engine->host, host, strlen(host) + 1);
    pthread_mutex_init(&engine->mutex, NULL);
    pthread_cond_init(&engine->changed, NULL);
    rc = meet_open(host, &engine->meet, err);
    if (!rc)
        rc = reaper_open(open_device, engine, &engine->reaper, err);
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
