/*
 * memory.h: whether this machine has the memory for a measurement.
 */
#ifndef BENCH_MEMORY_H
#define BENCH_MEMORY_H

#include "base/base.h"

/* For so many workers with a state of so many MiB, and its two commits. Says so if not. */
bool memory_suffices(uint32_t workers, uint32_t state_mib);

#endif
