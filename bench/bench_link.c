/*
 * bench_link: what a link of each kind costs: to be connected; a message there and back; bytes one
 * way; from the moment it is cancelled until who waits is out.
 *
 * The processes are forked and find each other in memory that they share with their parent, which
 * prints the slowest of them.
 */
#include "base/limits.h"
#include "base/mem.h"
#include "collectives/link/links.h"
#include "os/clock.h"

#include <pthread.h>
#include <semaphore.h>
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

/* CMake defines the file that it has built; without it the loader looks for the module. */
#ifndef BENCH_GLOO_MODULE
#define BENCH_GLOO_MODULE "libhvd-gloo.so"
#endif

#define MEMBERS_MAX  16
#define ROUNDS       40 /* how often the bench connects, and how often it cancels */
#define LONG_US      (60 * INT64_C(1000000))
#define SMALL_BYTES  4096
#define SMALL_TIMES  2000
#define LARGE_BYTES  ((size_t)64 * 1024 * 1024)
#define LARGE_TIMES  10
#define SEGMENT      ((size_t)1024 * 1024) /* as the algorithms cut what is large */
#define SEGMENTS     (LARGE_BYTES / SEGMENT)
#define SEGMENTS_OUT 4

struct shared {
    uint8_t told[MEMBERS_MAX][MEMBERS_MAX][LINK_ADDRESS_MAX]; /* [by][to] */
    size_t told_length[MEMBERS_MAX][MEMBERS_MAX];
    atomic_uint come, gate; /* members that have come to the gate, and which gate it is */
    int64_t connect_us[ROUNDS][MEMBERS_MAX];
    int64_t close_us[ROUNDS][MEMBERS_MAX];
    int64_t stop_us[ROUNDS][MEMBERS_MAX]; /* from the cancel until the wait has returned */
    int64_t small_us[SMALL_TIMES], large_us[LARGE_TIMES], whole_us[LARGE_TIMES];
    atomic_llong cancelled_us;
};

struct me {
    struct shared *shared;
    enum link_kind kind;
    uint32_t rank, size;
    uint32_t partners[MEMBERS_MAX];
    size_t partner_count;
    struct reaper *reaper;
    struct link_device *device;
    sem_t opened;
    struct link *link;
    uint8_t *bytes;
    struct link_round identity;
};

static void must(int rc, const struct hvd_err *err)
{
    if (rc) {
        (void)fprintf(stderr, "bench_link: %s: %s\n", err_name(rc), err ? err->text : "");
        exit(1);
    }
}

/* All members wait here for all members. */
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

/* ---- connecting ---- */

static void add_partner(struct me *me, uint32_t rank)
{
    for (size_t i = 0; i < me->partner_count; i++) {
        if (me->partners[i] == rank)
            return;
    }
    me->partners[me->partner_count++] = rank;
}

static void choose_partners(struct me *me)
{
    for (uint32_t distance = 1; distance < me->size; distance *= 2) {
        add_partner(me, (me->rank + distance) % me->size);
        add_partner(me, (me->rank + me->size - distance) % me->size);
    }
}

static void connect_all(struct me *me, int round)
{
    struct hvd_err err = { .text = "" };
    struct shared *shared = me->shared;
    int64_t begun_us = clock_now_us();
    uint32_t missing;

    must(link_create(me->device,
                     &(struct link_spec){ .round = &me->identity,
                                          .reaper = me->reaper,
                                          .rank = me->rank,
                                          .size = me->size,
                                          .peers = me->partners,
                                          .peer_count = me->partner_count },
                     &me->link, &err),
         &err);
    for (size_t i = 0; i < me->partner_count; i++) {
        uint32_t to = me->partners[i];

        must(me->link->ops->address(me->link, to, shared->told[me->rank][to],
                                    &shared->told_length[me->rank][to], &err),
             &err);
    }
    shared->connect_us[round][me->rank] = clock_now_us() - begun_us;
    gate(me);
    begun_us = clock_now_us();
    for (size_t i = 0; i < me->partner_count; i++) {
        uint32_t by = me->partners[i];

        must(me->link->ops->connect(me->link, by, shared->told[by][me->rank],
                                    shared->told_length[by][me->rank], &err),
             &err);
    }
    must(me->link->ops->connected(me->link, begun_us + LONG_US, &missing, &err), &err);
    shared->connect_us[round][me->rank] += clock_now_us() - begun_us;
    gate(me);
}

static void close_all(struct me *me, int round)
{
    int64_t begun_us;

    gate(me);
    begun_us = clock_now_us();
    me->link->ops->free(me->link);
    me->shared->close_us[round][me->rank] = clock_now_us() - begun_us;
}

/* ---- messages, of two ---- */

static void send_now(struct me *me, uint64_t tag, const uint8_t *bytes, size_t length)
{
    struct link_request *request;

    must(me->link->ops->send(me->link, 1 - me->rank, tag, bytes, length, &request), NULL);
    must(me->link->ops->wait(me->link, request), NULL);
}

static void receive_now(struct me *me, uint64_t tag, uint8_t *bytes, size_t length)
{
    struct link_request *request;

    must(me->link->ops->receive(me->link, 1 - me->rank, tag, bytes, length, &request), NULL);
    must(me->link->ops->wait(me->link, request), NULL);
}

static void time_small(struct me *me)
{
    for (int i = -100; i < SMALL_TIMES; i++) {
        int64_t begun_us = clock_now_us();

        if (me->rank == 0) {
            send_now(me, 1, me->bytes, SMALL_BYTES);
            receive_now(me, 1, me->bytes, SMALL_BYTES);
            if (i >= 0)
                me->shared->small_us[i] = clock_now_us() - begun_us;
        } else {
            receive_now(me, 1, me->bytes, SMALL_BYTES);
            send_now(me, 1, me->bytes, SMALL_BYTES);
        }
    }
}

static void pass_segments(struct me *me)
{
    struct link_request *requests[SEGMENTS_OUT];

    for (size_t i = 0; i < SEGMENTS + SEGMENTS_OUT; i++) {
        struct link_request **place = &requests[i % SEGMENTS_OUT];
        uint8_t *at = me->bytes + i * SEGMENT;

        if (i >= SEGMENTS_OUT)
            must(me->link->ops->wait(me->link, *place), NULL);
        if (i < SEGMENTS && me->rank == 0)
            must(me->link->ops->send(me->link, 1, 2, at, SEGMENT, place), NULL);
        else if (i < SEGMENTS)
            must(me->link->ops->receive(me->link, 0, 2, at, SEGMENT, place), NULL);
    }
}

static void pass_whole(struct me *me)
{
    if (me->rank == 0)
        send_now(me, 3, me->bytes, LARGE_BYTES);
    else
        receive_now(me, 3, me->bytes, LARGE_BYTES);
}

/* Until the other says that it has got all. */
static void time_large(struct me *me, int64_t times[LARGE_TIMES], void (*pass)(struct me *me))
{
    for (int i = -1; i < LARGE_TIMES; i++) {
        int64_t begun_us = clock_now_us();

        pass(me);
        if (me->rank == 0)
            receive_now(me, 4, me->bytes, 1);
        else
            send_now(me, 4, me->bytes, 1);
        if (i >= 0 && me->rank == 0)
            times[i] = clock_now_us() - begun_us;
    }
}

/* ---- cancelling ---- */

static void *cancel(void *arg)
{
    const struct me *me = arg;
    int64_t until_us = clock_now_us() + 3000;

    while (clock_now_us() < until_us) {
    }
    atomic_store(&me->shared->cancelled_us, clock_now_us());
    me->link->ops->cancel(me->link);
    return NULL;
}

/* All members wait for a message that no member sends. Rank 0 is cancelled; its partners see the
 * end of rank 0, and the others the end of those. */
static void time_cancel(struct me *me, int round)
{
    struct link_request *request;
    pthread_t thread = pthread_self();

    must(me->link->ops->receive(me->link, me->partners[0], 9, me->bytes, 1, &request), NULL);
    gate(me);
    if (me->rank == 0 && pthread_create(&thread, NULL, cancel, me))
        exit(1);
    if (!me->link->ops->wait(me->link, request))
        exit(1);
    me->shared->stop_us[round][me->rank] = clock_now_us() - atomic_load(&me->shared->cancelled_us);
    if (me->rank == 0)
        pthread_join(thread, NULL);
    else
        me->link->ops->cancel(me->link);
}

/* ---- all of it ---- */

/* On the reaper's thread: Gloo's inherits from it. */
static void open_device(void *arg)
{
    struct hvd_err err = { .text = "" };
    struct me *me = arg;

    must(link_device_open(me->kind, "127.0.0.1", &me->device, &err), &err);
    sem_post(&me->opened);
}

static void live(struct me *me)
{
    static const uint64_t incarnations[MEMBERS_MAX] = { 0 };
    static const uint8_t secret[LIMIT_ROUND_SECRET_BYTES] = "the secret of each round here";
    struct reaper_task opening = { .run = open_device, .arg = me };
    struct hvd_err err = { .text = "" };

    me->bytes = mem_zalloc(LARGE_BYTES);
    me->identity =
        (struct link_round){ .round = 1, .incarnations = incarnations, .secret = secret };
    choose_partners(me);
    must(reaper_open(&me->reaper, &err), &err);
    if (sem_init(&me->opened, 0, 0))
        exit(1);
    reaper_add(me->reaper, &opening);
    while (sem_wait(&me->opened)) {
    }
    for (int i = 0; i < ROUNDS; i++) {
        connect_all(me, i);
        if (i == 0 && me->size == 2) {
            me->link->ops->enter(me->link);
            time_small(me);
            time_large(me, me->shared->large_us, pass_segments);
            time_large(me, me->shared->whole_us, pass_whole);
            me->link->ops->leave(me->link);
        }
        close_all(me, i);
    }
    for (int i = 0; i < ROUNDS && me->size == 2; i++) {
        connect_all(me, i);
        time_cancel(me, i);
        reaper_close(me->reaper); /* what the cancel has left */
        me->link->ops->free(me->link);
        must(reaper_open(&me->reaper, &err), &err);
    }
    reaper_close(me->reaper);
    link_device_close(me->device);
    mem_free(me->bytes);
}

static int by_size(const void *left, const void *right)
{
    int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;

    return (a > b) - (a < b);
}

static void show(const char *name, int64_t *times, size_t count)
{
    size_t middle = count / 2, late = count * 9 / 10;

    qsort(times, count, sizeof(times[0]), by_size);
    printf("  %-24s median %8.3f ms, 90%% %8.3f, most %8.3f\n", name, (double)times[middle] / 1000,
           (double)times[late] / 1000, (double)times[count - 1] / 1000);
}

/* The slowest member of each round, over the rounds. */
static void show_slowest(const char *name, int64_t times[ROUNDS][MEMBERS_MAX], uint32_t size)
{
    int64_t slowest[ROUNDS] = { 0 };

    for (int i = 0; i < ROUNDS; i++) {
        for (uint32_t k = 0; k < size; k++)
            slowest[i] = times[i][k] > slowest[i] ? times[i][k] : slowest[i];
    }
    show(name, slowest, ROUNDS);
}

static void run(struct shared *shared, enum link_kind kind, uint32_t size)
{
    for (uint32_t i = 0; i < size; i++) {
        if (!fork()) {
            struct me me = { .shared = shared, .kind = kind, .rank = i, .size = size };

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
}

static void measure(enum link_kind kind, uint32_t size)
{
    struct shared *shared =
        mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (shared == MAP_FAILED)
        exit(1);
    printf("%s, %u processes\n", kind == LINK_GLOO ? "gloo" : "tcp", size);
    (void)fflush(stdout);
    run(shared, kind, size);
    show_slowest("create and connect", shared->connect_us, size);
    show_slowest("close", shared->close_us, size);
    if (size == 2) {
        show("4 KiB there and back", shared->small_us, SMALL_TIMES);
        show("64 MiB in segments", shared->large_us, LARGE_TIMES);
        show("64 MiB at once", shared->whole_us, LARGE_TIMES);
        show_slowest("cancel to return", shared->stop_us, 1);
        show_slowest("cancel to return, both", shared->stop_us, 2);
    }
    munmap(shared, sizeof(*shared));
}

int main(void)
{
    (void)setenv("HVD_GLOO_LIBRARY", BENCH_GLOO_MODULE, 0);
    for (uint32_t size = 2; size <= MEMBERS_MAX; size *= 2) {
        measure(LINK_GLOO, size);
        measure(LINK_TCP, size);
    }
    return 0;
}
