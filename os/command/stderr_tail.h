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

/* The kept parts of the standard error of a program. All fields zero: nothing was printed yet. */
struct stderr_tail {
    char first[STDERR_LINE_MAX]; /* a longer first line is cut */
    size_t first_length;
    bool first_whole; /* true: the first line has ended, so no further byte belongs to it */
    char tail[LIMIT_STDERR_TAIL_BYTES];
    size_t tail_length;
    bool cut; /* the program has printed more before the tail */
};

/* Takes the next bytes that the program has printed on its standard error. */
void stderr_tail_add(struct stderr_tail *stderr_tail, const char *bytes, size_t length);

/* Returns the first line that is not blank; of length 0 when there is none. Borrowed until the next
 * stderr_tail_add. */
struct span stderr_tail_first(const struct stderr_tail *stderr_tail);

/* Returns the tail. If older bytes were dropped, the tail begins in the middle of a line, and the
 * text begins after that line. */
struct span stderr_tail_text(const struct stderr_tail *stderr_tail);

/* Takes the next line that is not blank off *rest; false: no such line is left. Before the first
 * call the caller sets *rest to stderr_tail_text. */
bool stderr_tail_next_line(struct span *rest, struct span *ret_line);

#endif
