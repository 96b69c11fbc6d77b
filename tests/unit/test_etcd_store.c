/*
 * test_etcd_store.c: the store of a job in a real etcd when etcd or a driver fails: servers that
 * are killed, stopped or full, leases that run out, writes that are carried out late, and drivers
 * that claim a job at once.
 */
#include "driver/store/etcd_store.h"

#include "base/time.h"
#include "driver/store/etcd_call.h"
#include "os/clock.h"
#include "tests/lib/etcd_server.h"
#include "tests/lib/fixture.h"
#include "tests/lib/records.h"
#include "tests/lib/testjob.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

static struct testjob_seen seen;
static struct store *older, *newer;

static void begin(struct test *t)
{
    (void)t;
    older = newer = NULL;
}

static void end(struct test *t)
{
    (void)t;
    etcd_server_stop();
    testjob_end(&older);
    testjob_end(&newer);
}
FIXTURE(begin, end)

static int open_with(int64_t lease_us, struct store **ret_store, struct hvd_err *err)
{
    const struct etcd_store_config config = { .url = etcd_server_url(), .lease_us = lease_us };

    return etcd_store_open(&config, testjob_fresh.job, &testjob_fresh, ret_store, err);
}

/* Writes until it succeeds, as the scribe does. */
static int write_at_last(struct store *store, uint64_t seed)
{
    int rc;

    do
        rc = testjob_write(store, seed, NULL);
    while (rc == HVD_E_BUSY);
    return rc;
}

TEST(a_driver_that_lives_keeps_its_job)
{
    bool free, ended;
    struct hvd_err err;

    CHECK(t, etcd_server_start(test_dir(t), 1, NULL));
    CHECK_OK(t, open_with(60 * TIME_S, &older, NULL));
    CHECK_OK(t, store_claim(older, 1, "pid 1 on a", NULL));
    CHECK_OK(t, open_with(2 * TIME_S, &newer, NULL));
    CHECK_OK(t, etcd_store_look(newer, &free, &ended, NULL));
    CHECK(t, !free && !ended);
    /* it gives its lease back when it ends, and the next one need not wait */
    CHECK_OK(t, testjob_write(older, 0, NULL));
    testjob_end(&older);
    CHECK_OK(t, etcd_store_look(newer, &free, &ended, NULL));
    CHECK(t, free && !ended);
    CHECK_OK(t, store_claim(newer, 2, "pid 2 on b", &err));
    CHECK_OK(t, testjob_see(newer, &seen, NULL));
    CHECK(t, seen.records == 1 && seen.same);
}

TEST(the_job_of_a_dead_driver_is_free_after_its_lease)
{
    CHECK(t, etcd_server_start(test_dir(t), 1, NULL));
    CHECK_OK(t, open_with(2 * TIME_S, &older, NULL));
    CHECK_OK(t, store_claim(older, 1, "pid 1 on a", NULL));
    CHECK_OK(t, testjob_write(older, 0, NULL));
    /* the older one does nothing from here on, as if it were stopped */
    CHECK_OK(t, open_with(2 * TIME_S, &newer, NULL));
    CHECK_OK(t, store_claim(newer, 2, "pid 2 on b", NULL));
    CHECK_OK(t, testjob_see(newer, &seen, NULL));
    CHECK(t, seen.records == 1 && seen.same);
    CHECK_OK(t, testjob_write(newer, 1, NULL));
    CHECK_CODE(t, testjob_write(older, 1, NULL), HVD_E_LOST);
    CHECK_CODE(t, store_check(older, NULL), HVD_E_LOST);
    CHECK_OK(t, testjob_see(newer, &seen, NULL));
    CHECK(t, seen.records == 2 && seen.same);
}

TEST(a_driver_that_is_known_to_be_dead_has_no_lease)
{
    CHECK(t, etcd_server_start(test_dir(t), 1, NULL));
    CHECK_OK(t, open_with(600 * TIME_S, &older, NULL));
    CHECK_OK(t, store_claim(older, 77, "pid 1 on a", NULL));
    CHECK_OK(t, testjob_write(older, 0, NULL));
    CHECK_OK(t, open_with(2 * TIME_S, &newer, NULL));
    etcd_store_bury(newer, 77); /* a wait would be longer than the limit of this test */
    CHECK_OK(t, store_claim(newer, 2, "pid 2 on b", NULL));
    CHECK_OK(t, testjob_see(newer, &seen, NULL));
    CHECK(t, seen.records == 1 && seen.same);
    CHECK_CODE(t, testjob_write(older, 1, NULL), HVD_E_LOST);
}

/* An owner whose lease has run out, and whom no other driver has replaced, goes on. */
TEST(a_lease_that_has_run_out_is_renewed)
{
    bool free = false, ended;

    CHECK(t, etcd_server_start(test_dir(t), 1, NULL));
    CHECK_OK(t, open_with(2 * TIME_S, &older, NULL));
    CHECK_OK(t, store_claim(older, 1, "pid 1 on a", NULL));
    CHECK_OK(t, open_with(2 * TIME_S, &newer, NULL));
    while (!free)
        CHECK_OK(t, etcd_store_look(newer, &free, &ended, NULL));
    CHECK_OK(t, testjob_write(older, 0, NULL));
    CHECK_OK(t, etcd_store_look(newer, &free, &ended, NULL));
    CHECK(t, !free);
}

/* The server is stopped while it holds a write: the write is carried out when its client has given
 * it up. The repeated write must not come twice. */
TEST(a_write_that_is_carried_out_late_counts_once)
{
    static struct blacklist_change change;
    struct job_write write = { .record = &testjob_made.record, .change = &change };

    CHECK(t, etcd_server_start(test_dir(t), 1, NULL));
    CHECK_OK(t, open_with(600 * TIME_S, &older, NULL));
    CHECK_OK(t, store_claim(older, 1, "pid 1 on a", NULL));
    records_make(1, "a", 0, &change.record, &change.event);
    journal_random_make(&testjob_made, 0);
    CHECK_OK(t, testjob_see(older, &seen, NULL));
    for (uint64_t seed = 0; seed < 5; seed++) {
        int rc;

        journal_random_make(&testjob_made, seed);
        etcd_server_signal(0, SIGSTOP);
        CHECK_CODE(t, store_write(older, &write, 1, NULL), HVD_E_BUSY);
        etcd_server_signal(0, SIGCONT);
        do
            rc = store_write(older, &write, 1, NULL);
        while (rc == HVD_E_BUSY);
        CHECK_OK(t, rc);
    }
    CHECK_OK(t, testjob_see(older, &seen, NULL));
    CHECK_INT(t, seen.records, ==, 5);
    CHECK(t, seen.same && seen.changes == 1);
}

TEST(a_cluster_bears_the_death_of_any_one_server)
{
    uint64_t seed = 0;

    CHECK(t, etcd_server_start(test_dir(t), 3, NULL));
    CHECK_OK(t, open_with(60 * TIME_S, &older, NULL));
    CHECK_OK(t, store_claim(older, 1, "pid 1 on a", NULL));
    for (unsigned number = 0; number < 3; number++) { /* one of them is the leader */
        etcd_server_signal(number, SIGKILL);
        CHECK_OK(t, write_at_last(older, seed++));
        CHECK_OK(t, write_at_last(older, seed++));
        CHECK(t, etcd_server_again(number));
        CHECK_OK(t, write_at_last(older, seed++));
    }
    CHECK_OK(t, testjob_see(older, &seen, NULL));
    CHECK_INT(t, seen.records, ==, 9);
    CHECK(t, seen.same);
}

/* Two of three servers are stopped: the third takes no write, and nothing is believed of it. */
TEST(a_minority_writes_nothing)
{
    CHECK(t, etcd_server_start(test_dir(t), 3, NULL));
    CHECK_OK(t, open_with(60 * TIME_S, &older, NULL));
    CHECK_OK(t, store_claim(older, 1, "pid 1 on a", NULL));
    CHECK_OK(t, write_at_last(older, 0));
    etcd_server_signal(0, SIGSTOP);
    etcd_server_signal(1, SIGSTOP);
    CHECK_CODE(t, testjob_write(older, 1, NULL), HVD_E_BUSY);
    CHECK_CODE(t, store_check(older, NULL), HVD_E_BUSY);
    etcd_server_signal(0, SIGCONT);
    etcd_server_signal(1, SIGCONT);
    CHECK_OK(t, write_at_last(older, 1));
    CHECK_OK(t, testjob_see(older, &seen, NULL));
    CHECK_INT(t, seen.records, ==, 2);
    CHECK(t, seen.same);
}

TEST(a_full_etcd_is_told_with_its_remedy)
{
    static uint64_t ids[LIMIT_WORKERS];
    const struct journal_record record = {
        .kind = JOURNAL_ROUND, .host = "", .text = "", .members = {ids, LIMIT_WORKERS}
    };
    const struct job_write write = { .record = &record };
    struct hvd_err err;
    int rc = 0;

    for (size_t i = 0; i < LIMIT_WORKERS; i++)
        ids[i] = LIMIT_INCARNATIONS - i;
    CHECK(t, etcd_server_start(test_dir(t), 1, "--quota-backend-bytes=8000000"));
    CHECK_OK(t, open_with(60 * TIME_S, &older, NULL));
    CHECK_OK(t, store_claim(older, 1, "pid 1 on a", NULL));
    for (int i = 0; i < 50 && (!rc || rc == HVD_E_BUSY); i++)
        rc = store_write(older, &write, 1, &err);
    CHECK_INT(t, rc, ==, HVD_E_FULL);
    CHECK_HAS(t, err.text, "etcdctl alarm disarm");
}

/* Calls etcd's gateway as an operator's tools do. Returns the code of the call. */
static int ask_etcd(struct etcd *etcd, const char *path, const char *body, json_t **ret_answer)
{
    struct buf text;
    int rc;

    buf_init(&text, 256);
    rc = buf_append_text(&text, body);
    if (!rc)
        rc = etcd_call(etcd, path, &text, ret_answer, NULL);
    buf_release(&text);
    return rc;
}

/* Another program makes etcd forget all older revisions of all keys, and gives their room back. */
static int compact_etcd(void)
{
    const struct etcd_store_config config = { .url = etcd_server_url() };
    struct etcd *etcd;
    json_t *answer = NULL;
    char body[128];
    int rc = etcd_create(&config, &etcd, NULL);

    if (rc)
        return rc;
    rc = ask_etcd(etcd, "kv/range", "{\"key\":\"AA==\"}", &answer);
    snprintf(body, sizeof(body), "{\"revision\":\"%" PRId64 "\",\"physical\":true}",
             etcd_number(json_object_get(answer, "header"), "revision"));
    json_decref(answer);
    answer = NULL;
    if (!rc)
        rc = ask_etcd(etcd, "kv/compaction", body, &answer);
    json_decref(answer);
    answer = NULL;
    if (!rc)
        rc = ask_etcd(etcd, "maintenance/defragment", "{}", &answer);
    json_decref(answer);
    etcd_free(etcd);
    return rc;
}

/* etcd is compacted between all that a driver and its successor do: no call needs an old revision,
 * and the claim of a driver stays known by the revision of its key. */
TEST(a_compaction_by_others_harms_nothing)
{
    bool free = false, ended;

    CHECK(t, etcd_server_start(test_dir(t), 1, NULL));
    CHECK_OK(t, open_with(2 * TIME_S, &older, NULL));
    CHECK_OK(t, store_claim(older, 1, "pid 1 on a", NULL));
    for (uint64_t seed = 0; seed < 3; seed++) {
        CHECK_OK(t, compact_etcd());
        CHECK_OK(t, write_at_last(older, seed));
    }
    CHECK_OK(t, open_with(2 * TIME_S, &newer, NULL));
    CHECK_OK(t, compact_etcd());
    while (!free)
        CHECK_OK(t, etcd_store_look(newer, &free, &ended, NULL));
    CHECK_OK(t, store_claim(newer, 2, "pid 2 on b", NULL));
    CHECK_OK(t, compact_etcd());
    CHECK_CODE(t, testjob_write(older, 3, NULL), HVD_E_LOST);
    CHECK_OK(t, testjob_see(newer, &seen, NULL));
    CHECK(t, seen.records == 3 && seen.same);
    CHECK_OK(t, write_at_last(newer, 3));
    CHECK_OK(t, compact_etcd());
    CHECK_OK(t, testjob_see(newer, &seen, NULL));
    CHECK(t, seen.records == 4 && seen.same);
}

/* A step of several parts whose driver died before the last one: its successor drops it. */
TEST(half_a_step_is_dropped)
{
    static uint64_t ids[LIMIT_WORKERS];
    static struct blacklist_change change;
    const struct journal_record record = {
        .kind = JOURNAL_ROUND, .host = "", .text = "", .members = {ids, LIMIT_WORKERS}
    };
    const struct job_write long_one = { .record = &record };
    const struct job_write short_one = { .change = &change };
    int rc;

    for (size_t i = 0; i < LIMIT_WORKERS; i++)
        ids[i] = LIMIT_INCARNATIONS - i;
    records_make(1, "a", 0, &change.record, &change.event);
    CHECK(t, etcd_server_start(test_dir(t), 1, "--quota-backend-bytes=8000000"));
    CHECK_OK(t, open_with(2 * TIME_S, &older, NULL));
    CHECK_OK(t, store_claim(older, 1, "pid 1 on a", NULL));
    CHECK_OK(t, testjob_write(older, 0, NULL));
    CHECK_OK(t, store_write(older, &short_one, 1, NULL));
    do /* until the database is full, which may be in the middle of a step */
        rc = store_write(older, &long_one, 1, NULL);
    while (!rc || rc == HVD_E_BUSY);
    CHECK_INT(t, rc, ==, HVD_E_FULL);
    testjob_end(&older);
    CHECK_OK(t, open_with(2 * TIME_S, &newer, NULL));
    CHECK_OK(t, testjob_see(newer, &seen, NULL)); /* whole steps only */
    CHECK_INT(t, seen.records, >, 0);
    CHECK_INT(t, seen.changes, ==, 1);
}

/* The driver hears of a standby with its next lease, and of its end. */
TEST(a_driver_knows_its_standbys)
{
    const struct store_peers hosts = {
        .count = 2, .address = {"10.0.0.7", "[fd00::7]"}
    };
    const struct job_write port = { .port = 4321 };
    struct store_peers found = { .count = 0 };
    bool free, ended;

    CHECK(t, etcd_server_start(test_dir(t), 1, NULL));
    CHECK_OK(t, open_with(2 * TIME_S, &older, NULL));
    CHECK_OK(t, store_claim(older, 1, "pid 1 on a", NULL));
    CHECK_OK(t, store_write(older, &port, 1, NULL));
    CHECK_OK(t, open_with(600 * TIME_S, &newer, NULL));
    CHECK_OK(t, etcd_store_look(newer, &free, &ended, NULL));
    CHECK_OK(t, etcd_store_announce(newer, &hosts, NULL));
    while (!found.count) {
        CHECK_OK(t, store_check(older, NULL));
        store_peers(older, &found);
    }
    CHECK_INT(t, found.count, ==, 2);
    CHECK_TEXT(t, found.address[0], "10.0.0.7:4321");
    CHECK_TEXT(t, found.address[1], "[fd00::7]:4321");
    testjob_end(&newer);
    while (found.count) {
        CHECK_OK(t, store_check(older, NULL));
        store_peers(older, &found);
    }
}

TEST(an_ended_job_begins_anew)
{
    const struct job_write ended = { .ended = true, .code = 1, .text = "over" };
    struct job_facts fresh = testjob_fresh, facts;

    fresh.key[5] = 77;
    CHECK(t, etcd_server_start(test_dir(t), 1, NULL));
    CHECK_OK(t, open_with(2 * TIME_S, &older, NULL));
    CHECK_OK(t, store_claim(older, 1, "pid 1 on a", NULL));
    CHECK_OK(t, testjob_write(older, 0, NULL));
    CHECK_OK(t, store_write(older, &ended, 1, NULL));
    CHECK_OK(t, etcd_store_save_command(older, (struct span){ "a\0b", 3 }, NULL));
    CHECK_OK(t, open_with(2 * TIME_S, &newer, NULL));
    CHECK_OK(t, etcd_store_begin_anew(newer, &fresh, NULL));
    CHECK_OK(t, store_claim(newer, 2, "pid 2 on b", NULL));
    CHECK_OK(t, store_facts(newer, &facts, NULL));
    CHECK(t, !facts.ended && facts.key[5] == 77);
    CHECK_OK(t, testjob_see(newer, &seen, NULL));
    CHECK_INT(t, seen.records, ==, 0);
    CHECK_CODE(t, testjob_write(older, 1, NULL), HVD_E_LOST);
}

/* Two standbys, of which one wins and ends the job at once: the other one must not begin a term. */
TEST(a_job_that_has_ended_meanwhile_is_not_claimed)
{
    const struct job_write ended = { .ended = true, .code = 1, .text = "over" };
    struct job_facts facts;
    struct hvd_err err;

    CHECK(t, etcd_server_start(test_dir(t), 1, NULL));
    CHECK_OK(t, open_with(TIME_S, &older, NULL));
    CHECK_OK(t, open_with(TIME_S, &newer, NULL));
    CHECK_OK(t, store_claim(older, 1, "pid 1 on a", NULL));
    CHECK_OK(t, store_write(older, &ended, 1, NULL));
    testjob_end(&older);
    CHECK_CODE(t, store_claim(newer, 2, "pid 2 on b", &err), HVD_E_STATE);
    CHECK_HAS(t, err.text, "has ended: over");
    CHECK_OK(t, store_facts(newer, &facts, NULL));
    CHECK(t, facts.ended);
}

/* etcd ends a lease later than we do: a standby must see the end of a lease of one second by the
 * time that is left, while the key `alive` is still there. A driver that renews keeps its job. */
TEST(a_short_lease_is_over_before_etcd_ends_it)
{
    bool free = false, ended;
    int64_t silent_us, since_us;

    CHECK(t, etcd_server_start(test_dir(t), 1, NULL));
    CHECK_OK(t, open_with(TIME_S, &older, NULL));
    CHECK_OK(t, store_claim(older, 1, "pid 1 on a", NULL));
    CHECK_OK(t, open_with(TIME_S, &newer, NULL));
    for (int64_t until_us = clock_now_us() + 2 * TIME_S; clock_now_us() < until_us;) {
        since_us = clock_now_us();
        CHECK_OK(t, store_check(older, NULL));
        CHECK_OK(t, etcd_store_look(newer, &free, &ended, NULL));
        silent_us = clock_now_us() - since_us;
        CHECK(t, !free || silent_us > TIME_S / 2); /* unless this test itself was held up */
    }
    while (!free)
        CHECK_OK(t, etcd_store_look(newer, &free, &ended, NULL));
    CHECK_OK(t, store_claim(newer, 2, "pid 2 on b", NULL));
    CHECK_CODE(t, testjob_write(older, 0, NULL), HVD_E_LOST);
}

TEST(a_command_is_kept_for_the_next_driver)
{
    struct buf out;

    buf_init(&out, 64);
    CHECK(t, etcd_server_start(test_dir(t), 1, NULL));
    CHECK_OK(t, open_with(2 * TIME_S, &older, NULL));
    CHECK_CODE(t, etcd_store_load_command(older, &out, NULL), HVD_E_NOTFOUND);
    CHECK_OK(t, store_claim(older, 1, "pid 1 on a", NULL));
    CHECK_OK(t, etcd_store_save_command(older, (struct span){ "a\0b", 3 }, NULL));
    CHECK_OK(t, etcd_store_load_command(older, &out, NULL));
    CHECK(t, out.length == 3 && !memcmp(out.data, "a\0b", 3));
    buf_release(&out);
}
