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
    /* the options of `hvd-bench allreduce` */
    uint64_t min_bytes, max_bytes, factor, repeats;
    int64_t time_us;
    unsigned type;
    bool alloc;
    /* the options of `hvd-bench train` */
    uint64_t model_mb, layers, batch, compute_ms, steps, iterations, warmup, commit_every;
    bool one_call;
    /* the options of both */
    bool json;
    struct opt_general general;
};

/* Why a round began: what happened to the workers of the round before. */
enum bench_cause { CAUSE_START, CAUSE_LOST, CAUSE_ALL_LOST, CAUSE_JOINED, CAUSE_LEFT, CAUSE_OTHER };

/* A round: what the change to it cost, and what was measured in it. Times are in seconds, those of
 * the slowest worker that trained before. All fields have 8 bytes, so that there is no padding,
 * which could differ between ranks. */
struct bench_round {
    uint64_t number, from, size, hosts;
    uint64_t cause;      /* an enum bench_cause: why the round began */
    uint64_t lost_steps; /* steps that must be made again */
    double noticed;    /* from the last step of the old round until train was told of the change */
    double stopped;    /* from that news until the next call of train: agreement, links, state */
    double first_step; /* from that call until the first step of this round was done */
    double pause;    /* time from the last step of the old round to the first step of this round */
    double one_rate; /* samples/s of rank 0 while the others wait */
    double apart_rate; /* samples/s of all workers together, without communication */
    double commit;     /* time of the slowest commit */
    uint64_t iterations;
    double sum, squares, least, most; /* of the samples/s of all workers, over the iterations */
};

/* The progress of a benchmark, which is an entry of the state: equal on all ranks. */
struct bench_progress {
    uint64_t steps_made; /* number of steps or calls that were made */
    uint64_t done;       /* number of iterations or sizes that are measured */
    uint64_t round_count;
    uint64_t rounds_left_out; /* rounds after LIMIT_BENCH_ROUNDS, whose row the next round took */
    struct bench_round rounds[];
};

struct bench {
    const struct bench_options *options;
    hvd_state *state;
    struct bench_progress *progress;
    struct hvd_err *err; /* a failure of the benchmark itself; an empty text: there was none */
    uint64_t steps_made; /* by this process; after a loss it is more than progress->steps_made */
    /* The present change of the membership; times are seconds of the monotonic clock. */
    double stepped_at;   /* time of the last step; 0: this process has made none yet */
    double told_at;      /* when train was first told of a change after that step; 0: not yet */
    double entered_at;   /* time of the last call of train */
    bool lost;           /* true: a member was lost in this change */
    uint64_t lost_steps; /* steps of this process that the change has undone */
    bool head_printed;   /* true: this process has printed the head of the table */
};

/* The names of --type, with a NULL at the end (hvd_bench_allreduce.c). */
extern const char *const bench_type_names[];

/* Each runs one benchmark, and returns the result of hvd_elastic_run or a failure of its own. */
int bench_allreduce(struct bench *bench);
int bench_train(struct bench *bench);

/* ---- rounds (hvd_bench_rounds.c) ---- */

double bench_now(void); /* seconds of the monotonic clock */

/* Allocates the progress and adds it to the state. */
int rounds_prepare(struct bench *bench);

/* Ends the use of the library; bench->err gets the text of a library's failure. After this call the
 * benchmark may free the memory of its entries and buffers. */
void rounds_close(struct bench *bench, int code);

/* Called first in train: notes the time, and how many steps were lost. */
void rounds_enter(struct bench *bench);

/* Called after the first step of a round: adds the row of the round, and commits. Collective. */
int rounds_begin(struct bench *bench);

/* Called after each step: counts it. */
void rounds_step(struct bench *bench);

/* Called when train is about to return this code: notes the time, and whether a member was lost. */
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
