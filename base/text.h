/*
 * text.h: strict parsing of small texts, and safe output of foreign text.
 */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include "base/err.h"

#include <stdarg.h>

/* Bytes in memory of another owner: borrowed, and without a NUL at the end. */
struct span {
    const char *at;
    size_t length;
};

/* Returns the span without blanks, tabs and carriage returns at both ends. */
struct span span_trim(struct span span);
/* true: the bytes of the span are those of `text`. */
bool span_is(struct span span, const char *text);

/* Cuts the part before the first `separator` off *rest; false: *rest has no part left. The part
 * after the last separator counts even when it is empty, so "a," has two parts. */
bool span_next(struct span *rest, char separator, struct span *ret_part);

/* Takes `word` off the beginning of *rest; false: *rest does not begin with it, and stays. */
bool span_take(struct span *rest, const char *word);

/* Parses decimal digits in [min, max]; a sign, blank or prefix is an error. `what` names the number
 * in the error. */
int text_parse_u64(struct span span, uint64_t min, uint64_t max, const char *what,
                   uint64_t *ret_value, struct hvd_err *err);

/* Writes foreign text for an error message: in quotes, unprintable bytes as \xNN, and "..." after
 * TEXT_QUOTE_SHOWN bytes. Returns quoted. */
#define TEXT_QUOTE_SHOWN 48
#define TEXT_QUOTE_MAX   (4 * TEXT_QUOTE_SHOWN + 6)
const char *text_quote(const char *text, size_t length, char quoted[TEXT_QUOTE_MAX]);

/* Formats one line into size bytes (at least 8). Control characters become blanks. A line that is
 * too long is cut between two characters and ends in "...". When the arguments cannot be formatted,
 * the line is the format itself. Returns the length in bytes. */
size_t text_line(char *line, size_t size, const char *format, va_list args) PRINTF_LIKE(3, 0);

/* Writes a signal with its number and its name: "signal 11 (SIGSEGV)"; a number without a name is
 * alone. Returns text. */
#define TEXT_SIGNAL_MAX 40
const char *text_signal(int number, char text[TEXT_SIGNAL_MAX]);

/* true: text is valid UTF-8 without control characters other than tab and newline. */
bool text_is_clean(const char *text, size_t length);

/* Returns the candidate with the fewest edits from text; NULL when no candidate is near enough to
 * be a typing error. */
const char *text_nearest(const char *text, const char *const *candidates, size_t count);

#endif
