/*
 * The algorithms of an allreduce: which come into question, and how one is found out and agreed
 * about.
 */
#include "base/mem.h"
#include "collectives/algorithms.h"
#include "collectives/shm/board.h"
#include "tests/lib/coll_team.h"

#include <string.h>

static int place(struct group *group, const char *hosts)
{
    uint32_t ranks[16], numbers[16], count = (uint32_t)strlen(hosts);

    for (uint32_t i = 0; i < count; i++) {
        ranks[i] = i;
        numbers[i] = (uint32_t)hosts[i];
    }
    return group_init(group, ranks, count, numbers, 0);
}

TEST(every_size_has_an_algorithm_that_fits)
{
    static const char *const layouts[] = {
        "a", "aa", "aaaa", "aaaaaaaaaaaaaaaa", "ab", "aab", "abb"
    };
    struct group group = { .size = 0 };
    struct algorithm algorithms[ALGORITHMS_MAX];

    for (size_t i = 0; i < ARRAY_SIZE(layouts); i++) {
        CHECK_OK(t, place(&group, layouts[i]));
        for (size_t bytes = 0; bytes < (size_t)1 << 40; bytes = bytes * 5 / 3 + 1) {
            size_t count = algorithms_for(&group, bytes, bytes * 2, algorithms);

            CHECK(t, count >= 1 && count <= ALGORITHMS_MAX);
            for (size_t k = 0; k < count && !group_is_apart(&group); k++)
                CHECK(t, algorithms[k].chunk_bytes <= BOARD_STAGE_BYTES);
        }
        group_release(&group);
    }
out:
    group_release(&group);
}

TEST(the_fastest_is_taken_once_all_have_been_tried)
{
    struct trials *trials = mem_zalloc(sizeof(*trials));
    uint32_t choice = 0, runs = 0;
    bool tries = false, due = false;

    CHECK(t, trials != NULL);
    while (!due) {
        choice = trial_choose(trials, 100000, 3, &tries);
        CHECK(t, tries);
        due = trial_note(trials, 100000, 3, choice, choice == 2 ? 50 + runs : 100 + runs);
        CHECK(t, ++runs <= 3 * TRIAL_RUNS);
    }
    CHECK(t, runs == 3 * TRIAL_RUNS);
    CHECK(t, trial_times(trials, 100000)[2] < trial_times(trials, 100000)[0]);
    trial_settle(trials, 100000, 3);
    choice = trial_choose(trials, 100000, 3, &tries);
    CHECK(t, choice == 2 && !tries);
    choice =
        trial_choose(trials, 100000, 2, &tries); /* a size of that class with fewer algorithms */
    CHECK(t, choice == 0 && !tries);
    choice = trial_choose(trials, 1000000, 3, &tries);
    CHECK(t, choice == 0 && tries);
out:
    mem_free(trials);
}

TEST(a_little_faster_is_not_enough)
{
    struct trials *trials = mem_zalloc(sizeof(*trials));
    bool tries;

    CHECK(t, trials != NULL);
    for (uint32_t i = 0; i < 2 * TRIAL_RUNS; i++)
        (void)trial_note(trials, 100000, 2, i % 2, i % 2 ? 95 : 100);
    trial_settle(trials, 100000, 2);
    CHECK(t, trial_choose(trials, 100000, 2, &tries) == 0);
out:
    mem_free(trials);
}

/* ---- in rounds ---- */

#define COUNT 25000 /* float32: several algorithms come into question on every layout */
#define TIMES 40    /* past the trials of all of them */

static int sum_ranks(struct team *team, uint32_t rank, float *numbers, uint32_t givers)
{
    const struct coll_call call = {
        .kind = COLL_ALLREDUCE, .type = HVD_FLOAT32, .in = numbers, .out = numbers, .count = COUNT
    };
    float expected = 0;
    int rc;

    for (uint32_t i = 0; i < givers; i++)
        expected += (float)(i + 1);
    for (size_t i = 0; i < COUNT; i++)
        numbers[i] = (float)(rank + 1);
    rc = coll_run(team->colls[rank], &call, &team->err[rank]);
    for (size_t i = 0; i < COUNT && !rc; i++) {
        if (numbers[i] < expected || numbers[i] > expected)
            rc = HVD_E_CORRUPT;
    }
    return rc;
}

/* The last one joins in the middle of the trials, the one before it a little later. */
static void act(struct team *team, uint32_t rank)
{
    const struct coll_call join = { .kind = COLL_JOIN };
    uint32_t behind = team->size - 1 - rank;
    int times = behind == 0 ? 5 : behind == 1 ? 9 : TIMES;
    float *numbers = mem_zalloc_array(COUNT, sizeof(*numbers));

    team_act_connect(team, rank);
    if (!numbers)
        team->rc[rank] = HVD_E_NOMEM;
    for (int i = 0; i < times && !team->rc[rank]; i++) {
        uint32_t gone = i >= 9 ? 2 : i >= 5;

        team->rc[rank] = sum_ranks(team, rank, numbers, team->size - gone);
    }
    if (!team->rc[rank])
        team->rc[rank] = coll_run(team->colls[rank], &join, &team->err[rank]);
    mem_free(numbers);
}

TEST_FLAGS(members_agree_also_with_those_that_have_joined, TEST_NO_TORTURE)
{
    static const char *const layouts[] = { "aaa", "aab", "abb", "abc", "aabb", "aabbb" };
    struct coll_options options = { .carrier = COLL_BY_TCP };
    struct team team = { .size = 0 };

    for (size_t i = 0; i < 2 * ARRAY_SIZE(layouts); i++) {
        options.fixed_order = i % 2;
        CHECK_OK(t, team_open(&team, layouts[i / 2], &options));
        team_run(&team, act);
        for (uint32_t k = 0; k < team.size; k++)
            CHECK_OK(t, team.rc[k]);
        team_close(&team);
    }
out:
    team_close(&team);
}
