#include "bench/crew.h"

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
#define NOBODY    CREW_MAX

void crew_fail(int rc, const char *what, const struct hvd_err *err)
{
    (void)fprintf(stderr, "bench: %s: %s: %s\n", what, err_name(rc), err ? err->text : "");
    exit(1);
}

void crew_must(int rc, const char *what, const struct hvd_err *err)
{
    if (rc)
        crew_fail(rc, what, err);
}

static void must_not(bool wrong, const char *name, const char *what)
{
    if (!wrong)
        return;
    (void)fprintf(stderr, "bench: %s: %s\n", name, what);
    exit(1);
}

void crew_sleep(_Atomic uint32_t *word, uint32_t value)
{
    const struct timespec nap = { 0, NAP_NS };

    (void)syscall(SYS_futex, word, FUTEX_WAIT, value, &nap, NULL, 0);
}

void crew_wake(_Atomic uint32_t *word)
{
    (void)syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* ---- the parent ---- */

static void found(struct crew *crew, const char *name, uint32_t size)
{
    *crew = (struct crew){ .name = name, .size = size };
    crew->fd = memfd_create("crew", MFD_CLOEXEC);
    must_not(crew->fd < 0 || ftruncate(crew->fd, sizeof(*crew->board)), name, "no memory");
    crew->board = mmap(NULL, sizeof(*crew->board), PROT_READ | PROT_WRITE, MAP_SHARED, crew->fd, 0);
    must_not(crew->board == MAP_FAILED, name, "no memory");
    crew->board->size = size;
    crew->board->parent = getpid();
}

void crew_fork_one(struct crew *crew, uint32_t rank)
{
    struct crew_seat seat = { crew->board, rank, crew->size, atomic_load(&crew->board->turn) };

    (void)fflush(NULL);
    crew->pids[rank] = fork();
    must_not(crew->pids[rank] < 0, crew->name, "cannot fork");
    if (crew->pids[rank])
        return;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    must_not(getppid() != crew->board->parent, crew->name, "the parent is gone");
    crew->live(&seat, crew->arg);
    exit(0);
}

void crew_fork(struct crew *crew, const char *name, uint32_t size, crew_live_fn *live,
               const void *arg)
{
    found(crew, name, size);
    crew->live = live;
    crew->arg = arg;
    for (uint32_t rank = 0; rank < size; rank++)
        crew_fork_one(crew, rank);
}

void crew_execute(struct crew *crew, const char *name, uint32_t size, const char *const *words)
{
    char path[64];
    char *argv[WORDS_MAX + 2] = { NULL };
    size_t count = 0;

    found(crew, name, size);
    (void)snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)getpid(), crew->fd);
    for (; words[count]; count++) {
        must_not(count == WORDS_MAX, name, "too many words");
        argv[count] = mem_strdup(words[count]);
        must_not(!argv[count], name, "no memory");
    }
    argv[count] = path;
    (void)fflush(NULL);
    crew->pids[0] = fork();
    must_not(crew->pids[0] < 0, name, "cannot fork");
    if (crew->pids[0])
        return;
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM); /* mpirun passes it on to all whom it has started */
    (void)execvp(argv[0], argv);
    must_not(true, argv[0], "cannot be started");
}

void crew_begin(struct crew *crew, const struct crew_order *order)
{
    crew->board->order = *order;
    atomic_fetch_add(&crew->board->turn, 1);
    crew_wake(&crew->board->turn);
}

/* A member that is gone will not end anything. */
static void look_after(struct crew *crew, uint32_t absent_rank)
{
    for (uint32_t rank = 0; rank < crew->size; rank++) {
        must_not(rank != absent_rank && crew->pids[rank] &&
                     waitpid(crew->pids[rank], NULL, WNOHANG) != 0,
                 crew->name, "a member has ended before its time");
    }
}

static bool all_done(struct crew *crew, uint32_t absent_rank)
{
    uint32_t turn = atomic_load(&crew->board->turn);

    for (uint32_t rank = 0; rank < crew->size; rank++) {
        if (rank != absent_rank && atomic_load(&crew->board->members[rank].done) != turn)
            return false;
    }
    return true;
}

bool crew_ended(struct crew *crew, uint32_t absent_rank, int64_t deadline_us)
{
    for (;;) {
        uint32_t done = atomic_load(&crew->board->done);

        if (all_done(crew, absent_rank))
            return true;
        if (clock_now_us() >= deadline_us)
            return false;
        look_after(crew, absent_rank);
        crew_sleep(&crew->board->done, done);
    }
}

void crew_turn(struct crew *crew, const struct crew_order *order)
{
    crew_begin(crew, order);
    (void)crew_ended(crew, NOBODY, INT64_MAX);
}

int64_t crew_most(const struct crew *crew, size_t figure)
{
    int64_t most = 0;

    for (uint32_t rank = 0; rank < crew->size; rank++) {
        int64_t one = crew->board->members[rank].figures[figure];

        most = one > most ? one : most;
    }
    return most;
}

static void bury(struct crew *crew)
{
    for (uint32_t rank = 0; rank < crew->size; rank++) {
        if (crew->pids[rank])
            (void)waitpid(crew->pids[rank], NULL, 0);
    }
    (void)munmap(crew->board, sizeof(*crew->board));
    (void)close(crew->fd);
}

void crew_end(struct crew *crew)
{
    const struct crew_order home = { 0 };

    crew_begin(crew, &home);
    bury(crew);
}

void crew_kill(struct crew *crew)
{
    for (uint32_t rank = 0; rank < crew->size; rank++) {
        if (crew->pids[rank])
            (void)kill(crew->pids[rank], SIGKILL);
    }
    bury(crew);
}

/* ---- a member ---- */

void crew_sit(struct crew_seat *seat, const char *path, uint32_t rank)
{
    int fd = open(path, O_RDWR | O_CLOEXEC);

    must_not(fd < 0, path, "there is no crew of that name");
    seat->board = mmap(NULL, sizeof(*seat->board), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    must_not(seat->board == MAP_FAILED, path, "no memory");
    (void)close(fd);
    seat->rank = rank;
    seat->size = seat->board->size;
    seat->turn = 0;
}

/* An executed member is somebody else's child. */
static void end_with_parent(const struct crew_seat *seat)
{
    must_not(kill(seat->board->parent, 0) && errno == ESRCH, "a member", "the parent is gone");
}

bool crew_next(struct crew_seat *seat, struct crew_order *ret_order)
{
    while (atomic_load(&seat->board->turn) == seat->turn) {
        end_with_parent(seat);
        crew_sleep(&seat->board->turn, seat->turn);
    }
    seat->turn++;
    *ret_order = seat->board->order;
    return ret_order->work != 0;
}

void crew_gate(struct crew_seat *seat)
{
    struct crew_board *board = seat->board;
    uint32_t gate = atomic_load(&board->gate);

    if (atomic_fetch_add(&board->arrived, 1) + 1 == seat->size) {
        atomic_store(&board->arrived, 0);
        atomic_fetch_add(&board->gate, 1);
        crew_wake(&board->gate);
        return;
    }
    while (atomic_load(&board->gate) == gate) {
        end_with_parent(seat);
        crew_sleep(&board->gate, gate);
    }
}

void crew_done(struct crew_seat *seat)
{
    atomic_store(&seat->board->members[seat->rank].done, seat->turn);
    atomic_fetch_add(&seat->board->done, 1);
    crew_wake(&seat->board->done);
}
