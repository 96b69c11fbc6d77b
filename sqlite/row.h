/*
 * row.h: reads a row that an operator may have edited. The first error stays in rc and err, with
 * the name of the row; all later reads return zero or an empty text.
 */
#ifndef SQLITE_ROW_H
#define SQLITE_ROW_H

#include "sqlite/db.h"

struct row {
    struct db_stmt *stmt; /* the statement whose present row is read */
    const char *name;     /* for errors: "record 17 of the journal" */
    int rc;               /* 0, or the code of the first error */
    struct hvd_err *err;  /* gets the text of the first error */
};

/* Sets HVD_E_CORRUPT with `what`, unless an error was found before. */
void row_damaged(struct row *row, const char *what);

/* Returns a number in [least, most]; any other value is an error. */
int64_t row_int(struct row *row, int column, int64_t least, int64_t most);

/* Returns a text of at most `most` bytes without a NUL; borrowed until the next db_step or
 * db_reset. */
struct span row_span(struct row *row, int column, size_t most);

/* Copies a text with its NUL into out, which has `size` bytes; out is untouched when the text is
 * not valid. */
void row_text(struct row *row, int column, char *out, size_t size);

#endif
