/*
 * stderr_log.h: the log of a program goes to its standard error. A reader that is slow or stopped
 * (a pager, a terminal) does not hold up the program: lines are left out, and counted.
 */
#ifndef OS_STDERR_LOG_H
#define OS_STDERR_LOG_H

#include "base/base.h"

void stderr_log_open(void);

/* true (the default): each line begins with the time. Called before other threads start. */
void stderr_log_stamp(bool wanted);

#endif
