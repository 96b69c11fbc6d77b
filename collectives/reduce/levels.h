/*
 * levels.h: which instructions the numbers are reduced with. The best that the machine has, unless
 * a test or a benchmark wants another: all of them come to the same bits.
 */
#ifndef COLLECTIVES_REDUCE_LEVELS_H
#define COLLECTIVES_REDUCE_LEVELS_H

#include "base/base.h"

enum reduce_level {
    REDUCE_PLAIN, /* what every machine of this architecture has */
    REDUCE_AVX2,  /* and F16C */
    REDUCE_AVX512,
    REDUCE_LEVELS
};

const char *reduce_level_name(enum reduce_level level);
bool reduce_level_is_here(enum reduce_level level);

/* One that is here, from now on, in this process. */
void reduce_level_use(enum reduce_level level);
enum reduce_level reduce_level_best(void);

#endif
