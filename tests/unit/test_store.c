/* Every case with BOTH runs on the store in memory and on the one in SQLite: they promise the same.
 */
#include "base/time.h"
#include "blacklist/blacklist.h"
#include "blacklist/store/store_sqlite.h"
#include "tests/lib/fault.h"
#include "tests/lib/fault_vfs.h"
#include "tests/lib/files.h"
#include "tests/lib/heap.h"
#include "tests/lib/records.h"
#include "tests/lib/store_mem.h"
#include "tests/lib/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HOST BLACKLIST_WHOLE_HOST

enum kind { MEMORY, SQLITE };

static const struct db_options options = { .vfs = FAULT_VFS };

static struct blacklist_store *store;
static struct store_mem mem;
static char path[LIMIT_DB_PATH_BYTES];

static int reopen(enum kind kind, struct hvd_err *err)
{
    if (kind == SQLITE)
        return store_sqlite_open(path, &options, &store, err);
    store = &mem.store;
    return 0;
}

static int begin(struct test *t, enum kind kind)
{
    store_mem_init(&mem);
    store = NULL;
    fault_vfs_use();
    fault_vfs_quiet(false);
    snprintf(path, sizeof(path), "%s/x.db", test_dir(t));
    return reopen(kind, NULL);
}

/* What SQLite does at the end may fail unnoticed: the write-ahead log is still there. */
static void close_store(void)
{
    fault_vfs_quiet(true);
    blacklist_store_close(store);
    store = NULL;
    fault_vfs_quiet(false);
}

static void end(void)
{
    close_store();
    store_mem_release(&mem);
}

static int put(uint32_t number, const char *host, uint32_t slot)
{
    struct blacklist_record record;
    struct blacklist_event event;

    records_make(number, host, slot, &record, &event);
    return blacklist_store_put(store, &record, &event, NULL);
}

/* What a visit has shown. */
static struct {
    size_t count;
    struct blacklist_record record[8];
    struct blacklist_event event[2 * LIMIT_BLACKLIST_HISTORY_ROWS];
} seen;

static int see_record(void *arg, const struct blacklist_record *record)
{
    (void)arg;
    if (seen.count == ARRAY_SIZE(seen.record))
        abort();
    seen.record[seen.count++] = *record;
    return 0;
}

static int see_event(void *arg, const struct blacklist_event *event)
{
    (void)arg;
    if (seen.count == ARRAY_SIZE(seen.event))
        abort();
    seen.event[seen.count++] = *event;
    return 0;
}

static int see_records(struct hvd_err *err)
{
    seen.count = 0;
    return blacklist_store_load(store, see_record, NULL, err);
}

static int see_history(const char *host, struct hvd_err *err)
{
    seen.count = 0;
    return blacklist_store_history(store, host, see_event, NULL, err);
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

static bool event_is(size_t index, uint32_t number, const char *host, uint32_t slot)
{
    struct blacklist_record record;
    struct blacklist_event event;

    records_make(number, host, slot, &record, &event);
    return index < seen.count && events_same(&seen.event[index], &event);
}

#define BOTH(name)                            \
    static void name##_memory(struct test *t) \
    {                                         \
        name(t, MEMORY);                      \
    }                                         \
    static void name##_sqlite(struct test *t) \
    {                                         \
        name(t, SQLITE);                      \
    }

static void begins_empty(struct test *t, enum kind kind)
{
    CHECK_OK(t, begin(t, kind));
    CHECK_OK(t, see_records(NULL));
    CHECK_INT(t, seen.count, ==, 0);
    CHECK_OK(t, see_history("a", NULL));
    CHECK_INT(t, seen.count, ==, 0);
    CHECK_OK(t, blacklist_store_clear(store, "a", 1, NULL));
    blacklist_store_close(NULL);
out:
    end();
}
BOTH(begins_empty)

static void gives_back_what_it_was_given(struct test *t, enum kind kind)
{
    CHECK_OK(t, begin(t, kind));
    CHECK_OK(t, put(1, "a", 0));
    CHECK_OK(t, put(2, "a", HOST));
    CHECK_OK(t, put(77, "b", LIMIT_SLOTS_PER_HOST - 1));
    close_store();
    CHECK_OK(t, reopen(kind, NULL));
    CHECK_OK(t, see_records(NULL));
    CHECK_INT(t, seen.count, ==, 3);
    CHECK(t, saw(1, "a", 0) && saw(2, "a", HOST) && saw(77, "b", LIMIT_SLOTS_PER_HOST - 1));
    CHECK_OK(t, see_history("a", NULL));
    CHECK_INT(t, seen.count, ==, 2);
    CHECK(t, event_is(0, 2, "a", HOST) && event_is(1, 1, "a", 0));
out:
    end();
}
BOTH(gives_back_what_it_was_given)

static void a_record_takes_the_place_of_the_one_before(struct test *t, enum kind kind)
{
    struct blacklist_record record;
    struct blacklist_event event;

    CHECK_OK(t, begin(t, kind));
    CHECK_OK(t, put(1, "a", 0));
    CHECK_OK(t, put(90, "a", 0));
    records_make(3, "a", 0, &record, &event);
    CHECK_OK(t, blacklist_store_put(store, &record, NULL, NULL));
    CHECK_OK(t, see_records(NULL));
    CHECK_INT(t, seen.count, ==, 1);
    CHECK(t, saw(3, "a", 0));
    CHECK_OK(t, see_history("a", NULL));
    CHECK_INT(t, seen.count, ==, 2);
    CHECK(t, event_is(0, 90, "a", 0) && event_is(1, 1, "a", 0));
out:
    end();
}
BOTH(a_record_takes_the_place_of_the_one_before)

static void extremes_come_back_too(struct test *t, enum kind kind)
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
    CHECK_OK(t, begin(t, kind));
    CHECK_OK(t, blacklist_store_put(store, &record, &event, NULL));
    CHECK_OK(t, see_records(NULL));
    CHECK_INT(t, seen.count, ==, 1);
    CHECK(t, records_same(&seen.record[0], &record));
    CHECK_OK(t, see_history(record.host, NULL));
    CHECK_INT(t, seen.count, ==, 1);
    CHECK(t, events_same(&seen.event[0], &event));
out:
    end();
}
BOTH(extremes_come_back_too)

static void clearing_forgets_the_history_as_well(struct test *t, enum kind kind)
{
    CHECK_OK(t, begin(t, kind));
    CHECK_OK(t, put(1, "a", 0));
    CHECK_OK(t, put(2, "a", 1));
    CHECK_OK(t, put(3, "a", HOST));
    CHECK_OK(t, blacklist_store_clear(store, "a", 0, NULL));
    CHECK_OK(t, blacklist_store_clear(store, "a", HOST, NULL));
    close_store();
    CHECK_OK(t, reopen(kind, NULL));
    CHECK_OK(t, see_records(NULL));
    CHECK_INT(t, seen.count, ==, 1);
    CHECK(t, saw(2, "a", 1));
    CHECK_OK(t, see_history("a", NULL));
    CHECK_INT(t, seen.count, ==, 1);
    CHECK(t, event_is(0, 2, "a", 1));
out:
    end();
}
BOTH(clearing_forgets_the_history_as_well)

static void the_history_keeps_the_newest_of_each_key(struct test *t, enum kind kind)
{
    const uint32_t rows = LIMIT_BLACKLIST_HISTORY_ROWS;

    CHECK_OK(t, begin(t, kind));
    for (uint32_t i = 0; i < rows + 5; i++) {
        CHECK_OK(t, put(i, "a", 0));
        if (i < 3)
            CHECK_OK(t, put(i, "a", 1));
    }
    CHECK_OK(t, see_history("a", NULL));
    CHECK_INT(t, seen.count, ==, rows + 3);
    for (uint32_t i = 0; i < rows; i++)
        CHECK(t, event_is(i, rows + 4 - i, "a", 0));
    CHECK(t, event_is(rows, 2, "a", 1) && event_is(rows + 2, 0, "a", 1));
out:
    end();
}
BOTH(the_history_keeps_the_newest_of_each_key)

static int stop_at_second(void *arg, const struct blacklist_record *record)
{
    (void)record;
    return ++*(int *)arg == 2 ? HVD_E_STATE : 0;
}

static int stop_at_once(void *arg, const struct blacklist_event *event)
{
    (void)arg;
    (void)event;
    return HVD_E_STATE;
}

static void a_visit_ends_when_it_is_told_to(struct test *t, enum kind kind)
{
    int count = 0;

    CHECK_OK(t, begin(t, kind));
    for (uint32_t slot = 0; slot < 3; slot++)
        CHECK_OK(t, put(slot, "a", slot));
    CHECK_CODE(t, blacklist_store_load(store, stop_at_second, &count, NULL), HVD_E_STATE);
    CHECK_INT(t, count, ==, 2);
    CHECK_CODE(t, blacklist_store_history(store, "a", stop_at_once, NULL, NULL), HVD_E_STATE);
    CHECK_OK(t, see_records(NULL)); /* and the next one begins anew */
    CHECK_INT(t, seen.count, ==, 3);
out:
    end();
}
BOTH(a_visit_ends_when_it_is_told_to)

/* The whole way: failures, their records, the next driver. */
static void the_blacklist_outlives_its_driver(struct test *t, enum kind kind)
{
    const struct blacklist_failure failure = { "a", 1, 7, "exit code 1" };
    static struct blacklist_change change;
    struct blacklist blacklist;
    struct policy policy;
    struct rng rng;
    int64_t until_us;

    rng_seed(&rng, 1);
    policy_init(&policy);
    blacklist_init(&blacklist, &policy, NULL);
    CHECK_OK(t, begin(t, kind));
    CHECK_OK(t, blacklist_failure(&blacklist, &failure, 0, TIME_DAY, &rng, &change, NULL));
    CHECK_OK(t, blacklist_store_put(store, &change.record, &change.event, NULL));
    until_us = blacklist_deadline(&blacklist, 0);
    blacklist_release(&blacklist);
    close_store();

    CHECK_OK(t, reopen(kind, NULL));
    CHECK_OK(t, see_records(NULL));
    CHECK_INT(t, seen.count, ==, 1);
    blacklist_init(&blacklist, &policy, NULL);
    CHECK_OK(t, blacklist_load(&blacklist, &seen.record[0], 5 * TIME_S, TIME_DAY + TIME_S, NULL));
    CHECK_INT(t, blacklist_deadline(&blacklist, 5 * TIME_S), ==, until_us + 4 * TIME_S);
out:
    blacklist_release(&blacklist);
    end();
}
BOTH(the_blacklist_outlives_its_driver)

/* A write that fails is as if it had not been asked for, and the next one works. */
static void a_failed_write_changes_nothing(struct test *t, enum kind kind)
{
    uint64_t k = 0;
    bool delivered;

    fault_arm(FAULT_STORE, 0);
    CHECK_OK(t, begin(t, kind));
    CHECK_OK(t, put(1, "a", 0));
    do {
        int rc;

        fault_arm(FAULT_STORE, ++k);
        rc = k % 2 ? put(2, "a", 0) : blacklist_store_clear(store, "a", 0, NULL);
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
    CHECK_INT(t, k, >, kind == SQLITE ? 4 : 1);
out:
    end();
}
BOTH(a_failed_write_changes_nothing)

static void refuses_the_file_of_another_schema(struct test *t)
{
    static const char *const steps[] = { "CREATE TABLE record(host TEXT)" };
    static const struct db_schema other = { "blacklist", 'B', steps, 1 };
    struct db *db = NULL;
    struct hvd_err err;

    fault_vfs_use();
    snprintf(path, sizeof(path), "%s/x.db", test_dir(t));
    CHECK_OK(t, db_open(path, &other, &options, &db, NULL));
    fault_vfs_quiet(true);
    db_close(db);
    fault_vfs_quiet(false);
    CHECK_CODE(t, reopen(SQLITE, &err), HVD_E_CORRUPT);
    CHECK_HAS(t, err.text, "no such column: slot; move it and its -wal file aside");
out:
    end();
}

/* Rows that somebody has written by hand, past every check of the tables. */
static int write_row(const char *sql)
{
    static const struct db_schema same = { "blacklist", 'B', NULL, 1 };
    struct db_stmt stmt;
    struct db *db;
    int rc;

    close_store();
    rc = db_open(path, &same, &options, &db, NULL);
    if (rc)
        return rc;
    rc = db_prepare(&stmt, db, sql, NULL);
    if (!rc) {
        rc = db_run(&stmt, NULL);
        db_stmt_release(&stmt);
    }
    fault_vfs_quiet(true);
    db_close(db);
    fault_vfs_quiet(false);
    return rc ? rc : reopen(SQLITE, NULL);
}

static void foreign_records_are_checked(struct test *t)
{
    static const struct {
        const char *sql;
        const char *words;
    } rows[] = {
        {"host = 'a b'",                  "only letters, digits"                        },
        { "host = ''",                    "the host name is empty"                      },
        { "host = hex(zeroblob(200))",    "too long"                                    },
        { "host = 'a' || char(0) || 'b'", "holds a NUL"                                 },
        { "slot = 1024",                  "out of range"                                },
        { "slot = -2",                    "out of range"                                },
        { "failures = -1",                "out of range"                                },
        { "failures = 4294967296",        "out of range"                                },
        { "since_us = -1",                "out of range"                                },
        { "until_us = 0",                 "a:0: it ends before it begins"               },
        { "restarts = 'x'",               "the restarts of a record must be"            },
        { "incarnations = '2,1'",         "the incarnations of a record: the numbers do"},
        { "reason = char(27)",            "reason is not clean text"                    },
    };
    char sql[256];
    struct hvd_err err;

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        CHECK_OK(t, begin(t, SQLITE));
        CHECK_OK(t, put(1, "a", 0));
        snprintf(sql, sizeof(sql), "UPDATE record SET %s", rows[i].sql);
        CHECK_OK(t, write_row(sql));
        CHECK_CODE(t, see_records(&err), HVD_E_CORRUPT);
        CHECK_HAS(t, err.text, rows[i].words);
        CHECK_HAS(t, err.text, path);
        CHECK_HAS(t, err.text, "; move it and its -wal file aside");
        end();
    }
out:
    end();
}

static void foreign_events_are_checked(struct test *t)
{
    static const char *const rows[] = { "slot = 1024", "incarnation = -1", "wall_us = -1",
                                        "counted = 2", "reason = char(27)" };
    char sql[256];
    struct hvd_err err;

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        CHECK_OK(t, begin(t, SQLITE));
        CHECK_OK(t, put(1, "a", 0));
        snprintf(sql, sizeof(sql), "UPDATE event SET %s", rows[i]);
        CHECK_OK(t, write_row(sql));
        CHECK_CODE(t, see_history("a", &err), HVD_E_CORRUPT);
        CHECK_HAS(t, err.text, path);
        end();
    }
out:
    end();
}

/* As a file from before the tables were strict would have it. */
static void a_text_where_a_number_belongs_is_damage(struct test *t)
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
    struct db *db = NULL;
    struct hvd_err err;

    fault_vfs_use();
    snprintf(path, sizeof(path), "%s/x.db", test_dir(t));
    CHECK_OK(t, db_open(path, &loose, &options, &db, NULL));
    fault_vfs_quiet(true);
    db_close(db);
    fault_vfs_quiet(false);
    CHECK_OK(t, reopen(SQLITE, NULL));
    CHECK_CODE(t, see_records(&err), HVD_E_CORRUPT);
    CHECK_HAS(t, err.text, "what is in the column failures has another type");
    CHECK_CODE(t, see_history("a", &err), HVD_E_CORRUPT);
    CHECK_HAS(t, err.text, "what is in the column reason has another type");
    CHECK_CODE(t, see_history("b", &err), HVD_E_CORRUPT);
out:
    end();
}

/* One life of a store; *ret_stored says how many of three puts were acknowledged. */
static int live(uint32_t *ret_stored)
{
    int rc = reopen(SQLITE, NULL);

    *ret_stored = 0;
    while (!rc && *ret_stored < 3) {
        rc = put(*ret_stored + 1, "a", *ret_stored);
        *ret_stored += rc == 0;
    }
    if (!rc)
        rc = see_records(NULL);
    if (!rc)
        rc = see_history("a", NULL);
    close_store();
    return rc;
}

/*
 * Each allocation that SQLite makes fails once. It may do without some, so a life that ends well
 * proves nothing against it; but what was acknowledged is there, and nothing is left allocated.
 */
static void survives_every_allocation_of_sqlite(struct test *t)
{
    uint32_t stored = 0;
    uint64_t failed = 0;
    bool delivered;
    uint64_t k = 0;

    fault_vfs_route_memory();
    store_mem_init(&mem);
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
        CHECK_OK(t, reopen(SQLITE, NULL));
        CHECK_OK(t, see_records(NULL));
        for (uint32_t i = 0; i < stored; i++)
            CHECK(t, saw(i + 1, "a", i));
        close_store();
        fault_vfs_shut_down();
        blocks = heap_blocks();
        CHECK_INT(t, blocks, ==, 0);
    } while (delivered);
    CHECK_INT(t, failed, >, 100);
    printf("%llu allocations, %llu of them fatal\n", (unsigned long long)k - 1,
           (unsigned long long)failed);
out:
    end();
}

#define CASE_BOTH(name) CASE(name##_memory), CASE(name##_sqlite)
#define CASE_BOTH_FLAGS(name, flags) \
    CASE_FLAGS(name##_memory, flags), CASE_FLAGS(name##_sqlite, flags)

/* With TEST_SURVIVES_STORE: a file is closed under fire, which SQLite bears in silence. With
 * TEST_NO_TORTURE: hundreds of writes, or a loop over faults of their own; torture would take
 * minutes and find what the cases before them find. */
TESTS(CASE_BOTH(begins_empty), CASE_BOTH(gives_back_what_it_was_given),
      CASE_BOTH(a_record_takes_the_place_of_the_one_before), CASE_BOTH(extremes_come_back_too),
      CASE_BOTH(clearing_forgets_the_history_as_well),
      CASE_BOTH_FLAGS(the_history_keeps_the_newest_of_each_key, TEST_NO_TORTURE),
      CASE_BOTH(a_visit_ends_when_it_is_told_to), CASE_BOTH(the_blacklist_outlives_its_driver),
      CASE_BOTH_FLAGS(a_failed_write_changes_nothing, TEST_NO_TORTURE),
      CASE_FLAGS(refuses_the_file_of_another_schema, TEST_SURVIVES_STORE),
      CASE_FLAGS(foreign_records_are_checked, TEST_NO_TORTURE),
      CASE_FLAGS(foreign_events_are_checked, TEST_NO_TORTURE),
      CASE(a_text_where_a_number_belongs_is_damage),
      CASE_FLAGS(survives_every_allocation_of_sqlite, TEST_NO_TORTURE))
