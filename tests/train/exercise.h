/*
 * exercise.h: collectives besides the sum of gradients, on memory of a GPU, each with a result that
 * is known. Another one in each step, so that all forms are in use when somebody dies.
 */
#ifndef TESTS_TRAIN_EXERCISE_H
#define TESTS_TRAIN_EXERCISE_H

#include "hvd/hvd.h"
#include "tests/train/card.h"

#define EXERCISE_RANKS_MAX 32
#define EXERCISE_PART      16 /* numbers of one rank */
#define EXERCISE_WRONG     9  /* what a process ends with that has found a wrong number */

struct exercise {
    const struct card *card;
    hvd_group *halves;     /* ranks with the same oddness */
    size_t count;          /* of weights */
    const double *weights; /* here: the same on all ranks */
    double *in, *out;      /* on the device; EXERCISE_ROOM(count) of each */
    double *host;          /* likewise, here */
};
#define EXERCISE_ROOM(count) ((count) + (size_t)EXERCISE_RANKS_MAX * EXERCISE_PART)

/* Before hvd_elastic_run. As hvd_group_create. */
int exercise_make_groups(struct exercise *self);

/* What the step's collective has come to. A wrong number ends the process. */
int exercise(const struct exercise *self, int64_t step);

/* With a stream of its own a call returns before it is done, and the next one tells of its failure:
 * what was got from the device means something only when this has returned 0. */
int exercise_settle(const struct card *card);

#endif
