/*
 * replay.h: replays a trace with real processes. A node that is added becomes a listed host on this
 * machine. A node that is removed is no longer listed, and all its processes are killed at once, as
 * when a machine is taken away.
 */
#ifndef TESTS_CHAOS_REPLAY_H
#define TESTS_CHAOS_REPLAY_H

#include "tests/chaos/arena.h"
#include "tests/chaos/steps.h"
#include "tests/chaos/trace.h"

struct replay_change {
    int64_t at_us;
    uint32_t hosts; /* hosts from this moment on */
    bool add;
};

/* The measures of a replay. Worker-time is in microseconds of one worker. */
struct replay {
    char title[160];
    char machine[160];
    int64_t began_us, ended_us; /* began_us: when the job was launched */
    int64_t usual_us;           /* the usual time of a step */
    uint32_t slots;             /* on each host */
    bool announced;             /* true: hosts were drained before they left */
    struct replay_change *changes;
    size_t change_count, change_room;

    int64_t available_us;
    int64_t useful_us;     /* in steps that were kept */
    int64_t lost_pause_us; /* workers that waited between two rounds */
    int64_t lost_again_us; /* steps that were lost and repeated */
    int64_t lost_boot_us;  /* hosts that were there and did not train yet */
    int64_t limit_us;      /* what could have been useful at best: see docs/chaos.md */
    uint64_t steps, repeated, rounds;
    size_t violations;
    char violation[320]; /* the first violation */
};

/* Runs the trace in an open arena, whose hosts are replaced by those of the trace. Also 0 when the
 * job has violated something: see `violations`. Release replay in any case. */
int replay_run(struct replay *replay, struct arena *arena, const struct trace *trace,
               struct steps *steps, struct hvd_err *err) MUST_CHECK;
void replay_release(struct replay *replay);

/* goodput.c: fills in all times and counts of replay, from its beginning and end, its changes and
 * the steps (docs/chaos.md, Traces). */
int goodput_work_out(struct replay *replay, const struct steps *steps) MUST_CHECK;

/* replay_launch.c: starts the launcher that keeps the job training, and waits until the launcher
 * and all processes that it has started have ended. An error says what was wrong with the end. */
int replay_launch(struct arena *arena, uint32_t max_np, struct hvd_err *err) MUST_CHECK;
int replay_land(struct arena *arena, struct hvd_err *err) MUST_CHECK;

#endif
