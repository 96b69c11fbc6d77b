/*
 * stderr_tail.h: what a program printed on its standard error: its first line, which is often the
 * cause, and the last LIMIT_STDERR_TAIL_BYTES, which say where the program gave up. The part
 * between them is forgotten.
 */
#ifndef OS_COMMAND_STDERR_TAIL_H
#define OS_COMMAND_STDERR_TAIL_H

#include "base/limits.h"
#include "base/text.h"

#define STDERR_LINE_MAX 256

/* All zero: nothing was printed yet. */
struct stderr_tail {
    char first[STDERR_LINE_MAX]; /* a longer first line is cut */
    size_t first_length;
    bool first_whole;
    char tail[LIMIT_STDERR_TAIL_BYTES];
    size_t tail_length;
    bool cut; /* the program has printed more before the tail */
};

void stderr_tail_add(struct stderr_tail *stderr_tail, const char *bytes, size_t length);

/* The first line that is not blank; of length 0 when there is none. Borrowed until the next add. */
struct span stderr_tail_first(const struct stderr_tail *stderr_tail);

/* The tail, without a first line whose beginning was forgotten. */
struct span stderr_tail_text(const struct stderr_tail *stderr_tail);

/* Visits the lines of a text that are not blank, in order; false after the last line. *rest begins
 * as stderr_tail_text. */
bool stderr_tail_next_line(struct span *rest, struct span *ret_line);

#endif
