/*
 * stderr_log.h: the log of a program goes to its standard error.
 */
#ifndef OS_STDERR_LOG_H
#define OS_STDERR_LOG_H

void stderr_log_open(void);

#endif
