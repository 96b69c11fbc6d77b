/*
 * replay.h: a takeover from an earlier driver. core_replay (core.h) reads the journal of the
 * earlier driver; replay_start goes on with its job.
 */
#ifndef DRIVER_CORE_REPLAY_H
#define DRIVER_CORE_REPLAY_H

#include "driver/core/core_internal.h"

/* Handles EVENT_START, after all records were replayed. An empty journal means that this is the
 * first driver of the job. */
void replay_start(struct core *core);

#endif
