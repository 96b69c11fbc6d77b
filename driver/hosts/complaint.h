/*
 * complaint.h: what a program has said on its standard error: its first line, because that is often
 * the cause, and its end, because that is where it gave up. What is between is forgotten.
 */
#ifndef DRIVER_HOSTS_COMPLAINT_H
#define DRIVER_HOSTS_COMPLAINT_H

#include "base/limits.h"
#include "base/text.h"

#define COMPLAINT_LINE_MAX 256

struct complaint {
    char first[COMPLAINT_LINE_MAX]; /* a longer first line is cut */
    size_t first_length;
    bool first_whole;
    char tail[LIMIT_COMPLAINT_BYTES];
    size_t tail_length;
    bool cut; /* the tail does not begin where the program did */
};

void complaint_init(struct complaint *complaint);
void complaint_add(struct complaint *complaint, const char *bytes, size_t length);

/* The first line that is not blank; of length 0 when there is none. Borrowed until the next add. */
struct span complaint_first(const struct complaint *complaint);

/* Visits the lines of the tail that are not blank, in order; false after the last one. *rest is
 * complaint_tail to begin with. A line whose beginning was forgotten is left out. */
struct span complaint_tail(const struct complaint *complaint);
bool complaint_next(struct span *rest, struct span *ret_line);

#endif
