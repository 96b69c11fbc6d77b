/*
 * row.h: reading a row that somebody else may have written. The first thing that is wrong stays in
 * rc and err, naming the row; what is read after that is zero or empty.
 */
#ifndef SQLITE_ROW_H
#define SQLITE_ROW_H

#include "sqlite/db.h"

struct row {
    struct db_stmt *stmt; /* stands on the row */
    const char *name;     /* "record 17 of the journal" */
    int rc;
    struct hvd_err *err;
};

/* HVD_E_CORRUPT, unless something was wrong before. */
void row_damaged(struct row *row, const char *what);

int64_t row_int(struct row *row, int column, int64_t least, int64_t most);

/* Borrowed until the next step or reset. At most that many bytes, and no NUL among them. */
struct span row_span(struct row *row, int column, size_t most);

/* With its NUL in size bytes; out is untouched when it is wrong. */
void row_text(struct row *row, int column, char *out, size_t size);

#endif
