/*
 * stderr_log.h: the log of a program goes to its standard error. Who reads it slowly, or not at all
 * (a pager, a terminal that was stopped), holds up nobody: lines are left out, and counted.
 */
#ifndef OS_STDERR_LOG_H
#define OS_STDERR_LOG_H

#include "base/base.h"

void stderr_log_open(void);

/* Whether a line begins with the time; it does. Set before other threads start. */
void stderr_log_stamp(bool wanted);

#endif
