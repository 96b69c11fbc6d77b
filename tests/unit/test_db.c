/*
 * test_db.c: sqlite/db on real files: durability, schemas that are applied step by step,
 * statements, rows, and the end of a process at any point.
 */
#include "sqlite/db.h"

#include "tests/lib/fault.h"
#include "tests/lib/fault_vfs.h"
#include "tests/lib/fixture.h"
#include "tests/lib/testdb.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct file_bytes before;

static struct db *db;
static struct db_stmt put, get;

static void begin(struct test *t)
{
    db = NULL;
    put = get = (struct db_stmt){ .raw = NULL };
    testdb_begin(t);
}

static void end(struct test *t)
{
    (void)t;
    db_stmt_release(&put);
    db_stmt_release(&get);
    testdb_end(db);
}
FIXTURE(begin, end)

TEST(a_missing_file_is_made_complete)
{
    CHECK_OK(t, db_open(testdb_path, &testdb_version_1, &testdb_options, &db, NULL));
    CHECK_INT(t, testdb_count(db), ==, 0);
    CHECK(t, !files_exist(testdb_beside(".hvd-new")));
    CHECK(t, !files_exist(testdb_beside(".hvd-new-wal")));
    files_read(testdb_path, &before);
    CHECK_INT(t, memcmp(before.bytes + TESTDB_AT_APPLICATION, "hvdT", 4), ==, 0);
    CHECK_INT(t, memcmp(before.bytes + TESTDB_AT_VERSION, "\0\0\0\1", 4), ==, 0);
}

TEST(committed_rows_are_there_again)
{
    CHECK_OK(t, testdb_make(NULL));
    CHECK_OK(t, db_open(testdb_path, &testdb_version_1, &testdb_options, &db, NULL));
    CHECK_INT(t, testdb_count(db), ==, 1);
}

/* TEST_SURVIVES_STORE: SQLite ignores a write that fails while a database is closed. */

/* The same while closing fails, too. */
TEST_FLAGS(closing_cannot_lose_anything, TEST_SURVIVES_STORE)
{
    int rc;

    CHECK_OK(t, db_open(testdb_path, &testdb_version_1, &testdb_options, &db, NULL));
    CHECK_OK(t, db_prepare(&put, db, "INSERT INTO thing(name) VALUES('one')", NULL));
    rc = db_run(&put, NULL);
    db_stmt_release(&put);
    CHECK_OK(t, rc);
    db_close(db);
    db = NULL;
    fault_vfs_quiet(true);
    CHECK_OK(t, db_open(testdb_path, &testdb_version_1, &testdb_options, &db, NULL));
    CHECK_INT(t, testdb_count(db), ==, 1);
}

TEST(the_write_ahead_log_is_played_back)
{
    static struct file_bytes log;

    CHECK_OK(t, testdb_make(NULL));
    CHECK_OK(t, db_open(testdb_path, &testdb_version_3, &testdb_options, &db, NULL));
    files_read(testdb_path, &before);
    files_read(testdb_beside("-wal"), &log);
    testdb_end(db);
    db = NULL;
    files_write(testdb_path, before.bytes, before.length); /* as after a loss of power */
    files_write(testdb_beside("-wal"), log.bytes, log.length);
    CHECK_OK(t, db_open(testdb_path, &testdb_version_3, &testdb_options, &db, NULL));
    CHECK_INT(t, testdb_count(db), ==, 1);
}

TEST(steps_are_applied_in_order_and_keep_the_rows)
{
    int64_t size;

    CHECK_OK(t, testdb_make(NULL));
    CHECK_OK(t, db_open(testdb_path, &testdb_version_3, &testdb_options, &db, NULL));
    CHECK_INT(t, testdb_count(db), ==, 1);
    CHECK_OK(t, db_prepare(&put, db, "SELECT size FROM thing WHERE name = 'one'", NULL));
    CHECK_INT(t, db_step(&put, NULL), ==, DB_ROW);
    CHECK_OK(t, db_column_int(&put, 0, &size, NULL));
    CHECK_INT(t, size, ==, 7);
}

TEST(a_step_that_fails_leaves_the_version_before)
{
    static const char *const broken[] = {
        "CREATE TABLE thing(id INTEGER PRIMARY KEY, name TEXT) STRICT",
        "CREATE TABLE third(id INTEGER PRIMARY KEY); INSERT INTO nowhere VALUES(1)",
    };
    const struct db_schema wrong = { "test", 'T', broken, 2 };
    struct hvd_err err;

    CHECK_OK(t, testdb_make(NULL));
    CHECK_CODE(t, db_open(testdb_path, &wrong, &testdb_options, &db, &err), HVD_E_CORRUPT);
    CHECK_HAS(t, err.text, "no such table: nowhere");
    CHECK_OK(t, db_open(testdb_path, &testdb_version_3, &testdb_options, &db, &err));
    CHECK_INT(t, testdb_count(db), ==, 1);
}

/* Each name is a file of the current directory, also a name that means something else to SQLite. */
TEST(no_name_is_special)
{
    static const char *const names[] = { ":memory:", "file:x?mode=memory" };

    CHECK_INT(t, chdir(test_dir(t)), ==, 0);
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        CHECK_OK(t, db_open(names[i], &testdb_version_1, &testdb_options, &db, NULL));
        testdb_end(db);
        db = NULL;
        CHECK(t, files_exist(names[i]));
    }
}

static int add_one(void)
{
    const struct db_options patient = { .busy_ms = 100000 };
    int rc = db_open(testdb_path, &testdb_version_3, &patient, &db, NULL);

    if (rc)
        return rc;
    rc = db_prepare(&put, db, "INSERT INTO thing(name) VALUES('one')", NULL);
    if (!rc) {
        rc = db_run(&put, NULL);
        db_stmt_release(&put);
    }
    db_close(db);
    db = NULL;
    return rc;
}

#define CREATORS 4

TEST_FLAGS(many_processes_may_create_a_database_at_once, TEST_NO_TORTURE)
{
    pid_t children[CREATORS];
    int status;

    for (int round = 0; round < 10; round++) {
        testdb_begin(t);
        for (int i = 0; i < CREATORS; i++) {
            children[i] = fork();
            CHECK(t, children[i] >= 0);
            if (children[i] == 0)
                _exit(add_one() ? 1 : 0);
        }
        for (int i = 0; i < CREATORS; i++) {
            CHECK_INT(t, waitpid(children[i], &status, 0), ==, children[i]);
            CHECK_INT(t, status, ==, 0);
        }
        CHECK_OK(t, db_open(testdb_path, &testdb_version_3, &testdb_options, &db, NULL));
        CHECK_INT(t, testdb_count(db), ==, CREATORS);
        testdb_end(db);
        db = NULL;
    }
}

TEST(statements_take_and_give_values)
{
    struct span name;
    int64_t id = 0;

    CHECK_OK(t, db_open(testdb_path, &testdb_version_1, &testdb_options, &db, NULL));
    CHECK_OK(t, db_prepare(&put, db, "INSERT INTO thing(id, name) VALUES(?1, ?2)", NULL));
    CHECK_OK(t, db_prepare(&get, db, "SELECT id, name FROM thing ORDER BY id", NULL));
    db_bind_int(&put, 1, INT64_MIN);
    db_bind_text(&put, 2, (struct span){ "abc", 2 });
    CHECK_OK(t, db_run(&put, NULL));
    db_bind_int(&put, 1, INT64_MAX);
    db_bind_text(&put, 2, (struct span){ NULL, 0 });
    CHECK_OK(t, db_run(&put, NULL));
    for (int i = 0; i < 2; i++) {
        CHECK_INT(t, db_step(&get, NULL), ==, DB_ROW);
        CHECK_OK(t, db_column_int(&get, 0, &id, NULL));
        CHECK_OK(t, db_column_text(&get, 1, &name, NULL));
        CHECK_INT(t, id, ==, INT64_MIN);
        CHECK(t, span_is(name, "ab"));
        db_reset(&get);
    }
    CHECK_INT(t, db_step(&get, NULL), ==, DB_ROW);
    CHECK_INT(t, db_step(&get, NULL), ==, DB_ROW);
    CHECK_OK(t, db_column_int(&get, 0, &id, NULL));
    CHECK_OK(t, db_column_text(&get, 1, &name, NULL));
    CHECK_INT(t, id, ==, INT64_MAX);
    CHECK_INT(t, name.length, ==, 0);
    CHECK_INT(t, db_step(&get, NULL), ==, DB_DONE);
}

TEST(a_column_of_another_type_is_damage)
{
    struct hvd_err err;
    struct span text;
    int64_t number = 5;

    CHECK_OK(t, testdb_make(NULL));
    CHECK_OK(t, db_open(testdb_path, &testdb_version_1, &testdb_options, &db, NULL));
    CHECK_OK(t, db_prepare(&put, db, "SELECT name, id FROM thing", NULL));
    CHECK_INT(t, db_step(&put, NULL), ==, DB_ROW);
    CHECK_CODE(t, db_column_int(&put, 0, &number, &err), HVD_E_CORRUPT);
    CHECK_HAS(t, err.text,
              "the value in the column name is not of the column's type; move the file");
    CHECK_CODE(t, db_column_text(&put, 1, &text, &err), HVD_E_CORRUPT);
    CHECK_INT(t, number, ==, 5);
}

TEST(a_rollback_undoes_the_rows)
{
    CHECK_OK(t, testdb_make(NULL));
    CHECK_OK(t, db_open(testdb_path, &testdb_version_1, &testdb_options, &db, NULL));
    db_rollback(db);
    CHECK_OK(t, db_prepare(&put, db, "INSERT INTO thing(name) VALUES('two')", NULL));
    CHECK_OK(t, db_begin(db, NULL));
    CHECK_OK(t, db_run(&put, NULL));
    db_rollback(db);
    CHECK_INT(t, testdb_count(db), ==, 1);
    CHECK_OK(t, db_begin(db, NULL));
    CHECK_OK(t, db_run(&put, NULL));
    CHECK_OK(t, db_commit(db, NULL));
    CHECK_INT(t, testdb_count(db), ==, 2);
}

TEST(a_statement_can_be_used_after_it_failed)
{
    struct hvd_err err;

    CHECK_OK(t, testdb_make(NULL));
    CHECK_OK(t, db_open(testdb_path, &testdb_version_1, &testdb_options, &db, NULL));
    CHECK_CODE(t, db_prepare(&put, db, "INSERT INTO nothing VALUES(1)", &err), HVD_E_CORRUPT);
    CHECK_OK(t, db_prepare(&put, db, "INSERT INTO thing(id) VALUES(?1)", NULL));
    db_bind_int(&put, 1, 1);
    CHECK_CODE(t, db_run(&put, &err), HVD_E_CORRUPT);
    CHECK_HAS(t, err.text, "UNIQUE constraint failed");
    db_bind_int(&put, 1, 2);
    CHECK_OK(t, db_run(&put, NULL));
    CHECK_INT(t, testdb_count(db), ==, 2);
}

TEST(a_value_that_is_too_long_fails_in_the_step)
{
    CHECK_OK(t, db_open(testdb_path, &testdb_version_1, &testdb_options, &db, NULL));
    CHECK_OK(t, db_prepare(&put, db, "INSERT INTO thing(name) VALUES(?1)", NULL));
    db_bind_text(&put, 1, (struct span){ "never read", INT32_MAX });
    CHECK_CODE(t, db_run(&put, NULL), HVD_E_LIMIT);
    db_bind_text(&put, 1, (struct span){ "x", 1 });
    CHECK_OK(t, db_run(&put, NULL));
    CHECK_INT(t, testdb_count(db), ==, 1);
}

/* Each step of the creation fails once: the error gives the reason, and the next open starts
 * anew. */
TEST_FLAGS(a_creation_that_failed_can_be_tried_again, TEST_NO_TORTURE)
{
    struct hvd_err err;
    unsigned full = 0;
    uint64_t k = 0;
    int rc;

    do {
        testdb_begin(t);
        fault_arm(FAULT_STORE, ++k);
        rc = db_open(testdb_path, &testdb_version_3, &testdb_options, &db, &err);
        fault_arm(FAULT_STORE, 0);
        if (rc == 0)
            break;
        CHECK(t, rc == HVD_E_FULL || rc == HVD_E_IO);
        CHECK_HAS(t, err.text, testdb_path);
        CHECK_HAS(t, err.text, rc == HVD_E_FULL ? "; free some space" : "; check the disk");
        CHECK(t, !files_exist(testdb_beside(".hvd-new")));
        full += rc == HVD_E_FULL;
        CHECK_OK(t, db_open(testdb_path, &testdb_version_3, &testdb_options, &db, &err));
        CHECK_INT(t, testdb_count(db), ==, 0);
        testdb_end(db);
        db = NULL;
    } while (k < 1000);
    CHECK_INT(t, k, >, 10);
    CHECK_INT(t, full, >, 2);
}

/* A file system without shared memory between processes, as network file systems often are. */
TEST(a_file_system_without_shared_memory_is_refused)
{
    const struct db_options on_such = { .vfs = "unix-dotfile" };
    struct hvd_err err;

    CHECK_CODE(t, db_open(testdb_path, &testdb_version_1, &on_such, &db, &err), HVD_E_UNSUPPORTED);
    CHECK_HAS(t, err.text,
              "SQLite answers \"PRAGMA journal_mode = WAL\" with \"memory\", not \"wal\"; put the "
              "file on a "
              "local file system");
    CHECK(t, !files_exist(testdb_path));
}

TEST(codes_of_sqlite_have_names_of_ours)
{
    static const struct {
        int sqlite_code; /* numbers of SQLite's interface, which never change */
        int system_errno;
        int code;
    } codes[] = {
        {0,             0,      0             },
        { 1,            0,      HVD_E_CORRUPT },
        { 2,            0,      HVD_E_INTERNAL},
        { 3,            0,      HVD_E_DENIED  },
        { 5,            0,      HVD_E_BUSY    },
        { 5 | 1 << 8,   0,      HVD_E_BUSY    },
        { 6,            0,      HVD_E_BUSY    },
        { 7,            0,      HVD_E_NOMEM   },
        { 8,            0,      HVD_E_DENIED  },
        { 10 | 4 << 8,  0,      HVD_E_IO      },
        { 10 | 12 << 8, 0,      HVD_E_NOMEM   },
        { 10,           EACCES, HVD_E_DENIED  },
        { 10,           ENOSPC, HVD_E_FULL    },
        { 10,           EDQUOT, HVD_E_FULL    },
        { 11,           0,      HVD_E_CORRUPT },
        { 13,           0,      HVD_E_FULL    },
        { 14,           0,      HVD_E_IO      },
        { 14,           EROFS,  HVD_E_DENIED  },
        { 14,           EPERM,  HVD_E_DENIED  },
        { 15,           0,      HVD_E_BUSY    },
        { 18,           0,      HVD_E_LIMIT   },
        { 19,           0,      HVD_E_CORRUPT },
        { 20,           0,      HVD_E_CORRUPT },
        { 21,           0,      HVD_E_INTERNAL},
        { 23,           0,      HVD_E_DENIED  },
        { 26,           0,      HVD_E_CORRUPT },
    };

    for (size_t i = 0; i < ARRAY_SIZE(codes); i++)
        CHECK_INT(t, db_code(codes[i].sqlite_code, codes[i].system_errno), ==, codes[i].code);
}

TEST_FLAGS(misuse_is_a_bug_of_ours, TEST_NO_TORTURE)
{
    CHECK_OK(t, testdb_make(NULL));
    CHECK_OK(t, db_open(testdb_path, &testdb_version_1, &testdb_options, &db, NULL));
    CHECK_OK(t, db_prepare(&put, db, "SELECT id FROM thing", NULL));
    CHECK_PANICS(t, "rc == SQLITE_OK", db_close(db));
    CHECK_PANICS(t, "rc != DB_ROW", CHECK_OK(t, db_run(&put, NULL)));
    CHECK_PANICS(t, "SQLITE_RANGE", db_bind_int(&put, 1, 1));
    db_close(NULL);
}
