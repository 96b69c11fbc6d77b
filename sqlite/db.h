/*
 * db.h: a database file of hvd-elastic, and the only door to SQLite: nobody else includes
 * sqlite3.h.
 *
 * A file is opened only when it is one of ours, of a version we know, and undamaged; otherwise it
 * is left as it is and the error says what to do. A missing file is created complete or not at all
 * (newfile.h), so an empty or half-made one is never ours and never recreated in silence. Commits
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
    const char *what;         /* "blacklist": what messages call the file */
    char kind;                /* 'B': a file of another kind is refused */
    const char *const *steps; /* SQL; the i-th leads from version i to i + 1 */
    int step_count;
};

struct db_options {
    const char *vfs;      /* NULL: the system's; tests have their own */
    int busy_ms;          /* how long to wait for another process */
    int checkpoint_pages; /* length of the write-ahead log before it is copied back; 0: SQLite's */
    unsigned mode;        /* permissions of a file that is made, and of those beside it; 0: 0644 */
};

/* The options of a program: the system's VFS, a short wait. */
extern const struct db_options db_options_usual;

/*
 * Opens, creating it when it is missing, and brings it to the schema's version. The schema and the
 * options are borrowed until db_close, the path is copied. Codes:
 *     HVD_E_INVAL        not a database of hvd-elastic, or of another kind; not a plain file
 *     HVD_E_VERSION      written by a newer hvd-elastic
 *     HVD_E_CORRUPT      damaged, empty, or half of it is missing
 *     HVD_E_BUSY         another process has it
 *     HVD_E_DENIED       it or its directory cannot be written
 *     HVD_E_NOTFOUND     its directory does not exist
 *     HVD_E_UNSUPPORTED  its file system has no shared memory or does not sync
 *     HVD_E_FULL, HVD_E_IO, HVD_E_NOMEM, HVD_E_LIMIT
 */
int db_open(const char *path, const struct db_schema *schema, const struct db_options *options,
            struct db **ret_db, struct hvd_err *err) MUST_CHECK;

/* All statements have been released. */
void db_close(struct db *db);

/* What is between them is durable together, or did not happen. After a failure: db_rollback. */
int db_begin(struct db *db, struct hvd_err *err) MUST_CHECK;
int db_commit(struct db *db, struct hvd_err *err) MUST_CHECK;
void db_rollback(struct db *db); /* harmless when nothing was begun */

struct sqlite3_stmt;

struct db_stmt {
    struct db *db;
    struct sqlite3_stmt *raw;
    int bind_failed; /* SQLite's code, kept for the next step */
};

int db_prepare(struct db_stmt *stmt, struct db *db, const char *sql,
               struct hvd_err *err) MUST_CHECK;
void db_stmt_release(struct db_stmt *stmt);

/* Parameters count from 1. The text is borrowed until db_reset. A failure shows in the next step.
 */
void db_bind_int(struct db_stmt *stmt, int parameter, int64_t value);
void db_bind_text(struct db_stmt *stmt, int parameter, struct span text);

/* DB_ROW, DB_DONE, or a negative code. */
#define DB_DONE 0
#define DB_ROW  1
int db_step(struct db_stmt *stmt, struct hvd_err *err) MUST_CHECK;

/* Makes it ready for the next use; parameters are forgotten. */
void db_reset(struct db_stmt *stmt);

/* One step of a statement that returns no row, and the reset. */
int db_run(struct db_stmt *stmt, struct hvd_err *err) MUST_CHECK;

/* Columns count from 0. HVD_E_CORRUPT when another type is stored. Text is borrowed until the next
 * step or reset. */
int db_column_int(struct db_stmt *stmt, int column, int64_t *ret_value,
                  struct hvd_err *err) MUST_CHECK;
int db_column_text(struct db_stmt *stmt, int column, struct span *ret_text,
                   struct hvd_err *err) MUST_CHECK;

/* Its name in the table; "?" when even that cannot be said. */
const char *db_column_name(const struct db_stmt *stmt, int column);

/* HVD_E_CORRUPT, for a row that makes no sense: the file before what is wrong, the remedy behind.
 */
int db_damaged(const struct db *db, const char *what, struct hvd_err *err);

/* What an (extended) code of SQLite and the errno behind it are called here. */
int db_code(int sqlite_code, int system_errno);

#endif
