/*
 * bench_security: what --data-security costs between two hosts (both are this machine): the time
 * from the beginning of a new round of two workers to the end of its first barrier, and the time of
 * an allreduce of some sizes; each without security, authenticated, and encrypted. The three sets
 * of processes work in turns, so that other load falls on all of them alike. A ratio compares the
 * time of a set with the time of `none` in the same turn.
 *
 *     bench_security [ROUNDS]    ROUNDS: the number of turns
 */
#include "base/mem.h"
#include "base/text.h"
#include "bench/coll_member.h"
#include "bench/load.h"
#include "bench/times.h"
#include "os/clock.h"

#include <stdio.h>
#include <string.h>

#define ROUNDS    25
#define SET_COUNT 3
#define MOST      ((size_t)16 * 1024 * 1024)

enum { REBUILD = 1, REDUCE };

static const struct {
    const char *name;
    enum link_security security;
} sets[SET_COUNT] = {
    {"none",           LINK_SECURITY_NONE         },
    { "authenticated", LINK_SECURITY_AUTHENTICATED},
    { "encrypted",     LINK_SECURITY_ENCRYPTED    },
};

/* `times` allreduces of a size are one sample. */
static const struct {
    const char *name;
    size_t bytes;
    uint32_t times;
} sizes[] = {
    {"4 KiB",   (size_t)4 * 1024,    200},
    { "64 KiB", (size_t)64 * 1024,   100},
    { "1 MiB",  (size_t)1024 * 1024, 20 },
    { "16 MiB", MOST,                2  },
};

struct member {
    struct coll_member as;
    struct coll *coll;
    float *numbers;
};

/* A new round takes the place of the one before, as after a change of members. */
static int64_t rebuild(struct member *member, uint64_t number)
{
    const struct coll_call barrier = { .kind = COLL_BARRIER };
    struct hvd_err err = { .text = "" };
    struct coll *old = member->coll;
    int64_t begun_us, took_us;

    lockstep_gate(member->as.seat);
    begun_us = clock_now_us();
    member->coll = coll_member_round(&member->as, number);
    coll_member_connect(member->coll);
    lockstep_must(coll_run(member->coll, &barrier, &err), "a barrier", &err);
    took_us = clock_now_us() - begun_us;
    lockstep_gate(member->as.seat);
    coll_free(old);
    return took_us;
}

static int64_t reduce(struct member *member, const struct lockstep_order *order)
{
    const struct coll_call call = { .kind = COLL_ALLREDUCE,
                                    .type = HVD_FLOAT32,
                                    .op = HVD_MAX,
                                    .in = member->numbers,
                                    .out = member->numbers,
                                    .count = order->bytes / sizeof(float) };
    struct hvd_err err = { .text = "" };
    uint32_t times = order->times ? order->times : 1;
    int64_t begun_us;

    lockstep_gate(member->as.seat);
    begun_us = clock_now_us();
    for (uint32_t i = 0; i < times; i++)
        lockstep_must(coll_run(member->coll, &call, &err), "an allreduce", &err);
    return (clock_now_us() - begun_us) * 1000 / times; /* in ns: a small one takes few us */
}

static void live(struct lockstep_self *seat, const void *arg)
{
    struct member member = { .numbers = mem_zalloc(MOST) };
    struct lockstep_order order;

    coll_member_open(&member.as, seat, arg);
    coll_member_meet(&member.as);
    while (lockstep_next(seat, &order)) {
        seat->board->members[seat->rank].figures[0] =
            order.work == REBUILD ? rebuild(&member, order.seed) : reduce(&member, &order);
        lockstep_done(seat);
    }
    coll_free(member.coll);
    coll_member_close(&member.as);
    mem_free(member.numbers);
}

static void show(const char *what, struct times *times, struct times *ratios)
{
    printf("| %s |", what);
    for (int i = 0; i < SET_COUNT; i++) {
        /* times_ms divides by 1000: nanoseconds come out as microseconds */
        printf(" %.1f (%.1f-%.1f) |", times_ms(&times[i], 50), times_ms(&times[i], 10),
               times_ms(&times[i], 90));
    }
    for (int i = 1; i < SET_COUNT; i++)
        printf(" %.2f (%.2f-%.2f) |", times_ms(&ratios[i], 50), times_ms(&ratios[i], 10),
               times_ms(&ratios[i], 90));
    printf("\n");
    (void)fflush(stdout);
}

/* Gives all sets the same order in turns, `rounds` times. */
static void measure(struct lockstep *all, const char *what, struct lockstep_order order,
                    uint64_t rounds)
{
    static struct times times[SET_COUNT], ratios[SET_COUNT];
    static uint64_t number;

    for (int i = 0; i < SET_COUNT; i++)
        times[i].count = ratios[i].count = 0;
    for (uint64_t k = 0; k <= rounds; k++) {
        int64_t took[SET_COUNT];

        order.seed = ++number;
        for (int i = 0; i < SET_COUNT; i++) {
            lockstep_round(&all[i], &order);
            took[i] = lockstep_most(&all[i], 0) * (order.work == REBUILD ? 1000 : 1);
        }
        for (int i = 0; k && i < SET_COUNT; i++) { /* the first one warms up */
            times_add(&times[i], took[i]);
            times_add(&ratios[i], took[i] * 1000 / (took[0] ? took[0] : 1));
        }
    }
    show(what, times, ratios);
}

int main(int argc, char **argv)
{
    struct coll_member_place places[SET_COUNT];
    struct lockstep all[SET_COUNT];
    struct hvd_err err = { .text = "" };
    uint64_t rounds = ROUNDS;
    struct load before;

    load_look(&before);
    if (argc > 1)
        lockstep_must(text_parse_u64((struct span){ argv[1], strlen(argv[1]) }, 1, TIMES_MAX,
                                     "the number of rounds", &rounds, &err),
                      argv[1], &err);
    for (int i = 0; i < SET_COUNT; i++) {
        places[i] = (struct coll_member_place){ .hosts = 2, .security = sets[i].security };
        lockstep_fork(&all[i], sets[i].name, 2, live, &places[i]);
    }
    printf("2 ranks on two loopback hosts, microseconds: median (10%%-90%%) of %llu\n\n"
           "| | none | authenticated | encrypted | authenticated / none | encrypted / none |\n"
           "|---|---|---|---|---|---|\n",
           (unsigned long long)rounds);
    measure(all, "a new round, until a barrier", (struct lockstep_order){ .work = REBUILD },
            rounds);
    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
        measure(all, sizes[i].name,
                (struct lockstep_order){
                    .work = REDUCE, .times = sizes[i].times, .bytes = sizes[i].bytes },
                rounds);
    for (int i = 0; i < SET_COUNT; i++)
        lockstep_end(&all[i]);
    printf("\nOther programs used %d %% of the processors meanwhile.\n", load_of_others(&before));
    return 0;
}
