/*
 * bench_coll: what a round of n processes costs: to be connected; an operation; from the moment it
 * is cancelled until everybody is out, in the middle of an operation.
 *
 * The processes are forked and meet as workers do; what they measure they write to memory that they
 * share with their parent, which prints the slowest of them.
 */
#include "base/mem.h"
#include "bench/bench.h"
#include "collectives/coll.h"
#include "os/clock.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MEMBERS_MAX 16
#define ROUNDS      40 /* of connecting, and of cancelling */
#define LONG_US     (60 * INT64_C(1000000))

enum { OP_4K, OP_64K, OP_1M, OP_16M, OP_BARRIER, OP_COUNT };
static const size_t op_bytes[] = { 4096, 65536, 1 << 20, 16 << 20, 0 };
static const char *const op_names[] = { "allreduce 4 KiB", "allreduce 64 KiB", "allreduce 1 MiB",
                                        "allreduce 16 MiB", "barrier" };

struct shared {
    char contacts[MEMBERS_MAX][128];
    atomic_uint come, gate; /* members that have come to the gate, and which gate it is */
    int64_t connect_us[ROUNDS][MEMBERS_MAX];
    int64_t op_ns[OP_COUNT][MEMBERS_MAX];
    int64_t stop_us[ROUNDS][MEMBERS_MAX]; /* from the cancel until it has returned */
    atomic_llong cancelled_us;
};

struct me {
    struct shared *shared;
    uint32_t rank, size;
    struct coll_engine *engine;
    struct coll_peer peers[MEMBERS_MAX];
    float *numbers;
};

static void must(int rc, const struct hvd_err *err)
{
    if (rc) {
        (void)fprintf(stderr, "bench_coll: %s: %s\n", err_name(rc), err->text);
        exit(1);
    }
}

/* Everybody waits here for everybody. */
static void gate(struct me *me)
{
    const struct timespec short_time = { 0, 50000 };
    unsigned number = atomic_load(&me->shared->gate);

    if (atomic_fetch_add(&me->shared->come, 1) + 1 == me->size) {
        atomic_store(&me->shared->come, 0);
        atomic_fetch_add(&me->shared->gate, 1);
    }
    while (atomic_load(&me->shared->gate) == number)
        (void)nanosleep(&short_time, NULL);
}

static struct coll *connected(struct me *me, uint64_t round)
{
    const struct coll_roster roster = { round, me->rank, me->size, me->peers };
    struct hvd_err err = { .text = "" };
    struct coll *coll;
    int64_t begun_us;

    must(coll_create(me->engine, &roster, &coll, &err), &err);
    gate(me);
    begun_us = clock_now_us();
    must(coll_connect(coll, LONG_US, &err), &err);
    me->shared->connect_us[round % ROUNDS][me->rank] = clock_now_us() - begun_us;
    return coll;
}

static int operate(struct me *me, struct coll *coll, int op, struct hvd_err *err)
{
    if (op == OP_BARRIER)
        return coll_barrier(coll, err);
    return coll_allreduce(coll, me->numbers, me->numbers, op_bytes[op] / sizeof(float), HVD_FLOAT32,
                          HVD_MAX, err);
}

static void time_operations(struct me *me, struct coll *coll)
{
    struct hvd_err err = { .text = "" };

    for (int op = 0; op < OP_COUNT; op++) {
        int times = op == OP_16M ? 10 : op == OP_1M ? 100 : 1000;
        int64_t begun_us = 0;

        for (int i = -times / 10; i < times; i++) {
            if (i == 0)
                begun_us = clock_now_us();
            must(operate(me, coll, op, &err), &err);
        }
        me->shared->op_ns[op][me->rank] = (clock_now_us() - begun_us) * 1000 / times;
    }
}

/* Rank 0 is cancelled in the middle of it; the others see that. */
static void time_cancel(struct me *me, struct coll *coll, int which)
{
    struct hvd_err err = { .text = "" };
    int op = which % 2 ? OP_16M : OP_4K;
    int rc;

    do
        rc = operate(me, coll, op, &err);
    while (!rc);
    me->shared->stop_us[which][me->rank] = clock_now_us() - atomic_load(&me->shared->cancelled_us);
}

struct canceller {
    struct coll *coll;
    struct shared *shared;
    int64_t after_us;
};

static void *cancel(void *arg)
{
    const struct canceller *canceller = arg;
    int64_t until_us = clock_now_us() + canceller->after_us;

    while (clock_now_us() < until_us) {
    }
    atomic_store(&canceller->shared->cancelled_us, clock_now_us());
    coll_cancel(canceller->coll);
    return NULL;
}

static void live(struct me *me)
{
    struct hvd_err err = { .text = "" };
    const char *contact;

    me->numbers = mem_zalloc(op_bytes[OP_16M]);
    must(coll_engine_open("127.0.0.1", &me->engine, &err), &err);
    contact = coll_engine_contact(me->engine);
    memcpy(me->shared->contacts[me->rank], contact, strlen(contact) + 1);
    gate(me);
    for (uint32_t i = 0; i < me->size; i++)
        me->peers[i] = (struct coll_peer){ 100 + i, "a", me->shared->contacts[i] };
    for (int i = 0; i < ROUNDS; i++) {
        struct coll *coll = connected(me, (uint64_t)i + ROUNDS);
        struct canceller canceller = { coll, me->shared, 20000 + i * 700 };
        pthread_t thread = pthread_self();

        if (i == 0)
            time_operations(me, coll);
        gate(me);
        if (me->rank == 0 && pthread_create(&thread, NULL, cancel, &canceller))
            exit(1);
        time_cancel(me, coll, i);
        if (me->rank == 0)
            pthread_join(thread, NULL);
        gate(me);
        coll_free(coll);
    }
    coll_engine_close(me->engine);
    mem_free(me->numbers);
}

static int by_size(const void *left, const void *right)
{
    int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;

    return (a > b) - (a < b);
}

static double in_ms(int64_t time_us)
{
    return (double)time_us / 1000;
}

/* The slowest member of each round, over the rounds. */
static void show(const char *name, int64_t times[ROUNDS][MEMBERS_MAX], uint32_t size)
{
    int64_t slowest[ROUNDS] = { 0 };

    for (int i = 0; i < ROUNDS; i++) {
        for (uint32_t k = 0; k < size; k++)
            slowest[i] = times[i][k] > slowest[i] ? times[i][k] : slowest[i];
    }
    qsort(slowest, ROUNDS, sizeof(slowest[0]), by_size);
    printf("  %-18s median %6.2f ms, 90%% %6.2f, most %6.2f\n", name, in_ms(slowest[ROUNDS / 2]),
           in_ms(slowest[ROUNDS * 9 / 10]), in_ms(slowest[ROUNDS - 1]));
}

static void measure(uint32_t size)
{
    struct shared *shared =
        mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (shared == MAP_FAILED)
        exit(1);
    printf("%u processes\n", size);
    (void)fflush(stdout);
    for (uint32_t i = 0; i < size; i++) {
        if (!fork()) {
            struct me me = { .shared = shared, .rank = i, .size = size };

            (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
            live(&me);
            exit(0);
        }
    }
    for (uint32_t i = 0; i < size; i++) {
        int status;

        if (wait(&status) < 0 || status)
            exit(1); /* the others wait for it, and end with us */
    }
    show("connect", shared->connect_us, size);
    for (int op = 0; op < OP_COUNT; op++)
        printf("  %-18s %9.1f us\n", op_names[op], (double)shared->op_ns[op][0] / 1000);
    show("cancel to return", shared->stop_us, size);
    munmap(shared, sizeof(*shared));
}

int main(void)
{
    for (uint32_t size = 2; size <= MEMBERS_MAX; size *= 2)
        measure(size);
    return 0;
}
