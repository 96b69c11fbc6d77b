/*
 * steps.h: what a training says of itself, whoever has launched it: rank 0 appends a line for each
 * step that is done and committed, in one write, to the file that HVD_CHAOS_STEPS names:
 *
 *     TIME_US ROUND STEP SIZE
 *
 * TIME_US is CLOCK_MONOTONIC, of a moment by which the other ranks cannot be done with the step
 * yet: so the order of times is that of the steps, whoever writes first. ROUND is 0 where a
 * launcher has none. A step that stands there twice was lost and done again. A last line without a
 * newline is not one yet.
 */
#ifndef TESTS_CHAOS_STEPS_H
#define TESTS_CHAOS_STEPS_H

#include "base/buf.h"
#include "base/err.h"

struct step {
    int64_t at_us;
    uint64_t round;
    uint64_t number;
    uint32_t size;
};

struct steps {
    int fd;
    struct step *list; /* all of them, in the order of time */
    size_t count, room;
    char rest[128]; /* of a line that is not whole yet */
    size_t rest_length;
};

/* The file is made if it is not there. */
int steps_open(struct steps *steps, const char *path, struct hvd_err *err) MUST_CHECK;
void steps_close(struct steps *steps);

/* What is new in it. A line that is none: HVD_E_CORRUPT, with its number. */
int steps_read(struct steps *steps, struct hvd_err *err) MUST_CHECK;

/* The same of bytes that somebody else has read. steps may be all zero. */
int steps_take(struct steps *steps, const char *bytes, size_t length,
               struct hvd_err *err) MUST_CHECK;

/* Until there is more than count, by inotify; HVD_E_TIMEOUT. */
int steps_await(struct steps *steps, size_t count, int64_t deadline_us,
                struct hvd_err *err) MUST_CHECK;

/* ---- what they come to -------------------------------------------------------------------------
 */

/* The longest time between two steps that follow each other, of those from place first on. */
int64_t steps_longest_us(const struct steps *steps, size_t first);

/* Steps that were done again, of those from place first on. */
uint64_t steps_repeated(const struct steps *steps, size_t first);

/* The middle of the times between two steps of one round. */
int64_t steps_usual_us(const struct steps *steps, size_t first);

#endif
