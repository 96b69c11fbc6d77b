/*
 * bench_rebuild: what it takes until n processes can compute together again: a round of theirs is
 * created, connected, and its first barrier is behind the last of them. Beside it, in turns, Gloo's
 * connectFullMesh among as many, which has no barrier yet, with a store that costs nothing.
 *
 *     bench_rebuild [ROUNDS]
 */
#include "base/text.h"
#include "bench/coll_member.h"
#include "bench/load.h"
#include "bench/plain_gloo.h"
#include "bench/times.h"
#include "os/clock.h"

#include <stdio.h>
#include <string.h>

#define ROUNDS 15

enum { REBUILD = 1 };
enum { CONNECTED, USABLE }; /* figures: microseconds until then */

static const struct form {
    uint32_t hosts, of_each;
} forms[] = {
    {1,  2 },
    { 1, 4 },
    { 1, 8 },
    { 1, 16},
    { 1, 32},
    { 4, 2 },
    { 8, 2 }
};

static int64_t *figures(struct lockstep_self *seat)
{
    return seat->board->members[seat->rank].figures;
}

static void rebuild(struct coll_member *member, uint64_t number)
{
    const struct coll_call barrier = { .kind = COLL_BARRIER };
    struct hvd_err err = { .text = "" };
    struct coll *coll;
    int64_t begun_us;

    lockstep_gate(member->seat);
    begun_us = clock_now_us();
    coll = coll_member_round(member, number);
    coll_member_connect(coll);
    figures(member->seat)[CONNECTED] = clock_now_us() - begun_us;
    lockstep_must(coll_run(coll, &barrier, &err), "a barrier", &err);
    figures(member->seat)[USABLE] = clock_now_us() - begun_us;
    lockstep_gate(member->seat);
    coll_free(coll);
}

static void live(struct lockstep_self *seat, const void *arg)
{
    struct coll_member member;
    struct lockstep_order order;

    coll_member_open(&member, seat, arg);
    coll_member_meet(&member);
    while (lockstep_next(seat, &order)) {
        rebuild(&member, order.seed);
        lockstep_done(seat);
    }
    coll_member_close(&member);
}

static void live_gloo(struct lockstep_self *seat, const void *arg)
{
    struct plain_gloo_store *const *store = arg;
    struct plain_gloo_device *device = plain_gloo_device_open();
    struct lockstep_order order;

    while (lockstep_next(seat, &order)) {
        struct plain_gloo *gloo;
        int64_t begun_us;

        lockstep_gate(seat);
        begun_us = clock_now_us();
        gloo = plain_gloo_connect(device, *store, (uint32_t)order.seed, seat->rank, seat->size);
        figures(seat)[CONNECTED] = clock_now_us() - begun_us;
        lockstep_gate(seat);
        plain_gloo_free(gloo);
        lockstep_done(seat);
    }
    plain_gloo_device_close(device);
}

static void measure(const struct form *form, uint64_t rounds)
{
    static struct times connected, usable, gloo_connected;
    const struct coll_member_place place = { .hosts = form->hosts };
    struct plain_gloo_store *store = plain_gloo_store_create();
    uint32_t size = form->hosts * form->of_each;
    struct lockstep ours, gloo;

    connected.count = usable.count = gloo_connected.count = 0;
    lockstep_fork(&ours, "ours", size, live, &place);
    lockstep_fork(&gloo, "Gloo", size, live_gloo, &store);
    for (uint64_t i = 1; i <= rounds + 1; i++) {
        const struct lockstep_order order = { REBUILD, 1, 0, i };

        lockstep_round(&ours, &order);
        lockstep_round(&gloo, &order);
        if (i == 1)
            continue; /* pages that no process has touched yet */
        times_add(&connected, lockstep_most(&ours, CONNECTED));
        times_add(&usable, lockstep_most(&ours, USABLE));
        times_add(&gloo_connected, lockstep_most(&gloo, CONNECTED));
    }
    lockstep_end(&ours);
    lockstep_end(&gloo);
    plain_gloo_store_free(store);
    printf("%2u ranks, %u %s\n", size, form->hosts, form->hosts > 1 ? "hosts" : "host");
    times_line(&connected, "connected");
    times_line(&usable, "and the first barrier passed");
    times_line(&gloo_connected, "Gloo's connectFullMesh");
    printf("  %-34s        %8.1f times as long\n", "",
           times_ms(&gloo_connected, 50) / times_ms(&usable, 50));
    (void)fflush(stdout);
}

int main(int argc, char **argv)
{
    struct hvd_err err = { .text = "" };
    uint64_t rounds = ROUNDS;
    struct load before;

    load_look(&before);
    if (argc > 1)
        lockstep_must(text_parse_u64((struct span){ argv[1], strlen(argv[1]) }, 1, TIMES_MAX,
                                     "the number of rounds", &rounds, &err),
                      argv[1], &err);
    for (size_t i = 0; i < ARRAY_SIZE(forms); i++)
        measure(&forms[i], rounds);
    printf("Other programs used %d %% of the processors meanwhile.\n", load_of_others(&before));
    return 0;
}
