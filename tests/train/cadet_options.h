/*
 * cadet_options.h: how a cadet is to train, and what befalls its GPU.
 */
#ifndef TESTS_TRAIN_CADET_OPTIONS_H
#define TESTS_TRAIN_CADET_OPTIONS_H

#include "base/opt.h"

struct cadet_options {
    uint64_t steps, step_ms, samples, batch, elements;
    bool stream, async;
    char *stop;
    char *say, *made, *final;
    char *befall, *last;
    bool help;

    struct opt_set set; /* not in the table */
};

/* False: *ret_status is what the process ends with. */
bool cadet_options_read(struct cadet_options *options, int argc, char **argv, int *ret_status);
void cadet_options_release(struct cadet_options *options);

#endif
