/*
 * replay.h: taking over from an earlier driver: what it wrote down, and how the job goes on.
 */
#ifndef DRIVER_CORE_REPLAY_H
#define DRIVER_CORE_REPLAY_H

#include "driver/core/state.h"

/* At EVENT_START, after all records: the first of its kind, or the next. */
void replay_start(struct core *core);

#endif
