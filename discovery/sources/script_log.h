/*
 * script_log.h: copies the standard error of a discovery program into the driver's log. A text that
 * the program prints again in each run is logged once, and only a limited number of texts per
 * minute is logged.
 */
#ifndef DISCOVERY_SOURCES_SCRIPT_LOG_H
#define DISCOVERY_SOURCES_SCRIPT_LOG_H

#include "base/log.h"
#include "os/command/stderr_tail.h"

struct script_log {
    const char *name;                    /* name of the program; borrowed */
    char shown[LIMIT_STDERR_TAIL_BYTES]; /* the text of the last call, which is not logged again */
    size_t shown_length;
    struct log_limit limit; /* limits the texts per minute */
};

void script_log_init(struct script_log *log, const char *name);

/* Called when a run has ended: logs its last lines, unless the run before it printed the same
 * lines. */
void script_log_run(struct script_log *log, const struct stderr_tail *stderr_tail);

/* Called when a program that goes on running has printed more: logs its newest complete line,
 * unless the line of the last call was the same. */
void script_log_line(struct script_log *log, const struct stderr_tail *stderr_tail);

#endif
