/*
 * segment_internal.h: the layout of a segment in memory, for segment.c and board.c.
 *
 *     head | members of board 0 | members of board 1 | ... | results, stages of board 0 | ...
 *
 * Every word that one process writes while another may read it is atomic. The memory that members
 * fill between two steps of a board (openings, stages, results) is published by the step counts.
 */
#ifndef COLLECTIVES_SHM_SEGMENT_INTERNAL_H
#define COLLECTIVES_SHM_SEGMENT_INTERNAL_H

#include "collectives/shm/board.h"
#include "collectives/shm/memory.h"

#include <stdatomic.h>

#define SEGMENT_MAGIC   UINT64_C(0x746e656d67657368) /* "hsegment" */
#define SEGMENT_VERSION 1
#define CACHE_LINE      64

/* How long a member spins, yields and sleeps while it waits; measured by bench_board. If every
 * member has a core, all members arrive while one looks a few times at the counts of steps (a step
 * of two members: 0.2 us). When other processes run on this machine, longer spinning takes the core
 * from a member that has yet to arrive; yielding costs little more (a step of four members on two
 * cores: 2 us). Sleeping and waking takes ten times that. */
#define BOARD_LOOKS   32    /* looks at a count of steps while a member spins: about 1 us */
#define BOARD_GIVE_US 100   /* how long a waiting member yields, after it has spun */
#define BOARD_DOZE_US 20000 /* how long a waiting member sleeps at a time, at most */

/* The bytes between the beginnings of two blocks; a block is a stage or a result. Blocks that are
 * read side by side must not begin in the same set of a CPU cache, so each is a few cache lines
 * longer than its contents. */
#define BOARD_BLOCK_BYTES (BOARD_STAGE_BYTES + 5 * (size_t)CACHE_LINE)
_Static_assert(BOARD_RESULT_BYTES <= BOARD_BLOCK_BYTES, "a block holds either");

/* The first failure of a segment. `claim`: 0, or the culprit's rank and the error code in one word.
 * This word is written first, so that rank and code are known even when the process that failed the
 * segment dies before it has written the text (`why`) and set `told`. */
struct segment_failure {
    _Alignas(CACHE_LINE) _Atomic uint64_t claim;
    _Atomic uint32_t told;
    char why[ERR_TEXT_MAX];
};

/* The first bytes of the segment: what the opening members compare, and the failure. */
struct segment_head {
    /* `round`, `roster` (a hash of the members of that round) and `count` are those of struct
     * segment_spec; `boards`: a hash of the members of every board */
    uint64_t magic, version, round, roster, boards;
    uint64_t count;
    struct segment_failure failure;
};

/* A member at a board, in shared memory. `steps`: the member's own step count. `waits_for`: 0, or
 * the local index of the member for which this member sleeps, plus one; the awaited member must
 * wake it through `bell`. `steps` has a cache line of its own, because it is written often and the
 * sleep fields rarely. */
struct board_member {
    _Alignas(CACHE_LINE) _Atomic uint64_t steps;
    _Alignas(CACHE_LINE) _Atomic uint32_t waits_for;
    _Atomic uint32_t bell; /* a futex on which the member sleeps */
    _Alignas(CACHE_LINE) uint8_t opening[2][BOARD_OPENING_BYTES];
};

struct board {
    struct segment *segment;
    struct board_member *members; /* in shared memory */
    uint8_t *blocks;              /* in shared memory: results, then the stage of each member */
    uint32_t local, count;        /* index of this process at the board; number of members */
    uint64_t steps;               /* number of steps that this process has made */
    int64_t give_us;              /* how long this process yields before it sleeps, in a step */
    int64_t doze_us;              /* how long this process sleeps at a time, at most */
    bool crowded;                 /* true: there are fewer cores than members */
    bool present;                 /* true: this process is a member at this board */
};

struct segment {
    struct memory memory;
    struct memory_place place;
    struct segment_head *head;    /* in shared memory */
    struct board_member *members; /* in shared memory: the members of all boards */
    size_t member_count, board_count;
    /* true: this process has failed the segment for itself alone (segment_leave) */
    atomic_bool left;
    struct board boards[];
};

/* true: a member has failed the segment for all, or this process for itself alone (`left`). */
static inline bool segment_has_failed(const struct segment *segment)
{
    return atomic_load(&segment->head->failure.claim) != 0 || atomic_load(&segment->left);
}

/* Wakes the member, if it sleeps in board_doze. */
void board_ring(struct board_member *member);

/* Sleeps until the member with index `local` has made as many steps as this process, or until the
 * segment fails. Does not sleep when either has happened already. Every sleep is short (doze_us),
 * because that member may have been killed between its step and the wake-up. */
void board_doze(struct board *board, uint32_t local);

#endif
