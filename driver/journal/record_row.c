/*
 * record_row.c: a record of the journal as a row of its table: writes and reads the row, and checks
 * the same rules when it writes and when it reads. job_file.c calls it. A record that can be
 * written can be read back; a row that breaks a rule is reported as damage and not used.
 */
#include "driver/journal/record_row.h"

#include "driver/store/record_check.h"
#include "sqlite/row.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* The longest texts that the limits allow. A longer text is damage, and is not read. */
#define NETSTRING_MAX   (LIMIT_TEXT_BYTES + 8)
#define ADDRESSES_MAX   (LIMIT_ADDRESSES * NETSTRING_MAX)
#define IDS_MAX         (LIMIT_WORKERS * 10) /* the highest incarnation has 8 digits */
#define LISTS_MAX_BYTES (2 * LIMIT_WORKERS * sizeof(uint64_t) + 2 * (size_t)ADDRESSES_MAX)

/* COMMIT and CHECK are words of SQL, so the columns are commit_number and check_number. */
const char record_row_table[] = "CREATE TABLE journal("
                                "  id INTEGER PRIMARY KEY," /* 1, 2, 3 ... */
                                "  kind INTEGER NOT NULL,"  /* enum journal_kind */
                                "  term INTEGER NOT NULL,"
                                "  incarnation INTEGER NOT NULL,"
                                "  round INTEGER NOT NULL,"
                                "  previous INTEGER NOT NULL,"
                                "  commit_number INTEGER NOT NULL,"
                                "  check_number INTEGER NOT NULL,"
                                "  manifest INTEGER NOT NULL,"
                                "  cause INTEGER NOT NULL,"
                                "  slot INTEGER NOT NULL,"
                                "  ended INTEGER NOT NULL,"
                                "  value INTEGER NOT NULL,"
                                "  code INTEGER NOT NULL,"
                                "  wall_us INTEGER NOT NULL,"
                                "  host TEXT NOT NULL,"
                                "  text TEXT NOT NULL,"
                                "  addresses TEXT NOT NULL,"
                                "  members TEXT NOT NULL,"
                                "  holders TEXT NOT NULL"
                                ") STRICT;";

#define COLUMNS                                                                                    \
    "kind, term, incarnation, round, previous, commit_number, check_number, manifest, cause, slot" \
    ", ended, value, code, wall_us, host, text, addresses, members, holders"

/* Both statements name the columns, so a later step that adds a column changes neither. */
const char record_row_insert[] = "INSERT INTO journal(" COLUMNS ") VALUES(?1, ?2, ?3, ?4, ?5, ?6,"
                                 " ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19)";
const char record_row_select[] = "SELECT id, " COLUMNS " FROM journal ORDER BY id";

/* The columns in the order of record_row_select. The values are also the numbers of the parameters.
 */
enum column {
    ID,
    KIND,
    TERM,
    INCARNATION,
    ROUND,
    PREVIOUS,
    COMMIT,
    CHECK,
    MANIFEST,
    CAUSE,
    SLOT,
    ENDED,
    VALUE,
    CODE,
    WALL_US,
    HOST,
    TEXT,
    ADDRESSES,
    MEMBERS,
    HOLDERS
};

/* Prepares the buffers of a row, which are used again for each record. */
void record_row_init(struct record_row *row)
{
    buf_init(&row->addresses, ADDRESSES_MAX);
    buf_init(&row->members, IDS_MAX);
    buf_init(&row->holders, IDS_MAX);
    arena_init(&row->lists, LISTS_MAX_BYTES);
}

void record_row_release(struct record_row *row)
{
    buf_release(&row->addresses);
    buf_release(&row->members);
    buf_release(&row->holders);
    arena_release(&row->lists);
}

/* Writes "17,18,21". printf would take ten times as long, and a row may hold LIMIT_WORKERS ids. */
static int record_write_ids(struct buf *buf, const struct msg_ids *ids)
{
    int rc = 0;

    buf_clear(buf);
    for (size_t i = 0; i < ids->count && !rc; i++) {
        char digits[24];
        size_t at = sizeof(digits);
        uint64_t rest = ids->items[i];

        for (; rest > 0; rest /= 10)
            digits[--at] = (char)('0' + rest % 10);
        if (i > 0)
            digits[--at] = ',';
        rc = buf_append(buf, digits + at, sizeof(digits) - at);
    }
    return rc;
}

static struct span span_of(const char *text)
{
    return (struct span){ text, strlen(text) };
}

static struct span span_of_buf(const struct buf *buf)
{
    return (struct span){ buf_text(buf), buf->length };
}

/* Sets the parameters of the statement that inserts the record. The buffers of `row` hold the lists
 * as text until the statement has run. Returns 0 or HVD_E_NOMEM. */
int record_row_bind(struct record_row *row, struct db_stmt *stmt,
                    const struct journal_record *record)
{
    buf_clear(&row->addresses);
    for (size_t i = 0; i < record->addresses.count; i++)
        if (buf_printf(&row->addresses, "%zu:%s,", strlen(record->addresses.items[i]),
                       record->addresses.items[i]))
            return HVD_E_NOMEM;
    if (record_write_ids(&row->members, &record->members) ||
        record_write_ids(&row->holders, &record->holders))
        return HVD_E_NOMEM;
    db_bind_int(stmt, KIND, record->kind);
    db_bind_int(stmt, TERM, (int64_t)record->term);
    db_bind_int(stmt, INCARNATION, (int64_t)record->incarnation);
    db_bind_int(stmt, ROUND, (int64_t)record->round);
    db_bind_int(stmt, PREVIOUS, (int64_t)record->previous);
    db_bind_int(stmt, COMMIT, (int64_t)record->commit);
    db_bind_int(stmt, CHECK, (int64_t)record->check);
    db_bind_int(stmt, MANIFEST, (int64_t)record->manifest);
    db_bind_int(stmt, CAUSE, record->cause);
    db_bind_int(stmt, SLOT, record->slot);
    db_bind_int(stmt, ENDED, record->ended);
    db_bind_int(stmt, VALUE, record->value);
    db_bind_int(stmt, CODE, record->code);
    db_bind_int(stmt, WALL_US, record->wall_us);
    db_bind_text(stmt, HOST, span_of(record->host));
    db_bind_text(stmt, TEXT, span_of(record->text));
    db_bind_text(stmt, ADDRESSES, span_of_buf(&row->addresses));
    db_bind_text(stmt, MEMBERS, span_of_buf(&row->members));
    db_bind_text(stmt, HOLDERS, span_of_buf(&row->holders));
    return 0;
}

/* Returns memory of buffers->lists, which has room for lists of every allowed length. NULL: no
 * memory is left, and row->rc says so. */
static void *take_block(struct record_row *buffers, struct row *row, size_t bytes)
{
    void *block = arena_alloc(&buffers->lists, bytes);

    if (!block)
        row->rc = err_set(row->err, HVD_E_NOMEM, "%s: %s", row->name, err_text(HVD_E_NOMEM));
    return block;
}

/* Reads a column with ids that record_write_ids has written, "17,18,21". After a failure, which is
 * in row->rc, the result is empty. */
static struct msg_ids record_read_ids(struct record_row *buffers, struct row *row, int column)
{
    struct span text = row_span(row, column, IDS_MAX);
    struct msg_ids ids = { NULL, 0 };
    struct span part;
    uint64_t *items;
    size_t count = 1;

    if (row->rc || !text.length)
        return ids;
    for (size_t i = 0; i < text.length; i++)
        count += text.at[i] == ',';
    if (count > LIMIT_WORKERS) {
        row_damaged(row, "more ids than LIMIT_WORKERS");
        return ids;
    }
    /* An id cannot be empty, so "17,,21" and "17," fail below. */
    items = take_block(buffers, row, count * sizeof(*items));
    if (!items)
        return ids;
    for (size_t i = 0; !row->rc && span_next(&text, ',', &part); i++)
        if (text_parse_u64(part, 1, LIMIT_INCARNATIONS, "an id", &items[i], NULL))
            row_damaged(row, "an id that no worker can have");
    return row->rc ? ids : (struct msg_ids){ items, count };
}

/* Reads the addresses of a record, which are stored as "9:n1:50000,8:n2:5000,". */
static struct msg_texts record_read_addresses(struct record_row *buffers, struct row *row)
{
    struct span rest = row_span(row, ADDRESSES, ADDRESSES_MAX);
    struct msg_texts none = { NULL, 0 };
    struct span digits;
    const char **items;
    uint64_t length = 0;
    size_t count = 0;

    if (row->rc || !rest.length)
        return none;
    items = take_block(buffers, row, LIMIT_ADDRESSES * sizeof(*items));
    if (!items)
        return none;
    while (!row->rc && rest.length > 0) {
        char *copy;

        if (count == LIMIT_ADDRESSES || !span_next(&rest, ':', &digits) ||
            text_parse_u64(digits, 0, LIMIT_TEXT_BYTES, "a length", &length, NULL) || !rest.at ||
            length >= rest.length || rest.at[length] != ',') {
            row_damaged(row, "the addresses cannot be read");
            break;
        }
        copy = take_block(buffers, row, (size_t)length + 1);
        if (!copy)
            break;
        memcpy(copy, rest.at, (size_t)length);
        copy[length] = '\0';
        items[count++] = copy;
        rest = (struct span){ rest.at + length + 1, rest.length - (size_t)length - 1 };
    }
    return row->rc ? none : (struct msg_texts){ items, count };
}

/* Reads the present row of the statement, which must have the id `number`. The record points into
 * `buffers`, and is valid until the next read. After a failure (row.rc) each further row_ function
 * below does nothing, so only the end is checked. */
int record_row_read(struct record_row *buffers, struct db_stmt *stmt, int64_t number,
                    struct journal_record *ret_record, struct hvd_err *err)
{
    char name[64];
    struct row row = { stmt, name, 0, err };
    struct journal_record record = { .host = buffers->host, .text = buffers->text };
    const char *wrong;

    snprintf(name, sizeof(name), "record %" PRId64 " of the journal", number);
    arena_release(&buffers->lists);
    buffers->host[0] = buffers->text[0] = '\0';
    /* A gap means that a record was deleted. The records after it would mislead the core. */
    if (row_int(&row, ID, INT64_MIN, INT64_MAX) != number)
        row_damaged(&row, "the record is missing");
    /* A number of 64 bits is read with the bits that were written. The other numbers are checked to
     * be in their ranges. */
    record.kind = (enum journal_kind)row_int(&row, KIND, 0, INT32_MAX);
    record.term = (uint64_t)row_int(&row, TERM, INT64_MIN, INT64_MAX);
    record.incarnation = (uint64_t)row_int(&row, INCARNATION, 0, LIMIT_INCARNATIONS);
    record.round = (uint64_t)row_int(&row, ROUND, INT64_MIN, INT64_MAX);
    record.previous = (uint64_t)row_int(&row, PREVIOUS, INT64_MIN, INT64_MAX);
    record.commit = (uint64_t)row_int(&row, COMMIT, INT64_MIN, INT64_MAX);
    record.check = (uint64_t)row_int(&row, CHECK, INT64_MIN, INT64_MAX);
    record.manifest = (uint64_t)row_int(&row, MANIFEST, INT64_MIN, INT64_MAX);
    record.cause = (uint32_t)row_int(&row, CAUSE, 0, CAUSE_COUNT - 1);
    record.slot = (uint32_t)row_int(&row, SLOT, 0, UINT32_MAX);
    record.ended = (uint32_t)row_int(&row, ENDED, 0, ENDED_COUNT - 1);
    record.value = (int32_t)row_int(&row, VALUE, INT32_MIN, INT32_MAX);
    record.code = (int32_t)row_int(&row, CODE, INT32_MIN, INT32_MAX);
    record.wall_us = row_int(&row, WALL_US, 0, INT64_MAX);
    row_text(&row, HOST, buffers->host, sizeof(buffers->host));
    row_text(&row, TEXT, buffers->text, sizeof(buffers->text));
    record.addresses = record_read_addresses(buffers, &row);
    record.members = record_read_ids(buffers, &row, MEMBERS);
    record.holders = record_read_ids(buffers, &row, HOLDERS);
    /* The rules for writing a record hold for reading too: together they say what a journal can
     * hold. */
    wrong = row.rc ? NULL : record_wrong(&record);
    if (wrong)
        row_damaged(&row, wrong);
    if (!row.rc)
        *ret_record = record;
    return row.rc;
}
