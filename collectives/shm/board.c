/*
 * board.c: the members of a group on one host make steps together (board.h). A step is the only
 * synchronisation between them: an operation calls board_step for each chunk. A member counts its
 * own steps in shared memory and waits until every other member has counted as many steps: the
 * member first spins, then yields, then sleeps on a futex (its bell), which the awaited member
 * wakes.
 *
 * Invariant: only the member itself writes its own words, except its bell, which other members
 * ring; a failed segment wakes every waiting member.
 */
#include "collectives/shm/board.h"

#include "base/time.h"
#include "collectives/shm/segment_internal.h"
#include "os/clock.h"

#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

uint32_t board_local(const struct board *board)
{
    return board->local;
}

uint32_t board_count(const struct board *board)
{
    return board->count;
}

/* Where the member `local` writes its fingerprint to open an operation, for an even or an odd
 * chunk. */
uint8_t *board_opening(struct board *board, uint32_t local, uint64_t turn)
{
    return board->members[local].opening[turn % 2];
}

/* The result of an even or an odd chunk: the first two blocks of the board. */
uint8_t *board_result(struct board *board, uint64_t turn)
{
    return board->blocks + turn % 2 * BOARD_BLOCK_BYTES;
}

/* The stage of a member for an even or an odd chunk: two blocks for each member, after the two
 * results. */
uint8_t *board_stage(struct board *board, uint32_t local, uint64_t turn)
{
    return board->blocks + (2 + 2 * (size_t)local + turn % 2) * BOARD_BLOCK_BYTES;
}

/* Wakes a member if it sleeps on its bell. The bell changes first, so a member that is about to
 * sleep does not fall asleep. */
void board_ring(struct board_member *member)
{
    atomic_fetch_add(&member->bell, 1);
    if (atomic_load(&member->waits_for))
        (void)syscall(SYS_futex, &member->bell, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* The first half of a step: this member counts the step, then wakes members that sleep until this
 * step. A member that is about to sleep first sets `waits_for`, then looks at the step count. All
 * these accesses are sequentially consistent, so at least one of the two members sees what the
 * other has written. */
void board_arrive(struct board *board)
{
    uint32_t us = board->local + 1;

    board->steps++;
    atomic_store(&board->members[board->local].steps, board->steps);
    for (uint32_t i = 0; i < board->count; i++) {
        if (atomic_load(&board->members[i].waits_for) == us)
            board_ring(&board->members[i]);
    }
}

/* true: the member with index `local` has made as many steps as this process. Memory that it
 * wrote before them can be read then (acquire). */
static bool has_come(const struct board *board, uint32_t local)
{
    return atomic_load_explicit(&board->members[local].steps, memory_order_acquire) >= board->steps;
}

/* Sleeps until the member with index `local` has made the awaited step, or the segment fails; at
 * most doze_us. The awaited member rings this member's bell (a futex). The value of the bell is
 * read before the two conditions are checked: if the bell rings after that, FUTEX_WAIT returns
 * at once. */
void board_doze(struct board *board, uint32_t local)
{
    const struct timespec longest = { board->doze_us / TIME_S, board->doze_us % TIME_S * 1000 };
    struct board_member *own = &board->members[board->local];
    uint32_t bell = atomic_load(&own->bell);

    atomic_store(&own->waits_for, local + 1);
    if (atomic_load(&board->members[local].steps) < board->steps &&
        !segment_has_failed(board->segment))
        (void)syscall(SYS_futex, &own->bell, FUTEX_WAIT, bell, &longest, NULL, 0);
    atomic_store(&own->waits_for, 0);
}

/* Tells the processor that this is a loop that waits, so that it runs the core's other thread. */
static void pause_core(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb");
#endif
}

/* The second half of a step: waits until every other member has made as many steps as this one.
 * First it spins, BOARD_LOOKS times; on a crowded board (more members than cores) it does not, as
 * that would take the core from an awaited member. Then it yields for give_us, then it sleeps. The
 * search begins at the neighbour, so that the members do not all read the same word. */
int board_await(struct board *board)
{
    int64_t begun_us = 0; /* 0: it has not spun in this step yet */

    for (uint32_t i = 1; i < board->count; i++) {
        uint32_t local = (board->local + i) % board->count;

        while (!has_come(board, local)) {
            if (segment_has_failed(board->segment))
                return HVD_E_REVOKED;
            if (begun_us == 0) {
                for (int look = 0; look < BOARD_LOOKS && !board->crowded && !has_come(board, local);
                     look++)
                    pause_core();
                begun_us = clock_now_us();
            } else if (clock_now_us() < begun_us + board->give_us) {
                (void)sched_yield();
            } else {
                board_doze(board, local);
            }
        }
    }
    return 0;
}

/* One step: counts it, and waits until all members have made it (board.h). */
int board_step(struct board *board)
{
    board_arrive(board);
    return board_await(board);
}

/* Lists the members that have made fewer steps than this process (board.h). The result is the
 * number of members in ret_locals, so a caller never reads beyond its array. */
size_t board_behind(const struct board *board, uint32_t *ret_locals, size_t max,
                    uint64_t *ret_progress)
{
    uint64_t ours = atomic_load(&board->members[board->local].steps), least = ours;
    size_t behind = 0;

    for (uint32_t i = 0; i < board->count; i++) {
        uint64_t steps = atomic_load(&board->members[i].steps);

        least = steps < least ? steps : least;
        if (steps < ours && behind < max)
            ret_locals[behind++] = i;
    }
    *ret_progress = least;
    return behind;
}
