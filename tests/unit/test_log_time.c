/*
 * test_log_time.c: os/log_time: the same moment in each form, in several time zones.
 */
#include "os/log_time.h"

#include "tests/lib/test.h"

#include <stdlib.h>
#include <string.h>

/* 2026-11-21T09:30:01.250Z */
#define NOW (INT64_C(1795253401) * TIME_S + 250999)

/* The moment in this zone and form. Zones are written out, so that the test needs no database of
 * zones. */
static const char *at(int64_t wall_us, const char *zone, enum log_time form)
{
    static char text[TIME_STAMP_MAX];

    setenv("TZ", zone, 1);
    log_time_set(form);
    log_time_text(wall_us, text);
    log_time_set(LOG_TIME_UTC);
    return text;
}

TEST(each_form_names_the_same_moment)
{
    CHECK_TEXT(t, at(NOW, "CET-1", LOG_TIME_SHORT), "10:30:01.250");
    CHECK_TEXT(t, at(NOW, "CET-1", LOG_TIME_FULL), "2026-11-21T10:30:01.250+01:00");
    CHECK_TEXT(t, at(NOW, "CET-1", LOG_TIME_UTC), "2026-11-21T09:30:01.250Z");
    CHECK_TEXT(t, at(NOW, "NST3:30", LOG_TIME_FULL), "2026-11-21T06:00:01.250-03:30");
    CHECK_TEXT(t, at(NOW, "UTC0", LOG_TIME_FULL), "2026-11-21T09:30:01.250+00:00");
out:
    return;
}

TEST(any_time_has_a_text)
{
    CHECK_TEXT(t, at(-1, "UTC0", LOG_TIME_SHORT), "23:59:59.999");
    CHECK_TEXT(t, at(-1, "UTC0", LOG_TIME_FULL), "1969-12-31T23:59:59.999+00:00");
    CHECK(t, strlen(at(INT64_MAX, "CET-1", LOG_TIME_FULL)) < TIME_STAMP_MAX - 1);
    CHECK(t, strlen(at(INT64_MIN, "CET-1", LOG_TIME_FULL)) < TIME_STAMP_MAX - 1);
out:
    return;
}
