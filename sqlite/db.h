/*
 * db.h: a database file of hvd-elastic, and the only way to SQLite: no other folder includes
 * sqlite3.h.
 *
 * A file is opened only when it is one of ours, of a version we know, and undamaged; otherwise it
 * is left as it is and the error says what to do. A missing file is created complete or not at all
 * (newfile.h), so an empty or half-made file is never ours and is never replaced silently. Commits
 * are durable: write-ahead log, synced at each commit.
 *
 * The first four bytes of meaning, SQLite's application_id, are "hvd" and the schema's kind;
 * user_version is the number of migration steps that were applied.
 *
 * One thread at a time uses a database and its statements.
 */
#ifndef SQLITE_DB_H
#define SQLITE_DB_H

#include "base/err.h"
#include "base/text.h"

struct db;

struct db_schema {
    const char *what;         /* "job": the word for the file in error texts */
    char kind;                /* 'J': a file with another kind is refused */
    const char *const *steps; /* SQL; the i-th step leads from version i to version i + 1 */
    int step_count;
};

struct db_options {
    const char *vfs; /* NULL: the system's VFS; tests have their own */
    int busy_ms;     /* milliseconds to wait for another process that uses the file */
    /* pages in the write-ahead log before they are copied back; 0: SQLite's default */
    int checkpoint_pages;
    unsigned mode; /* permissions of a new file and of the log files beside it; 0: 0644 */
    /* The file is only looked at: a missing file is not made (HVD_E_NOTFOUND), an older one is not
     * brought to this version (HVD_E_VERSION), and closing copies nothing back. */
    bool look;
};

/* The usual options of a program: the system's VFS, and a short wait. */
extern const struct db_options db_options_usual;

/*
 * Opens the database, makes it if it is missing, and brings it to the schema's version. The schema
 * and the options are borrowed until db_close, the path is copied. Codes:
 *     HVD_E_INVAL        not a database of hvd-elastic, or of another kind; not a plain file
 *     HVD_E_VERSION      written by a newer hvd-elastic
 *     HVD_E_CORRUPT      damaged or empty, or missing while its -wal is still there
 *     HVD_E_BUSY         another process uses the file
 *     HVD_E_DENIED       the file or its directory cannot be written
 *     HVD_E_NOTFOUND     the directory of the file does not exist
 *     HVD_E_UNSUPPORTED  the file system has no shared memory or does not sync
 *     HVD_E_FULL, HVD_E_IO, HVD_E_NOMEM, HVD_E_LIMIT
 */
int db_open(const char *path, const struct db_schema *schema, const struct db_options *options,
            struct db **ret_db, struct hvd_err *err) MUST_CHECK;

/* Copies the whole write-ahead log back into the file, so that the file alone has everything.
 * HVD_E_BUSY: another process read the file all the time. */
int db_settle(struct db *db, struct hvd_err *err) MUST_CHECK;

/* Closes the database. All statements must have been released before. */
void db_close(struct db *db);

/* Statements between db_begin and db_commit are durable together, or none of them happened. After a
 * failure the caller calls db_rollback. */
int db_begin(struct db *db, struct hvd_err *err) MUST_CHECK;
int db_commit(struct db *db, struct hvd_err *err) MUST_CHECK;
void db_rollback(struct db *db); /* harmless when no transaction is open */

struct sqlite3_stmt;

struct db_stmt {
    struct db *db;
    struct sqlite3_stmt *raw;
    int bind_failed; /* SQLite's error code of a failed bind, reported by the next db_step */
};

int db_prepare(struct db_stmt *stmt, struct db *db, const char *sql,
               struct hvd_err *err) MUST_CHECK;
void db_stmt_release(struct db_stmt *stmt);

/* Bind a value. Parameters count from 1. The text is borrowed until db_reset. A failure is reported
 * by the next db_step. */
void db_bind_int(struct db_stmt *stmt, int parameter, int64_t value);
void db_bind_text(struct db_stmt *stmt, int parameter, struct span text);

/* Runs the statement to its next row. Returns DB_ROW, DB_DONE, or a negative code. */
#define DB_DONE 0
#define DB_ROW  1
int db_step(struct db_stmt *stmt, struct hvd_err *err) MUST_CHECK;

/* Makes the statement ready for its next use, without parameters. */
void db_reset(struct db_stmt *stmt);

/* Runs one step of a statement that returns no row, and then db_reset. */
int db_run(struct db_stmt *stmt, struct hvd_err *err) MUST_CHECK;

/* Read a column. Columns count from 0. HVD_E_CORRUPT: a value of another type is stored. Text is
 * borrowed until the next db_step or db_reset. */
int db_column_int(struct db_stmt *stmt, int column, int64_t *ret_value,
                  struct hvd_err *err) MUST_CHECK;
int db_column_text(struct db_stmt *stmt, int column, struct span *ret_text,
                   struct hvd_err *err) MUST_CHECK;

/* Returns the name of the column in the table; "?" when no memory is left. */
const char *db_column_name(const struct db_stmt *stmt, int column);

/* Reports a row that makes no sense. Returns HVD_E_CORRUPT; `what` stands in the text between the
 * file and the remedy. */
int db_damaged(const struct db *db, const char *what, struct hvd_err *err);

/* Returns the HVD_E_ code for an (extended) code of SQLite and the errno behind that code. */
int db_code(int sqlite_code, int system_errno);

#endif
