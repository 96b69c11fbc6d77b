/*
 * Groups that are opened while the round runs: on every layout, several beside each other, closed
 * again; and members that do not open the same, or do not come.
 */
#include "base/limits.h"
#include "tests/lib/coll_team.h"
#include "tests/lib/fixture.h"

#include <string.h>

static const char *const layouts[] = { "a",    "aaaa",       "aabb",    "abbbaab",
                                       "abcd", "gloo aaaaa", "tcp aaa", "ordered aabba" };

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

/* Opens a group whose parts are the ranks with the same rest; this rank works with its own. */
static int open_by_rest(struct team *team, uint32_t rank, uint32_t divisor, bool member,
                        size_t *ret_group)
{
    uint32_t ranks[COLL_TEAM_MAX], count = 0;
    struct coll_opening opening = { .hash = divisor };
    const struct coll_call call = { .kind = COLL_OPEN, .opening = &opening };

    for (uint32_t i = rank % divisor; i < team->size; i += divisor)
        ranks[count++] = i;
    opening.most = (team->size + divisor - 1) / divisor;
    if (member)
        opening.ranks = (struct coll_ranks){ ranks, count };
    *ret_group = coll_group_count(team->colls[rank]);
    return coll_run(team->colls[rank], &call, &team->err[rank]);
}

static int close_group(struct team *team, uint32_t rank, size_t group)
{
    struct coll_opening opening = { .group = group };
    const struct coll_call call = { .kind = COLL_CLOSE, .opening = &opening };

    return coll_run(team->colls[rank], &call, &team->err[rank]);
}

#define COUNT 5000

/* Every kind that a group of this team can make. */
static int use_group(struct team *team, uint32_t rank, size_t group, uint32_t divisor)
{
    static int64_t sums[COLL_TEAM_MAX][COUNT], gathered[COLL_TEAM_MAX][COLL_TEAM_MAX];
    static int64_t sent[COLL_TEAM_MAX][COLL_TEAM_MAX];
    int64_t right = 0;
    uint32_t count = 0, first = rank % divisor;
    struct coll_call call = { .kind = COLL_ALLREDUCE,
                              .group = group,
                              .type = HVD_INT64,
                              .in = sums[rank],
                              .out = sums[rank],
                              .count = COUNT };
    int rc;

    for (uint32_t i = first; i < team->size; i += divisor, count++)
        right += i;
    for (size_t i = 0; i < COUNT; i++)
        sums[rank][i] = rank;
    rc = coll_run(team->colls[rank], &call, &team->err[rank]);
    for (size_t i = 0; i < COUNT && !rc; i++)
        rc = sums[rank][i] == right ? 0 : 1;
    for (uint32_t i = 0; i < COLL_TEAM_MAX; i++)
        sent[rank][i] = rank;
    for (int each = 0; each < 2 && !rc; each++) {
        call = (struct coll_call){ .kind = each ? COLL_ALLTOALL : COLL_ALLGATHER,
                                   .group = group,
                                   .type = HVD_INT64,
                                   .in = sent[rank],
                                   .out = gathered[rank],
                                   .count = 1 };
        memset(gathered[rank], 0xff, sizeof(gathered[rank]));
        rc = coll_run(team->colls[rank], &call, &team->err[rank]);
        for (uint32_t i = 0; i < count && !rc; i++)
            rc = gathered[rank][i] == first + i * divisor ? 0 : 2;
    }
    return rc;
}

static int barrier(struct team *team, uint32_t rank)
{
    return coll_run(team->colls[rank], &(struct coll_call){ .kind = COLL_BARRIER },
                    &team->err[rank]);
}

/* Odd ranks and even ones; then the odd ones of a group in which no other rank is; neighbours. */
static void act_open(struct team *team, uint32_t rank)
{
    size_t halves = 0, odd = 0, thirds = 0;
    int *rc = &team->rc[rank];

    team_act_connect(team, rank);
    if (!*rc)
        *rc = open_by_rest(team, rank, 2, true, &halves);
    if (!*rc)
        *rc = use_group(team, rank, halves, 2);
    if (!*rc)
        *rc = open_by_rest(team, rank, 2, rank % 2, &odd);
    if (!*rc && odd != halves + 1)
        *rc = 3;
    if (!*rc && rank % 2)
        *rc = use_group(team, rank, odd, 2);
    if (!*rc)
        *rc = barrier(team, rank);
    if (!*rc)
        *rc = open_by_rest(team, rank, 3, true, &thirds);
    for (int i = 0; i < 3 && !*rc; i++) {
        *rc = use_group(team, rank, thirds, 3);
        if (!*rc)
            *rc = use_group(team, rank, halves, 2);
    }
    if (!*rc)
        *rc = close_group(team, rank, halves);
    if (!*rc)
        *rc = use_group(team, rank, thirds, 3);
    if (!*rc)
        *rc = barrier(team, rank);
}

TEST_FLAGS(groups_are_opened_and_closed, TEST_NO_TORTURE)
{
    for (size_t layout = 0; layout < ARRAY_SIZE(layouts); layout++) {
        CHECK_OK(t, team_open_layout(&own, layouts[layout]));
        team_run(&own, act_open);
        for (uint32_t i = 0; i < own.size; i++) {
            CHECK_TEXT(t, own.err[i].text, "");
            CHECK_OK(t, own.rc[i]);
        }
        team_close(&own);
    }
}

/* ---- members that do not open the same ---- */

enum { OTHER_RANKS, BARRIER, CLOSES, JOINS, CANCELS, WAYS };

static void act_wrong(struct team *team, uint32_t rank)
{
    size_t group = 0;
    int *rc = &team->rc[rank], way = rank == 1 ? team->way : WAYS;

    team_act_connect(team, rank);
    if (!*rc)
        *rc = open_by_rest(team, rank, 2, true, &group);
    if (*rc)
        return;
    if (way == CANCELS)
        coll_cancel(team->colls[rank]);
    if (way == BARRIER)
        *rc = barrier(team, rank);
    else if (way == CLOSES)
        *rc = close_group(team, rank, group);
    else if (way == JOINS)
        *rc =
            coll_run(team->colls[rank], &(struct coll_call){ .kind = COLL_JOIN }, &team->err[rank]);
    else
        *rc = open_by_rest(team, rank, way == OTHER_RANKS ? 3 : 1, true, &group);
    if (!*rc)
        *rc = barrier(team, rank);
}

TEST_FLAGS(all_open_the_same, TEST_NO_TORTURE)
{
    static const char *const texts[WAYS] = { [OTHER_RANKS] = "with ranks whose checksum is 3",
                                             [BARRIER] = "barrier",
                                             [CLOSES] = "closing of a group with number 1",
                                             [JOINS] = "join" };

    for (size_t layout = 1; layout < ARRAY_SIZE(layouts); layout++) {
        CHECK_OK(t, team_open_layout(&own, layouts[layout]));
        for (int way = 0; way < WAYS; way++) {
            team_part(&own);
            CHECK_OK(t, team_make(&own, (uint64_t)way + 2));
            own.way = way;
            team_run(&own, act_wrong);
            for (uint32_t i = 0; i < own.size; i++) {
                CHECK_CODE(t, own.rc[i], way == CANCELS ? HVD_E_REVOKED : HVD_E_MISMATCH);
                if (!texts[way])
                    continue;
                CHECK_HAS(t, own.err[i].text, texts[way]);
                CHECK_HAS(t, own.err[i].text, "opening of a group, with ranks whose checksum is 1");
            }
        }
        team_close(&own);
    }
}

/* ---- as many as there is room for ---- */

static void act_many(struct team *team, uint32_t rank)
{
    size_t group = 0;
    int *rc = &team->rc[rank];

    team_act_connect(team, rank);
    for (int i = 0; i < LIMIT_OPENED && !*rc; i++) {
        *rc = open_by_rest(team, rank, 2, true, &group);
        if (!*rc && i % 2)
            *rc = close_group(team, rank, group);
    }
    if (!*rc)
        *rc = use_group(team, rank, group - 1, 2);
}

TEST_FLAGS(the_number_is_limited, TEST_NO_TORTURE)
{
    size_t group;

    CHECK_OK(t, team_open(&own, "aab", NULL));
    team_run(&own, act_many);
    for (uint32_t i = 0; i < own.size; i++)
        CHECK_OK(t, own.rc[i]);
    CHECK_CODE(t, open_by_rest(&own, 0, 2, true, &group), HVD_E_LIMIT);
    CHECK_HAS(t, own.err[0].text, "more than 128 groups (LIMIT_OPENED) were opened in this round");
}

/* Under torture too: what is allocated for an opening is freed with the round. */
TEST(a_member_alone_opens_groups)
{
    size_t group;
    int rc;

    CHECK_OK(t, team_open(&own, "a", NULL));
    CHECK_OK(t, coll_connect(own.colls[0], 0, &own.err[0]));
    rc = open_by_rest(&own, 0, 1, true, &group);
    CHECK_OK(t, rc);
    rc = use_group(&own, 0, group, 1);
    CHECK_OK(t, rc);
    rc = close_group(&own, 0, group);
    CHECK_OK(t, rc);
}
