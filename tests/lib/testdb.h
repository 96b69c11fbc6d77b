/*
 * testdb.h: a small database for the tests of sqlite/db.h, on the VFS that fails.
 */
#ifndef TESTS_LIB_TESTDB_H
#define TESTS_LIB_TESTDB_H

#include "base/limits.h"
#include "sqlite/db.h"
#include "tests/lib/files.h"
#include "tests/lib/test.h"

/* Where the file format keeps them, in bytes from the start of the file. */
#define TESTDB_AT_VERSION     60
#define TESTDB_AT_APPLICATION 68
#define TESTDB_PAGE_BYTES     4096

/* CREATE TABLE thing(id INTEGER PRIMARY KEY, name TEXT), and two steps more. */
extern const struct db_schema testdb_version_1;
extern const struct db_schema testdb_version_3;
extern const struct db_options testdb_options;

/* In a fresh directory. */
extern char testdb_path[LIMIT_DB_PATH_BYTES];
void testdb_begin(struct test *t);

/* Closes. What SQLite does at the end may fail unnoticed, so it is not made to: the write-ahead log
 * would still be there. */
void testdb_end(struct db *db);

/* The name of a file beside the database, which is "" itself. */
const char *testdb_beside(const char *suffix);

/* A closed database of version 1 with one thing, "one". */
int testdb_make(struct hvd_err *err);

/* -1 when it cannot be said. */
int64_t testdb_count(struct db *db);

#endif
