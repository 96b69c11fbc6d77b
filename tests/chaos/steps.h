/*
 * steps.h: the lines that a training writes under any launcher. For each step that is done and
 * committed, rank 0 appends a line, in one write, to the file that HVD_CHAOS_STEPS names:
 *
 *     TIME_US ROUND STEP SIZE
 *
 * TIME_US is CLOCK_MONOTONIC, taken when no other rank can have finished the step yet. So the order
 * of the times is the order of the steps, even if lines are written in another order. ROUND is 0
 * when the launcher has no rounds. A step number that occurs twice was lost and repeated. A last
 * line without a newline is not complete yet.
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
    struct step *list; /* all steps, ordered by time */
    size_t count, room;
    char rest[128]; /* the beginning of a line that is not complete yet */
    size_t rest_length;
};

/* Makes the file if it does not exist. */
int steps_open(struct steps *steps, const char *path, struct hvd_err *err) MUST_CHECK;
void steps_close(struct steps *steps);

/* Reads the new lines. HVD_E_CORRUPT: the text has the number of a line that is malformed. */
int steps_read(struct steps *steps, struct hvd_err *err) MUST_CHECK;

/* Reads new lines from bytes that the caller has read. steps may be all zero. */
int steps_take(struct steps *steps, const char *bytes, size_t length,
               struct hvd_err *err) MUST_CHECK;

/* Waits by inotify until there are more than count steps; HVD_E_TIMEOUT. */
int steps_await(struct steps *steps, size_t count, int64_t deadline_us,
                struct hvd_err *err) MUST_CHECK;

/* ---- measures; each looks at list[first] and all later steps ---- */

/* The longest time between two consecutive steps. */
int64_t steps_longest_us(const struct steps *steps, size_t first);

/* Steps that were repeated. */
uint64_t steps_repeated(const struct steps *steps, size_t first);

/* The median time between two steps of one round. */
int64_t steps_usual_us(const struct steps *steps, size_t first);

#endif
