#include "bench/lockstep.h"

#include "base/mem.h"
#include "os/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define WORDS_MAX 32
#define NAP_NS    100000000L
#define NOBODY    LOCKSTEP_MAX

void lockstep_fail(int rc, const char *what, const struct hvd_err *err)
{
    (void)fprintf(stderr, "bench: %s: %s: %s\n", what, err_name(rc), err ? err->text : "");
    exit(1);
}

void lockstep_must(int rc, const char *what, const struct hvd_err *err)
{
    if (rc)
        lockstep_fail(rc, what, err);
}

static void must_not(bool wrong, const char *name, const char *what)
{
    if (!wrong)
        return;
    (void)fprintf(stderr, "bench: %s: %s\n", name, what);
    exit(1);
}

void lockstep_sleep(_Atomic uint32_t *word, uint32_t value)
{
    const struct timespec nap = { 0, NAP_NS };

    (void)syscall(SYS_futex, word, FUTEX_WAIT, value, &nap, NULL, 0);
}

void lockstep_wake(_Atomic uint32_t *word)
{
    (void)syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* ---- the parent ---- */

static void found(struct lockstep *set, const char *name, uint32_t size)
{
    *set = (struct lockstep){ .name = name, .size = size };
    set->fd = memfd_create("set", MFD_CLOEXEC);
    must_not(set->fd < 0 || ftruncate(set->fd, sizeof(*set->board)), name, "no memory");
    set->board = mmap(NULL, sizeof(*set->board), PROT_READ | PROT_WRITE, MAP_SHARED, set->fd, 0);
    must_not(set->board == MAP_FAILED, name, "no memory");
    set->board->size = size;
    set->board->parent = getpid();
}

void lockstep_fork_one(struct lockstep *set, uint32_t rank)
{
    struct lockstep_self seat = { set->board, rank, set->size, atomic_load(&set->board->turn) };

    (void)fflush(NULL);
    set->pids[rank] = fork();
    must_not(set->pids[rank] < 0, set->name, "cannot fork");
    if (set->pids[rank])
        return;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    must_not(getppid() != set->board->parent, set->name, "the parent is gone");
    set->live(&seat, set->arg);
    exit(0);
}

void lockstep_fork(struct lockstep *set, const char *name, uint32_t size, lockstep_live_fn *live,
                   const void *arg)
{
    found(set, name, size);
    set->live = live;
    set->arg = arg;
    for (uint32_t rank = 0; rank < size; rank++)
        lockstep_fork_one(set, rank);
}

void lockstep_execute(struct lockstep *set, const char *name, uint32_t size,
                      const char *const *words)
{
    char path[64];
    char *argv[WORDS_MAX + 2] = { NULL };
    size_t count = 0;

    found(set, name, size);
    (void)snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)getpid(), set->fd);
    for (; words[count]; count++) {
        must_not(count == WORDS_MAX, name, "too many words");
        argv[count] = mem_strdup(words[count]);
        must_not(!argv[count], name, "no memory");
    }
    argv[count] = path;
    (void)fflush(NULL);
    set->pids[0] = fork();
    must_not(set->pids[0] < 0, name, "cannot fork");
    if (set->pids[0])
        return;
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM); /* mpirun passes it on to all whom it has started */
    (void)execvp(argv[0], argv);
    must_not(true, argv[0], "cannot be started");
}

void lockstep_begin(struct lockstep *set, const struct lockstep_order *order)
{
    set->board->order = *order;
    atomic_fetch_add(&set->board->turn, 1);
    lockstep_wake(&set->board->turn);
}

/* A member that is gone will not end anything. */
static void look_after(struct lockstep *set, uint32_t absent_rank)
{
    for (uint32_t rank = 0; rank < set->size; rank++) {
        must_not(rank != absent_rank && set->pids[rank] &&
                     waitpid(set->pids[rank], NULL, WNOHANG) != 0,
                 set->name, "a member has ended before its time");
    }
}

static bool all_done(struct lockstep *set, uint32_t absent_rank)
{
    uint32_t turn = atomic_load(&set->board->turn);

    for (uint32_t rank = 0; rank < set->size; rank++) {
        if (rank != absent_rank && atomic_load(&set->board->members[rank].done) != turn)
            return false;
    }
    return true;
}

bool lockstep_ended(struct lockstep *set, uint32_t absent_rank, int64_t deadline_us)
{
    for (;;) {
        uint32_t done = atomic_load(&set->board->done);

        if (all_done(set, absent_rank))
            return true;
        if (clock_now_us() >= deadline_us)
            return false;
        look_after(set, absent_rank);
        lockstep_sleep(&set->board->done, done);
    }
}

void lockstep_round(struct lockstep *set, const struct lockstep_order *order)
{
    lockstep_begin(set, order);
    (void)lockstep_ended(set, NOBODY, INT64_MAX);
}

int64_t lockstep_most(const struct lockstep *set, size_t figure)
{
    int64_t most = 0;

    for (uint32_t rank = 0; rank < set->size; rank++) {
        int64_t one = set->board->members[rank].figures[figure];

        most = one > most ? one : most;
    }
    return most;
}

static void bury(struct lockstep *set)
{
    for (uint32_t rank = 0; rank < set->size; rank++) {
        if (set->pids[rank])
            (void)waitpid(set->pids[rank], NULL, 0);
    }
    (void)munmap(set->board, sizeof(*set->board));
    (void)close(set->fd);
}

void lockstep_end(struct lockstep *set)
{
    const struct lockstep_order home = { 0 };

    lockstep_begin(set, &home);
    bury(set);
}

void lockstep_kill(struct lockstep *set)
{
    for (uint32_t rank = 0; rank < set->size; rank++) {
        if (set->pids[rank])
            (void)kill(set->pids[rank], SIGKILL);
    }
    bury(set);
}

/* ---- a member ---- */

void lockstep_sit(struct lockstep_self *seat, const char *path, uint32_t rank)
{
    int fd = open(path, O_RDWR | O_CLOEXEC);

    must_not(fd < 0, path, "there is no set of that name");
    seat->board = mmap(NULL, sizeof(*seat->board), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    must_not(seat->board == MAP_FAILED, path, "no memory");
    (void)close(fd);
    seat->rank = rank;
    seat->size = seat->board->size;
    seat->turn = 0;
}

/* An executed member is the child of another launcher. */
static void end_with_parent(const struct lockstep_self *seat)
{
    must_not(kill(seat->board->parent, 0) && errno == ESRCH, "a member", "the parent is gone");
}

bool lockstep_next(struct lockstep_self *seat, struct lockstep_order *ret_order)
{
    while (atomic_load(&seat->board->turn) == seat->turn) {
        end_with_parent(seat);
        lockstep_sleep(&seat->board->turn, seat->turn);
    }
    seat->turn++;
    *ret_order = seat->board->order;
    return ret_order->work != 0;
}

void lockstep_gate(struct lockstep_self *seat)
{
    struct lockstep_board *board = seat->board;
    uint32_t gate = atomic_load(&board->gate);

    if (atomic_fetch_add(&board->arrived, 1) + 1 == seat->size) {
        atomic_store(&board->arrived, 0);
        atomic_fetch_add(&board->gate, 1);
        lockstep_wake(&board->gate);
        return;
    }
    while (atomic_load(&board->gate) == gate) {
        end_with_parent(seat);
        lockstep_sleep(&board->gate, gate);
    }
}

void lockstep_done(struct lockstep_self *seat)
{
    atomic_store(&seat->board->members[seat->rank].done, seat->turn);
    atomic_fetch_add(&seat->board->done, 1);
    lockstep_wake(&seat->board->done);
}
