/*
 * audit_line.h: a line of a sample log, as worker/sample_log.h describes it, read strictly.
 */
#ifndef TOOLS_AUDIT_LINE_H
#define TOOLS_AUDIT_LINE_H

#include "base/text.h"

struct audit_line {
    struct span name; /* as it is written, in the line */
    uint64_t epoch, first, total, round;
    uint64_t rank, size;
    uint64_t samples;
    struct span numbers;
    uint64_t count;
};

/* Without its newline. HVD_E_INVAL with what is wrong; all numbers are in their bounds then. */
int audit_line_read(struct span text, struct audit_line *ret_line, struct hvd_err *err) MUST_CHECK;

/* The next of the numbers of a line that was read; false when there is none. */
bool audit_line_next(struct span *numbers, uint64_t *ret_number);

#endif
