/*
 * boot.h: handles the first messages of a worker, from its launch until it is READY for a round.
 */
#ifndef DRIVER_CORE_BOOT_H
#define DRIVER_CORE_BOOT_H

#include "driver/core/core_internal.h"

void boot_on_launched(struct core *core, struct worker *worker);
void boot_on_launch_failed(struct core *core, struct worker *worker, const struct msg *msg);
void boot_on_ready(struct core *core, struct worker *worker, const struct msg *msg);

/* Frees the copy of the manifest with which each worker's state is compared. */
void boot_release_manifest(struct core *core);

/* True: the entries of the state are known with their offsets, as a checkpoint needs them. */
bool boot_knows_entries(const struct core *core);

#endif
