/*
 * script_log.h: copies the standard error of a discovery program into the driver's log. A text that
 * the program prints again, in each run or now and then, is logged once until another text comes,
 * or discovery has failed and works again. Only a limited number of texts per minute is logged.
 */
#ifndef DISCOVERY_SOURCES_SCRIPT_LOG_H
#define DISCOVERY_SOURCES_SCRIPT_LOG_H

#include "base/log.h"
#include "os/command/stderr_tail.h"

struct script_log {
    const char *name;                    /* name of the program; borrowed */
    char shown[LIMIT_STDERR_TAIL_BYTES]; /* the last text, which is not logged again */
    size_t shown_length;
    bool failing;           /* the last run has given no hosts */
    struct log_limit limit; /* limits the texts per minute */
};

void script_log_init(struct script_log *log, const char *name);

/* Called when a run has ended: logs its last lines, unless they were logged before. `works`: the
 * run has given hosts. */
void script_log_run(struct script_log *log, const struct stderr_tail *stderr_tail, bool works);

/* Called when a program that goes on running has printed more: logs its newest complete line,
 * unless the line before was the same. */
void script_log_line(struct script_log *log, const struct stderr_tail *stderr_tail);

#endif
