/*
 * board.h: where the workers of a measured job write down when they were where, and the benchmark
 * reads it: a file that all of them map. CLOCK_MONOTONIC is one for all processes of a machine.
 */
#ifndef BENCH_BOARD_H
#define BENCH_BOARD_H

#include "base/err.h"

#include <stdatomic.h>

#define BOARD_SLOTS  4096 /* one for each incarnation, as far as they go */
#define BOARD_ROUNDS 8    /* the last ones of each */

/* One worker in one round. Times are 0 until it is there. */
struct board_round {
    _Atomic uint64_t number;
    _Atomic uint32_t size;
    _Atomic int64_t reset_us; /* members and connections are there, */
    _Atomic int64_t train_us; /* the state too, */
    _Atomic int64_t step_us;  /* and the first step is done */
    _Atomic int64_t last_us;  /* the last step so far */
    _Atomic int64_t pause_us; /* the longest time between two steps */
    _Atomic int64_t told_us;  /* train was told to return */
};

struct board_slot {
    _Atomic int32_t pid;
    _Atomic int64_t check_ps; /* what a check costs, if that is measured */
    _Atomic int64_t load_ps;  /* and an atomic load */
    struct board_round rounds[BOARD_ROUNDS];
};

struct board {
    _Atomic uint32_t bell;
    _Atomic uint64_t last;  /* the newest incarnation, */
    _Atomic uint64_t round; /* and the newest round in which a worker has done a step */
    struct board_slot seats[BOARD_SLOTS];
};

/* The file is made if it is not there. */
int board_open(const char *path, struct board **ret_board, struct hvd_err *err) MUST_CHECK;
void board_close(struct board *board);

/* Where there is less, it becomes this. */
void board_raise(_Atomic uint64_t *number, uint64_t least);

/* Wakes who waits in board_await. */
void board_ring(struct board *board);

/* Until the bell has rung since it read so, or the deadline. */
void board_await(struct board *board, uint32_t bell, int64_t deadline_us);

struct board_slot *board_slot(struct board *board, uint64_t incarnation);
struct board_round *board_round(struct board_slot *seat, uint64_t number);

#endif
