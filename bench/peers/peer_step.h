/*
 * peer_step.h: what the trainers in C have in common with those of the peers in trainer.py: what a
 * step is, and what is written down of it. Everything is said by the environment, and what is not
 * said has a default:
 *
 *     PEER_FLOATS   float32 in the allreduce of a step   PEER_STATE_MIB  what is committed
 *     PEER_WORK_US  rest in each step                    PEER_CARE       commit, check or none,
 * each step PEER_BOOT_MS  rest of a process before it begins   PEER_IMPORT_MS  processor time
 * before that PEER_NOTES    a file for notes                     HVD_CHAOS_STEPS a file for steps
 */
#ifndef BENCH_PEER_STEP_H
#define BENCH_PEER_STEP_H

#include "base/err.h"

enum peer_care { PEER_COMMIT, PEER_CHECK, PEER_NONE };

struct peer_step {
    size_t floats, state_bytes;
    int64_t work_us;
    enum peer_care care;
    float *numbers;
    int steps, notes; /* files; -1: nowhere */
};

/* Reports the start of the process, and boots. Every failure ends the process. */
void peer_step_open(struct peer_step *step);
void peer_step_close(struct peer_step *step);

/* Before the allreduce (a sum), after it, and after the rest, by rank 0. A sum that is not `size`
 * everywhere ends the process. */
void peer_step_fill(struct peer_step *step);
void peer_step_work(struct peer_step *step, int size);
void peer_step_note(struct peer_step *step, uint64_t round, int64_t number, int size);

/* A line of PEER_NOTES: TIME_US PID PLACE WHAT VALUE. */
void peer_note(struct peer_step *step, const char *what, int64_t value);

#endif
