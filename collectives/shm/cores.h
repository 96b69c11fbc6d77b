/*
 * cores.h: how many threads of this process's machine really run at a time.
 */
#ifndef COLLECTIVES_SHM_CORES_H
#define COLLECTIVES_SHM_CORES_H

#include "base/base.h"

/* Those that we may use, by affinity and by the quota of our container; one at least. */
uint32_t cores_usable(void);

#endif
