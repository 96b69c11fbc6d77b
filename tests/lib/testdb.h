/*
 * testdb.h: a small database for the tests of sqlite/db.h, on the VFS of fault_vfs.h.
 */
#ifndef TESTS_LIB_TESTDB_H
#define TESTS_LIB_TESTDB_H

#include "base/limits.h"
#include "sqlite/db.h"
#include "tests/lib/files.h"
#include "tests/lib/test.h"

/* Offsets of two fields in a SQLite file, in bytes from its start; and the size of a page. */
#define TESTDB_AT_VERSION     60
#define TESTDB_AT_APPLICATION 68
#define TESTDB_PAGE_BYTES     4096

/* version_1: CREATE TABLE thing(id INTEGER PRIMARY KEY, name TEXT). version_3: two more steps. */
extern const struct db_schema testdb_version_1;
extern const struct db_schema testdb_version_3;
extern const struct db_options testdb_options;

/* testdb_begin makes a new directory, and sets testdb_path to the path of a database in it, which
 * does not exist yet. */
extern char testdb_path[LIMIT_DB_PATH_BYTES];
void testdb_begin(struct test *t);

/* Closes the database. The last steps of SQLite may fail unnoticed, because the write-ahead log
 * remains; so no fault is injected into them. */
void testdb_end(struct db *db);

/* The path of the database with this suffix, for example "-wal"; "" is the database itself. */
const char *testdb_beside(const char *suffix);

/* Makes a database of version 1 with one row named "one", and closes it. */
int testdb_make(struct hvd_err *err);

/* The number of rows; -1: it cannot be read. */
int64_t testdb_count(struct db *db);

#endif
