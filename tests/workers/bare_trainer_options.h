/*
 * bare_trainer_options.h: the options of the test worker: how it trains, and which faults it has.
 */
#ifndef TESTS_WORKERS_BARE_TRAINER_OPTIONS_H
#define TESTS_WORKERS_BARE_TRAINER_OPTIONS_H

#include "base/opt.h"

struct bare_trainer_options {
    uint64_t steps; /* of its whole life; 0: no end */
    uint64_t step_ms;
    uint64_t boot_ms; /* until READY */
    char *say;

    uint64_t exit_at; /* numbers of steps; 0: never */
    uint64_t exit_code;
    uint64_t hang_at;
    uint64_t freeze_at;
    char *once;
    uint64_t rank; /* the rank that misbehaves; UINT64_MAX: every rank */

    char *hold;
    uint64_t memory_mib;
    uint64_t print_bytes;
    bool daemon;
    bool ignore_term;
    bool close_stdout;
    bool help;

    /* The fields below are not in the table. */
    bool misbehaves; /* true: this worker misbehaves, by `rank` and `once` */
    struct opt_set set;
};

/* Reads the options as worker_options_read does, with the set in the options. */
bool bare_trainer_options_read(struct bare_trainer_options *options, int argc, char **argv,
                               int *ret_status);

#endif
