/*
 * err.h: one table of codes, and a sentence for the person who must act.
 *
 * A function that can fail returns an int: 0 or a negative code of enum hvd_code. Where a human
 * needs to know more than the code says, the last parameter is a struct hvd_err *, which may be
 * NULL. The text names the culprit first and the remedy last:
 *
 *     line 3: "a b": a blank inside a host name; write one host per line
 *
 * A function that fails changes nothing its caller can see, except the err.
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

/* The sentence for a code; "unknown code" for numbers that are not in the table. Never NULL. */
const char *err_text(int code);

/* The code's name as it stands in hvd.h ("HVD_E_LIMIT"); "HVD_?" for others. */
const char *err_name(int code);

/* Fills err (may be NULL) and returns code, so that one line both reports and returns. The text is
 * one line (text_line); its arguments may point into err. */
int err_set(struct hvd_err *err, int code, const char *format, ...) PRINTF_LIKE(3, 4);

/* Puts "prefix: " before the text that is there, or before the code's sentence when there is none:
 * who was asked to do what failed below. */
int err_prefix(struct hvd_err *err, int code, const char *format, ...) PRINTF_LIKE(3, 4);

#endif
