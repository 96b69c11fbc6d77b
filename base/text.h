/*
 * text.h: strict reading of small texts, and showing foreign text without harm.
 */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include "base/err.h"

#include <stdarg.h>

/* A run of bytes somewhere else: borrowed, not terminated. */
struct span {
    const char *at;
    size_t length;
};

/* Without blanks, tabs and carriage returns at both ends. */
struct span span_trim(struct span span);
bool span_is(struct span span, const char *text);

/* Cuts the part before the first `separator` off *rest; false when nothing is left. The part after
 * the last separator counts even when it is empty, so "a," has two parts. */
bool span_next(struct span *rest, char separator, struct span *ret_part);

/* Decimal digits only, within [min, max]: no sign, blank, prefix or leading "+". `what` names the
 * number in the error. */
int text_parse_u64(struct span span, uint64_t min, uint64_t max, const char *what,
                   uint64_t *ret_value, struct hvd_err *err);

/* Foreign text for an error message: in quotes, unprintable bytes as \xNN, cut after
 * TEXT_QUOTE_SHOWN bytes with "...". Returns quoted. */
#define TEXT_QUOTE_SHOWN 48
#define TEXT_QUOTE_MAX   (4 * TEXT_QUOTE_SHOWN + 6)
const char *text_quote(const char *text, size_t length, char quoted[TEXT_QUOTE_MAX]);

/* One line, whatever its arguments hold: formatted into size bytes (8 at least), control characters
 * as blanks, and ending in "..." where it had to be cut, between two characters. Arguments that
 * cannot be formatted leave the format itself. Returns the length. */
size_t text_line(char *line, size_t size, const char *format, va_list args) PRINTF_LIKE(3, 0);

/* Valid UTF-8 without control characters other than tab and newline. */
bool text_is_clean(const char *text, size_t length);

/* The candidate that is fewest edits from text, or NULL when none is near enough to be a slip. */
const char *text_nearest(const char *text, const char *const *candidates, size_t count);

#endif
