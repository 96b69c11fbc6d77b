/*
 * board.h: a file that the workers of a measured job and the benchmark map. The workers write the
 * times of their rounds and steps into it, and the benchmark reads them. CLOCK_MONOTONIC is the
 * same for all processes of a machine.
 */
#ifndef BENCH_BOARD_H
#define BENCH_BOARD_H

#include "base/err.h"

#include <stdatomic.h>

#define BOARD_SLOTS       4096 /* one for each incarnation up to this number */
#define BOARD_ROUNDS      8    /* the last rounds of each worker */

#define BOARD_BLOCKS      64
#define BOARD_BLOCK_STEPS 100

/* One worker in one round. A time is 0 until its event has happened. */
struct board_round {
    _Atomic uint64_t number;
    _Atomic uint32_t size;
    _Atomic int64_t reset_us; /* the members are known and connected, */
    _Atomic int64_t train_us; /* the worker has the state, */
    _Atomic int64_t step_us;  /* and the first step is done */
    _Atomic int64_t last_us;  /* the last step so far */
    _Atomic int64_t pause_us; /* the longest time between two steps */
    _Atomic int64_t told_us;  /* train was told to return */
};

struct board_slot {
    _Atomic int32_t pid;
    _Atomic int64_t check_ps;  /* what one hvd_state_check costs, in picoseconds; 0: not measured */
    _Atomic int64_t load_ps;   /* what one atomic load costs, for comparison */
    _Atomic int64_t report_ps; /* what one hvd_report costs on rank 0 */
    _Atomic uint64_t blocks;   /* BOARD_BLOCK_STEPS steps and a commit each, all of the same work */
    _Atomic int64_t block_us[BOARD_BLOCKS]; /* how long each of the last blocks took */
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

/* Sets the number to `least` if it is smaller. */
void board_raise(_Atomic uint64_t *number, uint64_t least);

/* Wakes all threads that wait in board_await. */
void board_ring(struct board *board);

/* Waits until board->bell is no longer `bell`, because board_ring was called, or until the
 * deadline. */
void board_await(struct board *board, uint32_t bell, int64_t deadline_us);

struct board_slot *board_slot(struct board *board, uint64_t incarnation);
struct board_round *board_round(struct board_slot *seat, uint64_t number);

#endif
