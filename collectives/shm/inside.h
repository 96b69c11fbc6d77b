/*
 * inside.h: a segment as it lies in memory; for segment.c and board.c.
 *
 *     head | seats of board 0 | seats of board 1 | ... | results, stages of board 0 | ...
 *
 * Every word that one process writes while another may read it is atomic; what lies between two
 * steps of a board (what is said, stages, results) is published by the counts of steps.
 */
#ifndef COLLECTIVES_SHM_INSIDE_H
#define COLLECTIVES_SHM_INSIDE_H

#include "collectives/shm/board.h"
#include "collectives/shm/memory.h"

#include <stdatomic.h>

#define SEGMENT_MAGIC   UINT64_C(0x746e656d67657368) /* "hsegment" */
#define SEGMENT_VERSION 1
#define CACHE_LINE      64

/*
 * How a member waits, measured by bench_board. As long as everybody has a core they meet within a
 * few looks (a step of two: 0.2 us). To spin for longer takes the core from those who should come,
 * wherever somebody else works beside us: to give way costs little more (a step of four on two
 * cores: 2 us). Sleep, and to be woken, takes ten times that.
 */
#define BOARD_LOOKS   32 /* about a microsecond */
#define BOARD_GIVE_US 100
#define BOARD_DOZE_US 20000 /* see board_doze */

/*
 * A stage or a result. Those that are read side by side must not begin at the same place in the
 * sets of a cache, so that each is a few lines longer than what it holds.
 */
#define BOARD_BLOCK_BYTES (BOARD_STAGE_BYTES + 5 * (size_t)CACHE_LINE)
_Static_assert(BOARD_RESULT_BYTES <= BOARD_BLOCK_BYTES, "a block holds either");

/*
 * claim: 0, or by whom and why it failed, so that this much is known even when the one who failed
 * it was killed before it had written its text and said that it is told.
 */
struct segment_failure {
    _Alignas(CACHE_LINE) _Atomic uint64_t claim;
    _Atomic uint32_t told;
    char why[ERR_TEXT_MAX];
};

struct segment_head {
    uint64_t magic, version, round, roster, boards; /* boards: a sum of who sits where */
    uint64_t count;
    struct segment_failure failure;
};

/*
 * A member of a board. steps: its own. waits_for: the seat it sleeps for, plus one; that one rings
 * its bell. Two lines, as steps come all the time and sleep does not.
 */
struct seat {
    _Alignas(CACHE_LINE) _Atomic uint64_t steps;
    _Alignas(CACHE_LINE) _Atomic uint32_t waits_for;
    _Atomic uint32_t bell; /* a futex */
    _Alignas(CACHE_LINE) uint8_t said[2][BOARD_SAID_BYTES];
};

struct board {
    struct segment *segment;
    struct seat *seats; /* shared */
    uint8_t *blocks;    /* shared: results, then each seat's stages */
    uint32_t seat, count;
    uint64_t steps;  /* ours, arrived at */
    int64_t give_us; /* how long we give way before we sleep, */
    int64_t doze_us; /* and the longest sleep */
    bool crowded;    /* fewer cores than seats */
    bool present;    /* this process has a seat */
};

struct segment {
    struct memory memory;
    struct memory_place place;
    struct segment_head *head; /* shared */
    struct seat *seats;        /* shared: of all boards */
    size_t seat_count, board_count;
    atomic_bool left;
    struct board boards[];
};

static inline bool segment_has_failed(const struct segment *segment)
{
    return atomic_load(&segment->head->failure.claim) != 0 || atomic_load(&segment->left);
}

/* Wakes the seat, if it sleeps. */
void seat_ring(struct seat *seat);

/*
 * Sleeps until that seat has made our step and rings, or the segment fails; not at all if either
 * has happened. Nobody sleeps for long at a time: who should ring may have been killed between what
 * it did and the bell.
 */
void board_doze(struct board *board, uint32_t seat);

#endif
