/*
 * engine.c: the engine: what a process needs for all its rounds: the address where its peers meet
 * it, the reaper thread, which closes connections in the background, and the device of its links.
 * The worker opens one engine and closes it after the last round. `colls` counts the rounds that
 * are not freed yet.
 */
#include "collectives/engine_internal.h"

#include "base/mem.h"
#include "collectives/lane/traffic.h"
#include "collectives/link/gloo_module.h"
#include "collectives/link/security.h"
#include "collectives/link/socket.h"
#include "seal/seal.h"

#include <string.h>

/* Closes and frees all parts of the engine; each of them may be missing, because coll_engine_open
 * may have failed. */
static void engine_release(struct coll_engine *engine)
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

/* Opens what the rounds of this process share (engine.h): meet's listening socket and thread, and
 * the reaper. Links and the GPU are opened when the first round needs them. */
int coll_engine_open(const struct coll_options *options, struct coll_engine **ret_engine,
                     struct hvd_err *err)
{
    const struct gloo_module *module;
    /* NULL: peers are told the address at which this process listens */
    const char *told = options->told && options->host && strcmp(options->told, options->host) != 0
                           ? options->told
                           : NULL;
    struct coll_engine *engine;
    int rc;

    if (!options->host || strlen(options->host) >= sizeof(engine->host) ||
        (told && strlen(told) >= sizeof(engine->told)))
        return err_set(
            err, HVD_E_INVAL,
            "the agent has announced no numeric address for the connections between workers; "
            "install the same release of the agent and of libhvd");
    /* Gloo proves nothing to its peers and sends numbers in clear: the options must allow that, or
     * no number may leave this machine. */
    if (options->carrier == COLL_BY_GLOO &&
        !security_allows_gloo(options->security, socket_is_loopback(options->host)))
        return err_set(err, HVD_E_UNSUPPORTED,
                       "--cpu-operations gloo sends numbers in clear, and any host that reaches %s "
                       "can change these numbers; leave out --cpu-operations gloo, or accept the "
                       "risk with --data-security none",
                       options->host);
    if (options->carrier == COLL_BY_GLOO && told)
        return err_set(err, HVD_E_UNSUPPORTED,
                       "--cpu-operations gloo tells peers the address %s, which they cannot reach "
                       "through the NAT of this host; leave out --cpu-operations gloo",
                       options->host);
    /* A missing module of Gloo is an error now, and not only in the first round. */
    if (options->carrier == COLL_BY_GLOO && gloo_module_find(&module, err))
        return HVD_E_UNSUPPORTED;
    engine = mem_zalloc(sizeof(*engine));
    if (!engine)
        return err_set(err, HVD_E_NOMEM,
                       "no memory for the collectives of this worker; free memory on this host");
    memcpy(engine->host, options->host, strlen(options->host) + 1);
    engine->options = *options;
    engine->options.host = engine->host;
    engine->options.told = NULL;
    if (told) {
        memcpy(engine->told, told, strlen(told) + 1);
        engine->options.told = engine->told;
    }
    pthread_mutex_init(&engine->mutex, NULL);
    pthread_mutex_init(&engine->gpu_mutex, NULL);
    pthread_cond_init(&engine->changed, NULL);
    rc = seal_check_openssl(err);
    if (!rc)
        rc = meet_open(engine->host, &engine->meet, err);
    if (!rc && told)
        rc = meet_announce(engine->meet, told, err);
    if (!rc)
        rc = reaper_open(&engine->reaper, err);
    if (rc) {
        engine_release(engine);
        return err_prefix(err, rc, "collectives");
    }
    if (engine->options.remark)
        meet_watch_crowd(engine->meet, engine->options.remark, engine->options.arg);
    *ret_engine = engine;
    return 0;
}

/* Waits until the reaper has freed all rounds, and frees the engine. */
void coll_engine_close(struct coll_engine *engine)
{
    if (!engine)
        return;
    pthread_mutex_lock(&engine->mutex);
    while (engine->colls)
        pthread_cond_wait(&engine->changed, &engine->mutex);
    pthread_mutex_unlock(&engine->mutex);
    engine_release(engine);
}

const char *coll_engine_contact(const struct coll_engine *engine)
{
    return meet_contact(engine->meet);
}

/* How long the segments of a message are with our own TCP. With Gloo they are longer: Gloo is
 * faster when its thread is woken less often (measured by bench_allreduce). */
#define TCP_SEGMENT_BYTES ((size_t)256 * 1024)

/* Returns the length of the segments into which the lanes cut long messages; all members of a round
 * have the same kind of links, and so the same length. */
size_t coll_segment_bytes(const struct coll_engine *engine)
{
    return engine->options.carrier == COLL_BY_GLOO ? SEGMENT_BYTES : TCP_SEGMENT_BYTES;
}

/* Opens the device of the links, as a task of the reaper, for which coll_engine_device waits. It
 * runs on the reaper's thread, because a thread of Gloo inherits the settings of its creator. Our
 * own TCP is the usual choice: it connects and closes in tenths of a millisecond, and a peer that
 * dies while it connects cannot end this process (./dev bench link; link/README.md). */
static void open_device(void *arg)
{
    struct coll_engine *engine = arg;
    struct link_device *device = NULL;
    struct hvd_err err = { .text = "" };
    enum link_kind kind = engine->options.carrier == COLL_BY_GLOO ? LINK_GLOO : LINK_TCP;
    int rc = link_device_open(kind, engine->host, &device, &err);

    if (!rc && engine->options.told) {
        rc = link_device_announce(device, engine->options.told, &err);
        if (rc)
            link_device_close(device);
    }

    pthread_mutex_lock(&engine->mutex);
    engine->device = rc ? NULL : device;
    (void)err_set(&engine->opening_err, rc, "%s", err.text);
    engine->opening = false;
    pthread_cond_broadcast(&engine->changed);
    pthread_mutex_unlock(&engine->mutex);
}

/* Returns the device of the links; the first call has the reaper open it, and waits. If opening it
 * fails, the next call tries again. */
int coll_engine_device(struct coll_engine *engine, struct link_device **ret_device,
                       struct hvd_err *err)
{
    int rc = 0;

    pthread_mutex_lock(&engine->mutex);
    if (!engine->device && !engine->opening) {
        engine->opening = true;
        engine->opener = (struct reaper_task){ .run = open_device, .arg = engine };
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
