/*
 * hvd_bench.h: the parts that the two benchmarks of hvd-bench share: the options, the progress that
 * outlives a worker, and the table of rounds.
 *
 * A benchmark is a training: it runs in hvd_elastic_run, and its progress is an entry of the state.
 * So a worker may die and workers may join at any moment, and no row that is committed is lost.
 */
#ifndef TOOLS_HVD_BENCH_H
#define TOOLS_HVD_BENCH_H

#include "os/opt_main.h"

#include <hvd/hvd.h>
#include <stdio.h>

enum bench_mode { BENCH_NONE, BENCH_ALLREDUCE, BENCH_TRAIN };

struct bench_options {
    enum bench_mode mode;
    /* allreduce */
    uint64_t min_bytes, max_bytes, factor, repeats;
    int64_t time_us;
    unsigned type;
    bool alloc;
    /* train */
    uint64_t model_mb, layers, batch, compute_ms, steps, iterations, warmup, commit_every;
    bool one_call;

    bool json;
    struct opt_general general;
};

enum bench_cause { CAUSE_START, CAUSE_LOST, CAUSE_ALL_LOST, CAUSE_JOINED, CAUSE_LEFT, CAUSE_OTHER };

/* A round: what the change to it cost, and what was measured in it. Times are in seconds, those of
 * the slowest worker that trained before. All fields have 8 bytes, so that there is no padding,
 * which could differ between ranks. */
struct bench_round {
    uint64_t number, from, size, hosts;
    uint64_t cause;      /* enum bench_cause */
    uint64_t lost_steps; /* steps that must be made again */
    double noticed;    /* from the last step of the old round until train was told of the change */
    double stopped;    /* from then until train was called again: agreement, connections, state */
    double first_step; /* time from then until the first step of this round was done */
    double pause; /* time from the last step of the old round to the first step of this round */
    double one, apart; /* samples/s of one worker, and of all workers, without communication */
    double commit;     /* time of the slowest commit */
    uint64_t iterations;
    double sum, squares, least, most; /* of the samples/s of all workers, over the iterations */
};

/* The benchmark's entry of the state: equal on all ranks. */
struct bench_progress {
    uint64_t made; /* number of steps or calls that were made */
    uint64_t done; /* number of iterations or sizes that are measured */
    uint64_t round_count;
    uint64_t rounds_left_out; /* rounds after LIMIT_BENCH_ROUNDS, whose row the next round took */
    struct bench_round rounds[];
};

struct bench {
    const struct bench_options *options;
    hvd_state *state;
    struct bench_progress *progress;
    struct hvd_err *err; /* a failure of the benchmark itself; an empty text: there was none */
    uint64_t made;       /* `made` of this process; after a loss it is ahead of the progress */
    /* The change in progress, as this process sees it; times are seconds of the monotonic clock. */
    double stepped; /* time of the last step; 0: this process has made none yet */
    double told;    /* time of the first news for train after that step; 0: there was none */
    double entered; /* time of the last call of train */
    bool lost;      /* true: a member was lost in this change */
    uint64_t lost_steps;
    bool told_columns; /* true: this process has printed the head of the table */
};

/* The names of --type, with a NULL at the end (hvd_bench_allreduce.c). */
extern const char *const bench_type_names[];

/* Runs the benchmark and returns the result of hvd_elastic_run. bench->err has the text of a
 * failure of the benchmark itself. */
int bench_allreduce(struct bench *bench);
int bench_train(struct bench *bench);

/* ---- rounds (hvd_bench_rounds.c) ---- */

double bench_now(void); /* seconds of the monotonic clock */

/* Allocates the progress and adds it to the state. */
int rounds_prepare(struct bench *bench);

/* Puts the text of a library's failure into bench->err, frees the state, ends the library and frees
 * the progress. After this call the benchmark may free the memory of its entries and buffers. */
void rounds_close(struct bench *bench, int code);

/* Called first in train: notes the time, and how many steps were lost. */
void rounds_enter(struct bench *bench);

/* Called after the first step of the round: adds the row of the round, and commits. A
 * collective. */
int rounds_begin(struct bench *bench);

/* Called after each step: counts it. */
void rounds_step(struct bench *bench);

/* Called when train is about to return this code. */
void rounds_leave(struct bench *bench, int code);

/* Returns the row of the present round. Called after rounds_begin. */
struct bench_round *rounds_now(struct bench *bench);

/* Prints the cost of each change as a table; without a change it prints nothing. */
void rounds_show(const struct bench *bench);

/* Prints the changes as the end of a JSON object: ,"changes":[...],"rounds_left_out":N */
void rounds_show_json(const struct bench *bench);

/* Returns true if this rank prints lines for an operator: rank 0, without --json. */
bool rounds_talks(const struct bench *bench);

#endif
