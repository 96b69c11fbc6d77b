/*
 * sum_trainer_options.h: the options of a sum_trainer: how it trains, and what it does wrong.
 */
#ifndef TESTS_WORKERS_SUM_TRAINER_OPTIONS_H
#define TESTS_WORKERS_SUM_TRAINER_OPTIONS_H

#include "base/opt.h"

/* Where the trainer does something wrong; in step `at` or later. */
enum sum_trainer_place {
    SUM_TRAINER_NOWHERE,
    SUM_TRAINER_INIT,   /* before hvd_init */
    SUM_TRAINER_BUILT,  /* after hvd_init */
    SUM_TRAINER_STEP,   /* in train */
    SUM_TRAINER_COMMIT, /* half way through a commit */
    SUM_TRAINER_ASYNC,  /* while an asynchronous commit is under way */
    SUM_TRAINER_CHECK,  /* right before a check */
    SUM_TRAINER_RESET,  /* in a reset callback of the second round or later */
    SUM_TRAINER_LOAD,   /* while the state of a round is loaded */
    SUM_TRAINER_RAGGED, /* when a ragged collective asks for memory */
    SUM_TRAINER_OPEN,   /* while a group is opened */
    SUM_TRAINER_END     /* after train has returned 0 */
};

enum sum_trainer_wrong { SUM_TRAINER_DIE, SUM_TRAINER_HANG, SUM_TRAINER_FAIL };

struct sum_trainer_options {
    uint64_t steps, step_ms, boot_ms;
    uint64_t elements;
    uint64_t state_mib;
    uint64_t commit_every;
    bool async, ragged, regroup;
    uint64_t ask_every; /* steps from one hvd_checkpoint to the next; 0: none */
    char *asked;        /* gets "step rank" for each checkpoint that is complete */
    char *boot_until;   /* a worker is not built before this file exists */
    char *say, *made, *final;
    char *slow_until; /* the last quarter of the steps is slow until this file exists */
    char *timeline;   /* the timeline that is written from timeline_from to timeline_to */
    uint64_t timeline_from, timeline_to;
    uint64_t timeline_rank; /* only this rank writes one; UINT64_MAX: all ranks */
    uint64_t late_ms, late_rank;
    unsigned place; /* enum sum_trainer_place */
    unsigned wrong; /* enum sum_trainer_wrong */
    uint64_t at;
    char *once;
    uint64_t rank; /* the rank that misbehaves; UINT64_MAX: any rank */
    bool other_state, extra_check, two_threads, lie, drop_news;
    bool help;

    /* The fields below are not in the table. */
    bool misbehaves;
    struct opt_set set;
};

/* Reads the options as worker_options_read does, with the set in the options. */
bool sum_trainer_options_read(struct sum_trainer_options *options, int argc, char **argv,
                              int *ret_status);

#endif
