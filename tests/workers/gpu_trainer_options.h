/*
 * gpu_trainer_options.h: the options of a gpu_trainer: how it trains, and which faults its GPU has.
 */
#ifndef TESTS_WORKERS_GPU_TRAINER_OPTIONS_H
#define TESTS_WORKERS_GPU_TRAINER_OPTIONS_H

#include "base/opt.h"

struct gpu_trainer_options {
    uint64_t steps, step_ms, samples, batch, elements;
    bool stream, async;
    char *stop;
    char *say, *made, *final;
    char *befall, *last;
    bool help;

    struct opt_set set; /* not in the table */
};

/* Reads the options as worker_options_read does, with the set in the options. */
bool gpu_trainer_options_read(struct gpu_trainer_options *options, int argc, char **argv,
                              int *ret_status);

#endif
