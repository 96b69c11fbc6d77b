/*
 * Rounds between engines of this process: how they are connected, cancelled, and looked at. What
 * the operations come to is for tests/coll/collcheck.c.
 */
#include "base/mem.h"
#include "collectives/coll_inside.h"
#include "os/clock.h"
#include "tests/lib/coll_crew.h"

#include <sched.h>
#include <string.h>

#define NO_TORTURE(function) CASE_FLAGS(function, TEST_NO_TORTURE)
#define LONG_US              COLL_CREW_LONG_US

/* So many members: on one host, on uneven ones, each on its own. */
#define LAYOUTS 3
static const char *const layouts[LAYOUTS][COLL_CREW_MAX + 1] = {
    {"",  "a", "aa", "aaa", "aaaa", "aaaaa", "aaaaaa", "aaaaaaa", "aaaaaaaa", "aaaaaaaaa"},
    { "", "a", "ab", "aab", "aaab", "aabbb", "aabbcc", "abbcccc", "abbccccc", "aaabbbbcc"},
    { "", "a", "ab", "abc", "abcd", "abcde", "abcdef", "abcdefg", "abcdefgh", "abcdefghi"},
};

static int barrier(struct crew *crew, uint32_t rank)
{
    const struct coll_call call = { .kind = COLL_BARRIER };

    return coll_run(crew->colls[rank], &call, &crew->err[rank]);
}

/* ---- what works ---- */

static int try_allreduce(struct crew *crew, uint32_t rank, size_t count)
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
    rc = coll_run(crew->colls[rank], &call, &crew->err[rank]);
    for (size_t i = 0; i < count && !rc; i++) {
        int64_t ranks = crew->size * (crew->size - 1) / 2;

        if (x[i] != 1000 * ranks + (int64_t)(i * crew->size))
            rc = 1;
    }
    mem_free(x);
    return rc;
}

/* One after the other, with a buffer each; how they come out is not looked at here. */
static int try_others(struct crew *crew, uint32_t rank, size_t count)
{
    static const enum coll_kind kinds[] = { COLL_ALLGATHER, COLL_REDUCESCATTER, COLL_BROADCAST,
                                            COLL_ALLTOALL,  COLL_BARRIER,       COLL_JOIN };
    float *in = mem_zalloc_array(crew->size * count, sizeof(*in));
    float *out = mem_zalloc_array(crew->size * count, sizeof(*out));
    int rc = in && out ? 0 : HVD_E_NOMEM;

    for (size_t i = 0; i < ARRAY_SIZE(kinds) && !rc; i++) {
        const struct coll_call call = { .kind = kinds[i],
                                        .type = HVD_FLOAT32,
                                        .root = crew->size - 1,
                                        .in = in,
                                        .out = out,
                                        .count = count };

        rc = coll_run(crew->colls[rank], &call, &crew->err[rank]);
    }
    mem_free(in);
    mem_free(out);
    return rc;
}

static void act_work(struct crew *crew, uint32_t rank)
{
    static const size_t counts[] = { 0, 1, 100, 3000, 30000, 200000 };

    for (size_t i = 0; i < ARRAY_SIZE(counts) && !crew->rc[rank]; i++)
        crew->rc[rank] = try_allreduce(crew, rank, counts[i]);
    for (size_t i = 1; i < ARRAY_SIZE(counts) && !crew->rc[rank]; i++)
        crew->rc[rank] = try_others(crew, rank, counts[i]);
}

static void act_connect_and_work(struct crew *crew, uint32_t rank)
{
    crew_act_connect(crew, rank);
    if (!crew->rc[rank])
        act_work(crew, rank);
}

static void rounds_of_each_size(struct test *t)
{
    struct crew crew = { .size = 0 };

    for (uint32_t size = 1; size <= COLL_CREW_MAX; size++) {
        CHECK_OK(t, crew_open(&crew, layouts[size % LAYOUTS][size], NULL));
        for (uint64_t round = 2; round < 4; round++) {
            crew_run(&crew, act_connect_and_work);
            for (uint32_t i = 0; i < size; i++)
                CHECK_OK(t, crew.rc[i]);
            crew_part(&crew);
            CHECK_OK(t, crew_make(&crew, round));
        }
        crew_close(&crew);
    }
out:
    crew_close(&crew);
}

static void a_round_on_each_layout(struct test *t)
{
    struct coll_options options[5] = { { .carrier = COLL_BY_GLOO } };
    struct crew crew = { .size = 0 };

    options[1].carrier = COLL_BY_TCP;
    options[2].fixed_order = true;
    for (size_t i = 3; i < 5; i++) {
        options[i].carrier = options[i - 3].carrier;
        options[i].flat = true;
    }
    for (size_t i = 0; i < LAYOUTS * ARRAY_SIZE(options); i++) {
        CHECK_OK(t, crew_open(&crew, layouts[i % LAYOUTS][6], &options[i / LAYOUTS]));
        crew_run(&crew, act_connect_and_work);
        for (uint32_t k = 0; k < crew.size; k++)
            CHECK_OK(t, crew.rc[k]);
        crew_close(&crew);
    }
out:
    crew_close(&crew);
}

/* Survivors connect the next round beside the running one. */
static void two_rounds_side_by_side(struct test *t)
{
    struct coll *older[3] = { NULL };
    struct crew crew;

    CHECK_OK(t, crew_open(&crew, "aab", NULL));
    crew_run(&crew, act_connect_and_work);
    for (uint32_t i = 0; i < 3; i++) {
        older[i] = crew.colls[i];
        crew.colls[i] = NULL;
    }
    CHECK_OK(t, crew_make(&crew, 5));
    crew_run(&crew, act_connect_and_work);
    for (uint32_t i = 0; i < 3; i++) {
        struct coll *newer = crew.colls[i];

        CHECK_OK(t, crew.rc[i]);
        crew.colls[i] = older[i];
        older[i] = newer;
    }
    crew_run(&crew, act_work);
    for (uint32_t i = 0; i < 3; i++) {
        CHECK_OK(t, crew.rc[i]);
        CHECK_CODE(t, coll_connect(crew.colls[i], LONG_US, NULL), HVD_E_STATE);
    }
out:
    for (uint32_t i = 0; i < 3; i++)
        coll_free(older[i]);
    crew_close(&crew);
}

/* ---- who does not come ---- */

static void who_does_not_come_is_named(struct test *t)
{
    struct crew crew;

    CHECK_OK(t, crew_open(&crew, "abc", NULL));
    crew.away[1] = true;
    crew.timeout_us = 300000;
    crew_run(&crew, crew_act_connect);
    CHECK(t, crew.rc[0] == HVD_E_TIMEOUT || crew.rc[0] == HVD_E_LOST);
    CHECK(t, crew.rc[2] == HVD_E_TIMEOUT || crew.rc[2] == HVD_E_LOST);
    CHECK_HAS(t, crew.err[0].text, "rank 1 (incarnation 101)");
    CHECK_HAS(t, crew.err[2].text, "rank 1 (incarnation 101)");
    CHECK_CODE(t, barrier(&crew, 0), HVD_E_REVOKED);
out:
    crew_close(&crew);
}

/* Rank 1 comes once it has seen that it is waited for. */
static void act_connect_late(struct crew *crew, uint32_t rank)
{
    struct coll_wait wait = { .number = 0 };

    while (rank == 1 && (wait.missing_count != 1 || wait.missing[0] != 101)) {
        coll_wait_look(crew->colls[0], &wait);
        sched_yield();
    }
    crew_act_connect(crew, rank);
}

static void who_has_not_come_yet_can_be_seen(struct test *t)
{
    struct coll_wait wait;
    struct crew crew;

    CHECK_OK(t, crew_open(&crew, "aab", NULL));
    crew_run(&crew, act_connect_late);
    for (uint32_t i = 0; i < 3; i++) {
        CHECK_OK(t, crew.rc[i]);
        coll_wait_look(crew.colls[i], &wait);
        CHECK(t, !wait.operation && !wait.missing_count);
    }
out:
    crew_close(&crew);
}

/* Its socket is closed: nobody waits for the time to run out. */
static void who_is_dead_is_named_at_once(struct test *t)
{
    int64_t begun_us = clock_now_us();
    char *contact = NULL;
    struct crew crew;

    CHECK_OK(t, crew_open(&crew, "aab", NULL));
    contact = mem_strdup(crew.peers[1].contact);
    CHECK(t, contact);
    crew.away[1] = true;
    coll_free(crew.colls[1]);
    crew.colls[1] = NULL;
    coll_engine_close(crew.engines[1]);
    crew.engines[1] = NULL;
    crew.peers[1].contact = contact;
    crew_run(&crew, crew_act_connect);
    for (uint32_t i = 0; i < 3; i += 2) {
        CHECK_CODE(t, crew.rc[i], HVD_E_LOST);
        CHECK_HAS(t, crew.err[i].text, "rank 1 (incarnation 101)");
    }
    CHECK(t, clock_now_us() - begun_us < LONG_US);
out:
    crew_close(&crew);
    mem_free(contact);
}

static void who_has_no_contact_cannot_be_met(struct test *t)
{
    struct crew crew;

    CHECK_OK(t, crew_open(&crew, "aa", NULL));
    crew_part(&crew);
    crew.peers[1].contact = NULL;
    CHECK_OK(t, crew_make(&crew, 2));
    crew.away[1] = true;
    crew_run(&crew, crew_act_connect);
    CHECK_CODE(t, crew.rc[0], HVD_E_LOST);
    CHECK_HAS(t, crew.err[0].text, "rank 1: it has no address for data");
    crew_part(&crew);
    crew.peers[1].contact = "127.0.0.1:1/nonsense";
    CHECK_OK(t, crew_make(&crew, 3));
    crew_run(&crew, crew_act_connect);
    CHECK_CODE(t, crew.rc[0], HVD_E_INVAL);
    CHECK_HAS(t, crew.err[0].text, "\"127.0.0.1:1\" is no contact");
out:
    crew_close(&crew);
}

static void a_wrong_secret_is_not_heard(struct test *t)
{
    char wrong[2][128];
    struct crew crew;

    CHECK_OK(t, crew_open(&crew, "aa", NULL));
    crew_part(&crew);
    for (int i = 0; i < 2; i++) { /* who of the two dials does not matter */
        size_t length = strlen(crew.peers[i].contact);

        CHECK(t, length < sizeof(wrong[i]));
        memcpy(wrong[i], crew.peers[i].contact, length + 1);
        wrong[i][length - 1] = wrong[i][length - 1] == '0' ? '1' : '0';
        crew.peers[i].contact = wrong[i];
    }
    CHECK_OK(t, crew_make(&crew, 2));
    crew.timeout_us = 300000;
    crew_run(&crew, crew_act_connect);
    CHECK(t, crew.rc[0] == HVD_E_TIMEOUT && crew.rc[1] == HVD_E_TIMEOUT);
out:
    crew_close(&crew);
}

/* Members that mean another round by its number do not meet. */
static void other_members_are_not_met(struct test *t)
{
    struct coll *odd = NULL;
    struct crew crew;

    CHECK_OK(t, crew_open(&crew, "aa", NULL));
    crew.peers[0].incarnation = 999; /* as rank 1 is told */
    odd = crew.colls[1];
    crew.colls[1] = NULL;
    {
        const struct coll_roster roster = { .round = 1, .rank = 1, .size = 2, .peers = crew.peers };

        CHECK_OK(t, coll_create(crew.engines[1], &roster, &crew.colls[1], NULL));
    }
    crew.timeout_us = 300000;
    crew_run(&crew, crew_act_connect);
    CHECK(t, crew.rc[0] && crew.rc[1]);
    CHECK(t, crew.rc[0] == HVD_E_INVAL || crew.rc[1] == HVD_E_INVAL);
out:
    coll_free(odd);
    crew_close(&crew);
}

/* Rank 1 has been in round 5; 0 comes late to round 3. */
static void a_round_that_is_over_is_turned_away(struct test *t)
{
    struct crew crew;

    CHECK_OK(t, crew_open(&crew, "aa", NULL));
    crew_part(&crew);
    CHECK_OK(t, crew_make(&crew, 5));
    crew_run(&crew, crew_act_connect);
    CHECK(t, !crew.rc[0] && !crew.rc[1]);
    crew_part(&crew);
    CHECK_OK(t, crew_make(&crew, 3));
    crew.timeout_us = 300000;
    crew.away[1] = true;
    crew_run(&crew, crew_act_connect);
    CHECK(t, crew.rc[0] == HVD_E_LOST || crew.rc[0] == HVD_E_TIMEOUT);
    crew.away[1] = false;
    crew.away[0] = true;
    crew_run(&crew, crew_act_connect);
    CHECK(t, crew.rc[1] == HVD_E_LOST || crew.rc[1] == HVD_E_TIMEOUT);
    CHECK_HAS(t, (crew.rc[0] == HVD_E_LOST ? crew.err[0] : crew.err[1]).text,
              "that round is over here");
out:
    crew_close(&crew);
}

/* ---- cancelling ---- */

static void connecting_can_be_cancelled(struct test *t)
{
    struct crew crew;

    for (int i = 0; i < 30; i++) {
        CHECK_OK(t, crew_open(&crew, "aab", NULL));
        crew.away[2] = i % 2; /* else it may be done by then */
        crew_start(&crew, crew_act_connect);
        for (volatile int spin = 0; spin < i * 20000; spin++) {
        }
        for (uint32_t k = 0; k < 3; k++)
            coll_cancel(crew.colls[k]);
        crew_await(&crew);
        for (uint32_t k = 0; k < 3; k++) {
            if (!crew.away[k])
                CHECK(t,
                      crew.rc[k] == 0 || crew.rc[k] == HVD_E_REVOKED || crew.rc[k] == HVD_E_LOST);
            CHECK_CODE(t, barrier(&crew, k), HVD_E_REVOKED);
        }
        crew_close(&crew);
    }
out:
    crew_close(&crew);
}

static void act_loop(struct crew *crew, uint32_t rank)
{
    while (!crew->rc[rank])
        crew->rc[rank] = try_allreduce(crew, rank, crew->round == 1 ? 100 : 500000);
}

/* Then nobody comes any further. */
static bool has_failed(const struct crew *crew)
{
    for (uint32_t i = 0; i < crew->size; i++)
        if (coll_has_failed(crew->colls[i]))
            return true;
    return false;
}

/* One is cancelled: it returns, and so do those that wait for it. */
static void working_can_be_cancelled(struct test *t)
{
    struct coll_wait wait;
    struct crew crew;

    CHECK_OK(t, crew_open(&crew, "aabbb", NULL));
    for (uint64_t round = 1; round <= 2; round++) {
        crew_part(&crew);
        CHECK_OK(t, crew_make(&crew, round));
        crew_run(&crew, crew_act_connect);
        crew_start(&crew, act_loop);
        do {
            sched_yield();
            coll_wait_look(crew.colls[2], &wait);
        } while (wait.number < 5 && !has_failed(&crew));
        coll_cancel(crew.colls[2]);
        crew_await(&crew);
        for (uint32_t i = 0; i < 5; i++)
            CHECK_CODE(t, crew.rc[i], HVD_E_REVOKED);
        CHECK_HAS(t, crew.err[2].text, "was revoked");
        CHECK(t, crew.err[3].text[0]);
    }
out:
    crew_close(&crew);
}

/* ---- looking ---- */

/* An operation in which everybody waits for rank 0, which looks on. */
static void act_looked_at(struct crew *crew, uint32_t rank)
{
    struct coll_wait wait = { .number = 0 };

    crew_act_connect(crew, rank);
    if (rank == 0 && !crew->rc[0]) {
        while (!has_failed(crew) &&
               (wait.missing_count != 1 || wait.missing[0] != 100 || wait.number != 1)) {
            sched_yield();
            coll_wait_look(crew->colls[1], &wait);
        }
        crew->rc[0] = wait.operation && !strcmp(wait.operation, "barrier") ? 0 : 1;
    }
    if (!crew->rc[rank])
        crew->rc[rank] = barrier(crew, rank);
}

static void who_is_waited_for_can_be_seen(struct test *t)
{
    struct crew crew = { .size = 0 };
    struct coll_wait wait;

    for (size_t i = 0; i < LAYOUTS; i++) {
        CHECK_OK(t, crew_open(&crew, layouts[i][4], NULL));
        coll_wait_look(crew.colls[1], &wait);
        CHECK(t, !wait.operation && !wait.number && !wait.progress && !wait.missing_count);
        crew_run(&crew, act_looked_at);
        for (uint32_t k = 0; k < crew.size; k++)
            CHECK_OK(t, crew.rc[k]);
        coll_wait_look(crew.colls[1], &wait);
        CHECK(t, !wait.operation && wait.number == 1 && wait.progress && !wait.missing_count);
        crew_close(&crew);
    }
out:
    crew_close(&crew);
}

/* ---- the engine ---- */

static void engines_that_cannot_be(struct test *t)
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
out:;
}

static void an_engine_opens_and_closes(struct test *t)
{
    const struct coll_options options = { .host = "127.0.0.1" };
    struct coll_engine *engine = NULL;
    struct hvd_err err = { .text = "" };

    CHECK_OK(t, coll_engine_open(&options, &engine, &err));
    CHECK(t, !strncmp(coll_engine_contact(engine), "127.0.0.1:", 10));
out:
    coll_engine_close(engine);
}

TESTS(NO_TORTURE(rounds_of_each_size), NO_TORTURE(a_round_on_each_layout),
      NO_TORTURE(two_rounds_side_by_side), NO_TORTURE(who_does_not_come_is_named),
      NO_TORTURE(who_has_not_come_yet_can_be_seen), NO_TORTURE(who_is_dead_is_named_at_once),
      NO_TORTURE(who_has_no_contact_cannot_be_met), NO_TORTURE(a_wrong_secret_is_not_heard),
      NO_TORTURE(other_members_are_not_met), NO_TORTURE(a_round_that_is_over_is_turned_away),
      NO_TORTURE(connecting_can_be_cancelled), NO_TORTURE(working_can_be_cancelled),
      NO_TORTURE(who_is_waited_for_can_be_seen), NO_TORTURE(engines_that_cannot_be),
      NO_TORTURE(an_engine_opens_and_closes))
