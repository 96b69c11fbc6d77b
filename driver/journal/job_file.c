#include "driver/journal/job_file.h"

#include "base/mem.h"
#include "base/panic.h"
#include "blacklist/store/store_sqlite.h"
#include "driver/journal/record_row.h"
#include "os/clock.h"
#include "sqlite/row.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define FILE_MODE 0600
#define KEY_TEXT  (2 * JOB_KEY_BYTES)
#define NAME_TEXT (2 * JOB_NAME_MAX)
#define STEP_MAX  4096

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

enum statement { FACTS, SET_PORT, SET_ENDED, OWNER, CLAIM, ADD, REPLAY, STATEMENT_COUNT };

static const char *const sql[STATEMENT_COUNT] = {
    [FACTS] = "SELECT job, key, created_us, port, ended, code, text FROM fact",
    [SET_PORT] = "UPDATE fact SET port = ?1",
    [SET_ENDED] = "UPDATE fact SET ended = 1, code = ?1, text = ?2",
    [OWNER] = "SELECT token, who FROM owner",
    [CLAIM] = "INSERT OR REPLACE INTO owner(id, token, who, since_us) VALUES(1, ?1, ?2, ?3)",
    [ADD] = record_row_insert,
    [REPLAY] = record_row_select,
};

struct job_file {
    struct db *db;
    struct db_stmt stmt[STATEMENT_COUNT];
    struct blacklist_store *blacklist;
    struct record_row row;
    uint64_t token; /* 0: not ours yet */
    struct db_options options;
    struct db_schema schema;
    const char *steps[2];
    char first_step[STEP_MAX]; /* with the facts: a file without them is never there */
};

int job_name_check(const char *name, struct hvd_err *err)
{
    size_t length = strlen(name);
    char quoted[TEXT_QUOTE_MAX];

    if (length == 0 || length > JOB_NAME_MAX)
        return err_set(err, HVD_E_LIMIT, "%s: the name of a job has 1 to %d bytes",
                       text_quote(name, length, quoted), JOB_NAME_MAX);
    for (size_t i = 0; i < length; i++)
        if (!isascii((unsigned char)name[i]) ||
            !(isalnum((unsigned char)name[i]) || strchr("._-", name[i])) ||
            (i == 0 && (name[i] == '.' || name[i] == '-')))
            return err_set(err, HVD_E_INVAL,
                           "%s: use only letters, digits and . _ - in the name of a job, and "
                           "neither a dot nor a dash in front",
                           text_quote(name, length, quoted));
    return 0;
}

static void to_hex(const void *bytes, size_t count, char *ret_text)
{
    static const char digits[] = "0123456789abcdef";
    const uint8_t *at = bytes;

    for (size_t i = 0; i < count; i++) {
        ret_text[2 * i] = digits[at[i] >> 4];
        ret_text[2 * i + 1] = digits[at[i] & 15];
    }
    ret_text[2 * count] = '\0';
}

static bool from_hex(struct span text, uint8_t *ret_bytes, size_t count)
{
    static const char digits[] = "0123456789abcdef";

    if (text.length != 2 * count)
        return false;
    for (size_t i = 0; i < text.length; i++) {
        const char *digit = strchr(digits, text.at[i]);
        unsigned value = digit && *digit ? (unsigned)(digit - digits) : 16;

        if (value > 15)
            return false;
        ret_bytes[i / 2] = (uint8_t)(i % 2 ? ret_bytes[i / 2] | value : value << 4);
    }
    return true;
}

/* What was the facts' text becomes hexadecimal, so that no quote can end it. */
static void make_schema(struct job_file *file, const struct job_facts *fresh)
{
    char job[NAME_TEXT + 1];
    char key[KEY_TEXT + 1];
    int length;

    to_hex(fresh->job, strlen(fresh->job), job);
    to_hex(fresh->key, JOB_KEY_BYTES, key);
    length = snprintf(file->first_step, sizeof(file->first_step),
                      "%s%sINSERT INTO fact(id, job, key, created_us, port, ended, code, text)"
                      " VALUES(1, CAST(x'%s' AS TEXT), '%s', %" PRId64 ", %u, 0, 0, '')",
                      tables, record_row_table, job, key, fresh->created_wall_us, fresh->port);
    ASSERT(length > 0 && (size_t)length < sizeof(file->first_step));
    file->steps[0] = file->first_step;
    file->steps[1] = store_sqlite_step_1;
    file->schema = (struct db_schema){ "job", 'J', file->steps, ARRAY_SIZE(file->steps) };
}

/* One that was copied here may be readable for everybody. It is ours, or this fails, as it may. */
static void keep_secret(const char *path)
{
    static const char *const names[] = { "", "-wal", "-shm" };
    char name[LIMIT_DB_PATH_BYTES + 8];
    struct stat st;

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        snprintf(name, sizeof(name), "%s%s", path, names[i]);
        if (!stat(name, &st) && (st.st_mode & 0777 & ~(mode_t)FILE_MODE))
            (void)chmod(name, FILE_MODE);
    }
}

int job_file_open(const char *path, const struct db_options *options, const struct job_facts *fresh,
                  struct job_file **ret_file, struct hvd_err *err)
{
    struct job_facts facts;
    struct job_file *file;
    int rc = job_name_check(fresh->job, err);

    if (rc)
        return rc;
    file = mem_zalloc(sizeof(*file));
    if (!file)
        return err_set(err, HVD_E_NOMEM, "job %s: %s", path, err_text(HVD_E_NOMEM));
    record_row_init(&file->row);
    make_schema(file, fresh);
    file->options = *options;
    file->options.mode = FILE_MODE;
    rc = db_open(path, &file->schema, &file->options, &file->db, err);
    for (size_t i = 0; i < STATEMENT_COUNT && !rc; i++)
        rc = db_prepare(&file->stmt[i], file->db, sql[i], err);
    if (!rc)
        rc = store_sqlite_attach(file->db, &file->blacklist, err);
    if (!rc)
        rc = job_file_facts(file, &facts, err);
    if (rc) {
        job_file_close(file);
        return rc;
    }
    keep_secret(path);
    *ret_file = file;
    return 0;
}

void job_file_close(struct job_file *file)
{
    if (!file)
        return;
    for (size_t i = 0; i < STATEMENT_COUNT; i++)
        db_stmt_release(&file->stmt[i]);
    blacklist_store_close(file->blacklist);
    db_close(file->db);
    record_row_release(&file->row);
    mem_free(file);
}

static int read_facts(struct job_file *file, struct job_facts *facts, struct hvd_err *err)
{
    struct row row = { &file->stmt[FACTS], "the facts", 0, err };
    struct span key;

    *facts = (struct job_facts){ .port = 0 };
    row_text(&row, 0, facts->job, sizeof(facts->job));
    key = row_span(&row, 1, KEY_TEXT);
    facts->created_wall_us = row_int(&row, 2, INT64_MIN, INT64_MAX);
    facts->port = (uint16_t)row_int(&row, 3, 0, UINT16_MAX);
    facts->ended = row_int(&row, 4, 0, 1) == 1;
    facts->code = (int32_t)row_int(&row, 5, INT32_MIN, INT32_MAX);
    row_text(&row, 6, facts->text, sizeof(facts->text));
    if (!row.rc && job_name_check(facts->job, NULL))
        row_damaged(&row, "there can be no such name of a job");
    if (!row.rc && !from_hex(key, facts->key, sizeof(facts->key)))
        row_damaged(&row, "the key is none");
    return row.rc;
}

int job_file_facts(struct job_file *file, struct job_facts *ret_facts, struct hvd_err *err)
{
    struct job_facts facts;
    int rc = db_step(&file->stmt[FACTS], err);

    if (rc == DB_DONE)
        rc = db_damaged(file->db, "it does not say whose job it is", err);
    else if (rc == DB_ROW)
        rc = read_facts(file, &facts, err);
    db_reset(&file->stmt[FACTS]);
    if (!rc)
        *ret_facts = facts;
    return rc;
}

int job_file_claim(struct job_file *file, uint64_t token, const char *who, struct hvd_err *err)
{
    struct db_stmt *stmt = &file->stmt[CLAIM];
    char line[LIMIT_REASON_BYTES + 1];
    int rc;

    ASSERT(token != 0);
    blacklist_reason_set(line, who);
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

int job_file_check(struct job_file *file, struct hvd_err *err)
{
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
        rc = db_damaged(file->db, "its owner is missing", err);
    }
    db_reset(row.stmt);
    if (!rc && (uint64_t)token != file->token)
        rc = err_set(err, HVD_E_LOST, "another driver (%s) has taken over this job", who);
    return rc;
}

int job_file_replay(struct job_file *file, job_record_fn *each, void *arg, struct hvd_err *err)
{
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

struct visit {
    job_blacklist_fn *each;
    void *arg;
    struct hvd_err *err;
};

static int visit_record(void *arg, const struct blacklist_record *record)
{
    struct visit *visit = arg;

    return visit->each(visit->arg, record, visit->err);
}

int job_file_blacklist(struct job_file *file, job_blacklist_fn *each, void *arg,
                       struct hvd_err *err)
{
    struct visit visit = { each, arg, err };

    return blacklist_store_load(file->blacklist, visit_record, &visit, err);
}

static int add_record(struct job_file *file, const struct journal_record *record,
                      struct hvd_err *err)
{
    const char *wrong = record_row_wrong(record);
    char line[JOURNAL_LINE_MAX];
    int rc;

    if (wrong)
        return err_set(err, HVD_E_INVAL, "the journal cannot hold %s: %s",
                       journal_kind_name(record->kind), wrong);
    rc = record_row_bind(&file->row, &file->stmt[ADD], record);
    if (rc)
        return err_set(err, rc, "the journal's record %s: %s", journal_describe(record, line),
                       err_text(rc));
    return db_run(&file->stmt[ADD], err);
}

static int put_change(struct job_file *file, const struct blacklist_change *change,
                      struct hvd_err *err)
{
    int rc;

    if (change->none)
        return 0;
    rc = blacklist_store_put(file->blacklist, &change->record, &change->event, err);
    if (!rc && change->evicted)
        rc =
            blacklist_store_clear(file->blacklist, change->evicted_host, change->evicted_slot, err);
    return rc;
}

static int set_port(struct job_file *file, uint16_t port, struct hvd_err *err)
{
    db_bind_int(&file->stmt[SET_PORT], 1, port);
    return db_run(&file->stmt[SET_PORT], err);
}

static int set_ended(struct job_file *file, const struct job_write *write, struct hvd_err *err)
{
    struct db_stmt *stmt = &file->stmt[SET_ENDED];
    char line[LIMIT_REASON_BYTES + 1];

    blacklist_reason_set(line, write->text ? write->text : "");
    db_bind_int(stmt, 1, write->code);
    db_bind_text(stmt, 2, (struct span){ line, strlen(line) });
    return db_run(stmt, err);
}

static int write_one(struct job_file *file, const struct job_write *write, struct hvd_err *err)
{
    int rc = 0;

    ASSERT(write->record || write->change || write->ended || write->port);
    if (write->record)
        rc = add_record(file, write->record, err);
    if (!rc && write->change)
        rc = put_change(file, write->change, err);
    if (!rc && write->port)
        rc = set_port(file, write->port, err);
    if (!rc && write->ended)
        rc = set_ended(file, write, err);
    return rc;
}

int job_file_write(struct job_file *file, const struct job_write *writes, size_t count,
                   struct hvd_err *err)
{
    int rc = db_begin(file->db, err);

    if (!rc)
        rc = job_file_check(file, err);
    for (size_t i = 0; i < count && !rc; i++)
        rc = write_one(file, &writes[i], err);
    if (!rc)
        rc = db_commit(file->db, err);
    if (rc)
        db_rollback(file->db);
    return rc;
}
