/*
 * db.c: the only file that talks to SQLite. driver/journal opens a job's database with it and runs
 * prepared statements. db_open is strict: a file is identified, checked and accepted before a
 * single byte of it is written. Every error names the file and says what to do.
 */
#include "sqlite/db.h"

#include "base/limits.h"
#include "base/mem.h"
#include "base/panic.h"
#include "sqlite/newfile.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* The beginning of a file of SQLite, as its file format defines it: its length, its first bytes,
 * and the place of the application_id. */
#define HEADER_BYTES       100
#define HEADER_MAGIC       "SQLite format 3"
#define HEADER_APPLICATION 68
#define SYNCHRONOUS_FULL   "2"  /* what "PRAGMA synchronous" answers when it is FULL */
#define USUAL_MODE         0644 /* the permissions of a new file when the options have none */

#define REMEDY_DAMAGED     "move the file and its -wal file aside to start afresh"

struct db {
    sqlite3 *raw;
    const struct db_schema *schema;
    struct db_options options;
    size_t prefix_bytes; /* length of the prefix in `path` */
    char path[];         /* the path for SQLite: a prefix, and the path as the caller gave it */
};

const struct db_options db_options_usual = { .busy_ms = 250 };

/* Returns the error code of hvd-elastic for a result code of SQLite. The low byte of a result code
 * is the kind of error; the other bytes only add details. */
int db_code(int sqlite_code, int system_errno)
{
    if (sqlite_code == SQLITE_IOERR_NOMEM)
        return HVD_E_NOMEM;
    switch (sqlite_code & 0xff) {
    case SQLITE_OK: return 0;
    case SQLITE_NOMEM: return HVD_E_NOMEM;
    case SQLITE_TOOBIG: return HVD_E_LIMIT;
    case SQLITE_FULL: return HVD_E_FULL;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_PROTOCOL: return HVD_E_BUSY;
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH: return HVD_E_DENIED;
    /* SQLite has one code for many errors of the system, so the errno decides. */
    case SQLITE_CANTOPEN:
    case SQLITE_IOERR:
        if (system_errno == ENOSPC || system_errno == EDQUOT)
            return HVD_E_FULL;
        return system_errno == EACCES || system_errno == EPERM || system_errno == EROFS
                   ? HVD_E_DENIED
                   : HVD_E_IO;
    /* The SQL of hvd-elastic is constant and tested, so it fails only on tables of another
     * program. */
    case SQLITE_ERROR:
    case SQLITE_CONSTRAINT:
    case SQLITE_MISMATCH:
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB: return HVD_E_CORRUPT;
    default: return HVD_E_INTERNAL;
    }
}

/* Returns the path as the caller of db_open gave it, for errors. */
static const char *db_name(const struct db *db)
{
    return db->path + db->prefix_bytes;
}

/* Called when SQLite has failed with this code: fills err with SQLite's text and the remedy. */
static int db_fail(const struct db *db, int sqlite_code, struct hvd_err *err)
{
    int number = sqlite3_system_errno(db->raw);
    int code = db_code(sqlite_code, number);
    bool by_system = (code == HVD_E_IO || code == HVD_E_DENIED || code == HVD_E_FULL) && number;
    /* SQLite has a text of its own for this failure */
    bool noted = sqlite3_extended_errcode(db->raw) == sqlite_code;
    const char *remedy = "";

    switch (code) {
    case HVD_E_FULL: remedy = "; free some space"; break;
    case HVD_E_BUSY:
        remedy = "; another process uses the file: wait for that process, or stop it";
        break;
    case HVD_E_DENIED: remedy = "; make the file and its directory writable for this user"; break;
    case HVD_E_CORRUPT: remedy = "; " REMEDY_DAMAGED; break;
    case HVD_E_IO: remedy = "; check the disk"; break;
    case HVD_E_NOMEM: remedy = "; free memory on this host"; break;
    case HVD_E_LIMIT: remedy = "; SQLite cannot store so large a value"; break;
    default: remedy = "; this is a bug of hvd-elastic, please report it"; break;
    }
    return err_set(err, code, "%s %s: %s%s%s%s", db->schema->what, db_name(db),
                   noted ? sqlite3_errmsg(db->raw) : sqlite3_errstr(sqlite_code),
                   by_system ? ": " : "", by_system ? strerrordesc_np(number) : "", remedy);
}

/* Sets the error for a file whose content makes no sense; `what` says what is wrong, and the remedy
 * follows. */
int db_damaged(const struct db *db, const char *what, struct hvd_err *err)
{
    return err_set(err, HVD_E_CORRUPT, "%s %s: %s; " REMEDY_DAMAGED, db->schema->what, db_name(db),
                   what);
}

/* Prepares a statement for use. On failure *stmt is unchanged. */
int db_prepare(struct db_stmt *stmt, struct db *db, const char *sql, struct hvd_err *err)
{
    sqlite3_stmt *raw;
    /* PERSISTENT: the statements live as long as the database. */
    int rc = sqlite3_prepare_v3(db->raw, sql, -1, SQLITE_PREPARE_PERSISTENT, &raw, NULL);

    if (rc)
        return db_fail(db, rc, err);
    *stmt = (struct db_stmt){ .db = db, .raw = raw };
    return 0;
}

/* Ends the use of a statement, which may be one that was never prepared. */
void db_stmt_release(struct db_stmt *stmt)
{
    sqlite3_finalize(stmt->raw);
    *stmt = (struct db_stmt){ .raw = NULL };
}

/* Notes a failed bind: the next db_step reports it, so that the caller checks one result only. A
 * parameter that the statement does not have is a bug of the caller. */
static void stmt_note_bind(struct db_stmt *stmt, int sqlite_code)
{
    ASSERT(sqlite_code != SQLITE_RANGE && sqlite_code != SQLITE_MISUSE);
    if (sqlite_code)
        stmt->bind_failed = sqlite_code;
}

void db_bind_int(struct db_stmt *stmt, int parameter, int64_t value)
{
    stmt_note_bind(stmt, sqlite3_bind_int64(stmt->raw, parameter, value));
}

/* Gives a parameter of the statement its text, which is borrowed until db_reset. */
void db_bind_text(struct db_stmt *stmt, int parameter, struct span text)
{
    ASSERT(text.length <= INT_MAX);
    stmt_note_bind(stmt, sqlite3_bind_text(stmt->raw, parameter, text.at ? text.at : "",
                                           (int)text.length, SQLITE_STATIC));
}

/* Runs the statement up to its next row. DB_ROW: a row is there; DB_DONE: the end; negative: an
 * error, also one of an earlier bind (`bind_failed`). */
int db_step(struct db_stmt *stmt, struct hvd_err *err)
{
    int rc = stmt->bind_failed ? stmt->bind_failed : sqlite3_step(stmt->raw);

    if (rc == SQLITE_ROW)
        return DB_ROW;
    return rc == SQLITE_DONE ? DB_DONE : db_fail(stmt->db, rc, err);
}

/* Makes the statement ready for its next use, without parameters. */
void db_reset(struct db_stmt *stmt)
{
    (void)sqlite3_reset(stmt->raw); /* it returns the error of the last step, reported already */
    (void)sqlite3_clear_bindings(stmt->raw);
    stmt->bind_failed = SQLITE_OK;
}

/* Runs a statement that returns no row, and resets it for the next use. */
int db_run(struct db_stmt *stmt, struct hvd_err *err)
{
    int rc = db_step(stmt, err);

    ASSERT(rc != DB_ROW);
    db_reset(stmt);
    return rc;
}

/* Returns the name of a column, for errors; "?": no memory is left for the name. */
const char *db_column_name(const struct db_stmt *stmt, int column)
{
    const char *name = sqlite3_column_name(stmt->raw, column);

    return name ? name : "?";
}

/* Sets the error for a value of a type that its column must not have: hvd-elastic never writes such
 * a value. */
static int stmt_wrong_type(const struct db_stmt *stmt, int column, struct hvd_err *err)
{
    char what[128];

    snprintf(what, sizeof(what), "the value in the column %s is not of the column's type",
             db_column_name(stmt, column));
    return db_damaged(stmt->db, what, err);
}

/* Reads a number of the present row. A value of another type is an error. */
int db_column_int(struct db_stmt *stmt, int column, int64_t *ret_value, struct hvd_err *err)
{
    if (sqlite3_column_type(stmt->raw, column) != SQLITE_INTEGER)
        return stmt_wrong_type(stmt, column, err);
    *ret_value = sqlite3_column_int64(stmt->raw, column);
    return 0;
}

/* Reads a text of the present row. The text is borrowed until the next step. A value of another
 * type is an error. */
int db_column_text(struct db_stmt *stmt, int column, struct span *ret_text, struct hvd_err *err)
{
    const unsigned char *text;

    if (sqlite3_column_type(stmt->raw, column) != SQLITE_TEXT)
        return stmt_wrong_type(stmt, column, err);
    text = sqlite3_column_text(stmt->raw, column);
    if (!text) /* for a column of type text, NULL means that no memory is left */
        return db_fail(stmt->db, SQLITE_NOMEM, err);
    *ret_text =
        (struct span){ (const char *)text, (size_t)sqlite3_column_bytes(stmt->raw, column) };
    return 0;
}

/* Runs SQL that has no parameters and whose rows do not matter. */
static int db_exec(struct db *db, const char *sql, struct hvd_err *err)
{
    int rc = sqlite3_exec(db->raw, sql, NULL, NULL, NULL);

    return rc ? db_fail(db, rc, err) : 0;
}

/* Begins a transaction. IMMEDIATE takes the write lock at once, so no later statement of the
 * transaction can fail because another process has that lock. */
int db_begin(struct db *db, struct hvd_err *err)
{
    return db_exec(db, "BEGIN IMMEDIATE", err);
}

/* Ends the transaction; 0: its changes are durable. */
int db_commit(struct db *db, struct hvd_err *err)
{
    return db_exec(db, "COMMIT", err);
}

/* Ends an open transaction without its changes; without one nothing happens. */
void db_rollback(struct db *db)
{
    if (!sqlite3_get_autocommit(db->raw))
        /* SQLite ends the transaction also when this call fails */
        (void)sqlite3_exec(db->raw, "ROLLBACK", NULL, NULL, NULL);
}

#define ANSWER_MAX 256

/* Runs a pragma and returns its answer. The return code of a pragma is not enough: a pragma may do
 * nothing and say so only in its row. */
static int db_ask(struct db *db, const char *pragma, char answer[ANSWER_MAX], struct hvd_err *err)
{
    struct db_stmt stmt = { .db = db };
    int rows = 0;
    int rc = db_prepare(&stmt, db, pragma, err);

    if (rc)
        return rc;
    while ((rc = db_step(&stmt, err)) == DB_ROW) {
        const unsigned char *text = sqlite3_column_text(stmt.raw, 0);

        if (rows++ == 0)
            snprintf(answer, ANSWER_MAX, "%s", text ? (const char *)text : "nothing");
    }
    db_stmt_release(&stmt);
    if (rc == DB_DONE && rows == 0)
        snprintf(answer, ANSWER_MAX, "nothing");
    return rc;
}

/* Runs a pragma, and fails unless the pragma answers `wanted`. */
static int db_demand(struct db *db, const char *pragma, const char *wanted, struct hvd_err *err)
{
    char answer[ANSWER_MAX];
    int rc = db_ask(db, pragma, answer, err);

    if (rc || !strcmp(answer, wanted))
        return rc;
    return err_set(
        err, HVD_E_UNSUPPORTED,
        "%s %s: SQLite answers \"%s\" with \"%s\", not \"%s\"; put the file on a local file system",
        db->schema->what, db_name(db), pragma, answer, wanted);
}

/* Reads the number of migration steps that were applied to the file. */
static int db_read_version(struct db *db, int64_t *ret_version, struct hvd_err *err)
{
    struct db_stmt stmt = { .db = db };
    int rc = db_prepare(&stmt, db, "PRAGMA user_version", err);

    if (rc)
        return rc;
    rc = db_step(&stmt, err);
    ASSERT(rc != DB_DONE);
    if (rc == DB_ROW)
        rc = db_column_int(&stmt, 0, ret_version, err);
    db_stmt_release(&stmt);
    return rc;
}

/* Applies the missing steps, each in its own transaction. The version is read again under the lock
 * of that transaction, because another process may migrate the same file. */
static int db_migrate(struct db *db, struct hvd_err *err)
{
    char pragma[64];
    int64_t version = 0;
    int rc = db_read_version(db, &version, err);

    while (!rc && version < db->schema->step_count) {
        rc = db_begin(db, err);
        if (rc)
            return rc;
        rc = db_read_version(db, &version, err);
        if (!rc && version < db->schema->step_count) {
            snprintf(pragma, sizeof(pragma), "PRAGMA user_version = %d", (int)version + 1);
            rc = db_exec(db, db->schema->steps[version], err);
            if (!rc)
                rc = db_exec(db, pragma, err);
            version++;
        }
        if (!rc)
            rc = db_commit(db, err);
        if (rc)
            db_rollback(db);
    }
    return rc;
}

/* Checks the file's header before SQLite reads the file, because SQLite might repair a foreign
 * file. The header is read through SQLite's own descriptor: closing a second descriptor of the file
 * would drop SQLite's locks. */
static int db_identify(struct db *db, struct hvd_err *err)
{
    const struct db_schema *schema = db->schema;
    unsigned char header[HEADER_BYTES] = { 0 };
    sqlite3_file *file = NULL;
    sqlite3_int64 bytes = 0;
    const unsigned char *id = header + HEADER_APPLICATION;
    int rc = sqlite3_file_control(db->raw, "main", SQLITE_FCNTL_FILE_POINTER, &file);

    if (!rc)
        rc = file->pMethods->xFileSize(file, &bytes);
    if (!rc && bytes >= HEADER_BYTES)
        rc = file->pMethods->xRead(file, header, HEADER_BYTES, 0);
    if (rc)
        return db_fail(db, rc, err);
    if (bytes == 0)
        return err_set(err, HVD_E_CORRUPT,
                       "%s %s: the file is empty, but was not when it was made; move the file and "
                       "its -wal file aside to start afresh",
                       schema->what, db_name(db));
    if (memcmp(header, HEADER_MAGIC, sizeof(HEADER_MAGIC)) != 0 || memcmp(id, "hvd", 3) != 0)
        return err_set(
            err, HVD_E_INVAL,
            "%s %s: this is not a file of hvd-elastic; give another path, or move the file aside",
            schema->what, db_name(db));
    if (id[3] != (unsigned char)schema->kind)
        return err_set(err, HVD_E_INVAL,
                       "%s %s: this is a file of hvd-elastic, but not a %s; give another path",
                       schema->what, db_name(db), schema->what);
    return 0;
}

/* Opens the connection to SQLite. It does not trust the file: triggers, views and functions of the
 * file's schema are off. */
static int db_open_raw(struct db *db, struct hvd_err *err)
{
    static const int off[] = { SQLITE_DBCONFIG_TRUSTED_SCHEMA, SQLITE_DBCONFIG_ENABLE_TRIGGER,
                               SQLITE_DBCONFIG_ENABLE_VIEW, SQLITE_DBCONFIG_DQS_DDL,
                               SQLITE_DBCONFIG_DQS_DML };
    int rc = sqlite3_open_v2(db->path, &db->raw, SQLITE_OPEN_READWRITE | SQLITE_OPEN_EXRESCODE,
                             db->options.vfs);

    if (rc)
        return db_fail(db, rc, err);
    (void)sqlite3_busy_timeout(db->raw, db->options.busy_ms);
    (void)sqlite3_db_config(db->raw, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    /* Closing does not copy the write-ahead log back into the file: db_open_existing has not
     * accepted the file yet. */
    (void)sqlite3_db_config(db->raw, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    for (size_t i = 0; i < ARRAY_SIZE(off); i++)
        (void)sqlite3_db_config(db->raw, off[i], 0, NULL);
    if (db->options.checkpoint_pages > 0)
        (void)sqlite3_wal_autocheckpoint(db->raw, db->options.checkpoint_pages);
    return 0;
}

/* Makes a database that is not open yet; NULL: no memory is left. The path is copied behind the
 * struct. */
static struct db *db_alloc(const char *path, const struct db_schema *schema,
                           const struct db_options *options)
{
    /* With a directory in front, a name such as ":memory:" has no special meaning for SQLite. */
    const char *prefix = path[0] == '/' ? "" : "./";
    size_t bytes = strlen(prefix) + strlen(path) + 1;
    struct db *db = mem_zalloc(sizeof(*db) + bytes);

    if (!db)
        return NULL;
    db->schema = schema;
    db->options = *options;
    db->prefix_bytes = strlen(prefix);
    snprintf(db->path, bytes, "%s%s", prefix, path);
    return db;
}

/* Closes the database, which may be NULL or half-open. All its statements were released before. */
void db_close(struct db *db)
{
    int rc;

    if (!db)
        return;
    rc = sqlite3_close(db->raw);
    ASSERT(rc == SQLITE_OK);
    mem_free(db);
}

/* Makes a whole database under a temporary name, then gives it its real name (newfile.h). Until the
 * file has its real name, SQLite's rollback journal may stay in memory, because no process uses an
 * unfinished file. The switch to the write-ahead log comes last, when nothing is left to write to
 * the file. */
static int db_create(const char *path, const struct db_schema *schema,
                     const struct db_options *options, struct hvd_err *err)
{
    char pragma[64];
    struct newfile newfile;
    struct db *db = NULL;
    int rc = newfile_begin(&newfile, path, options->mode ? options->mode : USUAL_MODE,
                           options->busy_ms, err);

    if (!rc) {
        db = db_alloc(newfile.temp, schema, options);
        rc = db ? 0 : HVD_E_NOMEM;
        if (rc)
            err_set(err, rc, "%s %s: no memory to create this file; free memory on this host",
                    schema->what, path);
    }
    if (!rc)
        rc = db_open_raw(db, err);
    if (!rc)
        rc = db_demand(db, "PRAGMA journal_mode = MEMORY", "memory", err);
    if (!rc) {
        snprintf(pragma, sizeof(pragma), "PRAGMA application_id = %u",
                 (unsigned)'h' << 24 | (unsigned)'v' << 16 | (unsigned)'d' << 8 |
                     (unsigned char)schema->kind);
        rc = db_exec(db, pragma, err);
    }
    if (!rc)
        rc = db_migrate(db, err);
    if (!rc)
        rc = db_demand(db, "PRAGMA journal_mode = WAL", "wal", err);
    db_close(db);
    if (!rc)
        rc = newfile_publish(&newfile, err);
    newfile_release(&newfile);
    /* HVD_E_EXISTS: another process has created the file meanwhile, and db_open goes on with that
     * file */
    return rc == HVD_E_EXISTS ? 0 : rc;
}

/* Opens a file that exists. All checks come before the first write. Until the file is accepted,
 * closing it leaves its write-ahead log unchanged. */
static int db_open_existing(struct db *db, struct hvd_err *err)
{
    char what[ANSWER_MAX + 32];
    char answer[ANSWER_MAX];
    int64_t version = 0;
    int rc = db_open_raw(db, err);

    /* First the header, before SQLite reads the file. */
    if (!rc)
        rc = db_identify(db, err);
    /* A driver that cannot write must report it now, and not at its first commit. */
    if (!rc && sqlite3_db_readonly(db->raw, "main"))
        rc = db_fail(db, SQLITE_READONLY, err);
    if (!rc)
        rc = db_read_version(db, &version, err);
    if (!rc && version > db->schema->step_count)
        rc = err_set(err, HVD_E_VERSION,
                     "%s %s: the file has version %" PRId64
                     ", but this hvd-elastic knows only versions up to %d; use the newer "
                     "hvd-elastic, or move the file aside to start afresh",
                     db->schema->what, db_name(db), version, db->schema->step_count);
    if (!rc && version < 1)
        rc = db_damaged(db, "the file has no version number (PRAGMA user_version)", err);
    if (!rc)
        rc = db_ask(db, "PRAGMA quick_check(1)", answer, err);
    if (!rc && strcmp(answer, "ok") != 0) {
        snprintf(what, sizeof(what), "the file is damaged: %s", answer);
        rc = db_damaged(db, what, err);
    }
    if (!rc)
        rc = db_demand(db, "PRAGMA journal_mode = WAL", "wal", err);
    if (!rc)
        rc = db_exec(db, "PRAGMA synchronous = FULL", err); /* SQLite syncs at each commit */
    if (!rc)
        rc = db_demand(db, "PRAGMA synchronous", SYNCHRONOUS_FULL, err);
    /* `look`: the file is not brought to this version, and closing copies nothing back */
    if (!rc && db->options.look)
        return version < db->schema->step_count ? err_set(err, HVD_E_VERSION,
                                                          "%s %s: an older hvd-elastic has written "
                                                          "this file; the next driver brings the "
                                                          "file to this version",
                                                          db->schema->what, db_name(db))
                                                : 0;
    if (!rc)
        rc = db_migrate(db, err);
    if (!rc)
        (void)sqlite3_db_config(db->raw, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, NULL);
    return rc;
}

/* Copies the whole write-ahead log back into the file, and empties the log. */
int db_settle(struct db *db, struct hvd_err *err)
{
    char answer[ANSWER_MAX];
    /* the first column of the answer is 1 if another process kept the log in use */
    int rc = db_ask(db, "PRAGMA wal_checkpoint(TRUNCATE)", answer, err);

    if (!rc && strcmp(answer, "0") != 0)
        rc = db_fail(db, SQLITE_BUSY, err);
    return rc;
}

/* Opens the database at this path, and creates it if it is missing. */
int db_open(const char *path, const struct db_schema *schema, const struct db_options *options,
            struct db **ret_db, struct hvd_err *err)
{
    char quoted[TEXT_QUOTE_MAX];
    const char *why = NULL;
    struct stat st;
    struct db *db;
    bool missing;
    int rc = 0;

    if (path[0] == '\0' || strlen(path) > LIMIT_DB_PATH_BYTES)
        return err_set(err, HVD_E_LIMIT, "%s %s: a path must have 1 to %d bytes; give another path",
                       schema->what, text_quote(path, strlen(path), quoted), LIMIT_DB_PATH_BYTES);
    /* When stat fails for another reason than a missing file, newfile_begin says why the file
     * cannot be created, or finds that the file is there now. */
    missing = stat(path, &st) != 0;
    if (missing && !lstat(path, &st) && S_ISLNK(st.st_mode))
        why = "is a symbolic link that leads nowhere; give the path of the file itself";
    else if (!missing && S_ISDIR(st.st_mode))
        why = "is a directory; give the name of a file in it";
    else if (!missing && !S_ISREG(st.st_mode))
        why = "is not a regular file; give another path";
    if (why)
        return err_set(err, HVD_E_INVAL, "%s %s: %s", schema->what, path, why);
    if (missing && options->look)
        rc = err_set(err, HVD_E_NOTFOUND, "%s %s: there is no such file; check the path",
                     schema->what, path);
    else if (missing)
        rc = db_create(path, schema, options, err);
    if (rc)
        return rc;
    db = db_alloc(path, schema, options);
    if (!db)
        return err_set(err, HVD_E_NOMEM,
                       "%s %s: no memory to open this file; free memory on this host", schema->what,
                       path);
    rc = db_open_existing(db, err);
    if (rc) {
        db_close(db);
        return rc;
    }
    *ret_db = db;
    return 0;
}
