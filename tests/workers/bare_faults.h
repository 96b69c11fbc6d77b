/*
 * bare_faults.h: what a test worker does besides training, mostly wrong things.
 */
#ifndef TESTS_WORKERS_BARE_FAULTS_H
#define TESTS_WORKERS_BARE_FAULTS_H

#include "proto/place.h"
#include "tests/workers/bare_trainer_options.h"

/* Called before HELLO: takes memory, ignores signals, starts a daemon. 0, or the error. */
int bare_faults_begin(const struct bare_trainer_options *options, struct hvd_err *err) MUST_CHECK;
void bare_faults_end(void);

/* Called after each step; may not return. false: the worker hangs from now on. */
bool bare_faults_step(const struct bare_trainer_options *options, uint64_t steps);

/* Appends a line to the file that a test reads. */
void bare_faults_say(const struct bare_trainer_options *options, uint64_t incarnation,
                     uint64_t round, const struct place *place);

#endif
