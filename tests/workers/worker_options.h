/*
 * worker_options.h: reads the options of the programs of this folder, prints their help, and
 * refuses wrong options.
 */
#ifndef TESTS_WORKERS_WORKER_OPTIONS_H
#define TESTS_WORKERS_WORKER_OPTIONS_H

#include "base/opt.h"

#define WORKER_DAYS_MS (UINT64_C(1000) * 24 * 3600 * 1000)

struct worker_options {
    const char *program;
    const char *about; /* a sentence for --help */
    const struct opt *table;
    size_t count;
    void *into;       /* the struct that the table fills */
    const bool *help; /* a field of that struct */
};

/* false: the options were refused, or help was printed; the process must end with *ret_status. The
 * caller releases the set in both cases. */
bool worker_options_read(const struct worker_options *options, struct opt_set *set, int argc,
                         char **argv, int *ret_status);

/* true: this process is the one that misbehaves. It has this start rank (UINT64_MAX: any rank), and
 * is the first process that creates the file `once` (NULL: every process may). */
bool worker_is_chosen(uint64_t rank, const char *once);

#endif
