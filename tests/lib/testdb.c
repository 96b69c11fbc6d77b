/*
 * testdb.c: a database in the folder of a case, with the small schema that tests of sqlite/ use.
 */
#include "tests/lib/testdb.h"

#include "tests/lib/fault_vfs.h"

#include <stdio.h>

static const char *const steps[] = {
    "CREATE TABLE thing(id INTEGER PRIMARY KEY, name TEXT) STRICT",
    ("ALTER TABLE thing ADD COLUMN size INTEGER NOT NULL DEFAULT 7;"
     "CREATE INDEX by_name ON thing(name)"),
    "CREATE TABLE other(id INTEGER PRIMARY KEY) STRICT",
};

const struct db_schema testdb_version_1 = { "test", 'T', steps, 1 };
const struct db_schema testdb_version_3 = { "test", 'T', steps, 3 };
const struct db_options testdb_options = { .vfs = FAULT_VFS };

char testdb_path[LIMIT_DB_PATH_BYTES];

const char *testdb_beside(const char *suffix)
{
    static char name[LIMIT_DB_PATH_BYTES + 32];

    snprintf(name, sizeof(name), "%s%s", testdb_path, suffix);
    return name;
}

void testdb_begin(struct test *t)
{
    fault_vfs_use();
    fault_vfs_quiet(false);
    snprintf(testdb_path, sizeof(testdb_path), "%s/x.db", test_dir(t));
}

void testdb_end(struct db *db)
{
    fault_vfs_quiet(true);
    db_close(db);
    fault_vfs_quiet(false);
}

int testdb_make(struct hvd_err *err)
{
    struct db_stmt stmt;
    struct db *db;
    int rc = db_open(testdb_path, &testdb_version_1, &testdb_options, &db, err);

    if (rc)
        return rc;
    rc = db_prepare(&stmt, db, "INSERT INTO thing(name) VALUES('one')", err);
    if (!rc) {
        rc = db_run(&stmt, err);
        db_stmt_release(&stmt);
    }
    testdb_end(db);
    return rc;
}

int64_t testdb_count(struct db *db)
{
    struct db_stmt stmt;
    int64_t count = -1;

    if (db_prepare(&stmt, db, "SELECT count(*) FROM thing", NULL))
        return -1;
    if (db_step(&stmt, NULL) != DB_ROW || db_column_int(&stmt, 0, &count, NULL))
        count = -1;
    db_stmt_release(&stmt);
    return count;
}
