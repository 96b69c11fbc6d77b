/*
 * Members of a lane that do not do the same: who has joined, who means something else, who dies or
 * is cancelled at any of its calls.
 */
#include "base/mem.h"
#include "base/panic.h"
#include "tests/lib/lane_crew.h"
#include "tests/lib/test.h"

#include <stdio.h>
#include <string.h>

#define NO_TORTURE(function) CASE_FLAGS(function, TEST_NO_TORTURE)

/* ---- joining ---- */

struct joining {
    uint32_t joined; /* a bit for each member */
    bool first;      /* the first step goes along */
};

static void expect(struct crew_member *member, bool right, const char *what)
{
    if (!right && !member->wrong[0])
        (void)snprintf(member->wrong, sizeof(member->wrong), "member %u of %u: %s", member->index,
                       member->crew->size, what);
}

static bool has_joined(const struct crew_member *member)
{
    const struct joining *joining = member->crew->arg;

    return joining->joined >> member->index & 1;
}

/* Members join in an order that is not theirs, some at the same operation. */
static struct accord joined_accord(struct crew_member *member)
{
    struct accord accord = crew_accord(member, COLL_JOIN, 0, 0, 0);

    accord.last = member->index;
    accord.last_number = 10 + member->index * 3 % 4;
    return accord;
}

static uint32_t last_of_all(const struct crew *crew)
{
    uint32_t last = 0;

    for (uint32_t i = 1; i < crew->size; i++) {
        if (i * 3 % 4 >= last * 3 % 4)
            last = i;
    }
    return last;
}

static int sum_ones(struct crew_member *member, int32_t *numbers, enum lane_way way)
{
    const struct reduction how = { HVD_INT32, HVD_SUM, member->crew->size, 1, 1 };

    return lane_allreduce(&member->lane, numbers, numbers, 3, &how, way);
}

static void act_sum_of_those_left(struct crew_member *member)
{
    const struct joining *joining = member->crew->arg;
    bool joined = has_joined(member);
    int32_t numbers[3] = { !joined, !joined, !joined };
    struct accord theirs, ours = joined ? joined_accord(member)
                                        : crew_accord(member, COLL_ALLREDUCE, HVD_INT32, 0, 3);
    bool all = joining->joined == (1u << member->crew->size) - 1;
    int32_t left = (int32_t)member->crew->size - __builtin_popcount(joining->joined);
    bool first = joining->first && !joined;

    member->rc = lane_open_with(&member->lane, &ours, first ? numbers : NULL,
                                first ? sizeof(numbers) : 0, &theirs);
    expect(member, member->rc == (all ? HVD_DONE : 0), "it has opened something else");
    if (all) {
        expect(member, theirs.last == last_of_all(member->crew), "not the last one");
    } else if (!member->rc) {
        ours.kind = COLL_ALLREDUCE;
        ours.type = HVD_INT32;
        ours.count = 3;
        expect(member, accord_same(&ours, &theirs), "theirs is something else");
        expect(member, !(joining->joined >> theirs.rank & 1), "said by one that has joined");
        member->rc = sum_ones(member, numbers, LANE_GATHER);
        for (int i = 0; i < 3; i++)
            expect(member, numbers[i] == left, "a wrong sum");
    }
    member->rc = lane_close(&member->lane, member->rc);
    expect(member, member->rc == (all ? HVD_DONE : 0), "it has come to something else");
}

static void act_barrier_of_those_left(struct crew_member *member)
{
    const struct joining *joining = member->crew->arg;
    struct accord theirs, ours = has_joined(member) ? joined_accord(member)
                                                    : crew_accord(member, COLL_BARRIER, 0, 0, 0);

    member->rc = lane_open_with(&member->lane, &ours,
                                joining->first && !has_joined(member) ? "" : NULL, 0, &theirs);
    expect(member, member->rc || theirs.kind == COLL_BARRIER, "no barrier");
    if (!member->rc)
        member->rc = lane_barrier(&member->lane);
    member->rc = lane_close(&member->lane, member->rc);
}

/* Everyone of those that go on alone, and all of them; again and again over the same links. */
static void who_has_joined_learns_what_is_done(struct test *t)
{
    struct crew crew = { .size = 0 };
    struct joining joining;

    for (uint32_t size = 1; size <= 5; size++) {
        crew_open(&crew, size);
        for (uint32_t i = 0; i < 2u << size; i++) {
            joining.joined = i / 2;
            joining.first = i % 2;
            crew_run(&crew, act_sum_of_those_left, &joining);
            CHECK_TEXT(t, crew_wrong(&crew), NULL);
            crew_run(&crew, act_barrier_of_those_left, &joining);
            CHECK_TEXT(t, crew_wrong(&crew), NULL);
        }
        CHECK(t, !fake_net_strayed(crew.net));
        crew_close(&crew);
    }
out:
    crew_close(&crew);
}

static void joining_over_real_links(struct test *t)
{
    struct crew crew = { .size = 0 };
    struct joining joining;

    for (uint32_t kind = LINK_GLOO; kind <= LINK_TCP; kind++) {
        crew_open_links(&crew, 3, (enum link_kind)kind);
        for (uint32_t i = 0; i < 2u << 3; i++) {
            joining.joined = i / 2;
            joining.first = i % 2;
            crew_run(&crew, act_sum_of_those_left, &joining);
            CHECK_TEXT(t, crew_wrong(&crew), NULL);
        }
        crew_close(&crew);
    }
out:
    crew_close(&crew);
}

/* ---- meaning something else ---- */

struct odd_one {
    uint32_t who;
    uint32_t joined; /* a bit for each member */
    size_t part;     /* of the accord */
};

static void act_odd_one_out(struct crew_member *member)
{
    const struct odd_one *odd = member->crew->arg;
    struct accord ours = odd->joined >> member->index & 1
                             ? crew_accord(member, COLL_JOIN, 0, 0, 0)
                             : crew_accord(member, COLL_ALLREDUCE, HVD_INT32, 0, 3);
    int32_t numbers[3] = { 1, 1, 1 };

    if (member->index == odd->who)
        ((uint8_t *)&ours)[odd->part] ^= 64;
    member->rc = crew_begin(member, &ours, NULL, 0);
    if (!member->rc)
        member->rc = sum_ones(member, numbers, LANE_RING);
    member->rc = lane_close(&member->lane, member->rc);
}

/* One finds it, and nobody gets a result that is none. */
static void check_odd_one(struct test *t, uint32_t size, const struct odd_one *odd)
{
    struct crew crew = { .size = 0 };
    uint32_t found = 0;

    crew_open(&crew, size);
    crew_run(&crew, act_odd_one_out, odd);
    for (uint32_t i = 0; i < size; i++) {
        CHECK(t, crew.members[i].rc == HVD_E_MISMATCH || crew.members[i].rc == HVD_E_REVOKED);
        found += crew.members[i].rc == HVD_E_MISMATCH;
    }
    CHECK(t, found);
    CHECK_INT(t, fake_net_left(crew.net), ==, 0);
out:
    crew_close(&crew);
}

static void whoever_means_something_else_is_found(struct test *t)
{
    struct odd_one odd = { 0, 0, 0 };

    for (uint32_t size = 2; size <= 5; size++) {
        for (odd.who = 0; odd.who < size; odd.who++) {
            for (odd.joined = 0; odd.joined < 1u << size; odd.joined++) {
                if (odd.joined >> odd.who & 1 || __builtin_popcount(odd.joined) + 2 > (int)size)
                    continue;
                odd.part = (odd.part + 8) % offsetof(struct accord, rank);
                if (odd.part == offsetof(struct accord, kind))
                    odd.part++; /* another kind would be one, or one that is joined */
                check_odd_one(t, size, &odd);
                CHECK(t, !t->failed);
            }
        }
    }
out:;
}

/* ---- dying, and being cancelled ---- */

enum { WAYS = LANE_ORDER + 1, ACTS = WAYS + 7 };

static int do_act(struct crew_member *member, int act, uint8_t *bytes, uint8_t *room, size_t most)
{
    const struct reduction how = { HVD_FLOAT32, HVD_SUM, member->crew->size, 1, 1 };
    uint32_t size = member->crew->size;
    uint8_t *in[CREW_MAX];
    const uint8_t *out[CREW_MAX];
    size_t lengths[CREW_MAX], quarters[CREW_MAX];

    for (uint32_t i = 0; i < size; i++) {
        lengths[i] = most / size / 4 * 4;
        quarters[i] = lengths[i] / 4;
        in[i] = room + i * lengths[i];
        out[i] = bytes + i * lengths[i];
    }
    if (act < WAYS)
        return lane_allreduce(&member->lane, bytes, bytes, most / 4, &how, (enum lane_way)act);
    switch (act - WAYS) {
    case 0: return lane_reducescatter(&member->lane, bytes, room, quarters, &how, LANE_RING);
    case 1: return lane_reducescatter(&member->lane, bytes, room, quarters, &how, LANE_ORDER);
    case 2: return lane_broadcast(&member->lane, bytes, most, size / 2);
    case 3: return lane_allgather(&member->lane, in, lengths);
    case 4: return lane_alltoall(&member->lane, out, lengths, in, lengths);
    default: return lane_barrier(&member->lane);
    }
}

struct trouble {
    int act;
    size_t bytes;
};

static void act_in_trouble(struct crew_member *member)
{
    const struct trouble *trouble = member->crew->arg;
    uint8_t *bytes = mem_zalloc(trouble->bytes), *room = mem_zalloc(trouble->bytes);
    const struct accord ours = crew_accord(member, COLL_ALLREDUCE, HVD_FLOAT32, 0, 1);
    struct accord joined = crew_accord(member, COLL_JOIN, 0, 0, 0);
    bool joins = trouble->act == ACTS - 1 && member->index != 1;

    ASSERT(bytes && room);
    joined.number = ours.number;
    member->rc = crew_begin(member, joins ? &joined : &ours, NULL, 0);
    if (!member->rc)
        member->rc = do_act(member, trouble->act, bytes, room, trouble->bytes);
    member->rc = lane_close(&member->lane, member->rc);
    mem_free(room); /* who still touches it is found by the sanitizer */
    mem_free(bytes);
}

/* false: it had no trouble any more. */
static bool check_trouble(struct test *t, uint32_t size, const struct trouble *trouble,
                          uint32_t victim, uint64_t call, enum fake_fault fault)
{
    struct crew crew = { .size = 0 };
    bool faulted = false;

    crew_open(&crew, size);
    fake_net_plan(crew.net, victim, call, fault);
    crew_run(&crew, act_in_trouble, trouble);
    faulted = fake_net_faulted(crew.net);
    for (uint32_t i = 0; i < size; i++) {
        const struct crew_member *member = &crew.members[i];

        CHECK(t, faulted || !member->rc);
        CHECK(t, !member->rc || member->rc == HVD_E_REVOKED || member->rc == HVD_E_LOST);
        CHECK(t, member->rc != HVD_E_LOST || (fault == FAKE_DIES && member->lost == victim));
    }
    CHECK(t, !faulted || crew.members[victim].rc == HVD_E_REVOKED);
    CHECK_INT(t, fake_net_left(crew.net), ==, 0);
out:
    crew_close(&crew);
    return faulted && !t->failed;
}

static void trouble_at_calls(struct test *t, uint32_t size, size_t bytes, enum fake_fault fault,
                             uint64_t stride)
{
    struct trouble trouble = { .bytes = bytes };

    for (trouble.act = 0; trouble.act < ACTS; trouble.act++) {
        for (uint32_t victim = 0; victim < size; victim += 2) {
            uint64_t call = 1;

            while (check_trouble(t, size, &trouble, victim, call, fault))
                call += stride;
            if (t->failed)
                return;
        }
    }
}

static void it_is_cancelled_at_each_call(struct test *t)
{
    for (uint32_t size = 2; size <= 5; size++)
        trouble_at_calls(t, size, 400, FAKE_CANCEL_ALL, 1);
}

static void one_dies_at_each_call(struct test *t)
{
    for (uint32_t size = 2; size <= 5; size++)
        trouble_at_calls(t, size, 400, FAKE_DIES, 1);
}

/* With segments under way. */
static void one_dies_in_the_middle_of_much(struct test *t)
{
    trouble_at_calls(t, 2, 11 * SEGMENT_BYTES, FAKE_DIES, 7);
}

/* ---- over real connections ---- */

static void act_until_cancelled(struct crew_member *member)
{
    for (int i = 0; !member->rc; i++) {
        if (member->index == 0 && i == 5) { /* the others wait for it, here or there */
            member->traffic.link->ops->cancel(member->traffic.link);
            member->rc = HVD_E_REVOKED;
            return;
        }
        act_in_trouble(member);
    }
}

static void cancelling_one_ends_all_over_real_links(struct test *t)
{
    struct trouble trouble = { .bytes = 3 * SEGMENT_BYTES };
    struct crew crew = { .size = 0 };

    for (int i = 0; i < 2 * (ACTS - 1); i++) {
        trouble.act = i / 2;
        crew_open_links(&crew, 3, i % 2 ? LINK_TCP : LINK_GLOO);
        crew_run(&crew, act_until_cancelled, &trouble);
        for (uint32_t j = 0; j < crew.size; j++)
            CHECK(t, crew.members[j].rc == HVD_E_REVOKED || crew.members[j].rc == HVD_E_LOST);
        crew_close(&crew);
    }
out:
    crew_close(&crew);
}

TESTS(NO_TORTURE(who_has_joined_learns_what_is_done), NO_TORTURE(joining_over_real_links),
      NO_TORTURE(whoever_means_something_else_is_found), NO_TORTURE(it_is_cancelled_at_each_call),
      NO_TORTURE(one_dies_at_each_call), NO_TORTURE(one_dies_in_the_middle_of_much),
      NO_TORTURE(cancelling_one_ends_all_over_real_links))
