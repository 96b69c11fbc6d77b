/*
 * record_row.h: a record of the journal as a row of its table. Private to this folder.
 *
 * The rows are numbered from 1 without a gap. SQLite's numbers are signed: a number of 64 bits is
 * stored as the signed number with the same bits. Ids are stored as "17,18,21". Addresses are
 * stored as netstrings, one after the other: "9:n1:50000,".
 */
#ifndef DRIVER_JOURNAL_RECORD_ROW_H
#define DRIVER_JOURNAL_RECORD_ROW_H

#include "base/buf.h"
#include "driver/core/journal.h"
#include "sqlite/db.h"

extern const char record_row_table[]; /* SQL that makes the table */
extern const char record_row_insert[];
extern const char record_row_select[]; /* selects all rows, in order */

/* Buffers for the texts and lists of a row while the row is written or read. */
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

/* Binds the parameters of record_row_insert. record_wrong (driver/store/record_check.h) must have
 * returned NULL. The row is in use until the statement is reset. Returns 0 or HVD_E_NOMEM. */
int record_row_bind(struct record_row *row, struct db_stmt *stmt,
                    const struct journal_record *record) MUST_CHECK;

/* Reads the present row of record_row_select; `number` is the id that the row must have. The record
 * points into `buffers` until the next row is read. */
int record_row_read(struct record_row *buffers, struct db_stmt *stmt, int64_t number,
                    struct journal_record *ret_record, struct hvd_err *err) MUST_CHECK;

#endif
