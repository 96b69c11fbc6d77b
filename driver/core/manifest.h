/*
 * manifest.h: every worker of a job registers the same state. Who does not is turned away, with the
 * name of the entry that differs; the job goes on.
 */
#ifndef DRIVER_CORE_MANIFEST_H
#define DRIVER_CORE_MANIFEST_H

#include "driver/core/state.h"

/* NULL, or why this one cannot take part. The first one there is is what others are held against.
 */
const char *manifest_judge(struct core *core, const struct msg_ready *ready);
void manifest_release(struct core *core);

#endif
