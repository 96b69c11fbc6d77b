/*
 * job_file.c: the file of a job: its facts, its owner, its journal and its blacklist. While a
 * driver runs, the scribe's thread uses the file; before that, driver/job_folder.c. Each write is a
 * transaction that first checks the owner, so a driver that was replaced changes nothing more.
 */
#include "driver/journal/job_file.h"

#include "base/hex.h"
#include "base/mem.h"
#include "base/panic.h"
#include "base/text.h"
#include "base/time.h"
#include "driver/journal/blacklist_rows.h"
#include "driver/journal/record_row.h"
#include "driver/store/record_check.h"
#include "os/clock.h"
#include "sqlite/row.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_MODE 0600
/* how long to wait for a driver that has the file locked while it opens the file */
#define LOOK_BUSY_MS 1000
#define KEY_TEXT     (2 * JOB_KEY_BYTES)
#define NAME_TEXT    (2 * JOB_NAME_MAX)
#define STEP_MAX     4096
#define CHECK_US     (2 * TIME_S) /* how often a driver looks whether it has been replaced */

static const char tables[] = "CREATE TABLE fact("
                             "  id INTEGER PRIMARY KEY CHECK(id = 1)," /* the only row */
                             "  job TEXT NOT NULL,"
                             "  key TEXT NOT NULL," /* in hexadecimal */
                             "  created_us INTEGER NOT NULL,"
                             "  port INTEGER NOT NULL,"
                             "  ended INTEGER NOT NULL,"
                             "  code INTEGER NOT NULL,"
                             "  text TEXT NOT NULL"
                             ") STRICT;"
                             "CREATE TABLE owner("
                             "  id INTEGER PRIMARY KEY CHECK(id = 1)," /* at most one row */
                             "  token INTEGER NOT NULL,"
                             "  who TEXT NOT NULL,"
                             "  since_us INTEGER NOT NULL"
                             ") STRICT;";

/* Each statement is prepared once and lives as long as the file is open. */
enum statement { FACTS, SET_PORT, SET_ENDED, OWNER, CLAIM, ADD, EMPTY, REPLAY, STATEMENT_COUNT };

static const char *const sql[STATEMENT_COUNT] = {
    [FACTS] = "SELECT job, key, created_us, port, ended, code, text FROM fact",
    [SET_PORT] = "UPDATE fact SET port = ?1",
    [SET_ENDED] = "UPDATE fact SET ended = 1, code = ?1, text = ?2",
    [OWNER] = "SELECT token, who FROM owner",
    [CLAIM] = "INSERT OR REPLACE INTO owner(id, token, who, since_us) VALUES(1, ?1, ?2, ?3)",
    [ADD] = record_row_insert,
    [EMPTY] = "DELETE FROM journal",
    [REPLAY] = record_row_select,
};

/* The schema and its steps differ from file to file, because the first step contains the facts. */
struct job_file {
    struct store store;
    struct db *db;
    struct db_stmt stmt[STATEMENT_COUNT];
    struct blacklist_rows blacklist;
    struct record_row row;
    uint64_t token; /* the token of this driver's claim; 0: the file is not claimed */
    struct db_options options;
    struct db_schema schema;
    const char *steps[2];
    char first_step[STEP_MAX]; /* SQL that makes the tables and writes the facts */
};

static struct job_file *file_of(struct store *store)
{
    return CONTAINER_OF(store, struct job_file, store);
}

/* Reads the facts about the job: its name, key, port, and whether it has ended. After a failure
 * *ret_facts is unchanged. The copy of the key in this function is overwritten. */
static int job_file_facts(struct store *store, struct job_facts *ret_facts, struct hvd_err *err)
{
    struct job_file *file = file_of(store);
    struct job_facts facts = { .port = 0 };
    struct row row = { &file->stmt[FACTS], "the facts", 0, err };
    struct span key;
    int rc = db_step(row.stmt, err);

    if (rc == DB_DONE) {
        rc = db_damaged(file->db, "the row of facts about the job is missing", err);
    } else if (rc == DB_ROW) {
        /* The file is foreign input: every value is checked, and row.rc keeps the first fault. */
        row_text(&row, 0, facts.job, sizeof(facts.job));
        key = row_span(&row, 1, KEY_TEXT);
        facts.created_wall_us = row_int(&row, 2, INT64_MIN, INT64_MAX);
        facts.port = (uint16_t)row_int(&row, 3, 0, UINT16_MAX);
        facts.ended = row_int(&row, 4, 0, 1) == 1;
        facts.code = (int32_t)row_int(&row, 5, INT32_MIN, INT32_MAX);
        row_text(&row, 6, facts.text, sizeof(facts.text));
        if (!row.rc && job_name_check(facts.job, NULL))
            row_damaged(&row, "the name of the job is not valid");
        if (!row.rc && (key.length != KEY_TEXT || !hex_read(key.at, JOB_KEY_BYTES, facts.key)))
            row_damaged(&row, "the key of the job is not valid");
        rc = row.rc;
    }
    db_reset(row.stmt);
    if (!rc)
        *ret_facts = facts;
    explicit_bzero(&facts, sizeof(facts));
    return rc;
}

/* Makes this driver the owner of the file. `token` is a random number by which job_file_check knows
 * the claim; `who` names the driver, for the error that the former owner gets. */
static int job_file_claim(struct store *store, uint64_t token, const char *who, struct hvd_err *err)
{
    struct job_file *file = file_of(store);
    struct db_stmt *stmt = &file->stmt[CLAIM];
    char line[LIMIT_REASON_BYTES + 1];
    int rc;

    blacklist_reason_set(line, who);
    /* The claim is the only row of its table and replaces the former claim. When it is durable, no
     * write of a former driver succeeds. */
    rc = db_begin(file->db, err);
    if (!rc) {
        db_bind_int(stmt, 1, (int64_t)token);
        db_bind_text(stmt, 2, (struct span){ line, strlen(line) });
        db_bind_int(stmt, 3, clock_wall_us());
        rc = db_run(stmt, err);
    }
    if (!rc)
        rc = db_commit(file->db, err);
    if (rc)
        db_rollback(file->db);
    else
        file->token = token;
    return rc;
}

/* Returns 0 if this driver still owns the file, HVD_E_LOST if another driver has claimed it, or the
 * error of a read. */
static int job_file_check(struct store *store, struct hvd_err *err)
{
    struct job_file *file = file_of(store);
    struct row row = { &file->stmt[OWNER], "the owner", 0, err };
    char who[LIMIT_REASON_BYTES + 1] = "";
    int64_t token = 0;
    int rc;

    ASSERT(file->token != 0);
    rc = db_step(row.stmt, err);
    if (rc == DB_ROW) {
        token = row_int(&row, 0, INT64_MIN, INT64_MAX);
        row_text(&row, 1, who, sizeof(who));
        rc = row.rc;
    } else if (rc == DB_DONE) {
        rc = db_damaged(file->db, "the row of the job's owner is missing", err);
    }
    db_reset(row.stmt);
    if (!rc && (uint64_t)token != file->token)
        rc = err_set(err, HVD_E_LOST,
                     "another driver (%s) has taken over this job; this driver ends", who);
    return rc;
}

/* Gives each record of the journal to `each`, the oldest first. Each record goes there as soon as
 * it is read, so only one record is in memory. */
static int job_file_replay(struct store *store, store_record_fn *each, void *arg,
                           struct hvd_err *err)
{
    struct job_file *file = file_of(store);
    struct db_stmt *stmt = &file->stmt[REPLAY];
    struct journal_record record;
    int64_t number = 0;
    int rc;

    while ((rc = db_step(stmt, err)) == DB_ROW) {
        rc = record_row_read(&file->row, stmt, ++number, &record, err);
        if (!rc)
            rc = each(arg, &record, err);
        if (rc)
            break;
    }
    db_reset(stmt);
    return rc;
}

/* Gives each record of the blacklist to `each`, by host and slot. */
static int job_file_blacklist(struct store *store, store_blacklist_fn *each, void *arg,
                              struct hvd_err *err)
{
    return blacklist_rows_load(&file_of(store)->blacklist, each, arg, err);
}

/* Adds a record to the transaction. A record that could not be read back would stop every
 * successor, so it is refused here. */
static int job_file_add(struct job_file *file, const struct journal_record *record,
                        struct hvd_err *err)
{
    const char *wrong = record_wrong(record);
    char text[JOURNAL_LINE_MAX];
    int rc;

    if (wrong)
        return err_set(err, HVD_E_INVAL,
                       "the journal cannot hold %s: %s; this is a bug of hvd-elastic, please "
                       "report it",
                       journal_kind_name(record->kind), wrong);
    rc = record_row_bind(&file->row, &file->stmt[ADD], record);
    if (rc)
        return err_set(err, rc,
                       "the journal's record %s cannot be written: %s; free memory on this host",
                       journal_describe(record, text), err_text(rc));
    return db_run(&file->stmt[ADD], err);
}

/* Removes all records and writes these instead, in one transaction. The rows are numbered from 1
 * again, because the table is empty in between. */
static int job_file_replace(struct store *store, const struct journal_record *records, size_t count,
                            struct hvd_err *err)
{
    struct job_file *file = file_of(store);
    int rc = db_begin(file->db, err);

    if (!rc)
        rc = job_file_check(store, err);
    if (!rc)
        rc = db_run(&file->stmt[EMPTY], err);
    for (size_t i = 0; i < count && !rc; i++)
        rc = job_file_add(file, &records[i], err);
    if (!rc)
        rc = db_commit(file->db, err);
    if (rc)
        db_rollback(file->db);
    return rc;
}

/* Writes all `writes` in one transaction, or none of them. HVD_E_LOST: another driver owns the
 * file. An entry may have a record, a change of the blacklist, a port, or the end of the job. */
static int job_file_write(struct store *store, const struct job_write *writes, size_t count,
                          struct hvd_err *err)
{
    struct job_file *file = file_of(store);
    char line[LIMIT_REASON_BYTES + 1];
    int rc = db_begin(file->db, err);

    if (!rc) /* inside the transaction: no other driver can claim the file before the write */
        rc = job_file_check(store, err);
    for (size_t i = 0; i < count && !rc; i++) {
        const struct job_write *write = &writes[i];
        const struct blacklist_change *change = write->change;
        struct db_stmt *stmt;

        if (write->record)
            rc = job_file_add(file, write->record, err);
        if (!rc && change && !change->none) {
            rc = blacklist_rows_put(&file->blacklist, &change->record, &change->event, err);
            /* the blacklist was full and has dropped another entry, whose row is removed, too */
            if (!rc && change->evicted)
                rc = blacklist_rows_remove(&file->blacklist, change->evicted_host,
                                           change->evicted_slot, err);
        }
        if (!rc && write->port) {
            stmt = &file->stmt[SET_PORT];
            db_bind_int(stmt, 1, write->port);
            rc = db_run(stmt, err);
        }
        if (!rc && write->ended) {
            stmt = &file->stmt[SET_ENDED];
            blacklist_reason_set(line, write->text ? write->text : "");
            db_bind_int(stmt, 1, write->code);
            db_bind_text(stmt, 2, (struct span){ line, strlen(line) });
            rc = db_run(stmt, err);
        }
    }
    if (!rc)
        rc = db_commit(file->db, err);
    if (rc)
        db_rollback(file->db);
    return rc;
}

/* Closes the file, also one whose opening has failed halfway. */
static void job_file_close(struct store *store)
{
    struct job_file *file = file_of(store);

    for (size_t i = 0; i < STATEMENT_COUNT; i++)
        db_stmt_release(&file->stmt[i]);
    blacklist_rows_close(&file->blacklist);
    db_close(file->db);
    record_row_release(&file->row);
    mem_free(file);
}

static const struct store_ops job_file_ops = {
    job_file_facts,   job_file_claim,     job_file_check,
    job_file_replay,  job_file_blacklist, job_file_write,
    job_file_replace, job_file_close,     NULL,
};

/* Opens the file of a job. A file that does not exist is made with the facts `fresh`; for an
 * existing file they do not matter. Nothing may be written before store_claim. */
int job_file_open(const char *path, const struct db_options *options, const struct job_facts *fresh,
                  struct store **ret_store, struct hvd_err *err)
{
    static const char *const suffixes[] = { "", "-wal", "-shm" };
    char name[LIMIT_DB_PATH_BYTES + 8], job[NAME_TEXT + 1], key[KEY_TEXT + 1];
    struct job_facts facts;
    struct job_file *file;
    struct stat st;
    int length;
    int rc = job_name_check(fresh->job, err);

    if (rc)
        return rc;
    file = mem_zalloc(sizeof(*file));
    if (!file)
        return err_set(err, HVD_E_NOMEM, "job %s: %s", path, err_text(HVD_E_NOMEM));
    file->store = (struct store){ &job_file_ops, CHECK_US, TIME_NEVER };
    record_row_init(&file->row);
    /* The first step of the schema makes the tables and writes the facts. The facts' texts are
     * hexadecimal there, so that no quote in a text ends the SQL. */
    /* CAST(x'...' AS TEXT) makes the name of the job from its bytes. */
    hex_write(fresh->job, strlen(fresh->job), job);
    hex_write(fresh->key, JOB_KEY_BYTES, key);
    length = snprintf(file->first_step, sizeof(file->first_step),
                      "%s%sINSERT INTO fact(id, job, key, created_us, port, ended, code, text)"
                      " VALUES(1, CAST(x'%s' AS TEXT), '%s', %" PRId64 ", %u, 0, 0, '')",
                      tables, record_row_table, job, key, fresh->created_wall_us, fresh->port);
    ASSERT(length > 0 && (size_t)length < sizeof(file->first_step));
    file->steps[0] = file->first_step;
    file->steps[1] = blacklist_rows_step;
    file->schema = (struct db_schema){ "job", 'J', file->steps, ARRAY_SIZE(file->steps) };
    file->options = *options;
    file->options.mode = FILE_MODE;
    /* Runs the steps of the schema that the file lacks; a new file lacks all. */
    rc = db_open(path, &file->schema, &file->options, &file->db, err);
    explicit_bzero(key, sizeof(key));
    /* db_open was the last reader of this text. */
    explicit_bzero(file->first_step, sizeof(file->first_step));
    for (size_t i = 0; i < STATEMENT_COUNT && !rc; i++)
        rc = db_prepare(&file->stmt[i], file->db, sql[i], err);
    if (!rc)
        rc = blacklist_rows_open(&file->blacklist, file->db, err);
    if (!rc)
        rc = job_file_facts(&file->store, &facts, err);
    explicit_bzero(&facts, sizeof(facts));
    if (rc) {
        job_file_close(&file->store);
        return rc;
    }
    /* A copied file may be readable for other users, and the key is in it. A failure of chmod does
     * not matter, because a file of another user could not have been opened. */
    for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++) {
        snprintf(name, sizeof(name), "%s%s", path, suffixes[i]);
        if (!stat(name, &st) && (st.st_mode & 0777 & ~(mode_t)FILE_MODE))
            (void)chmod(name, FILE_MODE);
    }
    *ret_store = &file->store;
    return 0;
}

/* Opens the file of a job only to read it (the verbs do this), also while a driver writes to it. */
int job_file_look(const char *path, struct store **ret_store, struct hvd_err *err)
{
    const struct db_options options = { .busy_ms = LOOK_BUSY_MS, .look = true };
    const struct job_facts none = { .job = "none" }; /* facts matter only to a new file */

    return job_file_open(path, &options, &none, ret_store, err);
}

/* Gives the file of an ended job another name. Normally SQLite copies its write-ahead log into
 * the database when the last process closes it. A process that is just looking at the file
 * prevents that. So the log is copied here; and the files of the log are removed, because SQLite
 * would take them for the log of the next file with the old name. */
int job_file_put_aside(const char *path, const char *aside, struct hvd_err *err)
{
    static const char *const suffixes[] = { "-wal", "-shm" };
    const struct db_options options = { .busy_ms = LOOK_BUSY_MS };
    const struct job_facts none = { .job = "none" };
    char name[LIMIT_DB_PATH_BYTES + 8];
    struct store *store = NULL;
    int rc = job_file_open(path, &options, &none, &store, err);

    if (!rc)
        rc = db_settle(file_of(store)->db, err);
    store_close(store);
    if (!rc && rename(path, aside))
        rc = err_set(err, HVD_E_IO,
                     "%s: the file cannot be renamed to %s: %s; make the directory writable for "
                     "this user, and check the disk",
                     path, aside, strerror(errno));
    for (size_t i = 0; i < ARRAY_SIZE(suffixes) && !rc; i++) {
        snprintf(name, sizeof(name), "%s%s", path, suffixes[i]);
        if (unlink(name) && errno != ENOENT)
            rc = err_set(err, HVD_E_IO,
                         "%s: the file cannot be removed: %s; make the directory writable for this "
                         "user, and check the disk",
                         name, strerror(errno));
    }
    return rc;
}
