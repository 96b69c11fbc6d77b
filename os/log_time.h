/*
 * log_time.h: the time before lines for an operator: of the log, and of the output of workers.
 */
#ifndef OS_LOG_TIME_H
#define OS_LOG_TIME_H

#include "base/time.h"

enum log_time {
    LOG_TIME_SHORT, /* local time without a date: 09:30:01.250 */
    LOG_TIME_FULL,  /* local time with its zone: 2026-11-21T09:30:01.250+01:00 */
    LOG_TIME_UTC    /* as time_stamp writes it: 2026-11-21T08:30:01.250Z */
};

/* Sets the form of log_time_text for the whole program. Called before other threads start; without
 * this call the form is LOG_TIME_UTC. */
void log_time_set(enum log_time form);

/* Writes microseconds since 1970 in the form that log_time_set has set, without a blank. Returns
 * text. A year that the local calendar does not have is written in UTC. */
const char *log_time_text(int64_t wall_us, char text[TIME_STAMP_MAX]);

#endif
