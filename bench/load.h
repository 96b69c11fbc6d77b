/*
 * load.h: what everybody else has taken of the processors meanwhile: times that were measured on a
 * busy machine say little.
 */
#ifndef BENCH_LOAD_H
#define BENCH_LOAD_H

#include "base/base.h"

struct load {
    int64_t at_us;
    int64_t busy_us; /* of all processors */
    int64_t own_us;  /* of this process, and of its children that have been waited for */
};

void load_look(struct load *load);

/* Percent of all processors, of whatever was neither we nor our children, who have all ended. 0
 * where the system does not say. */
int load_of_others(const struct load *since);

#endif
