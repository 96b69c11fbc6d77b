/*
 * blacklist_rows.c: writes and reads the rows of the blacklist in a job's database, for job_file.c.
 * Rows are checked when they are read, because an operator may have edited the file.
 */
#include "driver/journal/blacklist_rows.h"

#include "base/panic.h"
#include "sqlite/row.h"

#include <string.h>

#define TEXT_OF(number)  #number
#define TEXT_OF2(number) TEXT_OF(number)

const char blacklist_rows_step[] = "CREATE TABLE record("
                                   "  host TEXT NOT NULL,"
                                   "  slot INTEGER NOT NULL," /* -1: the whole host */
                                   "  failures INTEGER NOT NULL,"
                                   "  since_us INTEGER NOT NULL,"
                                   "  until_us INTEGER NOT NULL,"
                                   /* Lists of numbers in the form of numbers.h. */
                                   "  restarts TEXT NOT NULL,"
                                   "  incarnations TEXT NOT NULL,"
                                   "  reason TEXT NOT NULL,"
                                   "  PRIMARY KEY(host, slot)"
                                   ") STRICT, WITHOUT ROWID;"
                                   "CREATE TABLE event("
                                   "  id INTEGER PRIMARY KEY," /* grows with each row */
                                   "  host TEXT NOT NULL,"
                                   "  slot INTEGER NOT NULL,"
                                   "  incarnation INTEGER NOT NULL,"
                                   "  wall_us INTEGER NOT NULL,"
                                   "  counted INTEGER NOT NULL,"
                                   "  reason TEXT NOT NULL"
                                   ") STRICT;"
                                   "CREATE INDEX event_by_key ON event(host, slot, id)";

/* The history of a host or slot keeps only its newest rows; BLACKLIST_TRIM_EVENTS deletes the rest.
 */
static const char *const sql[BLACKLIST_STATEMENTS] = {
    [BLACKLIST_LOAD] =
        "SELECT host, slot, failures, since_us, until_us, restarts, incarnations, reason"
        " FROM record ORDER BY host, slot",
    [BLACKLIST_PUT_RECORD] =
        "INSERT OR REPLACE INTO record(host, slot, failures, since_us, until_us,"
        " restarts, incarnations, reason) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
    [BLACKLIST_ADD_EVENT] = "INSERT INTO event(host, slot, incarnation, wall_us, counted, reason)"
                            " VALUES(?1, ?2, ?3, ?4, ?5, ?6)",
    [BLACKLIST_TRIM_EVENTS] =
        "DELETE FROM event WHERE host = ?1 AND slot = ?2 AND id <="
        " (SELECT id FROM event WHERE host = ?1 AND slot = ?2"
        "  ORDER BY id DESC LIMIT 1 OFFSET " TEXT_OF2(LIMIT_BLACKLIST_HISTORY_ROWS) ")",
    [BLACKLIST_REMOVE_RECORD] = "DELETE FROM record WHERE host = ?1 AND slot = ?2",
    [BLACKLIST_REMOVE_EVENTS] = "DELETE FROM event WHERE host = ?1 AND slot = ?2",
};

/* Prepares all statements. After a failure the caller releases them with blacklist_rows_close. */
int blacklist_rows_open(struct blacklist_rows *rows, struct db *db, struct hvd_err *err)
{
    int rc = 0;

    *rows = (struct blacklist_rows){ .stmt = { { .db = NULL } } };
    for (size_t i = 0; i < BLACKLIST_STATEMENTS && !rc; i++)
        rc = db_prepare(&rows->stmt[i], db, sql[i], err);
    return rc;
}

void blacklist_rows_close(struct blacklist_rows *rows)
{
    for (size_t i = 0; i < BLACKLIST_STATEMENTS; i++)
        db_stmt_release(&rows->stmt[i]);
}

/* Reads a list of numbers ("3,17,17") from a column of the row. If the list is not valid, the row
 * counts as damaged: row->rc has the error, which calls the list `what`. */
static void rows_numbers(struct row *row, int column, const char *what, struct numbers *ret_numbers)
{
    struct span text = row_span(row, column, NUMBERS_TEXT_MAX);
    struct hvd_err inner;

    if (!row->rc && numbers_parse(text, what, ret_numbers, &inner))
        row_damaged(row, inner.text);
}

/* Gives each record of the blacklist to `each`, by host and slot. A damaged row, or a failure of
 * `each`, ends the reading with its error. */
int blacklist_rows_load(struct blacklist_rows *rows, blacklist_rows_fn *each, void *arg,
                        struct hvd_err *err)
{
    struct row row = { &rows->stmt[BLACKLIST_LOAD], "a record", 0, err };
    struct blacklist_record record;
    struct hvd_err inner;
    int64_t slot;
    int rc;

    while ((rc = db_step(row.stmt, err)) == DB_ROW) {
        memset(&record, 0, sizeof(record));
        row_text(&row, 0, record.host, sizeof(record.host));
        slot = row_int(&row, 1, -1, LIMIT_SLOTS_PER_HOST - 1);
        record.slot = slot < 0 ? BLACKLIST_WHOLE_HOST : (uint32_t)slot;
        record.failures = (uint32_t)row_int(&row, 2, 0, UINT32_MAX);
        record.since_wall_us = row_int(&row, 3, 0, INT64_MAX);
        record.until_wall_us = row_int(&row, 4, 0, INT64_MAX);
        rows_numbers(&row, 5, "the restarts of a record", &record.restarts);
        rows_numbers(&row, 6, "the incarnations of a record", &record.incarnations);
        row_text(&row, 7, record.reason, sizeof(record.reason));
        if (!row.rc && blacklist_record_check(&record, &inner))
            row_damaged(&row, inner.text);
        rc = row.rc ? row.rc : each(arg, &record, err);
        if (rc)
            break;
    }
    db_reset(row.stmt);
    return rc;
}

/* Binds a text as a parameter of the statement; the text must live until the statement has run. */
static void rows_bind(struct db_stmt *stmt, int parameter, const char *text)
{
    db_bind_text(stmt, parameter, (struct span){ text, strlen(text) });
}

/* Prepares a statement that writes: binds its first two parameters, which are always host and
 * slot. */
static struct db_stmt *rows_bind_key(struct blacklist_rows *rows, enum blacklist_statement which,
                                     const char *host, uint32_t slot)
{
    struct db_stmt *stmt = &rows->stmt[which];

    rows_bind(stmt, 1, host);
    db_bind_int(stmt, 2, slot == BLACKLIST_WHOLE_HOST ? -1 : (int64_t)slot);
    return stmt;
}

/* Stores a record in place of the former one of its host or slot, and adds the event to the
 * history. Called inside a transaction of job_file.c. */
int blacklist_rows_put(struct blacklist_rows *rows, const struct blacklist_record *record,
                       const struct blacklist_event *event, struct hvd_err *err)
{
    struct db_stmt *stmt = rows_bind_key(rows, BLACKLIST_PUT_RECORD, record->host, record->slot);
    char restarts[NUMBERS_TEXT_MAX];
    char incarnations[NUMBERS_TEXT_MAX];
    int rc;

    /* The core makes only records that can be read back. */
    ASSERT(blacklist_record_check(record, NULL) == 0);
    ASSERT(blacklist_event_check(event, NULL) == 0);
    db_bind_int(stmt, 3, record->failures);
    db_bind_int(stmt, 4, record->since_wall_us);
    db_bind_int(stmt, 5, record->until_wall_us);
    rows_bind(stmt, 6, numbers_format(&record->restarts, restarts));
    rows_bind(stmt, 7, numbers_format(&record->incarnations, incarnations));
    rows_bind(stmt, 8, record->reason);
    rc = db_run(stmt, err);
    if (rc)
        return rc;
    /* The failure is added to the history, which keeps the newest ones. */
    stmt = rows_bind_key(rows, BLACKLIST_ADD_EVENT, event->host, event->slot);
    db_bind_int(stmt, 3, (int64_t)event->incarnation);
    db_bind_int(stmt, 4, event->wall_us);
    db_bind_int(stmt, 5, event->counted);
    rows_bind(stmt, 6, event->reason);
    rc = db_run(stmt, err);
    return rc ? rc
              : db_run(rows_bind_key(rows, BLACKLIST_TRIM_EVENTS, event->host, event->slot), err);
}

/* Removes the record of a host or slot, and its history. Called when the blacklist has dropped the
 * entry to make room. */
int blacklist_rows_remove(struct blacklist_rows *rows, const char *host, uint32_t slot,
                          struct hvd_err *err)
{
    int rc = db_run(rows_bind_key(rows, BLACKLIST_REMOVE_RECORD, host, slot), err);

    return rc ? rc : db_run(rows_bind_key(rows, BLACKLIST_REMOVE_EVENTS, host, slot), err);
}
