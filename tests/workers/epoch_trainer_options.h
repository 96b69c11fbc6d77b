/*
 * epoch_trainer_options.h: the options of an epoch trainer: how long it trains, when it fails, what
 * it waits for.
 */
#ifndef TESTS_WORKERS_EPOCH_TRAINER_OPTIONS_H
#define TESTS_WORKERS_EPOCH_TRAINER_OPTIONS_H

#include "base/opt.h"

struct epoch_trainer_options {
    uint64_t epochs, batches, batch_ms;
    char *log;
    char *say;
    char *exits; /* in the form that epoch_schedule.h reads */
    char *once;
    char *looks;
    char *changes; /* a list of epochs: "0 1" */
    char *door;
    char *gates;
    uint64_t patience_s;
    bool help;

    /* The fields below are not in the table. */
    const char *host;
    struct opt_set set;
};

/* Reads the options as worker_options_read does, with the set in the options. */
bool epoch_trainer_options_read(struct epoch_trainer_options *options, int argc, char **argv,
                                int *ret_status);

#endif
