/*
 * apprentice_options.h: how an apprentice is to train.
 */
#ifndef TESTS_CHAOS_APPRENTICE_OPTIONS_H
#define TESTS_CHAOS_APPRENTICE_OPTIONS_H

#include "base/opt.h"

#define APPRENTICE_EVERY_MAX 64

struct apprentice_options {
    uint64_t step_ms;
    uint64_t boot_ms;
    uint64_t state_kib;
    uint64_t samples, batch;
    uint64_t commit_every;
    unsigned slip; /* enum slip */
    bool help;

    struct opt_set set; /* what follows is not in the table */
};

/* False: it has been refused or answered, and the process ends with *ret_status. To be released
 * either way. */
bool apprentice_options_read(struct apprentice_options *options, int argc, char **argv,
                             int *ret_status);
void apprentice_options_release(struct apprentice_options *options);

#endif
