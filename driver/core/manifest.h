/*
 * manifest.h: every worker of a job registers the same state. Who does not is turned away, with the
 * name of the entry that differs; the job goes on.
 */
#ifndef DRIVER_CORE_MANIFEST_H
#define DRIVER_CORE_MANIFEST_H

#include "driver/core/state.h"

/* Before there has been a round, the first worker may be the odd one out. True: more have been
 * turned away with the state of this one than there are `others` ready; from now on it is theirs
 * that counts, and the others are to be turned away. */
bool manifest_yields(struct core *core, const struct msg_ready *ready, size_t others);

/* NULL, or why this one cannot take part. The first one there is is what others are held against.
 */
const char *manifest_judge(struct core *core, const struct msg_ready *ready);
void manifest_release(struct core *core);

#endif
