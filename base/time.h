/*
 * time.h: the one unit of time, and its text. There is no clock here: whoever needs the time is
 * told it, as microseconds since an epoch that only differences of it depend on.
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
 * "10" and "10s" are ten seconds; also us, ms, m, h, d, compounds ("1h30m", units falling), and up
 * to six decimals in the last unit ("1.5s"), none finer than a microsecond. Up to
 * LIMIT_DURATION_US. "never" gives TIME_NEVER.
 */
int time_parse(const char *text, int64_t *ret_us, struct hvd_err *err);

/* "1h30m", "12.5s", "250ms": whatever time_parse gives, it reads back from this text. A negative
 * value, which it never gives, is shown with a "-". Returns text. */
const char *time_format(int64_t us, char text[TIME_TEXT_MAX]);

/* The same with three digits, which is what people compare: "31.4ms", "1.52s". */
const char *time_brief(int64_t us, char text[TIME_TEXT_MAX]);

/* Microseconds since 1970, UTC, as "2026-11-21T09:30:01.250Z": sortable, and the same everywhere. A
 * time before 1970, of a machine whose clock is not set yet, is rounded down too. Returns text. */
#define TIME_STAMP_MAX 48
const char *time_stamp(int64_t wall_us, char text[TIME_STAMP_MAX]);

/* a + b, and TIME_NEVER where it would overflow. Neither may be negative. */
int64_t time_add(int64_t a_us, int64_t b_us);

#endif
