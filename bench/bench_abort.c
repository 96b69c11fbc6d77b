/*
 * bench_abort: how long the members of a round are still inside an operation after it has come to
 * an unexpected end, at any moment of any operation.
 *
 *     killed    one member is killed, and no process tells the others
 *     stopped   one member is stopped, and then the others hear that the round is revoked
 *     revoked   all are told
 *     one told  one is told, and the others notice
 *
 * To tell a process, a sleeping thread of it wakes and calls coll_cancel. The time is from the
 * kill, or from the wake-up of the threads, until the operation has returned. In the last columns
 * it is from the process's own coll_cancel, where that came first. A trial in which a member has
 * not returned after HUNG_US is counted, and its processes are replaced.
 *
 *     bench_abort [TRIALS]      so many of each row
 */
#include "base/mem.h"
#include "base/text.h"
#include "bench/coll_member.h"
#include "bench/load.h"
#include "bench/times.h"
#include "os/clock.h"
#include "os/thread.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define TRIALS      100
#define HUNG_US     INT64_C(10000000)
#define BOUND_MS    20.0
#define DELAY_US    30000 /* at most, from when all are at work */
#define NUMBERS_MAX ((size_t)4 << 20)
#define PIECES      5
#define NOBODY      LOCKSTEP_MAX
#define EVERYBODY   UINT32_MAX

enum way { KILLED, STOPPED, REVOKED, ONE_TOLD, WAYS };
enum { RETURNED_US, TOLD_US, CODE }; /* figures; by the clock */

/* More memory that the parent and its set share. */
struct shared {
    _Atomic uint32_t working; /* members in their first operation, or after it */
    _Atomic uint32_t over;    /* the trial comes to its end: those named are told */
    uint32_t told;            /* a bit for each rank */
    int64_t ended_us;
};

struct engine {
    const char *name;
    struct coll_member_place place;
};

static const struct engine engines[] = {
    {"shared memory", { .hosts = 1 }                                       },
    { "two hosts",    { .hosts = 2 }                                       },
    { "over Gloo",    { .hosts = 1, .carrier = COLL_BY_GLOO, .flat = true }},
    { "over TCP",     { .hosts = 1, .carrier = COLL_BY_TCP, .flat = true } },
};

static const char *const way_names[WAYS] = { "killed", "stopped", "revoked", "one told" };

struct plan { /* of a set */
    struct coll_member_place place;
    struct shared *shared;
};

/* ---- a member ---- */

struct member {
    struct coll_member base;
    struct shared *shared;
    struct coll *coll;
    float *in, *out;
    int64_t told_us;
};

static void *listen_for_end(void *arg)
{
    struct member *member = arg;

    while (!atomic_load(&member->shared->over))
        lockstep_sleep(&member->shared->over, 0);
    if (member->shared->told & 1U << member->base.seat->rank) {
        member->told_us = clock_now_us();
        coll_cancel(member->coll);
    }
    return NULL;
}

static uint64_t next(uint64_t *seed)
{
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *seed >> 33;
}

/* The same of all, but for those who have joined while rank 0 goes on. Small ones as often as
 * large ones. */
static struct coll_call drawn_call(struct member *member, uint64_t seed,
                                   struct coll_piece pieces[PIECES])
{
    const struct lockstep_self *seat = member->base.seat;
    enum coll_kind kind = (enum coll_kind)(COLL_ALLREDUCE + next(&seed) % COLL_JOIN);
    size_t most = NUMBERS_MAX / (kind == COLL_ALLREDUCE || kind == COLL_BROADCAST ? 1 : seat->size);
    size_t count = 1 + next(&seed) % (most >> next(&seed) % 20);
    struct coll_call call = { .kind = kind,
                              .type = HVD_FLOAT32,
                              .op = HVD_MAX,
                              .root = (uint32_t)(next(&seed) % seat->size),
                              .in = member->in,
                              .out = member->out,
                              .count = count };

    if (kind == COLL_JOIN && seat->rank == 0)
        call.kind = COLL_ALLREDUCE;
    if (kind == COLL_ALLREDUCE && next(&seed) % 2 && count >= PIECES) {
        for (size_t i = 0; i < PIECES; i++) {
            size_t at = count / PIECES * i;

            pieces[i] = (struct coll_piece){ member->in + at, member->out + at, count / PIECES };
        }
        call.pieces = pieces;
        call.piece_count = PIECES;
    }
    return call;
}

static int operate(struct member *member, uint64_t seed)
{
    struct coll_piece pieces[PIECES];
    struct coll_call call = drawn_call(member, seed, pieces);
    struct hvd_err err = { .text = "" };
    int rc;

    atomic_fetch_add(&member->shared->working, 1);
    lockstep_wake(&member->shared->working);
    do
        rc = coll_run(member->coll, &call, &err);
    while (!rc);
    if (rc != HVD_E_REVOKED)
        (void)fprintf(stderr, "operation %d of %zu: %s: %s\n", call.kind, call.count, err_name(rc),
                      err.text);
    return rc;
}

static void take_part(struct member *member, const struct lockstep_order *order)
{
    int64_t *figures = member->base.seat->board->members[member->base.seat->rank].figures;
    struct hvd_err err = { .text = "" };
    pthread_t listener;

    member->told_us = 0;
    coll_member_meet(&member->base);
    member->coll = coll_member_round(&member->base, order->bytes);
    coll_member_connect(member->coll);
    lockstep_must(thread_start(&listener, 0, listen_for_end, member), "a thread", &err);
    figures[CODE] = operate(member, order->seed);
    figures[RETURNED_US] = clock_now_us();
    (void)pthread_join(listener, NULL);
    figures[TOLD_US] = member->told_us;
    coll_free(member->coll);
}

static void live(struct lockstep_self *seat, const void *arg)
{
    const struct plan *plan = arg;
    struct member member = { .shared = plan->shared,
                             .in = mem_zalloc_array(NUMBERS_MAX, sizeof(float)),
                             .out = mem_zalloc_array(NUMBERS_MAX, sizeof(float)) };
    struct lockstep_order order;

    lockstep_must(member.in && member.out ? 0 : HVD_E_NOMEM, "buffers", NULL);
    coll_member_open(&member.base, seat, &plan->place);
    while (lockstep_next(seat, &order)) {
        take_part(&member, &order);
        lockstep_done(seat);
    }
    coll_member_close(&member.base);
    mem_free(member.in);
    mem_free(member.out);
}

/* ---- the parent ---- */

struct row {
    uint32_t trials, hung, wrong; /* trials with a hung member; returns with another code */
    uint32_t late;                /* returns after more than BOUND_MS */
    struct times since_end, since_told;
};

static void pause_us(uint64_t time_us)
{
    const struct timespec time = { 0, (long)time_us * 1000 };

    (void)nanosleep(&time, NULL);
}

static void end_trial(struct lockstep *set, struct shared *shared, enum way way, uint32_t victim)
{
    if (way == STOPPED) {
        (void)kill(set->pids[victim], SIGSTOP);
        pause_us(5000); /* most wait for it by then */
    }
    shared->told = way == KILLED ? 0 : way == ONE_TOLD ? 1U << victim : EVERYBODY;
    shared->ended_us = clock_now_us();
    if (way == KILLED)
        (void)kill(set->pids[victim], SIGKILL);
    atomic_store(&shared->over, 1);
    lockstep_wake(&shared->over);
}

static void take_down(struct row *row, const struct lockstep *set, const struct shared *shared,
                      uint32_t absent)
{
    for (uint32_t rank = 0; rank < set->size; rank++) {
        const int64_t *figures = set->board->members[rank].figures;

        if (rank == absent)
            continue;
        times_add(&row->since_end, figures[RETURNED_US] - shared->ended_us);
        row->late += (double)(figures[RETURNED_US] - shared->ended_us) / 1e3 > BOUND_MS;
        row->wrong += figures[CODE] != HVD_E_REVOKED;
        if (figures[TOLD_US] && figures[TOLD_US] < figures[RETURNED_US])
            times_add(&row->since_told, figures[RETURNED_US] - figures[TOLD_US]);
    }
}

/* False: a member hangs. */
static bool try_once(struct lockstep *set, struct shared *shared, enum way way, uint64_t round,
                     struct row *row)
{
    uint64_t seed = round * 77 + set->size;
    const struct lockstep_order order = { 1, 1, round, seed };
    uint32_t victim = (uint32_t)(next(&seed) % set->size), absent;
    uint32_t working;

    absent = way == KILLED || way == STOPPED ? victim : NOBODY;
    atomic_store(&shared->working, 0);
    atomic_store(&shared->over, 0);
    lockstep_begin(set, &order);
    while ((working = atomic_load(&shared->working)) < set->size)
        lockstep_sleep(&shared->working, working);
    pause_us(next(&seed) % DELAY_US);
    end_trial(set, shared, way, victim);
    row->trials++;
    if (!lockstep_ended(set, absent, shared->ended_us + HUNG_US))
        return false;
    take_down(row, set, shared, absent);
    if (way == STOPPED) {
        (void)kill(set->pids[victim], SIGCONT);
        return lockstep_ended(set, NOBODY, clock_now_us() + HUNG_US);
    }
    if (way == KILLED) {
        (void)waitpid(set->pids[victim], NULL, 0);
        lockstep_fork_one(set, victim);
    }
    return true;
}

static void show(const char *name, uint32_t size, enum way way, struct row *row)
{
    printf("  %-14s %u ranks  %-9s %5u %6zu  %7.2f %7.2f %7.2f %7.2f  %5u %5u %5u", name, size,
           way_names[way], row->trials, row->since_end.count, times_ms(&row->since_end, 50),
           times_ms(&row->since_end, 90), times_ms(&row->since_end, 99),
           times_ms(&row->since_end, 100), row->late, row->hung, row->wrong);
    if (row->since_told.count)
        printf("   %7.2f %7.2f", times_ms(&row->since_told, 50), times_ms(&row->since_told, 100));
    printf("\n");
    (void)fflush(stdout);
}

static void measure(const struct engine *engine, uint32_t size, uint32_t trials,
                    struct shared *shared)
{
    static struct row row;
    const struct plan plan = { engine->place, shared };
    uint64_t round = 0;
    struct lockstep set;

    lockstep_fork(&set, engine->name, size, live, &plan);
    for (enum way way = KILLED; way < WAYS; way++) {
        memset(&row, 0, sizeof(row));
        for (uint32_t i = 0; i < trials; i++) {
            if (try_once(&set, shared, way, ++round, &row))
                continue;
            row.hung++;
            lockstep_kill(&set);
            lockstep_fork(&set, engine->name, size, live, &plan);
        }
        show(engine->name, size, way, &row);
    }
    lockstep_end(&set);
}

int main(int argc, char **argv)
{
    struct shared *shared =
        mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct hvd_err err = { .text = "" };
    uint64_t trials = TRIALS;
    struct load before;

    load_look(&before);
    if (shared == MAP_FAILED)
        return 1;
    if (argc > 1)
        lockstep_must(text_parse_u64((struct span){ argv[1], strlen(argv[1]) }, 1, 100000,
                                     "the number of trials", &trials, &err),
                      argv[1], &err);
    printf("Time until all members are out of the operation, in milliseconds; hung: more than %d "
           "s.\n\n"
           "  %-34s trials  times   median     90%%     99%%    most  >%.0fms  hung other   "
           "own cancel, most\n",
           (int)(HUNG_US / 1000000), "", BOUND_MS);
    for (size_t i = 0; i < ARRAY_SIZE(engines); i++) {
        for (uint32_t size = 4; size <= 8; size *= 2)
            measure(&engines[i], size, (uint32_t)trials, shared);
    }
    printf("\nOther programs used %d %% of the processors meanwhile.\n", load_of_others(&before));
    (void)munmap(shared, sizeof(*shared));
    return 0;
}
