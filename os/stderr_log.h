/*
 * stderr_log.h: the log of a program goes to its standard error. A reader that is slow or stopped
 * (a pager, a terminal) does not hold up the program: lines are left out, and counted.
 */
#ifndef OS_STDERR_LOG_H
#define OS_STDERR_LOG_H

#include "base/base.h"

/* Makes standard error the place of the log (log_open). */
void stderr_log_open(void);

/* COLOURS_AUTO: while standard error is a terminal, unless NO_COLOR is set or TERM is "dumb" or
 * not set. */
enum stderr_colours { COLOURS_AUTO, COLOURS_ALWAYS, COLOURS_NEVER };

/* How the lines of the log look. */
struct stderr_log_style {
    bool stamps; /* each line begins with the time, as os/log_time.h writes it */
    enum stderr_colours colours;
};

/* Sets how the lines look. Called before other threads start; without this call lines have the
 * time, and no colours. */
void stderr_log_set(const struct stderr_log_style *style);

#endif
