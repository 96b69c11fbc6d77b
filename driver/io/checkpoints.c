/*
 * checkpoints.c: the driver's writer of checkpoints in the event loop. loop.c calls it for the
 * actions of the core. Invariant: each request that was accepted leads to one EVENT_CHECKPOINT,
 * and no event comes from within a request.
 */
#include "driver/io/checkpoints.h"

#include "base/mem.h"
#include "os/clock.h"

#include <event2/event.h>

struct checkpoints {
    struct catalog *catalog; /* the thread that owns the directory; NULL: there is no directory */
    const char *job;
    const struct checkpoints_ops *ops;
    void *arg;
    struct event *readable; /* the catalog has a result; without a catalog: a request was made */
};

/* Hands the results of the catalog (the thread that owns the directory of checkpoints) to the core.
 * Without a catalog the only request is checkpoints_reject, and no older checkpoint exists. */
static void checkpoints_look(evutil_socket_t fd, short what, void *arg)
{
    struct checkpoints *checkpoints = arg;
    struct catalog_result result;

    (void)fd;
    (void)what;
    if (!checkpoints->catalog) { /* the event was set off by checkpoints_reject */
        checkpoints->ops->happened(
            checkpoints->arg,
            &(struct event){ .kind = EVENT_CHECKPOINT, .text = "there is no other checkpoint" });
        return;
    }
    while (catalog_next(checkpoints->catalog, &result)) {
        struct event event = { .kind = EVENT_CHECKPOINT,
                               .ask = result.number,
                               .code = result.code,
                               .text = result.code ? result.text : result.path,
                               .commit = result.code ? 0 : result.commit };

        if (result.event == CATALOG_NOTE || result.event == CATALOG_AWAY)
            checkpoints->ops->note(checkpoints->arg, result.code, result.text);
        else
            checkpoints->ops->happened(checkpoints->arg, &event);
    }
}

/* Makes the event by which results are noticed. Without a catalog no descriptor is watched: the
 * event is set off by checkpoints_reject. */
int checkpoints_create(struct event_base *base, struct catalog *catalog, const char *job,
                       const struct checkpoints_ops *ops, void *arg,
                       struct checkpoints **ret_checkpoints, struct hvd_err *err)
{
    struct checkpoints *checkpoints = mem_zalloc(sizeof(*checkpoints));

    if (checkpoints) {
        *checkpoints =
            (struct checkpoints){ .catalog = catalog, .job = job, .ops = ops, .arg = arg };
        checkpoints->readable =
            event_new(base, catalog ? catalog_fd(catalog) : -1,
                      (short)(catalog ? EV_READ | EV_PERSIST : 0), checkpoints_look, checkpoints);
    }
    if (!checkpoints || !checkpoints->readable ||
        (catalog && event_add(checkpoints->readable, NULL))) {
        checkpoints_free(checkpoints);
        return err_set(err, HVD_E_NOMEM,
                       "no memory for the checkpoints of the job; free memory on this host");
    }
    *ret_checkpoints = checkpoints;
    return 0;
}

void checkpoints_free(struct checkpoints *checkpoints)
{
    if (!checkpoints)
        return;
    if (checkpoints->readable)
        event_free(checkpoints->readable);
    mem_free(checkpoints);
}

/* Gives the catalog the list of a checkpoint's files, which are all durable. The catalog copies the
 * list, and makes the checkpoint complete. */
int checkpoints_complete(struct checkpoints *checkpoints, const struct checkpoint_done *done)
{
    struct checkpoint_manifest manifest = { .job = checkpoints->job,
                                            .commit = done->commit,
                                            .ranks = done->ranks,
                                            .wall_us = clock_wall_us(),
                                            .digest = done->digest,
                                            .entries = done->entries,
                                            .file_count = done->file_count };
    struct checkpoint_file *files = mem_zalloc_array(done->file_count, sizeof(*files));
    int rc;

    if (!files)
        return HVD_E_NOMEM;
    for (size_t i = 0; i < done->file_count; i++)
        files[i] = (struct checkpoint_file){ .name = done->files[i].name,
                                             .bytes = done->files[i].bytes,
                                             .rank = (int32_t)done->files[i].rank,
                                             .sums = done->files[i].sums.at };
    manifest.files = files;
    rc = catalog_complete(checkpoints->catalog, done->number, &manifest);
    mem_free(files);
    return rc;
}

/* The checkpoint of this commit cannot be used: asks the catalog for an older one. Without a
 * catalog the event itself gives the answer, that there is none. */
int checkpoints_reject(struct checkpoints *checkpoints, uint64_t commit)
{
    if (checkpoints->catalog)
        return catalog_reject(checkpoints->catalog, commit);
    event_active(checkpoints->readable, 0, 0);
    return 0;
}
