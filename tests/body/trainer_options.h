/*
 * trainer_options.h: what the test worker is told to do, and to do wrong.
 */
#ifndef TESTS_BODY_TRAINER_OPTIONS_H
#define TESTS_BODY_TRAINER_OPTIONS_H

#include "base/opt.h"

struct trainer_options {
    uint64_t steps; /* of its life; 0: without end */
    uint64_t step_ms;
    uint64_t boot_ms; /* until it is READY */
    char *say;

    uint64_t exit_at; /* these are steps; 0: never */
    uint64_t exit_code;
    uint64_t hang_at;
    uint64_t freeze_at;
    char *once;
    uint64_t rank; /* UINT64_MAX: every */

    char *hold;
    uint64_t memory_mib;
    uint64_t print_bytes;
    bool daemon;
    bool ignore_term;
    bool close_stdout;
    bool help;

    /* What follows is not in the table. */
    bool misbehaves; /* it is one of those who do: by rank and once */
    struct opt_set set;
};

/* False: it has been refused or answered, and the process ends with *ret_status. To be released
 * either way. */
bool trainer_options_read(struct trainer_options *options, int argc, char **argv, int *ret_status);
void trainer_options_release(struct trainer_options *options);

#endif
