/*
 * opt_value.h: reads one value of an option from text into a field, and writes it back. Only the
 * opt_*.c files need this header. A field has the C type of the row's kind and lies in the
 * program's config or in a union opt_field; all zeroes stand for an unset value.
 */
#ifndef BASE_OPT_VALUE_H
#define BASE_OPT_VALUE_H

#include "base/buf.h"
#include "base/opt.h"

union opt_field {
    bool flag;
    uint64_t number;
    int64_t us;
    struct opt_range range;
    char *text;
    unsigned choice;
    struct opt_list list;
};

/* Reads text: replaces the value, or appends to a list; unchanged on failure. The error names the
 * value and what would be right; the caller adds the option's name. */
int opt_value_read(const struct opt *row, const char *text, void *field,
                   struct hvd_err *err) MUST_CHECK;

/* Appends the text from which opt_value_read would read the same value. Not for texts and lists. */
int opt_value_write(const struct opt *row, const void *field, struct buf *out) MUST_CHECK;

/* Writes the allowed values: "1 to 10", "info, debug"; "" when any value is allowed. Returns
 * text. */
#define OPT_BOUNDS_MAX 200
const char *opt_value_bounds(const struct opt *row, char text[OPT_BOUNDS_MAX]);

/* opt_value_clear sets the field to unset and frees nothing; opt_value_release frees the memory of
 * the value; opt_value_move overwrites `to` with the value and clears `from`. */
void opt_value_clear(const struct opt *row, void *field);
void opt_value_move(const struct opt *row, void *to, void *from);
void opt_value_release(const struct opt *row, void *field);

/* Sets err to the code's own text (err_text) and returns the code. */
int opt_value_fail(int code, struct hvd_err *err);

#endif
