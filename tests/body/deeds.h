/*
 * deeds.h: what a test worker does besides training, most of it wrong.
 */
#ifndef TESTS_BODY_DEEDS_H
#define TESTS_BODY_DEEDS_H

#include "proto/place.h"
#include "tests/body/trainer_options.h"

/* Before it says hello: memory, signals, daemons. 0, or what is wrong. */
int deeds_begin(const struct trainer_options *options, struct hvd_err *err) MUST_CHECK;
void deeds_end(void);

/* After a step: may not return. False: it hangs from now on. */
bool deed_step(const struct trainer_options *options, uint64_t steps);

/* A line of the file that a test reads. */
void deed_say(const struct trainer_options *options, uint64_t incarnation, uint64_t round,
              const struct place *place);

#endif
