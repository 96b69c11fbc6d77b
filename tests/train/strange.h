/*
 * strange.h: what a strange program may do at each point of its life; strange.c lives it.
 */
#ifndef TESTS_TRAIN_STRANGE_H
#define TESTS_TRAIN_STRANGE_H

#include "hvd/hvd.h"

#include <stdbool.h>

/* A case of one name. All members may be NULL but the first two. */
struct strange {
    const char *name;
    const char *what;
    void (*before)(void);            /* hvd_init */
    void (*add)(hvd_state *state);   /* its state; of plain programs beside it too */
    void (*ready)(hvd_state *state); /* then */
    int (*reset)(hvd_state *state);  /* in a reset callback */
    int (*step)(hvd_state *state);   /* in train, after a few steps, once */
    void (*after)(hvd_state *state); /* hvd_elastic_run, or an hvd_init that has failed */
    int init;                        /* what hvd_init is to return; not 0: nothing follows */
    int run;                         /* what hvd_elastic_run is to return */
    const char *says;                /* what hvd_last_error is to contain then */
    int steps;                       /* 0: as many as usual */
    bool empty;                      /* register nothing else; of plain ones too */
};

extern const struct strange strange_calls[];  /* calls that make no sense; ends with a NULL name */
extern const struct strange strange_worlds[]; /* an environment, or a machine, that does not */

/* Ends the process with 9, and says why, when it is not so. */
void strange_expect(bool so, const char *what, int line);
#define EXPECT(so) strange_expect((so), #so, __LINE__)

/* In a process of its own, that has ended with 0. */
void strange_in_child(void (*call)(void *arg), void *arg);

/* For hvd_elastic_run: a step and a commit, STEPS times. */
int strange_train(hvd_state *state, void *arg);

#endif
