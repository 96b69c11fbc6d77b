#include "collectives/shm/board.h"

#include "base/time.h"
#include "collectives/shm/inside.h"
#include "os/clock.h"

#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

uint32_t board_seat(const struct board *board)
{
    return board->seat;
}

uint32_t board_count(const struct board *board)
{
    return board->count;
}

uint8_t *board_said(struct board *board, uint32_t seat, uint64_t turn)
{
    return board->seats[seat].said[turn % 2];
}

uint8_t *board_result(struct board *board, uint64_t turn)
{
    return board->blocks + turn % 2 * BOARD_BLOCK_BYTES;
}

uint8_t *board_stage(struct board *board, uint32_t seat, uint64_t turn)
{
    return board->blocks + (2 + 2 * (size_t)seat + turn % 2) * BOARD_BLOCK_BYTES;
}

/* ---- going in step ---- */

void seat_ring(struct seat *seat)
{
    atomic_fetch_add(&seat->bell, 1);
    if (atomic_load(&seat->waits_for))
        (void)syscall(SYS_futex, &seat->bell, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/*
 * We count our step, then look who sleeps for it; a sleeper says that it sleeps, then looks whether
 * we have come. In one order of all of these, so that one of the two sees the other.
 */
void board_arrive(struct board *board)
{
    uint32_t us = board->seat + 1;

    board->steps++;
    atomic_store(&board->seats[board->seat].steps, board->steps);
    for (uint32_t i = 0; i < board->count; i++) {
        if (atomic_load(&board->seats[i].waits_for) == us)
            seat_ring(&board->seats[i]);
    }
}

static bool has_come(const struct board *board, uint32_t seat)
{
    return atomic_load_explicit(&board->seats[seat].steps, memory_order_acquire) >= board->steps;
}

void board_doze(struct board *board, uint32_t seat)
{
    const struct timespec longest = { board->doze_us / TIME_S, board->doze_us % TIME_S * 1000 };
    struct seat *own = &board->seats[board->seat];
    uint32_t bell = atomic_load(&own->bell);

    atomic_store(&own->waits_for, seat + 1);
    if (atomic_load(&board->seats[seat].steps) < board->steps &&
        !segment_has_failed(board->segment))
        (void)syscall(SYS_futex, &own->bell, FUTEX_WAIT, bell, &longest, NULL, 0);
    atomic_store(&own->waits_for, 0);
}

static void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb");
#endif
}

/* Waits a little, in the way that fits how long it has been. begun_us: 0 at first. */
static void linger(struct board *board, uint32_t seat, int64_t *begun_us)
{
    if (*begun_us == 0) {
        for (int i = 0; i < BOARD_LOOKS && !board->crowded && !has_come(board, seat); i++)
            relax();
        *begun_us = clock_now_us();
    } else if (clock_now_us() < *begun_us + board->give_us) {
        (void)sched_yield();
    } else {
        board_doze(board, seat);
    }
}

int board_await(struct board *board)
{
    int64_t begun_us = 0;

    for (uint32_t i = 1; i < board->count; i++) {
        uint32_t seat = (board->seat + i) % board->count;

        while (!has_come(board, seat)) {
            if (segment_has_failed(board->segment))
                return HVD_E_REVOKED;
            linger(board, seat, &begun_us);
        }
    }
    return 0;
}

int board_step(struct board *board)
{
    board_arrive(board);
    return board_await(board);
}

size_t board_behind(const struct board *board, uint32_t *ret_seats, size_t max,
                    uint64_t *ret_progress)
{
    uint64_t ours = atomic_load(&board->seats[board->seat].steps), least = ours;
    size_t behind = 0;

    for (uint32_t i = 0; i < board->count; i++) {
        uint64_t steps = atomic_load(&board->seats[i].steps);

        least = steps < least ? steps : least;
        if (steps >= ours)
            continue;
        if (behind < max)
            ret_seats[behind] = i;
        behind++;
    }
    *ret_progress = least;
    return behind;
}
