/*
 * test_stamp.c: moments as text: which are read, to which value, and which are refused.
 */
#include "base/stamp.h"

#include "base/time.h"
#include "tests/lib/test.h"

#include <string.h>

#define S TIME_S

static struct span span_of(const char *text)
{
    return (struct span){ text, strlen(text) };
}

TEST(moments_are_read)
{
    static const struct {
        const char *text;
        int64_t wall_us; /* 0: refused */
    } stamps[] = {
        {"2017-09-18T08:22:00Z",             1505722920 * S        },
        { "2017-09-18T08:22:00.250Z",        1505722920 * S + S / 4},
        { "2017-09-18 10:22:00+02:00",       1505722920 * S        },
        { "2017-09-18T03:52:00-04:30",       1505722920 * S        },
        { "2000-02-29T23:59:59Z",            951868799 * S         },
        { "1999-12-31T00:00:00.1234567890Z", 946598400 * S + 123456},
        { "2017-09-18T08:22:00",             0                     },
        { "2017-09-18T08:22:00Zx",           0                     },
        { "2017-13-18T08:22:00Z",            0                     },
        { "2017-09-00T08:22:00Z",            0                     },
        { "2017-09-18T24:22:00Z",            0                     },
        { "+017-09-18T08:22:00Z",            0                     },
        { "2017-09-18T08:22:00+2:00",        0                     },
        { "",                                0                     },
    };
    static const struct {
        const char *text;
        int64_t wall_us;
    } dates[] = {
        {"Mon, 19 Sep 2016 18:29:47 GMT",   1474309787 * S},
        { "Mon, 19 Sept 2016 18:29:47 GMT", 0             },
        { "Mon, 19 Sep 2016 18:29:47 UTC",  0             },
        { "Mon, 1 Sep 2016 18:29:47 GMT",   0             },
        { "Mon, 19 Sep",                    0             },
        { "",                               0             },
    };
    int64_t wall_us;

    for (size_t i = 0; i < ARRAY_SIZE(stamps); i++) {
        CHECK(t, stamp_read(span_of(stamps[i].text), &wall_us) == (stamps[i].wall_us != 0));
        if (stamps[i].wall_us)
            CHECK_INT(t, wall_us, ==, stamps[i].wall_us);
    }
    for (size_t i = 0; i < ARRAY_SIZE(dates); i++) {
        CHECK(t, stamp_read_http(span_of(dates[i].text), &wall_us) == (dates[i].wall_us != 0));
        if (dates[i].wall_us)
            CHECK_INT(t, wall_us, ==, dates[i].wall_us);
    }
out:;
}

TEST(what_time_stamp_writes_is_read)
{
    char text[TIME_STAMP_MAX];
    int64_t wall_us;

    for (int64_t day = 0; day < 400 * 366; day += 13) {
        CHECK(t, stamp_read(span_of(time_stamp(day * TIME_DAY + 250 * TIME_MS, text)), &wall_us));
        CHECK_INT(t, wall_us, ==, day * TIME_DAY + 250 * TIME_MS);
    }
out:;
}
