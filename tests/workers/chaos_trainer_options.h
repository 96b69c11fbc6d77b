/*
 * chaos_trainer_options.h: the options of the chaos trainer.
 */
#ifndef TESTS_WORKERS_CHAOS_TRAINER_OPTIONS_H
#define TESTS_WORKERS_CHAOS_TRAINER_OPTIONS_H

#include "base/opt.h"

#define CHAOS_TRAINER_EVERY_MAX 64

struct chaos_trainer_options {
    uint64_t step_ms;
    uint64_t boot_ms;
    uint64_t state_kib;
    uint64_t samples, batch;
    uint64_t commit_every;
    unsigned slip; /* enum slip */
    bool help;

    struct opt_set set; /* the fields from here on are not in the table */
};

/* Reads the options as worker_options_read does, with the set in the options. */
bool chaos_trainer_options_read(struct chaos_trainer_options *options, int argc, char **argv,
                                int *ret_status);

#endif
