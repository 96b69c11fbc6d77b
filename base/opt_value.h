/*
 * opt_value.h: one value of an option: from text into a field, and back. Only the opt_*.c files
 * need it. A field is a place of the type that belongs to the row's kind, in the program's config
 * or in a union opt_field; all zeroes are an unset value.
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

/* Replaces the value, or appends it to the list; unchanged on failure. The error names the value
 * and what would be right; the caller says whose value it is. */
int opt_value_read(const struct opt *row, const char *text, void *field,
                   struct hvd_err *err) MUST_CHECK;

/* The text that opt_value_read takes back; not for texts and lists. */
int opt_value_write(const struct opt *row, const void *field, struct buf *out) MUST_CHECK;

/* What a value may be: "1 to 10", "info, debug"; "" when anything goes. Returns text. */
#define OPT_BOUNDS_MAX 200
const char *opt_value_bounds(const struct opt *row, char text[OPT_BOUNDS_MAX]);

/* Clearing forgets, releasing frees what the value owns; moving overwrites one, clears the other.
 */
void opt_value_clear(const struct opt *row, void *field);
void opt_value_move(const struct opt *row, void *to, void *from);
void opt_value_release(const struct opt *row, void *field);

/* Sets err to the code's own sentence and returns the code. */
int opt_value_fail(int code, struct hvd_err *err);

#endif
