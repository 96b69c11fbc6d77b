/*
 * goodput.h: what a job has made of the time that workers were there: see docs/chaos.md, Traces.
 */
#ifndef TESTS_CHAOS_GOODPUT_H
#define TESTS_CHAOS_GOODPUT_H

#include "tests/chaos/replay.h"

/* From when it began and ended, its changes and its steps: all the times and counts of replay. */
int goodput_work_out(struct replay *replay, const struct steps *steps) MUST_CHECK;

/* Worker-time that was there between two moments. */
int64_t goodput_available_us(const struct replay *replay, int64_t from_us, int64_t until_us);

#endif
