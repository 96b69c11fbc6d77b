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
    void (*happened)(void *arg, struct event *event);
    /* A line for the log. code 0: an old checkpoint was removed; else one was skipped. */
    void (*note)(void *arg, int code, const char *text);
};

/* `catalog` is borrowed. It has said CATALOG_READY; otherwise core_config.checkpoint_awaited is
 * set, and CATALOG_READY leads to an EVENT_CHECKPOINT too. NULL: the job has no directory for
 * checkpoints. HVD_E_NOMEM. */
int checkpoints_create(struct event_base *base, struct catalog *catalog, const char *job,
                       const struct checkpoints_ops *ops, void *arg,
                       struct checkpoints **ret_checkpoints, struct hvd_err *err) MUST_CHECK;
void checkpoints_free(struct checkpoints *checkpoints); /* NULL is fine */

/* Both lead to one EVENT_CHECKPOINT, later. HVD_E_NOMEM: it will not come. */
int checkpoints_complete(struct checkpoints *checkpoints,
                         const struct checkpoint_done *done) MUST_CHECK;
int checkpoints_reject(struct checkpoints *checkpoints, uint64_t commit) MUST_CHECK;

#endif
