/*
 * log_time.c: moments in the time zone of this machine. Called for each line of a driver's log. It
 * is no part of base/time.c, because localtime_r reads the machine's time zone file.
 */
#include "os/log_time.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static enum log_time log_time_form = LOG_TIME_UTC;

/* Sets the form of log_time_text for the whole process. */
void log_time_set(enum log_time form)
{
    tzset(); /* reads the time zone of the machine; localtime_r need not do that */
    log_time_form = form;
}

/* Writes a time of the wall clock in the form that log_time_set has set. If the local calendar does
 * not have the time, the text is in UTC. */
const char *log_time_text(int64_t wall_us, char text[TIME_STAMP_MAX])
{
    int64_t into_second_us = (wall_us % TIME_S + TIME_S) % TIME_S;
    const time_t second = (time_t)(wall_us / TIME_S - (wall_us % TIME_S < 0));
    const int ms = (int)(into_second_us / TIME_MS % 1000);
    const bool full = log_time_form == LOG_TIME_FULL;
    struct tm local;
    size_t used = 0;
    int minutes; /* the distance of the local time zone from UTC */

    if (log_time_form != LOG_TIME_UTC && localtime_r(&second, &local))
        used = strftime(text, TIME_STAMP_MAX / 2, full ? "%Y-%m-%dT%H:%M:%S" : "%H:%M:%S", &local);
    if (!used)
        return time_stamp(wall_us, text);
    used += (size_t)snprintf(text + used, TIME_STAMP_MAX - used, ".%03d", ms);
    minutes = (int)(labs(local.tm_gmtoff) / 60 % (24 * 60));
    if (full)
        snprintf(text + used, TIME_STAMP_MAX - used, "%c%02d:%02d", local.tm_gmtoff < 0 ? '-' : '+',
                 minutes / 60, minutes % 60);
    return text;
}
