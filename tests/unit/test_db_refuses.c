/* The files that db_open refuses, and that it leaves untouched. */
#include "sqlite/db.h"

#include "base/limits.h"
#include "tests/lib/fixture.h"
#include "tests/lib/testdb.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static struct file_bytes before;

static struct db *db;
static struct db_stmt stmt;

static void begin(struct test *t)
{
    db = NULL;
    stmt = (struct db_stmt){ .raw = NULL };
    testdb_begin(t);
}

static void end(struct test *t)
{
    (void)t;
    db_stmt_release(&stmt);
    testdb_end(db);
}
FIXTURE(begin, end)

/* Opening is refused with the code and the words, and the file does not change. */
static void check_refused(struct test *t, const struct db_schema *schema, int code,
                          const char *words)
{
    struct hvd_err err;

    files_read(testdb_path, &before);
    CHECK_CODE(t, db_open(testdb_path, schema, &testdb_options, &db, &err), code);
    CHECK_INT(t, err.code, ==, code);
    CHECK_HAS(t, err.text, testdb_path);
    CHECK_HAS(t, err.text, words);
    CHECK(t, files_hold(testdb_path, &before));
    CHECK(t, db == NULL);
}

TEST(refuses_a_file_that_is_no_database)
{
    static const char page[TESTDB_PAGE_BYTES] = "#!/bin/sh\necho localhost:4\n";

    files_write(testdb_path, page, strlen(page));
    check_refused(t, &testdb_version_1, HVD_E_INVAL,
                  "not a file of hvd-elastic; give another path");
    files_write(testdb_path, page, sizeof(page));
    check_refused(t, &testdb_version_1, HVD_E_INVAL, "not a file of hvd-elastic");
}

TEST(refuses_a_foreign_database)
{
    CHECK_OK(t, testdb_make(NULL));
    files_patch(testdb_path, TESTDB_AT_APPLICATION, "\0\0\0\0", 4);
    check_refused(t, &testdb_version_1, HVD_E_INVAL, "not a file of hvd-elastic");
}

TEST(refuses_another_kind)
{
    CHECK_OK(t, testdb_make(NULL));
    files_patch(testdb_path, TESTDB_AT_APPLICATION, "hvdJ", 4);
    check_refused(t, &testdb_version_1, HVD_E_INVAL, "a file of hvd-elastic, but not a test");
}

TEST(reports_an_empty_file_as_damaged)
{
    files_write(testdb_path, "", 0);
    check_refused(t, &testdb_version_1, HVD_E_CORRUPT,
                  "the file is empty, but was not when it was made");
}

TEST(refuses_a_future_version)
{
    CHECK_OK(t, testdb_make(NULL));
    files_patch(testdb_path, TESTDB_AT_VERSION, "\0\0\0\4", 4);
    check_refused(t, &testdb_version_3, HVD_E_VERSION,
                  "the file has version 4, but this hvd-elastic knows only versions up to 3; use "
                  "the newer hvd-elastic, or move the file aside");
}

TEST(leaves_the_log_of_a_refused_file_alone)
{
    static struct file_bytes log;

    CHECK_OK(t, testdb_make(NULL));
    CHECK_OK(t, db_open(testdb_path, &testdb_version_3, &testdb_options, &db, NULL));
    CHECK_OK(t, db_prepare(&stmt, db, "INSERT INTO other(id) VALUES(1)", NULL));
    CHECK_OK(t, db_run(&stmt, NULL));
    files_read(testdb_path, &before);
    files_read(testdb_beside("-wal"), &log);
    db_stmt_release(&stmt);
    testdb_end(db);
    db = NULL;
    files_write(testdb_path, before.bytes, before.length); /* as if the process had been killed */
    files_write(testdb_beside("-wal"), log.bytes, log.length);
    check_refused(t, &testdb_version_1, HVD_E_VERSION, "the file has version 3");
    if (!t->failed)
        CHECK(t, files_hold(testdb_beside("-wal"), &log));
}

TEST(refuses_a_version_that_cannot_be)
{
    CHECK_OK(t, testdb_make(NULL));
    files_patch(testdb_path, TESTDB_AT_VERSION, "\0\0\0\0", 4);
    check_refused(t, &testdb_version_3, HVD_E_CORRUPT, "the file has no version");
    files_patch(testdb_path, TESTDB_AT_VERSION, "\xff\xff\xff\xff", 4);
    check_refused(t, &testdb_version_3, HVD_E_CORRUPT, "the file has no version");
}

TEST(finds_damage_in_every_page)
{
    static struct file_bytes whole;
    static char junk[TESTDB_PAGE_BYTES];

    memset(junk, 0x5a, sizeof(junk));
    CHECK_OK(t, testdb_make(NULL));
    CHECK_OK(t, db_open(testdb_path, &testdb_version_3, &testdb_options, &db, NULL));
    testdb_end(db);
    db = NULL;
    files_read(testdb_path, &whole);
    CHECK_INT(t, whole.length, >=, 4 * TESTDB_PAGE_BYTES);
    for (size_t at = TESTDB_PAGE_BYTES; at < whole.length; at += TESTDB_PAGE_BYTES) {
        files_patch(testdb_path, at, junk, sizeof(junk));
        check_refused(t, &testdb_version_3, HVD_E_CORRUPT,
                      "; move the file and its -wal file aside to start afresh");
        files_write(testdb_path, whole.bytes, whole.length);
    }
    files_write(testdb_path, whole.bytes, whole.length - TESTDB_PAGE_BYTES);
    check_refused(t, &testdb_version_3, HVD_E_CORRUPT, "malformed");
}

/* SQLite's integrity check itself succeeds; the damage is in the rows of its result. */
TEST(reads_what_the_check_answers)
{
    size_t at;
    int rc;

    CHECK_OK(t, testdb_make(NULL));
    CHECK_OK(t, db_open(testdb_path, &testdb_version_3, &testdb_options, &db, NULL));
    CHECK_OK(t, db_prepare(&stmt, db, "INSERT INTO thing(name) VALUES('two')", NULL));
    rc = db_run(&stmt, NULL);
    db_stmt_release(&stmt);
    CHECK_OK(t, rc);
    testdb_end(db);
    db = NULL;
    files_read(testdb_path, &before);
    for (at = TESTDB_PAGE_BYTES; at < before.length && before.bytes[at] != 13;
         at += TESTDB_PAGE_BYTES)
        ; /* the first leaf of a table: the rows of thing; its second cell begins where the first */
    CHECK(t, at < before.length);
    files_patch(testdb_path, at + 10, before.bytes + at + 8, 2);
    check_refused(t, &testdb_version_3, HVD_E_CORRUPT, "page");
}

TEST(refuses_a_directory_and_a_pipe)
{
    struct hvd_err err;

    CHECK_INT(t, mkdir(testdb_path, 0700), ==, 0);
    CHECK_CODE(t, db_open(testdb_path, &testdb_version_1, &testdb_options, &db, &err), HVD_E_INVAL);
    CHECK_HAS(t, err.text, "x.db: is a directory; give the name of a file in it");
    CHECK_INT(t, rmdir(testdb_path), ==, 0);
    CHECK_INT(t, mkfifo(testdb_path, 0600), ==, 0);
    CHECK_CODE(t, db_open(testdb_path, &testdb_version_1, &testdb_options, &db, &err), HVD_E_INVAL);
    CHECK_HAS(t, err.text, "x.db: is not a regular file");
}

TEST(refuses_names_that_cannot_be)
{
    char name[LIMIT_DB_PATH_BYTES + 2];
    struct hvd_err err;

    CHECK_CODE(t, db_open("", &testdb_version_1, &testdb_options, &db, &err), HVD_E_LIMIT);
    memset(name, 'x', sizeof(name));
    name[sizeof(name) - 1] = '\0';
    CHECK_CODE(t, db_open(name, &testdb_version_1, &testdb_options, &db, &err), HVD_E_LIMIT);
    CHECK_HAS(t, err.text, "a path must have 1 to 480 bytes");
}

TEST(refuses_a_link_to_nothing)
{
    struct hvd_err err;

    CHECK_INT(t, symlink("nowhere.db", testdb_path), ==, 0);
    CHECK_CODE(t, db_open(testdb_path, &testdb_version_1, &testdb_options, &db, &err), HVD_E_INVAL);
    CHECK_HAS(t, err.text,
              "x.db: is a symbolic link that leads nowhere; give the path of the file");
}

TEST(names_a_directory_that_is_missing)
{
    char name[LIMIT_DB_PATH_BYTES + 8];
    struct hvd_err err;

    snprintf(name, sizeof(name), "%s/no/x.db", test_dir(t));
    CHECK_CODE(t, db_open(name, &testdb_version_1, &testdb_options, &db, &err), HVD_E_NOTFOUND);
    CHECK_HAS(t, err.text, "/no: cannot open the directory: No such file or directory; create the");
    CHECK_OK(t, testdb_make(NULL));
    snprintf(name, sizeof(name), "%s/x.db", testdb_path);
    CHECK_CODE(t, db_open(name, &testdb_version_1, &testdb_options, &db, &err), HVD_E_NOTFOUND);
    CHECK_HAS(t, err.text, "Not a directory");
}

TEST(says_when_a_file_or_directory_is_read_only)
{
    struct hvd_err err;
    char dir[LIMIT_DB_PATH_BYTES];

    snprintf(dir, sizeof(dir), "%.*s", (int)(strlen(testdb_path) - strlen("/x.db")), testdb_path);
    files_obey_permissions(true);
    CHECK_INT(t, chmod(dir, 0500), ==, 0);
    CHECK_CODE(t, db_open(testdb_path, &testdb_version_1, &testdb_options, &db, &err),
               HVD_E_DENIED);
    CHECK_HAS(t, err.text, "make the file and its directory writable for this user");
    CHECK_INT(t, chmod(dir, 0700), ==, 0);
    CHECK_OK(t, testdb_make(NULL));
    CHECK_INT(t, chmod(dir, 0500), ==, 0);
    CHECK_CODE(t, db_open(testdb_path, &testdb_version_1, &testdb_options, &db, &err),
               HVD_E_DENIED);
    CHECK_HAS(t, err.text, "make the file and its directory writable for this user");
    CHECK_INT(t, chmod(dir, 0700), ==, 0);
    CHECK_INT(t, chmod(testdb_path, 0400), ==, 0);
    CHECK_CODE(t, db_open(testdb_path, &testdb_version_1, &testdb_options, &db, &err),
               HVD_E_DENIED);
    CHECK_HAS(t, err.text, "attempt to write a readonly database; make the file and its directory");
    CHECK_INT(t, chmod(testdb_path, 0000), ==, 0);
    CHECK_CODE(t, db_open(testdb_path, &testdb_version_1, &testdb_options, &db, &err),
               HVD_E_DENIED);
    CHECK_INT(t, chmod(dir, 0000), ==, 0);
    CHECK_CODE(t, db_open(testdb_path, &testdb_version_1, &testdb_options, &db, &err),
               HVD_E_DENIED);
    files_obey_permissions(false);
}

/* Forks a process that opens the database, runs the SQL, reports this, and waits to be killed. */
static pid_t occupy(const char *sql)
{
    char said;
    int fds[2];
    pid_t child;

    if (pipe(fds) || (child = fork()) < 0)
        abort();
    if (child == 0) {
        if (!db_open(testdb_path, &testdb_version_1, &testdb_options, &db, NULL) &&
            !db_prepare(&stmt, db, sql, NULL) && db_step(&stmt, NULL) >= 0 && !db_begin(db, NULL) &&
            write(fds[1], "x", 1) == 1)
            pause();
        _exit(1);
    }
    close(fds[1]);
    if (read(fds[0], &said, 1) != 1)
        abort();
    close(fds[0]);
    return child;
}

static void release(pid_t child)
{
    if (child > 0 && (kill(child, SIGKILL) || waitpid(child, NULL, 0) != child))
        abort();
}

TEST_FLAGS(says_when_another_process_writes, TEST_NO_TORTURE)
{
    struct hvd_err err;
    pid_t child = 0;

    CHECK_OK(t, testdb_make(NULL));
    child = occupy("PRAGMA application_id");
    CHECK_OK(t, db_open(testdb_path, &testdb_version_1, &testdb_options, &db,
                        &err)); /* reading is allowed */
    CHECK_INT(t, testdb_count(db), ==, 1);
    CHECK_CODE(t, db_begin(db, &err), HVD_E_BUSY);
    CHECK_HAS(t, err.text, "another process uses the file: wait for that process, or stop it");
    testdb_end(db);
    db = NULL;
    CHECK_CODE(t, db_open(testdb_path, &testdb_version_3, &testdb_options, &db, &err), HVD_E_BUSY);
    release(child);
    child = 0;
    CHECK_OK(t, db_open(testdb_path, &testdb_version_3, &testdb_options, &db,
                        &err)); /* a dead process holds no locks */
    release(child);
}

TEST_FLAGS(says_when_another_process_locks_the_database, TEST_NO_TORTURE)
{
    struct hvd_err err;
    pid_t child = 0;

    CHECK_OK(t, testdb_make(NULL));
    child = occupy("PRAGMA locking_mode = EXCLUSIVE");
    CHECK_CODE(t, db_open(testdb_path, &testdb_version_1, &testdb_options, &db, &err), HVD_E_BUSY);
    CHECK_HAS(t, err.text, testdb_path);
    release(child);
    child = 0;
    CHECK_OK(t, db_open(testdb_path, &testdb_version_1, &testdb_options, &db, &err));
    CHECK_INT(t, testdb_count(db), ==, 1);
    release(child);
}
