/*
 * record_row.h: a record of the journal as a row of its table. Private to this folder.
 *
 * The rows are numbered from 1 without a gap. A number of 64 bits is stored as SQLite's signed one
 * with the same bits; ids as "17,18,21"; addresses as netstrings: "9:n1:50000,", one behind the
 * other.
 */
#ifndef DRIVER_JOURNAL_RECORD_ROW_H
#define DRIVER_JOURNAL_RECORD_ROW_H

#include "base/buf.h"
#include "driver/core/journal.h"
#include "sqlite/db.h"

extern const char record_row_table[]; /* SQL that makes it */
extern const char record_row_insert[];
extern const char record_row_select[]; /* all of them, in order */

/* What a row's texts lie in while it is written or read. */
struct record_row {
    struct buf addresses;
    struct buf members;
    struct buf holders;
    struct arena lists;
    char host[LIMIT_HOST_NAME_BYTES + 1];
    char text[LIMIT_REASON_BYTES + 1];
};

void record_row_init(struct record_row *row);
void record_row_release(struct record_row *row);

/* What is wrong with a record that could not be read back, or NULL. */
const char *record_row_wrong(const struct journal_record *record);

/* The parameters of record_row_insert; row is in use until the statement was reset. The record is
 * not a wrong one. 0 or HVD_E_NOMEM. */
int record_row_bind(struct record_row *row, struct db_stmt *stmt,
                    const struct journal_record *record) MUST_CHECK;

/* The row on which record_row_select stands, which has to be this number. The record lives in own
 * until the next one is read. */
int record_row_read(struct record_row *own, struct db_stmt *stmt, int64_t number,
                    struct journal_record *ret_record, struct hvd_err *err) MUST_CHECK;

#endif
