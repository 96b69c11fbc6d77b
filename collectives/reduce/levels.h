/*
 * levels.h: which processor instructions reductions use: the best level that the machine has,
 * unless a test or a benchmark selects another one. All levels give the same bits.
 */
#ifndef COLLECTIVES_REDUCE_LEVELS_H
#define COLLECTIVES_REDUCE_LEVELS_H

#include "base/base.h"

enum reduce_level {
    REDUCE_PLAIN, /* the instructions that every machine of this architecture has */
    REDUCE_AVX2,  /* AVX2, and F16C for fp16 */
    REDUCE_AVX512,
    REDUCE_LEVELS
};

const char *reduce_level_name(enum reduce_level level);
bool reduce_level_is_here(enum reduce_level level);

/* Selects a level for this process, for tests and benchmarks. The machine must have the level. */
void reduce_level_use(enum reduce_level level);
enum reduce_level reduce_level_best(void);

#endif
