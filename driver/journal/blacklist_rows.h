/*
 * blacklist_rows.h: the blacklist in the database of a job: a row for each host or slot, and the
 * newest LIMIT_BLACKLIST_HISTORY_ROWS failures of each. The caller makes the transactions: what
 * these functions write is durable when the caller commits, and undone when the caller rolls back.
 */
#ifndef DRIVER_JOURNAL_BLACKLIST_ROWS_H
#define DRIVER_JOURNAL_BLACKLIST_ROWS_H

#include "blacklist/record.h"
#include "sqlite/db.h"

enum blacklist_statement {
    BLACKLIST_LOAD,
    BLACKLIST_PUT_RECORD,
    BLACKLIST_ADD_EVENT,
    BLACKLIST_TRIM_EVENTS,
    BLACKLIST_REMOVE_RECORD,
    BLACKLIST_REMOVE_EVENTS,
    BLACKLIST_STATEMENTS
};

struct blacklist_rows {
    struct db_stmt stmt[BLACKLIST_STATEMENTS];
};

/* The SQL of the migration step that makes the tables. */
extern const char blacklist_rows_step[];

/* Prepares the statements. The database is borrowed until blacklist_rows_close, which may be called
 * even if this call has failed. */
int blacklist_rows_open(struct blacklist_rows *rows, struct db *db, struct hvd_err *err) MUST_CHECK;
void blacklist_rows_close(struct blacklist_rows *rows);

/* Calls `each` with every record; the record is borrowed during the call. If `each` returns another
 * value than 0, no further record is read and that value is returned. HVD_E_CORRUPT: a record is
 * damaged; then the caller must not use any record of this call. */
typedef int blacklist_rows_fn(void *arg, const struct blacklist_record *record,
                              struct hvd_err *err);
int blacklist_rows_load(struct blacklist_rows *rows, blacklist_rows_fn *each, void *arg,
                        struct hvd_err *err) MUST_CHECK;

/* Stores `record` in place of the last record of its host or slot, and adds `event` to the
 * history. */
int blacklist_rows_put(struct blacklist_rows *rows, const struct blacklist_record *record,
                       const struct blacklist_event *event, struct hvd_err *err) MUST_CHECK;

/* Removes the record of a host or slot, and its history. Returns 0 even if there was no record. */
int blacklist_rows_remove(struct blacklist_rows *rows, const char *host, uint32_t slot,
                          struct hvd_err *err) MUST_CHECK;

#endif
