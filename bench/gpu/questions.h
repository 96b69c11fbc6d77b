/*
 * questions.h: what is asked of the first machine with a GPU, one function each. They print
 * nothing: what they find is in the figures, under the name of the question.
 */
#ifndef BENCH_GPU_QUESTIONS_H
#define BENCH_GPU_QUESTIONS_H

#include "bench/gpu/team.h"

typedef void ask_fn(struct team *team);

ask_fn ask_hosts;     /* do several ranks on one device work, each a host of its own? */
ask_fn ask_duplicate; /* and as they are, without that? */
ask_fn ask_cost;      /* what do a communicator, a revoke, an abort and a shrink cost? */
ask_fn ask_killed;    /* one is killed: which others notice, and when? */
ask_fn ask_frozen;    /* one is stopped: does any other notice? */
ask_fn ask_copies;    /* how fast are copies, large and small? */
ask_fn ask_busy;      /* what does an abort wait for? */
ask_fn ask_two;       /* two communicators: one after the other, or in a group? */

#endif
