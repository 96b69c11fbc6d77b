/*
 * time.h: the one unit of time, microseconds, and its text form. There is no clock here: code that
 * needs the time gets it as a parameter, as microseconds since an arbitrary start.
 */
#ifndef BASE_TIME_H
#define BASE_TIME_H

#include "base/err.h"

#define TIME_NEVER    INT64_MAX
#define TIME_MS       INT64_C(1000)
#define TIME_S        (1000 * TIME_MS)
#define TIME_MIN      (60 * TIME_S)
#define TIME_HOUR     (60 * TIME_MIN)
#define TIME_DAY      (24 * TIME_HOUR)

#define TIME_TEXT_MAX 48

/*
 * Parses a duration. "10" and "10s" are ten seconds. Units are us, ms, s, m, h, d; compounds
 * ("1h30m") have falling units; the last number may have up to six decimals ("1.5s"), none finer
 * than a microsecond. At most LIMIT_DURATION_US. "never" gives TIME_NEVER.
 */
int time_parse(const char *text, int64_t *ret_us, struct hvd_err *err);

/* Writes "1h30m", "12.5s" or "250ms"; time_parse reads the text back to the same value. A negative
 * value, which time_parse never gives, gets a "-". Returns text. */
const char *time_format(int64_t us, char text[TIME_TEXT_MAX]);

/* Writes the time with three significant digits, which is easy to compare: "31.4ms", "1.52s".
 * Returns text. */
const char *time_brief(int64_t us, char text[TIME_TEXT_MAX]);

/* Writes microseconds since 1970, UTC, as "2026-11-21T09:30:01.250Z": a form that sorts by time. A
 * time before 1970, from a machine whose clock is not set yet, is rounded down, too. Returns
 * text. */
#define TIME_STAMP_MAX 48
const char *time_stamp(int64_t wall_us, char text[TIME_STAMP_MAX]);

/* Returns a_us + b_us; TIME_NEVER when the sum overflows. Neither may be negative. */
int64_t time_add(int64_t a_us, int64_t b_us);

#endif
