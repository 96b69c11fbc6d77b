/*
 * pupil_options.h: how a pupil is to train, and what it is to do wrong.
 */
#ifndef TESTS_TRAIN_PUPIL_OPTIONS_H
#define TESTS_TRAIN_PUPIL_OPTIONS_H

#include "base/opt.h"

/* Where it does wrong, at step `at` at the earliest. */
enum pupil_place {
    PUPIL_NOWHERE,
    PUPIL_INIT,   /* before hvd_init */
    PUPIL_BUILT,  /* after it */
    PUPIL_STEP,   /* in train */
    PUPIL_COMMIT, /* half way through a commit */
    PUPIL_ASYNC,  /* while a commit is made beside the training */
    PUPIL_CHECK,  /* right before a check */
    PUPIL_RESET,  /* in a reset callback, of a second round or later */
    PUPIL_LOAD,   /* while the state of a round is taken over */
    PUPIL_END     /* when train has returned 0 */
};

enum pupil_wrong { PUPIL_DIE, PUPIL_HANG, PUPIL_FAIL };

struct pupil_options {
    uint64_t steps, step_ms, boot_ms;
    uint64_t elements;
    uint64_t state_mib;
    uint64_t commit_every;
    bool async;
    char *say, *made, *final;
    unsigned place; /* enum pupil_place */
    unsigned wrong; /* enum pupil_wrong */
    uint64_t at;
    char *once;
    uint64_t rank; /* UINT64_MAX: any */
    bool other_state, extra_check, two_threads, lie, drop_news;
    bool help;

    /* What follows is not in the table. */
    bool misbehaves;
    struct opt_set set;
};

/* As trainer_options_read. */
bool pupil_options_read(struct pupil_options *options, int argc, char **argv, int *ret_status);
void pupil_options_release(struct pupil_options *options);

#endif
