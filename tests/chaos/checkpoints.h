/*
 * checkpoints.h: looks for the newest complete checkpoint in the job's directory, and at what is
 * in it. It shares no code with the product: docs/checkpoints.md is all that it knows.
 */
#ifndef TESTS_CHAOS_CHECKPOINTS_H
#define TESTS_CHAOS_CHECKPOINTS_H

#include "base/err.h"

struct checkpoint_seen {
    uint64_t round, commit; /* of commit-ROUND.COMMIT */
    int64_t step;           /* the entry "step" of the state */
};

/* Finds the newest folder with a file COMPLETE, and reads the step from its files. HVD_DONE: no
 * checkpoint is complete. HVD_E_CORRUPT: the newest one is, but none of its files has a step. */
int checkpoints_newest(const char *directory, struct checkpoint_seen *ret_seen,
                       struct hvd_err *err) MUST_CHECK;

/* The number of folders commit-*, complete or not. */
uint32_t checkpoints_count(const char *directory);

#endif
