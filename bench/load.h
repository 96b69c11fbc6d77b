/*
 * load.h: the share of the processors that other programs have used meanwhile: times that were
 * measured on a busy machine say little.
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

/* Percent of all processors, used by neither this process nor its children, which have all ended. 0
 * where the system does not tell. */
int load_of_others(const struct load *since);

#endif
