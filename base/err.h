/*
 * err.h: one table of error codes, and a text for the person who must act.
 *
 * A function that can fail returns an int: 0 or a negative code of enum hvd_code. Where a person
 * needs to know more than the code says, the last parameter is a struct hvd_err *, which may be
 * NULL. The text names the culprit first and the remedy last:
 *
 *   line 3: "a b": a blank inside a host name; write one host per line
 *
 * A function that fails changes nothing that its caller can see, except the err.
 */
#ifndef BASE_ERR_H
#define BASE_ERR_H

#include "base/base.h"
#include "hvd/hvd.h"

#define ERR_TEXT_MAX 512

struct hvd_err {
    int code;
    char text[ERR_TEXT_MAX];
};

/* Returns the text for a code; "unknown code" for a number that is not in the table. Never NULL. */
const char *err_text(int code);

/* Returns the name that the code has in hvd.h ("HVD_E_LIMIT"); "HVD_?" for a number that is not in
 * the table. */
const char *err_name(int code);

/* Fills err (which may be NULL) and returns code, so that one line both reports and returns. The
 * text is made one line (text_line); the arguments may point into err. */
int err_set(struct hvd_err *err, int code, const char *format, ...) PRINTF_LIKE(3, 4);

/* Puts "prefix: " before the text of err, or before the code's own text when err has none. The
 * prefix says which process, file or operation the failure belongs to. */
int err_prefix(struct hvd_err *err, int code, const char *format, ...) PRINTF_LIKE(3, 4);

#endif
