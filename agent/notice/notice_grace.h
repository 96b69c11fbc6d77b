/*
 * notice_grace.h: how long a scheduler waits between a signal and SIGKILL, as its settings say.
 * These functions are pure; those of notice.h read the environment.
 */
#ifndef AGENT_NOTICE_NOTICE_GRACE_H
#define AGENT_NOTICE_NOTICE_GRACE_H

#include "base/text.h"

/* From the text of slurm.conf: KillWait, or GraceTime of the partition if that is shorter and not
 * 0. `partition` may be NULL. KillWait is 30 s unless the text says otherwise. */
int64_t notice_slurm_grace(struct span conf, const char *partition);

/* Reads the time from the value of --signal: "[R][B:]SIGNAL[@SECONDS]". Without a time it is 60 s,
 * as in Slurm. */
int64_t notice_slurm_signal(const char *signal);

#endif
