/*
 * checkpoints.h: the driver's writer of checkpoints (driver/checkpoint/catalog.h) in the event
 * loop: carries out ACTION_CHECKPOINT and ACTION_CHECKPOINT_REJECT, and makes EVENT_CHECKPOINT of
 * the results.
 */
#ifndef DRIVER_IO_CHECKPOINTS_H
#define DRIVER_IO_CHECKPOINTS_H

#include "driver/checkpoint/catalog.h"
#include "driver/core/action.h"
#include "driver/core/event.h"

struct event_base;
struct checkpoints;

struct checkpoints_ops {
    void (*happened)(void *arg, struct event *event); /* a result, as EVENT_CHECKPOINT */
    /* A line for the log. code 0: an old checkpoint was removed; any other code: a checkpoint was
     * skipped, or the directory cannot be used now. */
    void (*note)(void *arg, int code, const char *text);
};

/* Begins to take the results of `catalog`, which is borrowed; NULL: the job has no directory for
 * checkpoints. A catalog that has not said CATALOG_READY yet (core_config.checkpoint_awaited is
 * set) says so later, with an EVENT_CHECKPOINT. HVD_E_NOMEM. */
int checkpoints_create(struct event_base *base, struct catalog *catalog, const char *job,
                       const struct checkpoints_ops *ops, void *arg,
                       struct checkpoints **ret_checkpoints, struct hvd_err *err) MUST_CHECK;
void checkpoints_free(struct checkpoints *checkpoints); /* NULL is allowed */

/* checkpoints_complete: all files of this checkpoint are written, so the checkpoint is to be made
 * complete. checkpoints_reject: the checkpoint of this commit cannot be used, so the newest one
 * before it is to be found. Each call leads to one EVENT_CHECKPOINT, later. HVD_E_NOMEM: no event
 * will come. */
int checkpoints_complete(struct checkpoints *checkpoints,
                         const struct checkpoint_done *done) MUST_CHECK;
int checkpoints_reject(struct checkpoints *checkpoints, uint64_t commit) MUST_CHECK;

#endif
