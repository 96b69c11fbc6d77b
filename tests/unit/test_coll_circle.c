/*
 * Groups that their members alone open in a round: in different orders, with several tags, on every
 * layout; members that never come, that leave, or that open the same again.
 */
#include "base/limits.h"
#include "collectives/circle.h"
#include "os/clock.h"
#include "tests/lib/coll_team.h"
#include "tests/lib/fixture.h"

#include <string.h>

static const char *const layouts[] = { "aa",      "aaaa",       "aabb",    "abbbaab",
                                       "abcd",    "gloo aaaaa", "tcp aaa", "ordered aabba",
                                       "aaabbba", "abababab" };

static struct team own;

static void begin(struct test *t)
{
    (void)t;
    own = (struct team){ .size = 0 };
}

static void end(struct test *t)
{
    (void)t;
    team_close(&own);
}
FIXTURE(begin, end)

static int open_ranks(struct team *team, uint32_t rank, const uint32_t *ranks, uint32_t count,
                      uint64_t tag, size_t *ret_group)
{
    const struct coll_ranks list = { ranks, count };

    *ret_group = coll_group_count(team->colls[rank]);
    return coll_open_group(team->colls[rank], &list, tag, &team->err[rank]);
}

/* Opens the group of two ranks, in which order ever they are named. */
static int open_pair(struct team *team, uint32_t rank, uint32_t other, uint64_t tag,
                     size_t *ret_group)
{
    const uint32_t pair[] = { rank < other ? rank : other, rank < other ? other : rank };

    return open_ranks(team, rank, pair, 2, tag, ret_group);
}

/* An allreduce of `count` numbers, all equal to `gives`, whose sum is `right`. */
static int add(struct team *team, uint32_t rank, size_t group, size_t count, int64_t gives,
               int64_t right)
{
    static int64_t numbers[COLL_TEAM_MAX][40000];
    const struct coll_call call = { .kind = COLL_ALLREDUCE,
                                    .group = group,
                                    .type = HVD_INT64,
                                    .in = numbers[rank],
                                    .out = numbers[rank],
                                    .count = count };
    int rc;

    for (size_t i = 0; i < count; i++)
        numbers[rank][i] = gives;
    rc = coll_run(team->colls[rank], &call, &team->err[rank]);
    for (size_t i = 0; i < count && !rc; i++)
        rc = numbers[rank][i] == right ? 0 : 1;
    return rc;
}

static int barrier(struct team *team, uint32_t rank, size_t group)
{
    const struct coll_call call = { .kind = COLL_BARRIER, .group = group };

    return coll_run(team->colls[rank], &call, &team->err[rank]);
}

static void check_team(struct test *t, const struct team *team)
{
    for (uint32_t i = 0; i < team->size; i++) {
        CHECK_TEXT(t, team->err[i].text, "");
        CHECK_OK(t, team->rc[i]);
    }
}

/* Connects this member, and waits at a barrier until all members are connected. Without the barrier
 * a fast member could fail the round while a slow one still connects; the slow one would then get
 * the error code of connecting, and not the code that the test expects. */
static void connect_all(struct team *team, uint32_t rank)
{
    team_act_connect(team, rank);
    if (!team->rc[rank])
        team->rc[rank] = barrier(team, rank, 0);
}

/* ---- orders, tags, kinds --------------------------------------------------------------------- */

/* Each rank opens its groups of two beginning with the next rank, so the ranks open them in a
 * circle; then all pairs add, in one order. */
static void act_circle(struct team *team, uint32_t rank)
{
    size_t groups[COLL_TEAM_MAX] = { 0 };
    int *rc = &team->rc[rank];

    team_act_connect(team, rank);
    for (uint32_t i = 1; i < team->size && !*rc; i++) {
        uint32_t other = (rank + i) % team->size;

        *rc = open_pair(team, rank, other, 1, &groups[other]);
    }
    for (uint32_t low = 0; low < team->size; low++) {
        for (uint32_t high = low + 1; high < team->size && !*rc; high++) {
            if (rank == low || rank == high)
                *rc = add(team, rank, groups[rank == low ? high : low], 3, rank, low + high);
        }
    }
    if (!*rc)
        *rc = barrier(team, rank, 0);
}

TEST_FLAGS(ranks_open_groups_in_any_order, TEST_NO_TORTURE)
{
    for (size_t layout = 0; layout < ARRAY_SIZE(layouts); layout++) {
        CHECK_OK(t, team_open_layout(&own, layouts[layout]));
        team_run(&own, act_circle);
        check_team(t, &own);
        team_close(&own);
    }
}

/* All ranks but the last open two groups, whose tags they name in two orders, use both in turn, and
 * together with the last rank the group of all; the last rank knows of no group. */
static void act_tags(struct team *team, uint32_t rank)
{
    uint32_t ranks[COLL_TEAM_MAX], count = team->size - 1;
    int64_t sum = (int64_t)count * (count - 1) / 2, all = sum + count;
    size_t groups[2] = { 0 };
    int *rc = &team->rc[rank];

    for (uint32_t i = 0; i < count; i++)
        ranks[i] = i;
    team_act_connect(team, rank);
    for (uint32_t i = 0; i < 2 && rank < count && !*rc; i++)
        *rc = open_ranks(team, rank, ranks, count, (i + rank) % 2, &groups[(i + rank) % 2]);
    for (int turn = 0; turn < 4 && !*rc; turn++) {
        size_t many = turn == 3 ? 40000 : (size_t)turn * 700 + 1;

        for (size_t i = 0; i < 2 && rank < count && !*rc; i++)
            *rc = add(team, rank, groups[i], many, rank, sum);
        if (!*rc)
            *rc = add(team, rank, 0, many, rank, all);
    }
}

TEST_FLAGS(a_tag_makes_another_group, TEST_NO_TORTURE)
{
    for (size_t layout = 0; layout < ARRAY_SIZE(layouts); layout++) {
        CHECK_OK(t, team_open_layout(&own, layouts[layout]));
        team_run(&own, act_tags);
        check_team(t, &own);
        team_close(&own);
    }
}

/* ---- a member that is missing ---------------------------------------------------------------- */

/* Rank 1 opens the group with another tag than rank 0, or not at all. */
static void act_missing(struct team *team, uint32_t rank)
{
    size_t group = 0;
    int *rc = &team->rc[rank];

    connect_all(team, rank);
    if (!*rc && rank == 1 && team->way)
        *rc = open_pair(team, rank, 0, 8, &group);
    if (!*rc && rank == 0)
        *rc = open_pair(team, rank, 1, 7, &group);
    if (!*rc)
        *rc = barrier(team, rank, rank == 0 ? group : 0);
}

/* Waits until rank 0 waits for a member of its group. */
static bool await_opening(struct coll_wait *ret_wait)
{
    int64_t until_us = clock_now_us() + COLL_TEAM_LONG_US;

    do {
        coll_wait_look(own.colls[0], ret_wait);
        if (ret_wait->operation && !strcmp(ret_wait->operation, "opening of a group") &&
            ret_wait->missing_count)
            return true;
        sched_yield();
    } while (clock_now_us() < until_us);
    return false;
}

TEST_FLAGS(a_member_that_does_not_come_is_named, TEST_NO_TORTURE)
{
    static const char *const pairs[] = { "aa", "ab", "tcp aa" };

    for (size_t layout = 0; layout < 2 * ARRAY_SIZE(pairs); layout++) {
        struct coll_wait wait;

        CHECK_OK(t, team_open_layout(&own, pairs[layout / 2]));
        own.way = layout % 2;
        team_start(&own, act_missing);
        CHECK(t, await_opening(&wait));
        CHECK_INT(t, wait.missing_count, ==, 1);
        CHECK_INT(t, wait.missing[0], ==, 101);
        coll_cancel(own.colls[0]);
        team_await(&own);
        for (uint32_t i = 0; i < own.size; i++)
            CHECK_CODE(t, own.rc[i], HVD_E_REVOKED);
        team_close(&own);
    }
}

/* ---- failures -------------------------------------------------------------------------------- */

enum { CANCELS, COUNTS, WAYS };

/* Ranks 0 and 1 have a group in which rank 1 does not do what rank 0 does; all others wait. */
static void act_fail(struct team *team, uint32_t rank)
{
    size_t group = 0;
    int *rc = &team->rc[rank];

    connect_all(team, rank);
    if (!*rc && rank < 2)
        *rc = open_pair(team, rank, 1 - rank, 7, &group);
    if (!*rc && rank < 2)
        *rc = add(team, rank, group, 1, 1, 2);
    if (!*rc && rank == 1 && team->way == CANCELS)
        coll_cancel(team->colls[rank]);
    if (!*rc && rank < 2)
        *rc = add(team, rank, group, rank ? 2 : 1, 1, 2);
    if (!*rc)
        *rc = barrier(team, rank, 0);
}

TEST_FLAGS(a_failure_in_a_group_ends_the_round, TEST_NO_TORTURE)
{
    for (size_t layout = 0; layout < ARRAY_SIZE(layouts); layout++) {
        CHECK_OK(t, team_open_layout(&own, layouts[layout]));
        for (int way = 0; way < WAYS; way++) {
            team_part(&own);
            CHECK_OK(t, team_make(&own, (uint64_t)way + 2));
            own.way = way;
            team_run(&own, act_fail);
            for (uint32_t i = 0; i < own.size; i++) {
                CHECK_CODE(t, own.rc[i], way == CANCELS ? HVD_E_REVOKED : HVD_E_MISMATCH);
                if (way == COUNTS)
                    CHECK_HAS(t, own.err[i].text, "allreduce (sum) of 2 int64");
            }
        }
        team_close(&own);
    }
}

/* The first rank has finished, and its process may end; the group of the others goes on. */
static void act_bye(struct team *team, uint32_t rank)
{
    uint32_t others[COLL_TEAM_MAX];
    size_t pair = 0, group = 0;
    int *rc = &team->rc[rank];

    for (uint32_t i = 1; i < team->size; i++)
        others[i - 1] = i;
    team_act_connect(team, rank);
    if (!*rc && rank < 2)
        *rc = open_pair(team, rank, 1 - rank, 7, &pair);
    if (!*rc && rank)
        *rc = open_ranks(team, rank, others, team->size - 1, 7, &group);
    if (!*rc && rank < 2)
        *rc = barrier(team, rank, pair);
    if (!*rc && rank)
        *rc = barrier(team, rank, group);
    if (!*rc && !rank) {
        coll_bye(team->colls[rank]);
        coll_free(team->colls[rank]);
        team->colls[rank] = NULL;
    }
    for (int i = 0; i < 20 && !*rc && rank; i++)
        *rc = add(team, rank, group, 100, 1, team->size - 1);
}

TEST_FLAGS(a_member_that_has_finished_disturbs_no_group, TEST_NO_TORTURE)
{
    for (size_t layout = 1; layout < ARRAY_SIZE(layouts); layout++) {
        CHECK_OK(t, team_open_layout(&own, layouts[layout]));
        team_run(&own, act_bye);
        check_team(t, &own);
        team_close(&own);
    }
}

/* ---- what is refused ------------------------------------------------------------------------- */

static void act_twice(struct team *team, uint32_t rank)
{
    size_t group;
    int *rc = &team->rc[rank];

    connect_all(team, rank);
    for (int i = 0; i < 2 && !*rc; i++)
        *rc = open_pair(team, rank, 1 - rank, 7, &group);
}

TEST_FLAGS(a_group_is_opened_once, TEST_NO_TORTURE)
{
    bool told = false;

    CHECK_OK(t, team_open(&own, "ab", NULL));
    team_run(&own, act_twice);
    for (uint32_t i = 0; i < own.size; i++) {
        CHECK(t, own.rc[i] == HVD_E_EXISTS || own.rc[i] == HVD_E_REVOKED);
        told |= own.rc[i] == HVD_E_EXISTS;
        CHECK_HAS(t, own.err[i].text, "the group of these 2 ranks with tag 7 was opened in this");
    }
    CHECK(t, told);
}

/* Under torture too: what is allocated for an opening is freed with the round. */
TEST(the_number_is_limited)
{
    const uint32_t rank = 0;
    size_t group;
    int rc = 0;

    CHECK_OK(t, team_open(&own, "a", NULL));
    CHECK_OK(t, coll_connect(own.colls[0], 0, &own.err[0]));
    for (uint64_t tag = 0; tag < LIMIT_OPENED; tag++) {
        rc = open_ranks(&own, 0, &rank, 1, tag, &group);
        CHECK_OK(t, rc);
    }
    rc = add(&own, 0, group, 5, 3, 3);
    CHECK_OK(t, rc);
    rc = open_ranks(&own, 0, &rank, 1, LIMIT_OPENED, &group);
    CHECK_CODE(t, rc, HVD_E_LIMIT);
    CHECK_HAS(t, own.err[0].text, "more than LIMIT_OPENED (128) groups were opened in this round");
    CHECK_CODE(t, barrier(&own, 0, 0), HVD_E_REVOKED);
}

/* A group of two on one host and on two, which no member connects: its link, its segment and its
 * meeting end with the round. Not under torture: an allocation of meet's thread may fail when the
 * round has ended already. */
TEST_FLAGS(a_group_may_end_before_it_is_used, TEST_NO_TORTURE)
{
    static const char *const pairs[] = { "aa", "ab" };
    size_t group;

    for (size_t layout = 0; layout < ARRAY_SIZE(pairs); layout++) {
        CHECK_OK(t, team_open_layout(&own, pairs[layout]));
        for (uint32_t i = 0; i < own.size; i++) {
            int rc = open_pair(&own, i, 1 - i, 7, &group);

            CHECK_OK(t, rc);
        }
        team_close(&own);
    }
}
