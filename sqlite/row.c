/*
 * row.c: reads the columns of a row and checks their bounds. driver/journal reads all its rows with
 * this file, so a database that an operator has edited gives an error and never a wrong value.
 */
#include "sqlite/row.h"

#include <stdio.h>
#include <string.h>

#define WHAT_MAX        384
#define COLUMN_WHAT_MAX 192

/* Sets the error "FILE: ROW: what; move the file aside", unless the row has an error already. After
 * an error (`rc` is not 0) all functions of this file do nothing. */
void row_damaged(struct row *row, const char *what)
{
    char line[WHAT_MAX];

    if (row->rc)
        return;
    snprintf(line, sizeof(line), "%s: %s", row->name, what);
    row->rc = db_damaged(row->stmt->db, line, row->err);
}

/* Sets the error for a wrong value: "the VALUE in the column NAME IS WRONG". */
static void row_column_damaged(struct row *row, int column, const char *value, const char *wrong)
{
    char what[COLUMN_WHAT_MAX];

    snprintf(what, sizeof(what), "the %s in the column %s %s", value,
             db_column_name(row->stmt, column), wrong);
    row_damaged(row, what);
}

/* Sets the error for a column that cannot be read: the value is not of the column's type, or no
 * memory is left for the value. */
static void row_column_failed(struct row *row, int column, int rc)
{
    if (rc == HVD_E_CORRUPT)
        row_column_damaged(row, column, "value", "is not of the column's type");
    else
        row->rc =
            err_set(row->err, rc,
                    "%s: this row of the database cannot be read: %s; free memory on this host",
                    row->name, err_text(rc));
}

/* Returns the number in the column; 0 also when the row has an error (`rc`). */
int64_t row_int(struct row *row, int column, int64_t least, int64_t most)
{
    int64_t value = 0;
    int rc;

    if (row->rc)
        return 0;
    rc = db_column_int(row->stmt, column, &value, NULL);
    if (rc)
        row_column_failed(row, column, rc);
    else if (value < least || value > most)
        row_column_damaged(row, column, "number", "is out of range");
    return row->rc ? 0 : value;
}

/* Returns the text in the column, borrowed until the next step. An empty text: the row has an error
 * (`rc`), or the text is empty. */
struct span row_span(struct row *row, int column, size_t most)
{
    struct span text = { "", 0 };
    int rc;

    if (row->rc)
        return text;
    rc = db_column_text(row->stmt, column, &text, NULL);
    if (rc)
        row_column_failed(row, column, rc);
    else if (text.length > most)
        row_column_damaged(row, column, "text", "is too long");
    /* A NUL would end the text early where it is used as a C string. */
    else if (memchr(text.at, '\0', text.length))
        row_column_damaged(row, column, "text", "holds a NUL byte");
    return row->rc ? (struct span){ "", 0 } : text;
}

/* Copies the text in the column. After an error `out` is unchanged. */
void row_text(struct row *row, int column, char *out, size_t size)
{
    struct span text = row_span(row, column, size - 1);

    if (row->rc)
        return;
    memcpy(out, text.at, text.length);
    out[text.length] = '\0';
}
