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

/* The file's header, as SQLite's file format defines it. */
#define HEADER_BYTES       100
#define HEADER_MAGIC       "SQLite format 3"
#define HEADER_APPLICATION 68
#define SYNCHRONOUS_FULL   "2"
#define USUAL_MODE         0644

#define REMEDY_DAMAGED     "move it and its -wal file aside to start afresh"

struct db {
    sqlite3 *raw;
    const struct db_schema *schema;
    struct db_options options;
    size_t prefix_bytes;
    char path[]; /* what SQLite is given: a prefix, and the path as it was given to us */
};

const struct db_options db_options_usual = { .busy_ms = 250 };

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
    case SQLITE_CANTOPEN:
    case SQLITE_IOERR:
        if (system_errno == ENOSPC || system_errno == EDQUOT)
            return HVD_E_FULL;
        return system_errno == EACCES || system_errno == EPERM || system_errno == EROFS
                   ? HVD_E_DENIED
                   : HVD_E_IO;
    /* Our SQL is constant and tested: when it fails, the tables are not ours. */
    case SQLITE_ERROR:
    case SQLITE_CONSTRAINT:
    case SQLITE_MISMATCH:
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB: return HVD_E_CORRUPT;
    default: return HVD_E_INTERNAL;
    }
}

static const char *remedy(int code)
{
    switch (code) {
    case HVD_E_FULL: return "; free some space";
    case HVD_E_BUSY: return "; another process is using it: wait for it or stop it";
    case HVD_E_DENIED: return "; make it and its directory writable for this user";
    case HVD_E_CORRUPT: return "; " REMEDY_DAMAGED;
    case HVD_E_IO: return "; check the disk";
    default: return "";
    }
}

static const char *shown(const struct db *db)
{
    return db->path + db->prefix_bytes;
}

/* SQLite has just failed with this code: what it says, and what to do. */
static int fail(const struct db *db, int sqlite_code, struct hvd_err *err)
{
    int number = sqlite3_system_errno(db->raw);
    int code = db_code(sqlite_code, number);
    bool by_system = (code == HVD_E_IO || code == HVD_E_DENIED || code == HVD_E_FULL) && number;
    bool noted = sqlite3_extended_errcode(db->raw) == sqlite_code;

    return err_set(err, code, "%s %s: %s%s%s%s", db->schema->what, shown(db),
                   noted ? sqlite3_errmsg(db->raw) : sqlite3_errstr(sqlite_code),
                   by_system ? ": " : "", by_system ? strerrordesc_np(number) : "", remedy(code));
}

int db_damaged(const struct db *db, const char *what, struct hvd_err *err)
{
    return err_set(err, HVD_E_CORRUPT, "%s %s: %s; " REMEDY_DAMAGED, db->schema->what, shown(db),
                   what);
}

int db_prepare(struct db_stmt *stmt, struct db *db, const char *sql, struct hvd_err *err)
{
    sqlite3_stmt *raw;
    int rc = sqlite3_prepare_v3(db->raw, sql, -1, SQLITE_PREPARE_PERSISTENT, &raw, NULL);

    if (rc)
        return fail(db, rc, err);
    *stmt = (struct db_stmt){ .db = db, .raw = raw };
    return 0;
}

void db_stmt_release(struct db_stmt *stmt)
{
    sqlite3_finalize(stmt->raw);
    *stmt = (struct db_stmt){ .raw = NULL };
}

static void note_bind(struct db_stmt *stmt, int sqlite_code)
{
    ASSERT(sqlite_code != SQLITE_RANGE && sqlite_code != SQLITE_MISUSE);
    if (sqlite_code)
        stmt->bind_failed = sqlite_code;
}

void db_bind_int(struct db_stmt *stmt, int parameter, int64_t value)
{
    note_bind(stmt, sqlite3_bind_int64(stmt->raw, parameter, value));
}

void db_bind_text(struct db_stmt *stmt, int parameter, struct span text)
{
    ASSERT(text.length <= INT_MAX);
    note_bind(stmt, sqlite3_bind_text(stmt->raw, parameter, text.at ? text.at : "",
                                      (int)text.length, SQLITE_STATIC));
}

int db_step(struct db_stmt *stmt, struct hvd_err *err)
{
    int rc = stmt->bind_failed ? stmt->bind_failed : sqlite3_step(stmt->raw);

    if (rc == SQLITE_ROW)
        return DB_ROW;
    return rc == SQLITE_DONE ? DB_DONE : fail(stmt->db, rc, err);
}

void db_reset(struct db_stmt *stmt)
{
    (void)sqlite3_reset(stmt->raw); /* repeats the code of the step */
    (void)sqlite3_clear_bindings(stmt->raw);
    stmt->bind_failed = SQLITE_OK;
}

int db_run(struct db_stmt *stmt, struct hvd_err *err)
{
    int rc = db_step(stmt, err);

    ASSERT(rc != DB_ROW);
    db_reset(stmt);
    return rc;
}

const char *db_column_name(const struct db_stmt *stmt, int column)
{
    const char *name = sqlite3_column_name(stmt->raw, column);

    return name ? name : "?";
}

static int wrong_type(const struct db_stmt *stmt, int column, struct hvd_err *err)
{
    char what[128];

    snprintf(what, sizeof(what), "what is in the column %s has another type",
             db_column_name(stmt, column));
    return db_damaged(stmt->db, what, err);
}

int db_column_int(struct db_stmt *stmt, int column, int64_t *ret_value, struct hvd_err *err)
{
    if (sqlite3_column_type(stmt->raw, column) != SQLITE_INTEGER)
        return wrong_type(stmt, column, err);
    *ret_value = sqlite3_column_int64(stmt->raw, column);
    return 0;
}

int db_column_text(struct db_stmt *stmt, int column, struct span *ret_text, struct hvd_err *err)
{
    const unsigned char *text;

    if (sqlite3_column_type(stmt->raw, column) != SQLITE_TEXT)
        return wrong_type(stmt, column, err);
    text = sqlite3_column_text(stmt->raw, column);
    if (!text) /* only for want of memory, once it is known to be text */
        return fail(stmt->db, SQLITE_NOMEM, err);
    *ret_text =
        (struct span){ (const char *)text, (size_t)sqlite3_column_bytes(stmt->raw, column) };
    return 0;
}

static int run_sql(struct db *db, const char *sql, struct hvd_err *err)
{
    int rc = sqlite3_exec(db->raw, sql, NULL, NULL, NULL);

    return rc ? fail(db, rc, err) : 0;
}

int db_begin(struct db *db, struct hvd_err *err)
{
    return run_sql(db, "BEGIN IMMEDIATE", err);
}

int db_commit(struct db *db, struct hvd_err *err)
{
    return run_sql(db, "COMMIT", err);
}

void db_rollback(struct db *db)
{
    if (!sqlite3_get_autocommit(db->raw))
        (void)sqlite3_exec(db->raw, "ROLLBACK", NULL, NULL, NULL); /* ends the transaction anyway */
}

#define ANSWER_MAX 256

/* A pragma may do nothing and say so, or answer with what is wrong: its one row is what counts. */
static int ask(struct db *db, const char *pragma, char answer[ANSWER_MAX], struct hvd_err *err)
{
    struct db_stmt stmt = { .raw = NULL };
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

static int demand(struct db *db, const char *pragma, const char *wanted, struct hvd_err *err)
{
    char answer[ANSWER_MAX];
    int rc = ask(db, pragma, answer, err);

    if (rc || !strcmp(answer, wanted))
        return rc;
    return err_set(err, HVD_E_UNSUPPORTED,
                   "%s %s: \"%s\" answers \"%s\", not \"%s\"; put it on a local file system",
                   db->schema->what, shown(db), pragma, answer, wanted);
}

static int check_damage(struct db *db, struct hvd_err *err)
{
    char what[ANSWER_MAX + 32];
    char answer[ANSWER_MAX];
    int rc = ask(db, "PRAGMA quick_check(1)", answer, err);

    if (rc || !strcmp(answer, "ok"))
        return rc;
    snprintf(what, sizeof(what), "it is damaged: %s", answer);
    return db_damaged(db, what, err);
}

static int read_version(struct db *db, int64_t *ret_version, struct hvd_err *err)
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

static int check_version(struct db *db, struct hvd_err *err)
{
    int64_t version = 0;
    int rc = read_version(db, &version, err);

    if (rc)
        return rc;
    if (version > db->schema->step_count)
        return err_set(err, HVD_E_VERSION,
                       "%s %s: it has version %" PRId64 ", and this hvd-elastic knows up to %d; "
                       "use the newer one, or move the file aside to start afresh",
                       db->schema->what, shown(db), version, db->schema->step_count);
    if (version < 1)
        return db_damaged(db, "it has no version", err);
    return 0;
}

/* Under the lock of its own transaction, since another process may be doing the same. */
static int apply_step(struct db *db, int64_t *ret_version, struct hvd_err *err)
{
    char pragma[64];
    int64_t version = 0;
    int rc = db_begin(db, err);

    if (rc)
        return rc;
    rc = read_version(db, &version, err);
    if (!rc && version < db->schema->step_count) {
        snprintf(pragma, sizeof(pragma), "PRAGMA user_version = %d", (int)version + 1);
        rc = run_sql(db, db->schema->steps[version], err);
        if (!rc)
            rc = run_sql(db, pragma, err);
        version++;
    }
    if (!rc)
        rc = db_commit(db, err);
    if (rc) {
        db_rollback(db);
        return rc;
    }
    *ret_version = version;
    return 0;
}

static int migrate(struct db *db, struct hvd_err *err)
{
    int64_t version = 0;
    int rc = read_version(db, &version, err);

    while (!rc && version < db->schema->step_count)
        rc = apply_step(db, &version, err);
    return rc;
}

static uint32_t application_id(const struct db_schema *schema)
{
    return (uint32_t)'h' << 24 | (uint32_t)'v' << 16 | (uint32_t)'d' << 8 |
           (unsigned char)schema->kind;
}

/* Looks at the bytes before SQLite does: reading a foreign file, it might repair it. Through
 * SQLite's own file, because closing another one would drop its locks. */
static int identify(struct db *db, struct hvd_err *err)
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
        return fail(db, rc, err);
    if (bytes == 0)
        return err_set(err, HVD_E_CORRUPT,
                       "%s %s: it is empty, and was not when it was made; move it and its -wal "
                       "file aside to start afresh",
                       schema->what, shown(db));
    if (memcmp(header, HEADER_MAGIC, sizeof(HEADER_MAGIC)) != 0 || memcmp(id, "hvd", 3) != 0)
        return err_set(err, HVD_E_INVAL,
                       "%s %s: not a file of hvd-elastic; give another path, or move it aside",
                       schema->what, shown(db));
    if (id[3] != (unsigned char)schema->kind)
        return err_set(err, HVD_E_INVAL,
                       "%s %s: a file of hvd-elastic, but not a %s; give another path",
                       schema->what, shown(db), schema->what);
    return 0;
}

/* A connection that trusts nothing it finds in the file. */
static int open_raw(struct db *db, struct hvd_err *err)
{
    static const int off[] = { SQLITE_DBCONFIG_TRUSTED_SCHEMA, SQLITE_DBCONFIG_ENABLE_TRIGGER,
                               SQLITE_DBCONFIG_ENABLE_VIEW, SQLITE_DBCONFIG_DQS_DDL,
                               SQLITE_DBCONFIG_DQS_DML };
    int rc = sqlite3_open_v2(db->path, &db->raw, SQLITE_OPEN_READWRITE | SQLITE_OPEN_EXRESCODE,
                             db->options.vfs);

    if (rc)
        return fail(db, rc, err);
    (void)sqlite3_busy_timeout(db->raw, db->options.busy_ms);
    (void)sqlite3_db_config(db->raw, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    (void)sqlite3_db_config(db->raw, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    for (size_t i = 0; i < ARRAY_SIZE(off); i++)
        (void)sqlite3_db_config(db->raw, off[i], 0, NULL);
    if (db->options.checkpoint_pages > 0)
        (void)sqlite3_wal_autocheckpoint(db->raw, db->options.checkpoint_pages);
    return 0;
}

static struct db *db_alloc(const char *path, const struct db_schema *schema,
                           const struct db_options *options)
{
    /* With a directory in front no name is special to SQLite. */
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

void db_close(struct db *db)
{
    int rc;

    if (!db)
        return;
    rc = sqlite3_close(db->raw);
    ASSERT(rc == SQLITE_OK);
    mem_free(db);
}

/* A whole database, under the temporary name. Its journal may stay in memory: half of it is never
 * used. The switch to the write-ahead log comes last, with nothing to write there. */
static int fill(const struct newfile *newfile, const struct db_schema *schema,
                const struct db_options *options, struct hvd_err *err)
{
    char pragma[64];
    struct db *db = db_alloc(newfile->temp, schema, options);
    int rc;

    if (!db)
        return err_set(err, HVD_E_NOMEM, "%s %s: %s", schema->what, newfile->path,
                       err_text(HVD_E_NOMEM));
    snprintf(pragma, sizeof(pragma), "PRAGMA application_id = %u", application_id(schema));
    rc = open_raw(db, err);
    if (!rc)
        rc = demand(db, "PRAGMA journal_mode = MEMORY", "memory", err);
    if (!rc)
        rc = run_sql(db, pragma, err);
    if (!rc)
        rc = migrate(db, err);
    if (!rc)
        rc = demand(db, "PRAGMA journal_mode = WAL", "wal", err);
    db_close(db);
    return rc;
}

static int create(const char *path, const struct db_schema *schema,
                  const struct db_options *options, struct hvd_err *err)
{
    struct newfile newfile;
    int rc = newfile_begin(&newfile, path, options->mode ? options->mode : USUAL_MODE,
                           options->busy_ms, err);

    if (!rc)
        rc = fill(&newfile, schema, options, err);
    if (!rc)
        rc = newfile_publish(&newfile, err);
    newfile_release(&newfile);
    return rc == HVD_E_EXISTS ? 0 : rc; /* another process was faster */
}

static int check_path(const char *path, const struct db_schema *schema, bool *ret_missing,
                      struct hvd_err *err)
{
    char quoted[TEXT_QUOTE_MAX];
    struct stat st;

    if (path[0] == '\0' || strlen(path) > LIMIT_DB_PATH_BYTES)
        return err_set(err, HVD_E_LIMIT, "%s %s: a path has 1 to %d bytes", schema->what,
                       text_quote(path, strlen(path), quoted), LIMIT_DB_PATH_BYTES);
    *ret_missing = stat(path, &st) != 0;
    if (*ret_missing && (lstat(path, &st) || !S_ISLNK(st.st_mode)))
        return 0; /* whatever the reason is, making it will tell; or it has just been made */
    if (*ret_missing)
        return err_set(
            err, HVD_E_INVAL,
            "%s %s: a symbolic link that leads nowhere; give the path of the file itself",
            schema->what, path);
    if (S_ISDIR(st.st_mode))
        return err_set(err, HVD_E_INVAL, "%s %s: it is a directory; give the name of a file in it",
                       schema->what, path);
    if (!S_ISREG(st.st_mode))
        return err_set(err, HVD_E_INVAL, "%s %s: not a plain file; give another path", schema->what,
                       path);
    return 0;
}

/* What must hold before anything is written to a file that is there. Until it is accepted closing
 * leaves the write-ahead log alone. */
static int open_existing(struct db *db, struct hvd_err *err)
{
    int rc = open_raw(db, err);

    if (!rc)
        rc = identify(db, err);
    if (!rc && sqlite3_db_readonly(db->raw, "main"))
        rc = fail(db, SQLITE_READONLY, err);
    if (!rc)
        rc = check_version(db, err);
    if (!rc)
        rc = check_damage(db, err);
    if (!rc)
        rc = demand(db, "PRAGMA journal_mode = WAL", "wal", err);
    if (!rc)
        rc = run_sql(db, "PRAGMA synchronous = FULL", err);
    if (!rc)
        rc = demand(db, "PRAGMA synchronous", SYNCHRONOUS_FULL, err);
    if (!rc)
        rc = migrate(db, err);
    if (!rc)
        (void)sqlite3_db_config(db->raw, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, NULL);
    return rc;
}

int db_open(const char *path, const struct db_schema *schema, const struct db_options *options,
            struct db **ret_db, struct hvd_err *err)
{
    struct db *db;
    bool missing = false;
    int rc = check_path(path, schema, &missing, err);

    if (rc)
        return rc;
    if (missing)
        rc = create(path, schema, options, err);
    if (rc)
        return rc;
    db = db_alloc(path, schema, options);
    if (!db)
        return err_set(err, HVD_E_NOMEM, "%s %s: %s", schema->what, path, err_text(HVD_E_NOMEM));
    rc = open_existing(db, err);
    if (rc) {
        db_close(db);
        return rc;
    }
    *ret_db = db;
    return 0;
}
