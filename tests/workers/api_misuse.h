/*
 * api_misuse.h: the misuse cases of a training program, each with callbacks for the phases of a
 * program. api_misuse.c runs them.
 */
#ifndef TESTS_WORKERS_API_MISUSE_H
#define TESTS_WORKERS_API_MISUSE_H

#include "hvd/hvd.h"

#include <stdbool.h>

/* One case. Every field but the first two may be NULL or 0. */
struct api_misuse {
    const char *name;
    const char *what;
    void (*before)(void); /* called before hvd_init */
    /* adds entries to the state; also called for plain programs */
    void (*add)(hvd_state *state);
    void (*ready)(hvd_state *state); /* called after add */
    int (*reset)(hvd_state *state);  /* called in a reset callback */
    int (*step)(hvd_state *state);   /* called once in train, after a few steps */
    /* called after hvd_elastic_run, or after an hvd_init that has failed */
    void (*after)(hvd_state *state);
    /* the result that hvd_init must have; not 0: the case ends there */
    int init;
    int run;          /* the result that hvd_elastic_run must have */
    const char *says; /* the text that hvd_last_error must then contain */
    int steps;        /* number of steps; 0: the usual number */
    /* true: no other entry is registered, in plain programs too */
    bool empty;
};

extern const struct api_misuse
    api_misuse_calls[]; /* calls that make no sense; ends with a NULL name */
extern const struct api_misuse
    api_misuse_worlds[]; /* an environment, or a machine, that does not */

/* If the condition is false: prints it, and ends the process with 9. */
void api_misuse_expect(bool so, const char *what, int line);
#define EXPECT(so) api_misuse_expect((so), #so, __LINE__)

/* Calls the function in a child process, which must end with 0. */
void api_misuse_in_child(void (*call)(void *arg), void *arg);

/* A training function for hvd_elastic_run: a step and a commit, STEPS times. */
int api_misuse_train(hvd_state *state, void *arg);

#endif
