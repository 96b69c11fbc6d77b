/*
 * checkpoints.h: the checkpoint with which a job begins, and the writer of its checkpoints.
 */
#ifndef DRIVER_CHECKPOINTS_H
#define DRIVER_CHECKPOINTS_H

#include "driver/checkpoint/catalog.h"
#include "driver/core/config.h"
#include "driver/options.h"
#include "driver/store/store.h"

struct run_checkpoints {
    struct catalog *catalog; /* NULL: there is neither --checkpoint-dir nor --from-checkpoint */
    /* Both paths are absolute. The settings of the core borrow them. */
    char dir[LIMIT_PATH_BYTES];
    char from[CATALOG_PATH_MAX];
};

/*
 * Takes the directory of --checkpoint-dir, finds the checkpoint to begin with, and completes the
 * settings of the core. `cwd`: relative paths are meant from there. Waits for the directory. When
 * the journal in `store` has a round, workers may train: a directory that cannot be used now is
 * then a warning, and the core awaits the answer (checkpoint_awaited). HVD_E_BUSY: another job uses
 * the directory. HVD_E_NOTFOUND: the checkpoint of --from-checkpoint is not there. Other codes: the
 * directory cannot be used.
 */
int run_checkpoints_open(const struct driver_options *options, const struct job_facts *facts,
                         struct store *store, const char *cwd,
                         struct run_checkpoints *ret_checkpoints, struct core_config *core,
                         struct hvd_err *err) MUST_CHECK;
void run_checkpoints_close(struct run_checkpoints *checkpoints);

#endif
