/*
 * test_store.c: the cases that every store of a job has to pass: records of every kind come back in
 * order, the blacklist and the facts are kept, and owners change. The program test_store has the
 * job file, test_store_etcd has etcd (tests/lib/testjob.h).
 */
#include "driver/store/store.h"

#include "tests/lib/fixture.h"
#include "tests/lib/records.h"
#include "tests/lib/testjob.h"

#include <stdio.h>
#include <string.h>

#define TRIES 100 /* how often a write is tried, so that no test hangs */

static struct testjob_seen seen;

static struct store *file, *older, *newer;

static void begin(struct test *t)
{
    file = older = newer = NULL;
    testjob_start(t);
}

static void end(struct test *t)
{
    (void)t;
    testjob_end(&older);
    testjob_end(&newer);
    testjob_end(&file);
    testjob_stop();
}
FIXTURE(begin, end)

/* Writes, and repeats that as the scribe does: on a busy machine etcd may answer late. */
static int write_at_last(struct store *store, const struct job_write *writes, size_t count)
{
    int rc = HVD_E_BUSY;

    for (int i = 0; i < TRIES && rc == HVD_E_BUSY; i++)
        rc = store_write(store, writes, count, NULL);
    return rc;
}

static int write_seed(struct store *store, uint64_t seed)
{
    int rc = HVD_E_BUSY;

    for (int i = 0; i < TRIES && rc == HVD_E_BUSY; i++)
        rc = testjob_write(store, seed, NULL);
    return rc;
}

/* Every kind, twice; read twice, by who wrote them and by the next. */
TEST_FLAGS(records_of_every_kind_come_back_in_order, TEST_NO_TORTURE)
{
    CHECK_OK(t, testjob_begin(t, &file));
    for (uint64_t seed = 0; seed < 2 * JOURNAL_REPORTED; seed++)
        CHECK_OK(t, write_seed(file, seed));
    for (int i = 0; i < 2; i++) {
        CHECK_OK(t, testjob_see(file, &seen, NULL));
        CHECK_INT(t, seen.records, ==, 2 * JOURNAL_REPORTED);
        CHECK(t, seen.same);
    }
    testjob_end(&file);
    CHECK_OK(t, testjob_open(&file, NULL));
    CHECK_OK(t, testjob_see(file, &seen, NULL));
    CHECK_INT(t, seen.records, ==, 2 * JOURNAL_REPORTED);
    CHECK(t, seen.same);
}

TEST_FLAGS(any_record_comes_back, TEST_NO_TORTURE)
{
    const uint64_t count = 2000;
    static struct journal_random batch[100];
    struct job_write writes[100];

    CHECK_OK(t, testjob_begin(t, &file));
    for (uint64_t seed = 0; seed < count; seed += 100) {
        for (uint64_t i = 0; i < 100; i++) {
            journal_random_make(&batch[i], seed + i);
            writes[i] = (struct job_write){ .record = &batch[i].record };
        }
        CHECK_OK(t, write_at_last(file, writes, 100));
    }
    CHECK_OK(t, testjob_see(file, &seen, NULL));
    CHECK_INT(t, seen.records, ==, count);
    CHECK(t, seen.same);
}

TEST_FLAGS(the_largest_round_comes_back, TEST_NO_TORTURE)
{
    static uint64_t ids[LIMIT_WORKERS];
    const struct journal_record record = {
        .kind = JOURNAL_ROUND,
        .host = "",
        .text = "",
        .members = {ids,  LIMIT_WORKERS},
        .holders = { ids, LIMIT_WORKERS}
    };
    const struct job_write write = { .record = &record };

    for (size_t i = 0; i < LIMIT_WORKERS; i++)
        ids[i] = LIMIT_INCARNATIONS - i;
    CHECK_OK(t, testjob_begin(t, &file));
    CHECK_OK(t, write_at_last(file, &write, 1));
    CHECK_OK(t, testjob_see(file, &seen, NULL));
    CHECK_INT(t, seen.records, ==, 1);
}

static struct blacklist_change change_of(uint32_t number, const char *host, uint32_t slot)
{
    struct blacklist_change change = { .none = false };

    records_make(number, host, slot, &change.record, &change.event);
    return change;
}

TEST(the_blacklist_is_in_the_store_too)
{
    static struct blacklist_change change[4];
    struct job_write writes[4] = { 0 };

    change[0] = change_of(1, "a", 0);
    change[1] = change_of(2, "b", 3);
    change[2] = change_of(3, "c", BLACKLIST_WHOLE_HOST);
    change[2].evicted = true;
    snprintf(change[2].evicted_host, sizeof(change[2].evicted_host), "a");
    change[3] = change_of(4, "d", 0);
    change[3].none = true;
    for (size_t i = 0; i < 4; i++)
        writes[i].change = &change[i];
    CHECK_OK(t, testjob_begin(t, &file));
    CHECK_OK(t, write_at_last(file, writes, 2));
    CHECK_OK(t, write_at_last(file, writes + 2, 2));
    testjob_end(&file);
    CHECK_OK(t, testjob_open(&file, NULL));
    CHECK_OK(t, testjob_see(file, &seen, NULL));
    CHECK_INT(t, seen.changes, ==, 2);
    CHECK(t, records_same(&seen.change[0], &change[1].record));
    CHECK(t, records_same(&seen.change[1], &change[2].record));
}

TEST(the_port_and_the_end_are_facts)
{
    const struct job_write port = { .port = 65535 };
    const struct job_write ended = { .ended = true, .code = -3, .text = "it's \"over\"\n" };
    struct job_facts facts;

    CHECK_OK(t, testjob_begin(t, &file));
    CHECK_OK(t, write_at_last(file, &port, 1));
    CHECK_OK(t, store_facts(file, &facts, NULL));
    CHECK(t, facts.port == 65535 && !facts.ended);
    CHECK_OK(t, write_at_last(file, &ended, 1));
    testjob_end(&file);
    CHECK_OK(t, testjob_open(&file, NULL));
    CHECK_OK(t, store_facts(file, &facts, NULL));
    CHECK_TEXT(t, facts.job, testjob_fresh.job);
    CHECK(t, facts.port == 65535 && facts.ended);
    CHECK_INT(t, facts.code, ==, -3);
    CHECK_HAS(t, facts.text, "it's \"over\"");
}

TEST(one_write_may_have_several_records)
{
    static struct blacklist_change change;
    struct job_write write = {
        .record = &testjob_made.record, .change = &change, .port = 7, .ended = true, .code = 1
    };
    struct job_facts facts;

    change = change_of(1, "a", 0);
    journal_random_make(&testjob_made, 0);
    CHECK_OK(t, testjob_begin(t, &file));
    CHECK_OK(t, write_at_last(file, &write, 1));
    CHECK_OK(t, testjob_see(file, &seen, NULL));
    CHECK(t, seen.records == 1 && seen.same && seen.changes == 1);
    CHECK_OK(t, store_facts(file, &facts, NULL));
    CHECK(t, facts.port == 7 && facts.ended && facts.code == 1 && !facts.text[0]);
}

TEST(an_earlier_owner_writes_nothing)
{
    const struct job_write port = { .port = 9 };
    struct job_facts facts;
    struct hvd_err err;

    CHECK_OK(t, testjob_begin(t, &older));
    CHECK_OK(t, write_seed(older, 0));
    CHECK_OK(t, store_check(older, NULL));
    CHECK_OK(t, testjob_open(&newer, NULL));
    CHECK_OK(t, store_claim(newer, UINT64_MAX, "pid 77 on node3", NULL));
    CHECK_CODE(t, testjob_write(older, 1, &err), HVD_E_LOST);
    CHECK_TEXT(t, err.text,
               "another driver (pid 77 on node3) has taken over this job; this driver ends");
    CHECK_CODE(t, store_check(older, &err), HVD_E_LOST);
    CHECK_CODE(t, store_write(older, &port, 1, &err), HVD_E_LOST);
    CHECK_OK(t, store_check(newer, NULL));
    CHECK_OK(t, testjob_see(newer, &seen, NULL));
    CHECK(t, seen.records == 1 && seen.same);
    CHECK_OK(t, store_facts(newer, &facts, NULL));
    CHECK_INT(t, facts.port, ==, 0);
    CHECK_OK(t, write_seed(newer, 1));
    CHECK_CODE(t, testjob_write(older, 2, &err), HVD_E_LOST);
    CHECK_OK(t, testjob_see(newer, &seen, NULL));
    CHECK(t, seen.records == 2 && seen.same);
    CHECK_OK(t, store_claim(older, 5, "", NULL)); /* and back again */
    CHECK_OK(t, write_seed(older, 2));
    CHECK_CODE(t, store_check(newer, &err), HVD_E_LOST);
}

static int stop_at_second(void *arg, const struct journal_record *record, struct hvd_err *err)
{
    (void)record;
    return ++*(int *)arg == 2 ? err_set(err, HVD_E_STATE, "enough") : 0;
}

static int stop_at_once(void *arg, const struct blacklist_record *record, struct hvd_err *err)
{
    (void)arg;
    (void)record;
    return err_set(err, HVD_E_STATE, "enough");
}

/* The journal is replaced as a whole, goes on after its new end, and only by its owner. */
TEST(a_journal_is_replaced)
{
    static struct journal_random short_one[2];
    struct journal_record records[2];

    for (uint64_t seed = 0; seed < 2; seed++) {
        journal_random_make(&short_one[seed], seed);
        records[seed] = short_one[seed].record;
    }
    CHECK_OK(t, testjob_begin(t, &file));
    for (uint64_t seed = 7; seed < 16; seed++)
        CHECK_OK(t, write_seed(file, seed));
    for (int again = 0; again < 2; again++) {
        CHECK_OK(t, store_replace(file, records, 2, NULL));
        CHECK_OK(t, testjob_see(file, &seen, NULL));
        CHECK(t, seen.records == 2 && seen.same);
        CHECK_OK(t, write_seed(file, 2));
        CHECK_OK(t, write_seed(file, 3));
        CHECK_OK(t, testjob_see(file, &seen, NULL));
        CHECK(t, seen.records == 4 && seen.same);
    }
    CHECK_OK(t, testjob_open(&newer, NULL));
    CHECK_OK(t, store_claim(newer, 2, "pid 2 on b", NULL));
    CHECK_CODE(t, store_replace(file, records, 1, NULL), HVD_E_LOST);
    CHECK_OK(t, testjob_see(newer, &seen, NULL));
    CHECK(t, seen.records == 4 && seen.same);
    CHECK_OK(t, write_seed(newer, 4));
    CHECK_OK(t, testjob_see(newer, &seen, NULL));
    CHECK(t, seen.records == 5 && seen.same);
}

TEST(a_visit_ends_when_it_is_told_to)
{
    static struct blacklist_change change;
    const struct job_write write = { .change = &change };
    struct hvd_err err;
    int count = 0;

    change = change_of(1, "a", 0);
    CHECK_OK(t, testjob_begin(t, &file));
    for (uint64_t seed = 0; seed < 3; seed++)
        CHECK_OK(t, write_seed(file, seed));
    CHECK_OK(t, write_at_last(file, &write, 1));
    CHECK_CODE(t, store_replay(file, stop_at_second, &count, &err), HVD_E_STATE);
    CHECK_TEXT(t, err.text, "enough");
    CHECK_INT(t, count, ==, 2);
    CHECK_CODE(t, store_blacklist(file, stop_at_once, NULL, &err), HVD_E_STATE);
    CHECK_TEXT(t, err.text, "enough");
    CHECK_OK(t, testjob_see(file, &seen, NULL)); /* and the next one begins anew */
    CHECK_INT(t, seen.records, ==, 3);
}
