/* The rows of the blacklist in a database of the test; in the file of a job: test_job_file.c. */
#include "base/time.h"
#include "blacklist/blacklist.h"
#include "driver/journal/blacklist_rows.h"
#include "tests/lib/fault.h"
#include "tests/lib/fault_vfs.h"
#include "tests/lib/fixture.h"
#include "tests/lib/heap.h"
#include "tests/lib/records.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HOST BLACKLIST_WHOLE_HOST

static const struct db_options options = { .vfs = FAULT_VFS };

static struct db *db;
static struct blacklist_rows rows;
static struct blacklist blacklist;
static char path[LIMIT_DB_PATH_BYTES];

static struct blacklist_moment at(int64_t now_us, int64_t wall_us)
{
    return (struct blacklist_moment){ now_us, wall_us };
}

static int reopen(struct hvd_err *err)
{
    static const char *const steps[] = { blacklist_rows_step };
    static const struct db_schema schema = { "blacklist", 'B', steps, 1 };
    int rc = db_open(path, &schema, &options, &db, err);

    return rc ? rc : blacklist_rows_open(&rows, db, err);
}

static void begin(struct test *t)
{
    db = NULL;
    rows = (struct blacklist_rows){ .stmt = { { .db = NULL } } };
    fault_vfs_use();
    fault_vfs_quiet(false);
    snprintf(path, sizeof(path), "%s/x.db", test_dir(t));
    CHECK_OK(t, reopen(NULL));
}

/* Closes the database. SQLite's last steps may fail unseen, because the write-ahead log stays. */
static void close_rows(void)
{
    fault_vfs_quiet(true);
    blacklist_rows_close(&rows);
    rows = (struct blacklist_rows){ .stmt = { { .db = NULL } } };
    db_close(db);
    db = NULL;
    fault_vfs_quiet(false);
}

static void end(struct test *t)
{
    (void)t;
    blacklist_release(&blacklist);
    close_rows();
}
FIXTURE(begin, end)

/* Ends the transaction: commits if rc is 0, else rolls back. */
static int finish(int rc)
{
    if (!rc)
        rc = db_commit(db, NULL);
    if (rc)
        db_rollback(db);
    return rc;
}

static int put_both(const struct blacklist_record *record, const struct blacklist_event *event)
{
    int rc = db_begin(db, NULL);

    return finish(rc ? rc : blacklist_rows_put(&rows, record, event, NULL));
}

static int put(uint32_t number, const char *host, uint32_t slot)
{
    struct blacklist_record record;
    struct blacklist_event event;

    records_make(number, host, slot, &record, &event);
    return put_both(&record, &event);
}

static int remove_key(const char *host, uint32_t slot)
{
    int rc = db_begin(db, NULL);

    return finish(rc ? rc : blacklist_rows_remove(&rows, host, slot, NULL));
}

/* The records that the last see_records found. */
static struct {
    size_t count;
    struct blacklist_record record[8];
} seen;

static int see_record(void *arg, const struct blacklist_record *record, struct hvd_err *err)
{
    (void)arg;
    (void)err;
    if (seen.count == ARRAY_SIZE(seen.record))
        abort();
    seen.record[seen.count++] = *record;
    return 0;
}

static int see_records(struct hvd_err *err)
{
    seen.count = 0;
    return blacklist_rows_load(&rows, see_record, NULL, err);
}

/* The number of failures of a host and slot that are kept, and the oldest and the newest
 * incarnation among them. */
static struct {
    int64_t count, oldest, newest;
} kept;

static int see_history(const char *host, uint32_t slot)
{
    struct db_stmt stmt;
    int rc = db_prepare(&stmt, db,
                        "SELECT count(*), ifnull(min(incarnation), 0), ifnull(max(incarnation), 0)"
                        " FROM event WHERE host = ?1 AND slot = ?2",
                        NULL);

    if (rc)
        return rc;
    db_bind_text(&stmt, 1, (struct span){ host, strlen(host) });
    db_bind_int(&stmt, 2, slot == HOST ? -1 : (int64_t)slot);
    rc = db_step(&stmt, NULL) == DB_ROW ? 0 : HVD_E_IO;
    if (!rc)
        rc = db_column_int(&stmt, 0, &kept.count, NULL);
    if (!rc)
        rc = db_column_int(&stmt, 1, &kept.oldest, NULL);
    if (!rc)
        rc = db_column_int(&stmt, 2, &kept.newest, NULL);
    db_stmt_release(&stmt);
    return rc;
}

static int64_t incarnation_of(uint32_t number)
{
    struct blacklist_record record;
    struct blacklist_event event;

    records_make(number, "a", 0, &record, &event);
    return (int64_t)event.incarnation;
}

static bool saw(uint32_t number, const char *host, uint32_t slot)
{
    struct blacklist_record record;
    struct blacklist_event event;

    records_make(number, host, slot, &record, &event);
    for (size_t i = 0; i < seen.count; i++) {
        if (records_same(&seen.record[i], &record))
            return true;
    }
    return false;
}

TEST(begins_empty)
{
    CHECK_OK(t, see_records(NULL));
    CHECK_INT(t, seen.count, ==, 0);
    CHECK_OK(t, remove_key("a", 1));
}

TEST(gives_back_what_it_was_given)
{
    CHECK_OK(t, put(1, "a", 0));
    CHECK_OK(t, put(2, "a", HOST));
    CHECK_OK(t, put(77, "b", LIMIT_SLOTS_PER_HOST - 1));
    close_rows();
    CHECK_OK(t, reopen(NULL));
    CHECK_OK(t, see_records(NULL));
    CHECK_INT(t, seen.count, ==, 3);
    CHECK(t, saw(1, "a", 0) && saw(2, "a", HOST) && saw(77, "b", LIMIT_SLOTS_PER_HOST - 1));
    CHECK_OK(t, see_history("a", HOST));
    CHECK(t, kept.count == 1 && kept.newest == incarnation_of(2));
    CHECK_OK(t, see_history("a", 0));
    CHECK(t, kept.count == 1 && kept.newest == incarnation_of(1));
}

TEST(a_record_takes_the_place_of_the_one_before)
{
    CHECK_OK(t, put(1, "a", 0));
    CHECK_OK(t, put(90, "a", 0));
    CHECK_OK(t, see_records(NULL));
    CHECK_INT(t, seen.count, ==, 1);
    CHECK(t, saw(90, "a", 0));
    CHECK_OK(t, see_history("a", 0));
    CHECK(t, kept.count == 2 && kept.oldest == incarnation_of(1));
}

TEST(extremes_come_back_too)
{
    struct blacklist_record record = {
        .slot = HOST,
        .failures = UINT32_MAX,
        .since_wall_us = INT64_MAX,
        .until_wall_us = TIME_NEVER,
    };
    struct blacklist_event event = { .slot = HOST, .incarnation = INT64_MAX, .wall_us = INT64_MAX };

    memset(record.host, 'h', LIMIT_HOST_NAME_BYTES);
    memset(record.reason, 'r', LIMIT_REASON_BYTES);
    memcpy(event.host, record.host, sizeof(event.host));
    memcpy(event.reason, record.reason, sizeof(event.reason));
    for (int64_t i = 0; i < LIMIT_BLACKLIST_REMEMBERED; i++) {
        numbers_add(&record.restarts, INT64_MAX - i);
        numbers_add(&record.incarnations, INT64_MAX);
    }
    CHECK_OK(t, put_both(&record, &event));
    CHECK_OK(t, see_records(NULL));
    CHECK_INT(t, seen.count, ==, 1);
    CHECK(t, records_same(&seen.record[0], &record));
    CHECK_OK(t, see_history(record.host, HOST));
    CHECK(t, kept.count == 1 && kept.newest == INT64_MAX);
}

TEST(removing_forgets_the_history_as_well)
{
    CHECK_OK(t, put(1, "a", 0));
    CHECK_OK(t, put(2, "a", 1));
    CHECK_OK(t, put(3, "a", HOST));
    CHECK_OK(t, remove_key("a", 0));
    CHECK_OK(t, remove_key("a", HOST));
    close_rows();
    CHECK_OK(t, reopen(NULL));
    CHECK_OK(t, see_records(NULL));
    CHECK_INT(t, seen.count, ==, 1);
    CHECK(t, saw(2, "a", 1));
    CHECK_OK(t, see_history("a", 0));
    CHECK_INT(t, kept.count, ==, 0);
    CHECK_OK(t, see_history("a", 1));
    CHECK_INT(t, kept.count, ==, 1);
}

TEST_FLAGS(the_history_keeps_the_newest_of_each_key, TEST_NO_TORTURE)
{
    const uint32_t most = LIMIT_BLACKLIST_HISTORY_ROWS;

    for (uint32_t i = 0; i < most + 5; i++) {
        CHECK_OK(t, put(i, "a", 0));
        if (i < 3)
            CHECK_OK(t, put(i, "a", 1));
    }
    CHECK_OK(t, see_history("a", 0));
    CHECK(t, kept.count == most && kept.oldest == incarnation_of(5));
    CHECK_OK(t, see_history("a", 1));
    CHECK_INT(t, kept.count, ==, 3);
}

static int stop_at_second(void *arg, const struct blacklist_record *record, struct hvd_err *err)
{
    (void)record;
    (void)err;
    return ++*(int *)arg == 2 ? HVD_E_STATE : 0;
}

TEST(a_visit_ends_when_it_is_told_to)
{
    int count = 0;

    for (uint32_t slot = 0; slot < 3; slot++)
        CHECK_OK(t, put(slot, "a", slot));
    CHECK_CODE(t, blacklist_rows_load(&rows, stop_at_second, &count, NULL), HVD_E_STATE);
    CHECK_INT(t, count, ==, 2);
    CHECK_OK(t, see_records(NULL)); /* the next write begins anew */
    CHECK_INT(t, seen.count, ==, 3);
}

/* The whole course: failures, their records, and a new driver that loads them. */
TEST(the_blacklist_outlives_its_driver)
{
    const struct blacklist_failure failure = { "a", 1, 7, "exit code 1" };
    static struct blacklist_change change;
    struct policy policy;
    struct rng rng;
    int64_t until_us;

    rng_seed(&rng, 1);
    policy_init(&policy);
    blacklist_init(&blacklist, &policy, NULL);
    CHECK_OK(t, blacklist_failure(&blacklist, &failure, at(0, TIME_DAY), &rng, &change, NULL));
    CHECK_OK(t, put_both(&change.record, &change.event));
    until_us = blacklist_deadline(&blacklist, 0);
    blacklist_release(&blacklist);
    close_rows();

    CHECK_OK(t, reopen(NULL));
    CHECK_OK(t, see_records(NULL));
    CHECK_INT(t, seen.count, ==, 1);
    blacklist_init(&blacklist, &policy, NULL);
    CHECK_OK(t,
             blacklist_load(&blacklist, &seen.record[0], at(5 * TIME_S, TIME_DAY + TIME_S), NULL));
    CHECK_INT(t, blacklist_deadline(&blacklist, 5 * TIME_S), ==, until_us + 4 * TIME_S);
}

/* A failed write changes nothing, and the next write works. */
TEST_FLAGS(a_failed_write_changes_nothing, TEST_NO_TORTURE)
{
    uint64_t k = 0;
    bool delivered;

    fault_arm(FAULT_STORE, 0);
    CHECK_OK(t, put(1, "a", 0));
    do {
        int rc;

        fault_arm(FAULT_STORE, ++k);
        rc = k % 2 ? put(2, "a", 0) : remove_key("a", 0);
        delivered = fault_delivered(FAULT_STORE);
        fault_arm(FAULT_STORE, 0);
        CHECK(t, (rc != 0) == delivered);
        if (delivered)
            CHECK(t, rc == HVD_E_IO || rc == HVD_E_FULL);
        else
            CHECK_OK(t, put(1, "a", 0));
        CHECK_OK(t, see_records(NULL));
        CHECK_INT(t, seen.count, ==, 1);
        CHECK(t, saw(1, "a", 0));
    } while (delivered);
    CHECK_INT(t, k, >, 4);
}

TEST_FLAGS(refuses_the_file_of_another_schema, TEST_SURVIVES_STORE)
{
    static const char *const steps[] = { "CREATE TABLE record(host TEXT)" };
    static const struct db_schema other = { "blacklist", 'B', steps, 1 };
    struct db *other_db = NULL;
    struct hvd_err err;

    close_rows();
    snprintf(path, sizeof(path), "%s/x.db", test_dir(t));
    CHECK_OK(t, db_open(path, &other, &options, &other_db, NULL));
    fault_vfs_quiet(true);
    db_close(other_db);
    fault_vfs_quiet(false);
    CHECK_CODE(t, reopen(&err), HVD_E_CORRUPT);
    CHECK_HAS(t, err.text, "no such column: slot; move the file and its -wal file aside");
}

/* Runs sql on the closed file, as an operator could by hand, so that no code of blacklist_rows.c
 * checks the values. Then opens the rows again. */
static int write_row(const char *sql)
{
    static const struct db_schema same = { "blacklist", 'B', NULL, 1 };
    struct db_stmt stmt;
    struct db *other_db;
    int rc;

    close_rows();
    rc = db_open(path, &same, &options, &other_db, NULL);
    if (rc)
        return rc;
    rc = db_prepare(&stmt, other_db, sql, NULL);
    if (!rc) {
        rc = db_run(&stmt, NULL);
        db_stmt_release(&stmt);
    }
    fault_vfs_quiet(true);
    db_close(other_db);
    fault_vfs_quiet(false);
    return rc ? rc : reopen(NULL);
}

TEST_FLAGS(foreign_records_are_checked, TEST_NO_TORTURE)
{
    static const struct {
        const char *sql;
        const char *words;
    } cases[] = {
        {"host = 'a b'",                  "only letters, digits"                              },
        { "host = ''",                    "the host name is empty"                            },
        { "host = hex(zeroblob(200))",    "too long"                                          },
        { "host = 'a' || char(0) || 'b'", "holds a NUL"                                       },
        { "slot = 1024",                  "out of range"                                      },
        { "slot = -2",                    "out of range"                                      },
        { "failures = -1",                "out of range"                                      },
        { "failures = 4294967296",        "out of range"                                      },
        { "since_us = -1",                "out of range"                                      },
        { "until_us = 0",                 "a:0 is damaged: the cooldown ends before it begins"},
        { "restarts = 'x'",               "the restarts of a record must be"                  },
        { "incarnations = '2,1'",         "the incarnations of a record: the numbers are not" },
        { "reason = char(27)",            "reason is not clean text"                          },
    };
    char sql[256];
    struct hvd_err err;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CHECK_OK(t, put(1, "a", 0));
        snprintf(sql, sizeof(sql), "UPDATE record SET %s", cases[i].sql);
        CHECK_OK(t, write_row(sql));
        CHECK_CODE(t, see_records(&err), HVD_E_CORRUPT);
        CHECK_HAS(t, err.text, cases[i].words);
        CHECK_HAS(t, err.text, path);
        CHECK_HAS(t, err.text, "; move the file and its -wal file aside");
        close_rows();
        begin(t);
    }
}

/* A file from a time before the tables were strict could contain such a text. */
TEST(a_text_where_a_number_belongs_is_damage)
{
    static const char *const steps[] = {
        "CREATE TABLE record(host, slot, failures, since_us, until_us, restarts, incarnations,"
        " reason);"
        "CREATE TABLE event(id INTEGER PRIMARY KEY, host, slot, incarnation, wall_us, counted,"
        " reason);"
        "INSERT INTO record VALUES('a', 1, 'many', 0, 0, '', '', '');"
        "INSERT INTO event VALUES(1, 'a', 1, 1, 0, 0, 5);"
        "INSERT INTO event VALUES(2, 'b', 'c', 1, 0, 0, '')",
    };
    static const struct db_schema loose = { "blacklist", 'B', steps, 1 };
    struct db *other_db = NULL;
    struct hvd_err err;

    close_rows();
    snprintf(path, sizeof(path), "%s/x.db", test_dir(t));
    CHECK_OK(t, db_open(path, &loose, &options, &other_db, NULL));
    fault_vfs_quiet(true);
    db_close(other_db);
    fault_vfs_quiet(false);
    CHECK_OK(t, reopen(NULL));
    CHECK_CODE(t, see_records(&err), HVD_E_CORRUPT);
    CHECK_HAS(t, err.text, "the value in the column failures is not of the column's type");
}

/* One life of a store: open, three puts, close. *ret_stored: how many puts were acknowledged. */
static int live(uint32_t *ret_stored)
{
    int rc = reopen(NULL);

    *ret_stored = 0;
    while (!rc && *ret_stored < 3) {
        rc = put(*ret_stored + 1, "a", *ret_stored);
        *ret_stored += rc == 0;
    }
    if (!rc)
        rc = see_records(NULL);
    close_rows();
    return rc;
}

/*
 * Each allocation of SQLite fails once. SQLite can do without some allocations, so a life may end
 * well all the same; but acknowledged puts must be there, and nothing may be left allocated.
 */
TEST_FLAGS(survives_every_allocation_of_sqlite, TEST_NO_TORTURE)
{
    uint32_t stored = 0;
    uint64_t failed = 0;
    bool delivered;
    uint64_t k = 0;

    close_rows(); /* SQLite changes its allocator only while it is shut down */
    fault_vfs_shut_down();
    fault_vfs_route_memory();
    do {
        size_t blocks;
        int rc;

        snprintf(path, sizeof(path), "%s/x.db", test_dir(t));
        fault_vfs_use();
        fault_arm(FAULT_ALLOC, ++k);
        rc = live(&stored);
        delivered = fault_delivered(FAULT_ALLOC);
        fault_arm(FAULT_ALLOC, 0);
        failed += rc != 0;
        CHECK(t, rc == 0 || delivered);
        CHECK_OK(t, reopen(NULL));
        CHECK_OK(t, see_records(NULL));
        for (uint32_t i = 0; i < stored; i++)
            CHECK(t, saw(i + 1, "a", i));
        close_rows();
        fault_vfs_shut_down();
        blocks = heap_blocks();
        CHECK_INT(t, blocks, ==, 0);
    } while (delivered);
    CHECK_INT(t, failed, >, 100);
    printf("%llu allocations, %llu of them fatal\n", (unsigned long long)k - 1,
           (unsigned long long)failed);
}

/* TEST_SURVIVES_STORE: a file is closed while faults occur, which SQLite does not report.
 * TEST_NO_TORTURE: hundreds of writes, or a loop over the case's own faults; torture would take
 * minutes and find what earlier cases find. */
