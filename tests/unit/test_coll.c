/*
 * Rounds between engines of one process: how they connect, are cancelled, and are looked at. An
 * engine is one member's part of the collectives. tests/coll/collcheck.c checks the results of
 * operations.
 */
#include "base/mem.h"
#include "collectives/coll_internal.h"
#include "tests/lib/coll_team.h"
#include "tests/lib/fixture.h"
#include "tests/lib/gloo_here.h"
#include "tests/lib/loopback.h"

#include <sched.h>
#include <string.h>

#define LONG_US  COLL_TEAM_LONG_US
#define SHORT_US 300000

/* For each number of members: all on one host, on uneven hosts, each on its own host. */
#define LAYOUTS 3
static const char *const layouts[LAYOUTS][COLL_TEAM_MAX + 1] = {
    {"",  "a", "aa", "aaa", "aaaa", "aaaaa", "aaaaaa", "aaaaaaa", "aaaaaaaa", "aaaaaaaaa"},
    { "", "a", "ab", "aab", "aaab", "aabbb", "aabbcc", "abbcccc", "abbccccc", "aaabbbbcc"},
    { "", "a", "ab", "abc", "abcd", "abcde", "abcdef", "abcdefg", "abcdefgh", "abcdefghi"},
};

static int barrier(struct team *team, uint32_t rank)
{
    const struct coll_call call = { .kind = COLL_BARRIER };

    return coll_run(team->colls[rank], &call, &team->err[rank]);
}

/* ---- what works ---- */

/* Sums an array in place. 0, a code, or 1: the sum is wrong. */
static int try_allreduce(struct team *team, uint32_t rank, size_t count)
{
    int64_t *x = mem_zalloc_array(count, sizeof(*x));
    struct coll_call call;
    int rc;

    if (!x)
        return HVD_E_NOMEM;
    for (size_t i = 0; i < count; i++)
        x[i] = (int64_t)(rank * 1000 + i);
    call = (struct coll_call){
        .kind = COLL_ALLREDUCE, .type = HVD_INT64, .in = x, .out = x, .count = count
    };
    rc = coll_run(team->colls[rank], &call, &team->err[rank]);
    for (size_t i = 0; i < count && !rc; i++) {
        int64_t ranks = team->size * (team->size - 1) / 2;

        if (x[i] != 1000 * ranks + (int64_t)(i * team->size))
            rc = 1;
    }
    mem_free(x);
    return rc;
}

/* Calls each other operation once, with its own buffer; the results are not checked here. */
static int try_others(struct team *team, uint32_t rank, size_t count)
{
    static const enum coll_kind kinds[] = { COLL_ALLGATHER, COLL_REDUCESCATTER, COLL_BROADCAST,
                                            COLL_ALLTOALL,  COLL_BARRIER,       COLL_JOIN };
    float *in = mem_zalloc_array(team->size * count, sizeof(*in));
    float *out = mem_zalloc_array(team->size * count, sizeof(*out));
    int rc = in && out ? 0 : HVD_E_NOMEM;

    for (size_t i = 0; i < ARRAY_SIZE(kinds) && !rc; i++) {
        const struct coll_call call = { .kind = kinds[i],
                                        .type = HVD_FLOAT32,
                                        .root = team->size - 1,
                                        .in = in,
                                        .out = out,
                                        .count = count };

        rc = coll_run(team->colls[rank], &call, &team->err[rank]);
    }
    mem_free(in);
    mem_free(out);
    return rc;
}

static void act_work(struct team *team, uint32_t rank)
{
    static const size_t counts[] = { 0, 1, 100, 3000, 30000, 200000 };

    for (size_t i = 0; i < ARRAY_SIZE(counts) && !team->rc[rank]; i++)
        team->rc[rank] = try_allreduce(team, rank, counts[i]);
    for (size_t i = 1; i < ARRAY_SIZE(counts) && !team->rc[rank]; i++)
        team->rc[rank] = try_others(team, rank, counts[i]);
}

static void act_connect_and_work(struct team *team, uint32_t rank)
{
    team_act_connect(team, rank);
    if (!team->rc[rank])
        act_work(team, rank);
}

/* Reduces three buffers; one is empty. With team->way rank 1 cuts its numbers differently. */
static void act_pieces(struct team *team, uint32_t rank)
{
    int32_t x[30], sums[30];
    size_t first = team->way && rank == 1 ? 11 : 10;
    const struct coll_piece pieces[] = {
        {x,          sums,         first     },
        { x,         sums,         0         },
        { x + first, sums + first, 30 - first},
    };
    const struct coll_call call = {
        .kind = COLL_ALLREDUCE, .type = HVD_INT32, .pieces = pieces, .piece_count = 3
    };

    for (int32_t i = 0; i < 30; i++)
        x[i] = (int32_t)rank + i;
    team_act_connect(team, rank);
    if (!team->rc[rank])
        team->rc[rank] = coll_run(team->colls[rank], &call, &team->err[rank]);
    for (int32_t i = 0; i < 30 && !team->rc[rank]; i++) {
        int32_t ranks = (int32_t)(team->size * (team->size - 1) / 2);

        if (sums[i] != ranks + i * (int32_t)team->size)
            team->rc[rank] = 1;
    }
}

static struct team own;

static void end_case(struct test *t)
{
    (void)t;
    team_close(&own);
}
FIXTURE(NULL, end_case)

TEST_FLAGS(rounds_of_each_size, TEST_NO_TORTURE)
{
    for (uint32_t size = 1; size <= COLL_TEAM_MAX; size++) {
        CHECK_OK(t, team_open(&own, layouts[size % LAYOUTS][size], NULL));
        for (uint64_t round = 2; round < 4; round++) {
            team_run(&own, act_connect_and_work);
            for (uint32_t i = 0; i < size; i++)
                CHECK_OK(t, own.rc[i]);
            team_part(&own);
            CHECK_OK(t, team_make(&own, round));
        }
        team_close(&own);
    }
}

TEST_FLAGS(a_round_on_each_layout, TEST_NO_TORTURE)
{
    struct coll_options options[5] = { { .carrier = gloo_here() ? COLL_BY_GLOO : COLL_BY_BEST } };

    options[1].carrier = COLL_BY_TCP;
    options[2].fixed_order = true;
    for (size_t i = 3; i < 5; i++) {
        options[i].carrier = options[i - 3].carrier;
        options[i].flat = true;
    }
    for (size_t i = 0; i < LAYOUTS * ARRAY_SIZE(options); i++) {
        CHECK_OK(t, team_open(&own, layouts[i % LAYOUTS][6], &options[i / LAYOUTS]));
        team_run(&own, act_connect_and_work);
        for (uint32_t k = 0; k < own.size; k++)
            CHECK_OK(t, own.rc[k]);
        team_close(&own);
    }
}

/* Survivors connect the next round while the members are still in the old one. */
TEST_FLAGS(two_rounds_side_by_side, TEST_NO_TORTURE)
{
    struct coll *older[3] = { NULL };

    CHECK_OK(t, team_open(&own, "aab", NULL));
    team_run(&own, act_connect_and_work);
    for (uint32_t i = 0; i < 3; i++) {
        older[i] = own.colls[i];
        own.colls[i] = NULL;
    }
    CHECK_OK(t, team_make(&own, 5));
    team_run(&own, act_connect_and_work);
    for (uint32_t i = 0; i < 3; i++) {
        struct coll *newer = own.colls[i];

        CHECK_OK(t, own.rc[i]);
        own.colls[i] = older[i];
        older[i] = newer;
    }
    team_run(&own, act_work);
    for (uint32_t i = 0; i < 3; i++) {
        CHECK_OK(t, own.rc[i]);
        CHECK_CODE(t, coll_connect(own.colls[i], LONG_US, NULL), HVD_E_STATE);
    }
    for (uint32_t i = 0; i < 3; i++)
        coll_free(older[i]);
}

/* ---- members that do not come ---- */

/* Ranks 0 and 2 wait for rank 1. true: both say so. A member that is held up for this time says
 * something else, or is said to be missing itself. */
static bool is_named_missing(struct test *t, int64_t timeout_us)
{
    CHECK_OK(t, team_open(&own, "abc", NULL));
    own.away[1] = true;
    own.timeout_us = timeout_us;
    team_run(&own, team_act_connect);
    for (uint32_t i = 0; i < 3; i += 2) {
        CHECK(t, own.rc[i] == HVD_E_TIMEOUT || own.rc[i] == HVD_E_LOST);
        CHECK_CODE(t, barrier(&own, i), HVD_E_REVOKED);
    }
    return strstr(own.err[0].text, "rank 1 (#101 on ") &&
           strstr(own.err[2].text, "rank 1 (#101 on ");
}

TEST_FLAGS(a_missing_member_is_named, TEST_NO_TORTURE)
{
    int64_t timeout_us = SHORT_US;

    while (!is_named_missing(t, timeout_us)) {
        timeout_us *= 2;
        CHECK(t, timeout_us < LONG_US);
        team_close(&own);
    }
}

/* Rank 1 connects when it sees that the other members wait for rank 1. */
static void act_connect_late(struct team *team, uint32_t rank)
{
    struct coll_wait wait = { .number = 0 };

    while (rank == 1 && (wait.missing_count != 1 || wait.missing[0] != 101)) {
        coll_wait_look(team->colls[0], &wait);
        sched_yield();
    }
    team_act_connect(team, rank);
}

TEST_FLAGS(a_late_member_can_be_seen, TEST_NO_TORTURE)
{
    struct coll_wait wait;

    CHECK_OK(t, team_open(&own, "aab", NULL));
    team_run(&own, act_connect_late);
    for (uint32_t i = 0; i < 3; i++) {
        CHECK_OK(t, own.rc[i]);
        coll_wait_look(own.colls[i], &wait);
        CHECK(t, !wait.operation && !wait.missing_count);
    }
}

/* The dead member's socket is closed, so no member waits for the deadline. */
TEST_FLAGS(a_dead_member_is_named_at_once, TEST_NO_TORTURE)
{
    char *contact = NULL;

    CHECK_OK(t, team_open(&own, "aab", NULL));
    contact = mem_strdup(own.peers[1].contact);
    CHECK(t, contact);
    own.away[1] = true;
    coll_free(own.colls[1]);
    own.colls[1] = NULL;
    coll_engine_close(own.engines[1]);
    own.engines[1] = NULL;
    own.peers[1].contact = contact;
    team_run(&own, team_act_connect);
    for (uint32_t i = 0; i < 3; i += 2) {
        CHECK_CODE(t, own.rc[i], HVD_E_LOST); /* HVD_E_TIMEOUT at the deadline */
        CHECK_HAS(t, own.err[i].text, "rank 1 (#101 on ");
    }
    mem_free(contact);
}

TEST_FLAGS(a_member_without_a_contact_cannot_be_met, TEST_NO_TORTURE)
{
    CHECK_OK(t, team_open(&own, "aa", NULL));
    team_part(&own);
    own.peers[1].contact = NULL;
    CHECK_OK(t, team_make(&own, 2));
    own.away[1] = true;
    team_run(&own, team_act_connect);
    CHECK_CODE(t, own.rc[0], HVD_E_LOST);
    CHECK_HAS(t, own.err[0].text,
              "rank 1: the worker has announced no address for data connections");
    team_part(&own);
    own.peers[1].contact = "127.0.0.1:1/nonsense";
    CHECK_OK(t, team_make(&own, 3));
    team_run(&own, team_act_connect);
    CHECK_CODE(t, own.rc[0], HVD_E_INVAL);
    CHECK_HAS(t, own.err[0].text, "\"127.0.0.1:1\" is not the contact of a worker");
}

TEST_FLAGS(a_wrong_secret_is_not_heard, TEST_NO_TORTURE)
{
    char wrong[2][128];

    CHECK_OK(t, team_open(&own, "aa", NULL));
    team_part(&own);
    for (int i = 0; i < 2; i++) { /* it does not matter which of the two members dials */
        size_t length = strlen(own.peers[i].contact);

        CHECK(t, length < sizeof(wrong[i]));
        memcpy(wrong[i], own.peers[i].contact, length + 1);
        wrong[i][length - 1] = wrong[i][length - 1] == '0' ? '1' : '0';
        own.peers[i].contact = wrong[i];
    }
    CHECK_OK(t, team_make(&own, 2));
    own.timeout_us = SHORT_US;
    team_run(&own, team_act_connect);
    CHECK(t, own.rc[0] == HVD_E_TIMEOUT && own.rc[1] == HVD_E_TIMEOUT);
}

/* Rank 0 dials and is refused; rank 1, which refuses strangers, would wait for its peer for ever.
 */
static void act_connect_to_others(struct team *team, uint32_t rank)
{
    team_act_connect(team, rank);
    if (rank == 0)
        coll_cancel(team->colls[1]);
}

/* Members of two rounds that have the same number must not connect. */
TEST_FLAGS(other_members_are_not_met, TEST_NO_TORTURE)
{
    struct coll *odd = NULL;

    CHECK_OK(t, team_open(&own, "aa", NULL));
    own.peers[0].incarnation = 999; /* as rank 1 is told */
    odd = own.colls[1];
    own.colls[1] = NULL;
    {
        const struct coll_roster roster = { .round = 1,
                                            .rank = 1,
                                            .size = 2,
                                            .peers = own.peers,
                                            .secret = coll_team_secret,
                                            .secret_length = sizeof(coll_team_secret) };

        CHECK_OK(t, coll_create(own.engines[1], &roster, &own.colls[1], NULL));
    }
    team_run(&own, act_connect_to_others);
    CHECK_CODE(t, own.rc[0], HVD_E_INVAL);
    CHECK_CODE(t, own.rc[1], HVD_E_REVOKED);
    coll_free(odd);
}

/* Rank 1 has been in round 5; 0 comes late to round 3. */
TEST_FLAGS(a_round_that_is_over_is_turned_away, TEST_NO_TORTURE)
{
    CHECK_OK(t, team_open(&own, "aa", NULL));
    team_part(&own);
    CHECK_OK(t, team_make(&own, 5));
    team_run(&own, team_act_connect);
    CHECK(t, !own.rc[0] && !own.rc[1]);
    team_part(&own);
    CHECK_OK(t, team_make(&own, 3));
    own.away[1] = true;
    team_run(&own, team_act_connect);
    CHECK_CODE(t, own.rc[0], HVD_E_LOST); /* rank 0 is the one that dials */
    CHECK_HAS(t, own.err[0].text, "the other worker has left this round already");
    own.away[1] = false;
    own.away[0] = true;
    own.timeout_us = SHORT_US;
    team_run(&own, team_act_connect);
    CHECK_CODE(t, own.rc[1], HVD_E_TIMEOUT);
}

/* ---- cancelling ---- */

TEST_FLAGS(connecting_can_be_cancelled, TEST_NO_TORTURE)
{
    for (int i = 0; i < 30; i++) {
        CHECK_OK(t, team_open(&own, "aab", NULL));
        own.away[2] = i % 2; /* in the other case the call may be done by then */
        team_start(&own, team_act_connect);
        for (volatile int spin = 0; spin < i * 20000; spin++) {
        }
        for (uint32_t k = 0; k < 3; k++)
            coll_cancel(own.colls[k]);
        team_await(&own);
        for (uint32_t k = 0; k < 3; k++) {
            if (!own.away[k])
                CHECK(t, own.rc[k] == 0 || own.rc[k] == HVD_E_REVOKED || own.rc[k] == HVD_E_LOST);
            CHECK_CODE(t, barrier(&own, k), HVD_E_REVOKED);
        }
        team_close(&own);
    }
}

static void act_loop(struct team *team, uint32_t rank)
{
    while (!team->rc[rank])
        team->rc[rank] = try_allreduce(team, rank, team->round == 1 ? 100 : 500000);
}

/* true: a member of the team has failed, so no member gets further. */
static bool has_failed(const struct team *team)
{
    for (uint32_t i = 0; i < team->size; i++)
        if (coll_has_failed(team->colls[i]))
            return true;
    return false;
}

/* One member is cancelled: its call returns, and also the calls of the members that wait. */
TEST_FLAGS(working_can_be_cancelled, TEST_NO_TORTURE)
{
    struct coll_wait wait;

    CHECK_OK(t, team_open(&own, "aabbb", NULL));
    for (uint64_t round = 1; round <= 2; round++) {
        team_part(&own);
        CHECK_OK(t, team_make(&own, round));
        team_run(&own, team_act_connect);
        team_start(&own, act_loop);
        do {
            sched_yield();
            coll_wait_look(own.colls[2], &wait);
        } while (wait.number < 5 && !has_failed(&own));
        coll_cancel(own.colls[2]);
        team_await(&own);
        for (uint32_t i = 0; i < 5; i++)
            CHECK_CODE(t, own.rc[i], HVD_E_REVOKED);
        CHECK_HAS(t, own.err[2].text, "was revoked");
        CHECK(t, own.err[3].text[0]);
    }
}

/* ---- looking ---- */

/* An operation in which all members wait for rank 0, which looks at their state. */
static void act_looked_at(struct team *team, uint32_t rank)
{
    struct coll_wait wait = { .number = 0 };

    team_act_connect(team, rank);
    if (rank == 0 && !team->rc[0]) {
        while (!has_failed(team) &&
               (wait.missing_count != 1 || wait.missing[0] != 100 || wait.number != 1)) {
            sched_yield();
            coll_wait_look(team->colls[1], &wait);
        }
        team->rc[0] = wait.operation && !strcmp(wait.operation, "barrier") ? 0 : 1;
    }
    if (!team->rc[rank])
        team->rc[rank] = barrier(team, rank);
}

TEST_FLAGS(an_awaited_member_can_be_seen, TEST_NO_TORTURE)
{
    struct coll_wait wait;

    for (size_t i = 0; i < LAYOUTS; i++) {
        CHECK_OK(t, team_open(&own, layouts[i][4], NULL));
        coll_wait_look(own.colls[1], &wait);
        CHECK(t, !wait.operation && !wait.number && !wait.progress && !wait.missing_count);
        team_run(&own, act_looked_at);
        for (uint32_t k = 0; k < own.size; k++)
            CHECK_OK(t, own.rc[k]);
        coll_wait_look(own.colls[1], &wait);
        CHECK(t, !wait.operation && wait.number == 1 && wait.progress && !wait.missing_count);
        team_close(&own);
    }
}

/* ---- the engine ---- */

TEST_FLAGS(impossible_engines_are_refused, TEST_NO_TORTURE)
{
    struct coll_options options = { .host = NULL };
    struct coll_engine *engine = NULL;
    struct hvd_err err = { .text = "" };

    CHECK_CODE(t, coll_engine_open(&options, &engine, &err), HVD_E_INVAL);
    options.host = "localhost";
    CHECK_CODE(t, coll_engine_open(&options, &engine, &err), HVD_E_INVAL);
    options.host = "203.0.113.7";
    CHECK_CODE(t, coll_engine_open(&options, &engine, &err), HVD_E_IO);
    CHECK_HAS(t, err.text, "203.0.113.7");
    CHECK(t, !engine);
    coll_engine_close(NULL);
}

TEST_FLAGS(an_engine_opens_and_closes, TEST_NO_TORTURE)
{
    const struct coll_options options = { .host = loopback_own() };
    struct coll_engine *engine = NULL;
    struct hvd_err err = { .text = "" };

    CHECK_OK(t, coll_engine_open(&options, &engine, &err));
    CHECK_HAS(t, coll_engine_contact(engine), loopback_own());
    coll_engine_close(engine);
}

/* ---- without fusion ---- */

TEST_FLAGS(unfused_buffers_are_operations_of_their_own, TEST_NO_TORTURE)
{
    const struct coll_options options = { .unfused = true };

    for (size_t layout = 0; layout < LAYOUTS; layout++) {
        for (int unfused = 0; unfused < 2; unfused++) {
            CHECK_OK(t, team_open(&own, layouts[layout][3], unfused ? &options : NULL));
            own.way = 0;
            team_run(&own, act_pieces);
            for (uint32_t i = 0; i < own.size; i++) {
                CHECK_OK(t, own.rc[i]);
                CHECK_INT(t, own.colls[i]->groups[0].number, ==, unfused ? 3 : 1);
            }
            team_close(&own);
        }
    }
}

TEST_FLAGS(unfused_buffers_of_other_lengths_do_not_match, TEST_NO_TORTURE)
{
    const struct coll_options options = { .unfused = true };

    for (size_t layout = 0; layout < LAYOUTS; layout++) {
        CHECK_OK(t, team_open(&own, layouts[layout][3], &options));
        own.way = 1;
        team_run(&own, act_pieces);
        own.way = 0;
        for (uint32_t i = 0; i < own.size; i++) {
            CHECK_CODE(t, own.rc[i], HVD_E_MISMATCH);
            CHECK_HAS(t, own.err[i].text, "11");
        }
        team_close(&own);
    }
}

/* ---- trials ---- */

static struct {
    atomic_uint told, chosen, wrong;
} trials_told;

static void on_tried(void *arg, const struct coll_tried *tried)
{
    const struct team *team = arg;

    trials_told.told++;
    trials_told.chosen += tried->chosen;
    if (tried->round != team->round || tried->size != team->size || tried->us <= 0 ||
        tried->bytes != 30000 * sizeof(int64_t) || !tried->algorithm[0])
        trials_told.wrong++;
}

static void act_try_one_size(struct team *team, uint32_t rank)
{
    team_act_connect(team, rank);
    for (int i = 0; i < 4 * TRIAL_RUNS && !team->rc[rank]; i++)
        team->rc[rank] = try_allreduce(team, rank, 30000);
}

/* Rank 0 reports each algorithm once, and the chosen one once more. */
TEST_FLAGS(the_choice_of_an_algorithm_is_told, TEST_NO_TORTURE)
{
    const struct coll_options options = { .tried = on_tried, .arg = &own };

    for (size_t layout = 0; layout < LAYOUTS; layout++) {
        memset(&trials_told, 0, sizeof(trials_told));
        CHECK_OK(t, team_open(&own, layouts[layout][3], &options));
        team_run(&own, act_try_one_size);
        for (uint32_t i = 0; i < own.size; i++)
            CHECK_OK(t, own.rc[i]);
        CHECK_INT(t, trials_told.told, >, 1);
        CHECK_INT(t, trials_told.told, <=, ALGORITHMS_MAX);
        CHECK_INT(t, trials_told.chosen, ==, 1);
        CHECK_INT(t, trials_told.wrong, ==, 0);
        team_close(&own);
    }
}
