#include "sqlite/row.h"

#include <stdio.h>
#include <string.h>

#define WHAT_MAX        384
#define COLUMN_WHAT_MAX 192

void row_damaged(struct row *row, const char *what)
{
    char line[WHAT_MAX];

    if (row->rc)
        return;
    snprintf(line, sizeof(line), "%s: %s", row->name, what);
    row->rc = db_damaged(row->stmt->db, line, row->err);
}

static void column_damaged(struct row *row, int column, const char *before, const char *after)
{
    char what[COLUMN_WHAT_MAX];

    snprintf(what, sizeof(what), "%s %s %s", before, db_column_name(row->stmt, column), after);
    row_damaged(row, what);
}

/* A column could not be read: it has another type, or memory is out. */
static void column_failed(struct row *row, int column, int rc)
{
    if (rc == HVD_E_CORRUPT)
        column_damaged(row, column, "what is in the column", "has another type");
    else
        row->rc = err_set(row->err, rc, "%s: %s", row->name, err_text(rc));
}

int64_t row_int(struct row *row, int column, int64_t least, int64_t most)
{
    int64_t value = 0;
    int rc;

    if (row->rc)
        return 0;
    rc = db_column_int(row->stmt, column, &value, NULL);
    if (rc)
        column_failed(row, column, rc);
    else if (value < least || value > most)
        column_damaged(row, column, "the number in the column", "is out of range");
    return row->rc ? 0 : value;
}

struct span row_span(struct row *row, int column, size_t most)
{
    struct span text = { "", 0 };
    int rc;

    if (row->rc)
        return text;
    rc = db_column_text(row->stmt, column, &text, NULL);
    if (rc)
        column_failed(row, column, rc);
    else if (text.length > most)
        column_damaged(row, column, "the text in the column", "is too long");
    else if (memchr(text.at, '\0', text.length))
        column_damaged(row, column, "the text in the column", "holds a NUL");
    return row->rc ? (struct span){ "", 0 } : text;
}

void row_text(struct row *row, int column, char *out, size_t size)
{
    struct span text = row_span(row, column, size - 1);

    if (row->rc)
        return;
    memcpy(out, text.at, text.length);
    out[text.length] = '\0';
}
