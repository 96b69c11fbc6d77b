/*
 * replay.h: a trace played to real processes. A node that is added becomes a host of this machine
 * that is listed; one that is removed is no longer listed and all its processes are killed at
 * once, as a machine that is taken away is.
 */
#ifndef TESTS_CHAOS_REPLAY_H
#define TESTS_CHAOS_REPLAY_H

#include "tests/chaos/arena.h"
#include "tests/chaos/steps.h"
#include "tests/chaos/trace.h"

struct replay_change {
    int64_t at_us;
    uint32_t hosts; /* from then on */
    bool add;
};

/* Worker-seconds are in us of one worker. */
struct replay {
    char title[160];
    char machine[160];
    int64_t began_us, ended_us; /* from the launch on */
    int64_t usual_us;           /* a step in peace */
    uint32_t slots;             /* of each host */
    bool announced;             /* hosts that go were drained before */
    struct replay_change *changes;
    size_t change_count, change_room;

    int64_t available_us;
    int64_t useful_us;     /* in steps that were kept */
    int64_t lost_pause_us; /* workers that stood still between rounds */
    int64_t lost_again_us; /* steps that were lost, and done again */
    int64_t lost_boot_us;  /* hosts that were there but did not train */
    int64_t limit_us;      /* what could have been useful: see docs/chaos.md */
    uint64_t steps, repeated, rounds;
    size_t violations;
    char violation[320]; /* the first */
};

/* The arena is open and its hosts are of no interest: they are those of the trace. 0 also when the
 * job has violated something: see violations. replay holds its machine, or nothing; it is to be
 * released either way. */
int replay_run(struct replay *replay, struct arena *arena, const struct trace *trace,
               struct steps *steps, struct hvd_err *err) MUST_CHECK;
void replay_release(struct replay *replay);

#endif
