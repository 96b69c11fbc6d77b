/*
 * replay_launch.h: the launcher that is to keep a job training while a trace is played: hvd-elastic
 * with the options of somebody who trains on machines that come and go, or any other one.
 */
#ifndef TESTS_CHAOS_REPLAY_LAUNCH_H
#define TESTS_CHAOS_REPLAY_LAUNCH_H

#include "tests/chaos/arena.h"

int replay_launch(struct arena *arena, uint32_t max_np, struct hvd_err *err) MUST_CHECK;

/* Until it has ended, with all that it has started. An error says what was wrong with its end. */
int replay_land(struct arena *arena, struct hvd_err *err) MUST_CHECK;

#endif
