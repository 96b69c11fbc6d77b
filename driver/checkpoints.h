/*
 * checkpoints.h: the checkpoint with which a job begins, and the start of the catalog, the thread
 * that completes the checkpoints that the job writes.
 */
#ifndef DRIVER_CHECKPOINTS_H
#define DRIVER_CHECKPOINTS_H

#include "driver/checkpoint/catalog.h"
#include "driver/core/config.h"
#include "driver/options.h"
#include "driver/store/store.h"

struct run_checkpoints {
    struct catalog *catalog; /* NULL: the job was given no --checkpoint-dir, --checkpoint-command or
                                --from-checkpoint */
    /* Both paths are absolute: where checkpoints are written, and the checkpoint with which the job
     * begins. The settings of the core point to them. */
    char dir[LIMIT_PATH_BYTES];
    char from[CATALOG_PATH_MAX];
};

/*
 * Takes the directory of --checkpoint-dir, finds the checkpoint with which the job begins, and
 * completes the settings of the core. `cwd`: the folder in which relative paths begin. Waits for
 * the answer of the directory. If the journal in `store` has a round, workers may already train: a
 * directory that cannot be used now is then only a warning, and the core gets the answer later
 * (checkpoint_awaited). HVD_E_BUSY: another job uses the directory. HVD_E_NOTFOUND: the checkpoint
 * of --from-checkpoint is missing. Other codes: the directory cannot be used.
 */
int run_checkpoints_open(const struct driver_options *options, const struct job_facts *facts,
                         struct store *store, const char *cwd,
                         struct run_checkpoints *ret_checkpoints, struct core_config *core,
                         struct hvd_err *err) MUST_CHECK;
/* Ends the catalog at the end of the driver. */
void run_checkpoints_close(struct run_checkpoints *checkpoints);

#endif
