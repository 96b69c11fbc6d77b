/*
 * elastic_play.h: a job of the real hvd-elastic on hosts of this machine, whose workers
 * (board_worker) write on a board that is read here.
 */
#ifndef BENCH_ELASTIC_PLAY_H
#define BENCH_ELASTIC_PLAY_H

#include "bench/board.h"

#include <sys/types.h>

#define ELASTIC_PLAY_WORKERS 64

struct elastic_plan {
    uint32_t hosts; /* 127.0.0.1 and those after it */
    uint32_t slots; /* of each */
    uint32_t state_mib;
    uint32_t step_us; /* how long a worker rests in each step */
    uint32_t boot_ms; /* how long it boots */
    const char *mode; /* see board_worker.c */
};

struct elastic_play {
    struct elastic_plan plan;
    char folder[64];
    struct board *board;
    pid_t driver;
    uint64_t round; /* the last one that was awaited */
    size_t count;   /* who trains in it */
    uint64_t incarnations[ELASTIC_PLAY_WORKERS];
};

/* Started, and all train. What was made is to be ended even when this fails. */
int elastic_play_begin(struct elastic_play *play, const struct elastic_plan *plan,
                       struct hvd_err *err) MUST_CHECK;

/* Stops the job, waits for its end, removes the folder. Again: nothing. */
void elastic_play_end(struct elastic_play *play);

/* The job's hosts are now so many. */
int elastic_play_hosts(struct elastic_play *play, uint32_t hosts, struct hvd_err *err) MUST_CHECK;

/* Until a round after the one that was awaited last is there, of so many workers (0: of however
 * many), and each of them has done a step in it. */
int elastic_play_await(struct elastic_play *play, size_t count, struct hvd_err *err) MUST_CHECK;

struct board_round *elastic_play_round(const struct elastic_play *play, uint64_t incarnation,
                                       uint64_t number);

#endif
