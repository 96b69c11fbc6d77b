/*
 * Rounds over Gloo, between engines of this process: each member is a thread with one of its own.
 */
#include "base/mem.h"
#include "collectives/coll.h"
#include "os/clock.h"
#include "tests/lib/test.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define NO_TORTURE(function) CASE_FLAGS(function, TEST_NO_TORTURE)
#define CREW_MAX             9
#define LONG_US              (30 * INT64_C(1000000)) /* nothing here takes that long */

struct crew {
    uint32_t size;
    uint64_t round;
    struct coll_engine *engines[CREW_MAX];
    struct coll_peer peers[CREW_MAX];
    struct coll *colls[CREW_MAX];
    int rc[CREW_MAX];
    struct hvd_err err[CREW_MAX];
    int64_t timeout_us;
    bool away[CREW_MAX]; /* does not act */
    void (*act)(struct crew *crew, uint32_t rank);
};

struct seat {
    struct crew *crew;
    uint32_t rank;
    pthread_t thread;
};

static int crew_make(struct crew *crew, uint64_t round)
{
    crew->round = round;
    for (uint32_t i = 0; i < crew->size; i++) {
        const struct coll_roster roster = { round, i, crew->size, crew->peers };
        int rc = coll_create(crew->engines[i], &roster, &crew->colls[i], &crew->err[i]);

        if (rc)
            return rc;
    }
    return 0;
}

static void crew_part(struct crew *crew)
{
    for (uint32_t i = 0; i < crew->size; i++) {
        coll_free(crew->colls[i]);
        crew->colls[i] = NULL;
    }
}

static int crew_open(struct crew *crew, uint32_t size)
{
    memset(crew, 0, sizeof(*crew));
    crew->timeout_us = LONG_US;
    crew->size = size;
    for (uint32_t i = 0; i < size; i++) {
        int rc = coll_engine_open("127.0.0.1", &crew->engines[i], &crew->err[i]);

        if (rc)
            return rc;
        crew->peers[i].incarnation = 100 + i;
        crew->peers[i].host = "a";
        crew->peers[i].contact = coll_engine_contact(crew->engines[i]);
    }
    return crew_make(crew, 1);
}

static void crew_close(struct crew *crew)
{
    crew_part(crew);
    for (uint32_t i = 0; i < crew->size; i++)
        coll_engine_close(crew->engines[i]);
}

static void *play(void *arg)
{
    struct seat *seat = arg;

    seat->crew->act(seat->crew, seat->rank);
    return NULL;
}

static void crew_start(struct crew *crew, struct seat *seats,
                       void (*act)(struct crew *crew, uint32_t rank))
{
    crew->act = act;
    for (uint32_t i = 0; i < crew->size; i++) {
        seats[i] = (struct seat){ .crew = crew, .rank = i };
        if (!crew->away[i] && pthread_create(&seats[i].thread, NULL, play, &seats[i]))
            abort();
    }
}

static void crew_await(struct crew *crew, struct seat *seats)
{
    for (uint32_t i = 0; i < crew->size; i++) {
        if (!crew->away[i])
            pthread_join(seats[i].thread, NULL);
    }
}

static void crew_run(struct crew *crew, void (*act)(struct crew *crew, uint32_t rank))
{
    struct seat seats[CREW_MAX];

    crew_start(crew, seats, act);
    crew_await(crew, seats);
}

static void act_connect(struct crew *crew, uint32_t rank)
{
    crew->rc[rank] = coll_connect(crew->colls[rank], crew->timeout_us, &crew->err[rank]);
}

/* ---- what works ---- */

static int try_allreduce(struct crew *crew, uint32_t rank, size_t count)
{
    int64_t *x = mem_zalloc_array(count, sizeof(*x));
    int rc;

    if (!x)
        return HVD_E_NOMEM;
    for (size_t i = 0; i < count; i++)
        x[i] = (int64_t)(rank * 1000 + i);
    rc = coll_allreduce(crew->colls[rank], x, x, count, HVD_INT64, HVD_SUM, &crew->err[rank]);
    for (size_t i = 0; i < count && !rc; i++) {
        int64_t ranks = crew->size * (crew->size - 1) / 2;

        if (x[i] != 1000 * ranks + (int64_t)(i * crew->size))
            rc = 1;
    }
    mem_free(x);
    return rc;
}

static int try_others(struct crew *crew, uint32_t rank, size_t count)
{
    struct coll *coll = crew->colls[rank];
    uint32_t *all = mem_zalloc_array(crew->size * count, sizeof(*all)), root = crew->size - 1;
    int rc = all ? 0 : HVD_E_NOMEM;

    for (size_t i = 0; i < count && !rc; i++)
        all[rank * count + i] = rank;
    if (!rc)
        rc = coll_allgather(coll, all + rank * count, count, all, NULL, HVD_INT32, NULL);
    for (uint32_t i = 0; i < crew->size && !rc; i++)
        rc = all[(i + 1) * count - 1] == i ? 0 : 1;
    if (!rc && rank == root)
        all[count - 1] = 4711;
    if (!rc)
        rc = coll_broadcast(coll, all, count, HVD_INT32, root, NULL);
    if (!rc)
        rc = all[count - 1] == 4711 ? coll_barrier(coll, NULL) : 1;
    mem_free(all);
    return rc;
}

static void act_work(struct crew *crew, uint32_t rank)
{
    static const size_t counts[] = { 0, 1, 100, 3000, 30000, 400000 };

    for (size_t i = 0; i < ARRAY_SIZE(counts) && !crew->rc[rank]; i++)
        crew->rc[rank] = try_allreduce(crew, rank, counts[i]);
    for (size_t i = 1; i < ARRAY_SIZE(counts) && !crew->rc[rank]; i++)
        crew->rc[rank] = try_others(crew, rank, counts[i]);
}

static void act_connect_and_work(struct crew *crew, uint32_t rank)
{
    act_connect(crew, rank);
    if (!crew->rc[rank])
        act_work(crew, rank);
}

static void rounds_of_each_size(struct test *t)
{
    struct crew crew = { .size = 0 };

    for (uint32_t size = 1; size <= CREW_MAX; size++) {
        CHECK_OK(t, crew_open(&crew, size));
        for (uint64_t round = 2; round < 4; round++) {
            crew_run(&crew, act_connect_and_work);
            for (uint32_t i = 0; i < size; i++)
                CHECK_OK(t, crew.rc[i]);
            crew_part(&crew);
            CHECK_OK(t, crew_make(&crew, round));
        }
        crew_close(&crew);
        crew.size = 0;
    }
out:
    crew_close(&crew);
}

/* Survivors connect the next round beside the running one. */
static void two_rounds_side_by_side(struct test *t)
{
    struct coll *older[3] = { NULL };
    struct crew crew;

    CHECK_OK(t, crew_open(&crew, 3));
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

    CHECK_OK(t, crew_open(&crew, 3));
    crew.away[1] = true;
    crew.timeout_us = 300000;
    crew_run(&crew, act_connect);
    CHECK(t, crew.rc[0] == HVD_E_TIMEOUT || crew.rc[0] == HVD_E_LOST);
    CHECK(t, crew.rc[2] == HVD_E_TIMEOUT || crew.rc[2] == HVD_E_LOST);
    CHECK_HAS(t, crew.err[0].text, "rank 1 (incarnation 101)");
    CHECK_HAS(t, crew.err[2].text, "rank 1 (incarnation 101)");
    CHECK_CODE(t, coll_barrier(crew.colls[0], &crew.err[0]), HVD_E_REVOKED);
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
    act_connect(crew, rank);
}

static void who_has_not_come_yet_can_be_seen(struct test *t)
{
    struct coll_wait wait;
    struct crew crew;

    CHECK_OK(t, crew_open(&crew, 3));
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

    CHECK_OK(t, crew_open(&crew, 3));
    contact = mem_strdup(crew.peers[1].contact);
    CHECK(t, contact);
    crew.away[1] = true;
    coll_free(crew.colls[1]);
    crew.colls[1] = NULL;
    coll_engine_close(crew.engines[1]);
    crew.engines[1] = NULL;
    crew.peers[1].contact = contact;
    crew_run(&crew, act_connect);
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

    CHECK_OK(t, crew_open(&crew, 2));
    crew_part(&crew);
    crew.peers[1].contact = NULL;
    CHECK_OK(t, crew_make(&crew, 2));
    crew.away[1] = true;
    crew_run(&crew, act_connect);
    CHECK_CODE(t, crew.rc[0], HVD_E_LOST);
    CHECK_HAS(t, crew.err[0].text, "rank 1: it has no address for data");
    crew_part(&crew);
    crew.peers[1].contact = "127.0.0.1:1/nonsense";
    CHECK_OK(t, crew_make(&crew, 3));
    crew_run(&crew, act_connect);
    CHECK_CODE(t, crew.rc[0], HVD_E_INVAL);
    CHECK_HAS(t, crew.err[0].text, "\"127.0.0.1:1\" is no contact");
out:
    crew_close(&crew);
}

static void a_wrong_secret_is_not_heard(struct test *t)
{
    char wrong[2][128];
    struct crew crew;

    CHECK_OK(t, crew_open(&crew, 2));
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
    crew_run(&crew, act_connect);
    CHECK(t, crew.rc[0] == HVD_E_TIMEOUT && crew.rc[1] == HVD_E_TIMEOUT);
out:
    crew_close(&crew);
}

/* Members that mean another round by its number do not meet. */
static void other_members_are_not_met(struct test *t)
{
    struct coll *odd = NULL;
    struct crew crew;

    CHECK_OK(t, crew_open(&crew, 2));
    crew.peers[0].incarnation = 999; /* as rank 1 is told */
    odd = crew.colls[1];
    crew.colls[1] = NULL;
    {
        const struct coll_roster roster = { 1, 1, 2, crew.peers };

        CHECK_OK(t, coll_create(crew.engines[1], &roster, &crew.colls[1], NULL));
    }
    crew.timeout_us = 300000;
    crew_run(&crew, act_connect);
    CHECK(t, crew.rc[0] && crew.rc[1]);
    CHECK(t, crew.rc[0] == HVD_E_LOST || crew.rc[1] == HVD_E_LOST);
out:
    coll_free(odd);
    crew_close(&crew);
}

/* Rank 1 has been in round 5; 0 comes late to round 3. */
static void a_round_that_is_over_is_turned_away(struct test *t)
{
    struct crew crew;

    CHECK_OK(t, crew_open(&crew, 2));
    crew_part(&crew);
    CHECK_OK(t, crew_make(&crew, 5));
    crew_run(&crew, act_connect);
    CHECK(t, !crew.rc[0] && !crew.rc[1]);
    crew_part(&crew);
    CHECK_OK(t, crew_make(&crew, 3));
    crew.timeout_us = 300000;
    crew.away[1] = true;
    crew_run(&crew, act_connect);
    CHECK(t, crew.rc[0] == HVD_E_LOST || crew.rc[0] == HVD_E_TIMEOUT);
    crew.away[1] = false;
    crew.away[0] = true;
    crew_run(&crew, act_connect);
    CHECK(t, crew.rc[1] == HVD_E_LOST || crew.rc[1] == HVD_E_TIMEOUT);
    CHECK_HAS(t, (crew.rc[0] == HVD_E_LOST ? crew.err[0] : crew.err[1]).text,
              "that round is over here");
out:
    crew_close(&crew);
}

/* ---- cancelling ---- */

static void connecting_can_be_cancelled(struct test *t)
{
    struct seat seats[CREW_MAX];
    struct crew crew;

    for (int i = 0; i < 30; i++) {
        CHECK_OK(t, crew_open(&crew, 3));
        crew.away[2] = i % 2; /* else it may be done by then */
        crew_start(&crew, seats, act_connect);
        for (volatile int spin = 0; spin < i * 20000; spin++) {
        }
        for (uint32_t k = 0; k < 3; k++)
            coll_cancel(crew.colls[k]);
        crew_await(&crew, seats);
        for (uint32_t k = 0; k < 3; k++) {
            if (!crew.away[k])
                CHECK(t,
                      crew.rc[k] == 0 || crew.rc[k] == HVD_E_REVOKED || crew.rc[k] == HVD_E_LOST);
            CHECK_CODE(t, coll_barrier(crew.colls[k], &crew.err[k]), HVD_E_REVOKED);
        }
        crew_close(&crew);
        crew.size = 0;
    }
out:
    crew_close(&crew);
}

static void act_loop(struct crew *crew, uint32_t rank)
{
    while (!crew->rc[rank])
        crew->rc[rank] = try_allreduce(crew, rank, crew->round == 1 ? 100 : 500000);
}

/* One is cancelled: it returns, and so do those that wait for it. */
static void working_can_be_cancelled(struct test *t)
{
    struct seat seats[CREW_MAX];
    struct coll_wait wait;
    struct crew crew;

    CHECK_OK(t, crew_open(&crew, 5));
    for (uint64_t round = 1; round <= 2; round++) {
        crew_part(&crew);
        CHECK_OK(t, crew_make(&crew, round));
        crew_run(&crew, act_connect);
        crew_start(&crew, seats, act_loop);
        do
            coll_wait_look(crew.colls[2], &wait);
        while (wait.number < 5);
        coll_cancel(crew.colls[2]);
        crew_await(&crew, seats);
        for (uint32_t i = 0; i < 5; i++)
            CHECK_CODE(t, crew.rc[i], HVD_E_REVOKED);
        CHECK_HAS(t, crew.err[2].text, "was revoked");
        CHECK_HAS(t, crew.err[3].text, "rank ");
    }
out:
    crew_close(&crew);
}

/* ---- mismatches ---- */

static void act_mismatch(struct crew *crew, uint32_t rank)
{
    struct coll *coll = crew->colls[rank];
    struct hvd_err *err = &crew->err[rank];
    bool odd = rank == 1;
    int32_t x[2000] = { 0 };
    int *rc = &crew->rc[rank];

    act_connect(crew, rank);
    if (*rc)
        return;
    switch (crew->round) {
    case 1: *rc = coll_allreduce(coll, x, x, odd ? 2000 : 1000, HVD_INT32, HVD_SUM, err); break;
    case 2: *rc = coll_allreduce(coll, x, x, 10, odd ? HVD_INT32 : HVD_FLOAT32, 0, err); break;
    case 3: *rc = coll_allreduce(coll, x, x, 10, HVD_INT32, odd ? HVD_MIN : HVD_MAX, err); break;
    case 4: *rc = coll_broadcast(coll, x, 10, HVD_INT32, odd ? 1 : 0, err); break;
    case 5: *rc = odd ? coll_barrier(coll, err) : coll_broadcast(coll, x, 9, 0, 1, err); break;
    case 6: *rc = coll_allgather(coll, x, odd ? 2 : 1, x + 100, NULL, HVD_INT32, err); break;
    default: /* once too often on one */
        *rc = odd ? coll_barrier(coll, err) : 0;
        if (!*rc)
            *rc = coll_allreduce(coll, x, x, 2000, HVD_INT32, HVD_SUM, err);
    }
    if (!*rc) /* it has all that it needs of this one, and learns it in the next */
        *rc = coll_barrier(coll, err);
}

static void a_mismatch_is_named_on_all(struct test *t)
{
    struct crew crew = { .size = 0 };

    for (uint32_t size = 2; size <= 6; size += 2) {
        CHECK_OK(t, crew_open(&crew, size));
        for (uint64_t round = 1; round <= 7; round++) {
            crew_part(&crew);
            CHECK_OK(t, crew_make(&crew, round));
            crew_run(&crew, act_mismatch);
            for (uint32_t i = 0; i < size; i++) {
                CHECK_CODE(t, crew.rc[i], HVD_E_MISMATCH);
                CHECK_HAS(t, crew.err[i].text, "on rank 1 operation 1 is ");
                CHECK_CODE(t, coll_barrier(crew.colls[i], &crew.err[i]), HVD_E_REVOKED);
            }
        }
        crew_close(&crew);
        crew.size = 0;
    }
out:
    crew_close(&crew);
}

/* ---- the engine ---- */

static void engines_that_cannot_be(struct test *t)
{
    struct coll_engine *engine = NULL;
    struct hvd_err err = { .text = "" };

    CHECK_CODE(t, coll_engine_open(NULL, &engine, &err), HVD_E_INVAL);
    CHECK_CODE(t, coll_engine_open("localhost", &engine, &err), HVD_E_INVAL);
    CHECK_CODE(t, coll_engine_open("203.0.113.7", &engine, &err), HVD_E_IO);
    CHECK_HAS(t, err.text, "203.0.113.7");
    CHECK(t, !engine);
    coll_engine_close(NULL);
out:;
}

static void an_engine_opens_and_closes(struct test *t)
{
    struct coll_engine *engine = NULL;
    struct hvd_err err = { .text = "" };

    CHECK_OK(t, coll_engine_open("127.0.0.1", &engine, &err));
    CHECK(t, !strncmp(coll_engine_contact(engine), "127.0.0.1:", 10));
out:
    coll_engine_close(engine);
}

TESTS(NO_TORTURE(rounds_of_each_size), NO_TORTURE(two_rounds_side_by_side),
      NO_TORTURE(who_does_not_come_is_named), NO_TORTURE(who_has_not_come_yet_can_be_seen),
      NO_TORTURE(who_is_dead_is_named_at_once), NO_TORTURE(who_has_no_contact_cannot_be_met),
      NO_TORTURE(a_wrong_secret_is_not_heard), NO_TORTURE(other_members_are_not_met),
      NO_TORTURE(a_round_that_is_over_is_turned_away), NO_TORTURE(connecting_can_be_cancelled),
      NO_TORTURE(working_can_be_cancelled), NO_TORTURE(a_mismatch_is_named_on_all),
      NO_TORTURE(engines_that_cannot_be), NO_TORTURE(an_engine_opens_and_closes))
