#include "bench/board.h"

#include "base/time.h"
#include "os/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int board_open(const char *path, struct board **ret_board, struct hvd_err *err)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    void *at = MAP_FAILED;

    if (fd < 0)
        return err_set(err, HVD_E_IO, "%s: %s", path, strerror(errno));
    if (!ftruncate(fd, sizeof(struct board)))
        at = mmap(NULL, sizeof(struct board), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (at == MAP_FAILED)
        return err_set(err, HVD_E_IO, "%s: %s", path, strerror(errno));
    *ret_board = at;
    return 0;
}

void board_close(struct board *board)
{
    if (board)
        munmap(board, sizeof(*board));
}

void board_raise(_Atomic uint64_t *number, uint64_t least)
{
    uint64_t seen = atomic_load(number);

    while (seen < least && !atomic_compare_exchange_weak(number, &seen, least))
        continue;
}

void board_ring(struct board *board)
{
    atomic_fetch_add(&board->bell, 1);
    syscall(SYS_futex, &board->bell, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

void board_await(struct board *board, uint32_t bell, int64_t deadline_us)
{
    int64_t left_us = deadline_us - clock_now_us();
    struct timespec left = { left_us / TIME_S, (left_us % TIME_S) * 1000 };

    if (left_us > 0)
        syscall(SYS_futex, &board->bell, FUTEX_WAIT, bell, &left, NULL, 0);
}

struct board_slot *board_slot(struct board *board, uint64_t incarnation)
{
    return &board->seats[incarnation % BOARD_SLOTS];
}

struct board_round *board_round(struct board_slot *seat, uint64_t number)
{
    return &seat->rounds[number % BOARD_ROUNDS];
}
