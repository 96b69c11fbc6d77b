/*
 * Members of a lane whose operations differ: a member has joined (takes no more part), calls
 * another operation, dies, or is cancelled at any of its calls. An act is the function that each
 * member's thread runs.
 */
#include "base/mem.h"
#include "base/panic.h"
#include "tests/lib/gloo_here.h"
#include "tests/lib/lane_team.h"
#include "tests/lib/test.h"

#include <stdio.h>

/* ---- joining ---- */

struct joining {
    uint32_t joined; /* a bit for each member */
    bool first;      /* the data of the first step travel with the opening */
};

static void expect(struct team_member *member, bool right, const char *what)
{
    if (!right && !member->wrong[0])
        (void)snprintf(member->wrong, sizeof(member->wrong), "member %u of %u: %s", member->index,
                       member->team->size, what);
}

static bool has_joined(const struct team_member *member)
{
    const struct joining *joining = member->team->arg;

    return joining->joined >> member->index & 1;
}

/* Members join in an order other than theirs, some at the same operation. */
static struct fingerprint joined_fingerprint(struct team_member *member)
{
    struct fingerprint fingerprint = team_fingerprint(member, COLL_JOIN, 0, 0, 0);

    fingerprint.last = member->index;
    fingerprint.last_number = 10 + member->index * 3 % 4;
    return fingerprint;
}

static uint32_t last_of_all(const struct team *team)
{
    uint32_t last = 0;

    for (uint32_t i = 1; i < team->size; i++) {
        if (i * 3 % 4 >= last * 3 % 4)
            last = i;
    }
    return last;
}

static int sum_ones(struct team_member *member, int32_t *numbers, enum lane_algorithm way)
{
    const struct reduction how = { HVD_INT32, HVD_SUM, member->team->size, 1, 1 };

    return lane_allreduce(&member->lane, numbers, numbers, 3, &how, way);
}

/* The members that have not joined sum ones, and check the sum and the fingerprint; a joined member
 * gets HVD_DONE when all have joined. */
static void act_sum_of_those_left(struct team_member *member)
{
    const struct joining *joining = member->team->arg;
    bool joined = has_joined(member);
    int32_t numbers[3] = { !joined, !joined, !joined };
    struct fingerprint theirs,
        ours = joined ? joined_fingerprint(member)
                      : team_fingerprint(member, COLL_ALLREDUCE, HVD_INT32, 0, 3);
    bool all = joining->joined == (1u << member->team->size) - 1;
    int32_t left = (int32_t)member->team->size - __builtin_popcount(joining->joined);
    bool first = joining->first && !joined;

    member->rc = lane_open_with(&member->lane, &ours, first ? numbers : NULL,
                                first ? sizeof(numbers) : 0, &theirs);
    expect(member, member->rc == (all ? HVD_DONE : 0), "the lane was not opened as expected");
    if (all) {
        expect(member, theirs.last == last_of_all(member->team), "not the last one");
    } else if (!member->rc) {
        ours.kind = COLL_ALLREDUCE;
        ours.type = HVD_INT32;
        ours.count = 3;
        ours.tag = 0; /* in a join the place of the tag has another number */
        expect(member, fingerprint_same(&ours, &theirs), "theirs is something else");
        expect(member, !(joining->joined >> theirs.rank & 1), "said by one that has joined");
        member->rc = sum_ones(member, numbers, LANE_GATHER);
        for (int i = 0; i < 3; i++)
            expect(member, numbers[i] == left, "a wrong sum");
    }
    member->rc = lane_close(&member->lane, member->rc);
    expect(member, member->rc == (all ? HVD_DONE : 0), "the lane was not closed as expected");
}

static void act_barrier_of_those_left(struct team_member *member)
{
    const struct joining *joining = member->team->arg;
    struct fingerprint theirs, ours = has_joined(member)
                                          ? joined_fingerprint(member)
                                          : team_fingerprint(member, COLL_BARRIER, 0, 0, 0);

    member->rc = lane_open_with(&member->lane, &ours,
                                joining->first && !has_joined(member) ? "" : NULL, 0, &theirs);
    expect(member, member->rc || theirs.kind == COLL_BARRIER, "no barrier");
    if (!member->rc)
        member->rc = lane_barrier(&member->lane);
    member->rc = lane_close(&member->lane, member->rc);
}

/* Each set of members that have not joined, and no member; one operation after the other over the
 * same links. */
TEST_FLAGS(a_joined_rank_learns_the_operation, TEST_NO_TORTURE)
{
    struct team team = { .size = 0 };
    struct joining joining;

    for (uint32_t size = 1; size <= 5; size++) {
        team_open(&team, size);
        for (uint32_t i = 0; i < 2u << size; i++) {
            joining.joined = i / 2;
            joining.first = i % 2;
            team_run(&team, act_sum_of_those_left, &joining);
            CHECK_TEXT(t, team_wrong(&team), NULL);
            team_run(&team, act_barrier_of_those_left, &joining);
            CHECK_TEXT(t, team_wrong(&team), NULL);
        }
        CHECK(t, !fake_net_strayed(team.net));
        team_close(&team);
    }
out:
    team_close(&team);
}

TEST_FLAGS(joining_over_real_links, TEST_NO_TORTURE)
{
    struct team team = { .size = 0 };
    struct joining joining;

    for (uint32_t kind = gloo_here() ? LINK_GLOO : LINK_TCP; kind <= LINK_TCP; kind++) {
        team_open_links(&team, 3, (enum link_kind)kind);
        for (uint32_t i = 0; i < 2u << 3; i++) {
            joining.joined = i / 2;
            joining.first = i % 2;
            team_run(&team, act_sum_of_those_left, &joining);
            CHECK_TEXT(t, team_wrong(&team), NULL);
        }
        team_close(&team);
    }
out:
    team_close(&team);
}

/* ---- meaning something else ---- */

struct odd_one {
    uint32_t who;
    uint32_t joined; /* a bit for each member */
    size_t part;     /* the byte of the fingerprint that differs */
};

static void act_odd_one_out(struct team_member *member)
{
    const struct odd_one *odd = member->team->arg;
    struct fingerprint ours = odd->joined >> member->index & 1
                                  ? team_fingerprint(member, COLL_JOIN, 0, 0, 0)
                                  : team_fingerprint(member, COLL_ALLREDUCE, HVD_INT32, 0, 3);
    int32_t numbers[3] = { 1, 1, 1 };

    if (member->index == odd->who)
        ((uint8_t *)&ours)[odd->part] ^= 64;
    member->rc = team_begin(member, &ours, NULL, 0);
    if (!member->rc)
        member->rc = sum_ones(member, numbers, LANE_RING);
    member->rc = lane_close(&member->lane, member->rc);
}

/* One member's call differs: a member finds the mismatch, and no member gets a wrong result. */
static void check_odd_one(struct test *t, uint32_t size, const struct odd_one *odd)
{
    struct team team = { .size = 0 };
    uint32_t found = 0;

    team_open(&team, size);
    team_run(&team, act_odd_one_out, odd);
    for (uint32_t i = 0; i < size; i++) {
        CHECK(t, team.members[i].rc == HVD_E_MISMATCH || team.members[i].rc == HVD_E_REVOKED);
        found += team.members[i].rc == HVD_E_MISMATCH;
    }
    CHECK(t, found);
    CHECK_INT(t, fake_net_left(team.net), ==, 0);
out:
    team_close(&team);
}

TEST_FLAGS(a_member_with_another_operation_is_found, TEST_NO_TORTURE)
{
    struct odd_one odd = { 0, 0, 0 };

    for (uint32_t size = 2; size <= 5; size++) {
        for (odd.who = 0; odd.who < size; odd.who++) {
            for (odd.joined = 0; odd.joined < 1u << size; odd.joined++) {
                if (odd.joined >> odd.who & 1 || __builtin_popcount(odd.joined) + 2 > (int)size)
                    continue;
                odd.part = (odd.part + 8) % offsetof(struct fingerprint, rank);
                if (odd.part == offsetof(struct fingerprint, kind))
                    odd.part++; /* other kinds count as one difference */
                check_odd_one(t, size, &odd);
                CHECK(t, !t->failed);
            }
        }
    }
out:;
}

/* ---- dying, and being cancelled ---- */

enum { WAYS = LANE_ORDER + 1, ACTS = WAYS + 7 };

static int do_act(struct team_member *member, int act, uint8_t *bytes, uint8_t *room, size_t most)
{
    const struct reduction how = { HVD_FLOAT32, HVD_SUM, member->team->size, 1, 1 };
    uint32_t size = member->team->size;
    uint8_t *in[TEAM_MAX];
    const uint8_t *out[TEAM_MAX];
    size_t lengths[TEAM_MAX], quarters[TEAM_MAX];

    for (uint32_t i = 0; i < size; i++) {
        lengths[i] = most / size / 4 * 4;
        quarters[i] = lengths[i] / 4;
        in[i] = room + i * lengths[i];
        out[i] = bytes + i * lengths[i];
    }
    if (act < WAYS)
        return lane_allreduce(&member->lane, bytes, bytes, most / 4, &how,
                              (enum lane_algorithm)act);
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

static void act_in_trouble(struct team_member *member)
{
    const struct trouble *trouble = member->team->arg;
    uint8_t *bytes = mem_zalloc(trouble->bytes), *room = mem_zalloc(trouble->bytes);
    const struct fingerprint ours = team_fingerprint(member, COLL_ALLREDUCE, HVD_FLOAT32, 0, 1);
    struct fingerprint joined = team_fingerprint(member, COLL_JOIN, 0, 0, 0);
    bool joins = trouble->act == ACTS - 1 && member->index != 1;

    ASSERT(bytes && room);
    joined.number = ours.number;
    member->rc = team_begin(member, joins ? &joined : &ours, NULL, 0);
    if (!member->rc)
        member->rc = do_act(member, trouble->act, bytes, room, trouble->bytes);
    member->rc = lane_close(&member->lane, member->rc);
    mem_free(room); /* the sanitizer finds later accesses */
    mem_free(bytes);
}

/* Lets the fault hit one call of the victim. false: there was no such call any more. */
static bool check_trouble(struct test *t, uint32_t size, const struct trouble *trouble,
                          uint32_t victim, uint64_t call, enum fake_fault fault)
{
    struct team team = { .size = 0 };
    bool faulted = false;

    team_open(&team, size);
    fake_net_plan(team.net, victim, call, fault);
    team_run(&team, act_in_trouble, trouble);
    faulted = fake_net_faulted(team.net);
    for (uint32_t i = 0; i < size; i++) {
        const struct team_member *member = &team.members[i];

        CHECK(t, faulted || !member->rc);
        CHECK(t, !member->rc || member->rc == HVD_E_REVOKED || member->rc == HVD_E_LOST);
        CHECK(t, member->rc != HVD_E_LOST || (fault == FAKE_DIES && member->lost == victim));
    }
    CHECK(t, !faulted || team.members[victim].rc == HVD_E_REVOKED);
    CHECK_INT(t, fake_net_left(team.net), ==, 0);
out:
    team_close(&team);
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

TEST_FLAGS(a_cancel_ends_each_call, TEST_NO_TORTURE)
{
    for (uint32_t size = 2; size <= 5; size++)
        trouble_at_calls(t, size, 400, FAKE_CANCEL_ALL, 1);
}

TEST_FLAGS(a_death_ends_each_call, TEST_NO_TORTURE)
{
    for (uint32_t size = 2; size <= 5; size++)
        trouble_at_calls(t, size, 400, FAKE_DIES, 1);
}

/* While segments are being sent. */
TEST_FLAGS(a_death_in_a_large_transfer_ends_it, TEST_NO_TORTURE)
{
    trouble_at_calls(t, 2, 11 * SEGMENT_BYTES, FAKE_DIES, 7);
}

/* ---- over real connections ---- */

static void act_until_cancelled(struct team_member *member)
{
    for (int i = 0; !member->rc; i++) {
        /* the other members wait for this member, in this or a later call */
        if (member->index == 0 && i == 5) {
            member->traffic.link->ops->cancel(member->traffic.link);
            member->rc = HVD_E_REVOKED;
            return;
        }
        act_in_trouble(member);
    }
}

TEST_FLAGS(cancelling_one_member_ends_all_over_real_links, TEST_NO_TORTURE)
{
    struct trouble trouble = { .bytes = 3 * SEGMENT_BYTES };
    struct team team = { .size = 0 };

    for (int i = 0; i < 2 * (ACTS - 1); i++) {
        trouble.act = i / 2;
        team_open_links(&team, 3, i % 2 || !gloo_here() ? LINK_TCP : LINK_GLOO);
        team_run(&team, act_until_cancelled, &trouble);
        for (uint32_t j = 0; j < team.size; j++)
            CHECK(t, team.members[j].rc == HVD_E_REVOKED || team.members[j].rc == HVD_E_LOST);
        team_close(&team);
    }
out:
    team_close(&team);
}
