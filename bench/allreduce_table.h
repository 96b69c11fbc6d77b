/*
 * allreduce_table.h: what bench_allreduce has measured, and how it is shown.
 */
#ifndef BENCH_ALLREDUCE_TABLE_H
#define BENCH_ALLREDUCE_TABLE_H

#include "base/base.h"

#define ALLREDUCE_SIZES_MAX  16
#define ALLREDUCE_PASSES_MAX 101

enum allreduce_engine {
    ALLREDUCE_OURS,  /* one host: shared memory */
    ALLREDUCE_ALLOC, /* the same in buffers of hvd_alloc */
    ALLREDUCE_HOSTS, /* two hosts: shared memory, and the link between them */
    ALLREDUCE_GLOO,  /* everything over a link: Gloo's connections */
    ALLREDUCE_OWN,   /* our own */
    ALLREDUCE_RING,
    ALLREDUCE_BCUBE,
    ALLREDUCE_VADER,
    ALLREDUCE_TCP,
    ALLREDUCE_COPY,   /* memcpy of as many bytes, by one process */
    ALLREDUCE_COPIES, /* by all at once */
    ALLREDUCE_ENGINES
};

struct allreduce_cell {
    size_t count;
    double us[ALLREDUCE_PASSES_MAX]; /* of one allreduce, the slowest member's, in each pass */
};

struct allreduce_table { /* of one number of ranks */
    uint32_t ranks;
    size_t size_count;
    size_t bytes[ALLREDUCE_SIZES_MAX];
    bool has[ALLREDUCE_ENGINES];
    struct allreduce_cell cells[ALLREDUCE_ENGINES][ALLREDUCE_SIZES_MAX];
};

const char *allreduce_engine_name(enum allreduce_engine engine); /* "ours", as in --only */

/* Medians, and from where to where eight of ten lie; then ratios of medians. Sorts the cells. */
void allreduce_table_show(struct allreduce_table *table, bool markdown);

#endif
