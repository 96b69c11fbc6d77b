/*
 * test_time.c: base/time: durations as users write them, shown so that they are read back, and
 * sums that never overflow.
 */
#include "base/limits.h"
#include "base/rng.h"
#include "base/time.h"
#include "tests/lib/fixture.h"

#include <string.h>

struct reading {
    const char *text;
    int64_t us;
};

FIXTURE(NULL, NULL)

TEST(reads_durations)
{
    static const struct reading readings[] = {
        {"0",                  0                                               },
        { "10",                10 * TIME_S                                     },
        { "10s",               10 * TIME_S                                     },
        { "1.5",               1500 * TIME_MS                                  },
        { "1.5s",              1500 * TIME_MS                                  },
        { "0.000001",          1                                               },
        { "1us",               1                                               },
        { "250ms",             250 * TIME_MS                                   },
        { "0.001ms",           1                                               },
        { "10m",               10 * TIME_MIN                                   },
        { "0.5m",              30 * TIME_S                                     },
        { "1.5h",              90 * TIME_MIN                                   },
        { "1h30m",             90 * TIME_MIN                                   },
        { "1d2h3m4s5ms6us",
         TIME_DAY + 2 * TIME_HOUR + 3 * TIME_MIN + 4 * TIME_S + 5 * TIME_MS + 6},
        { "1d1us",             TIME_DAY + 1                                    },
        { "1h0.5m",            TIME_HOUR + 30 * TIME_S                         },
        { "90m",               90 * TIME_MIN                                   },
        { "007s",              7 * TIME_S                                      },
        { "3650d",             LIMIT_DURATION_US                               },
        { "315360000000000us", LIMIT_DURATION_US                               },
        { "never",             TIME_NEVER                                      },
    };

    for (size_t i = 0; i < ARRAY_SIZE(readings); i++) {
        int64_t us = -1;

        CHECK_OK(t, time_parse(readings[i].text, &us, NULL));
        CHECK_INT(t, us, ==, readings[i].us);
    }
}

/* true: the text is refused with the code, the quoted text and the part; *ret_us did not change. */
static bool refused(struct test *t, const char *text, int code, const char *part)
{
    struct hvd_err err = { 0 };
    int64_t us = 77;
    int rc = time_parse(text, &us, &err);

    if (rc == code && us == 77 && err.text[0] == '"' && strstr(err.text, part))
        return true;
    test_fail(t, __FILE__, __LINE__, "'%s' gave %s, %lld, '%s'", text, err_name(rc), (long long)us,
              err.text);
    return false;
}

TEST(refuses_other_texts)
{
    static const char *const malformed[] = {
        "",     " ",      "s",     ".",    "-1",      "+1",      " 1",       "1 ",    "1 s",
        "1S",   "1.",     ".5",    "1.s",  "1..",     "1.2.3",   "1s1s",     "1m1h",  "1s1h",
        "1h1",  "1h1.5",  "1x",    "1sec", "1.5h30m", "1.0h30m", "1h1.5m1s", "1h30x", "1e3",
        "0x10", "never ", "Never", "1s,",  "1,5s",    "5mss",    "1us1ms",
    };

    for (size_t i = 0; i < ARRAY_SIZE(malformed); i++) {
        if (!refused(t, malformed[i], HVD_E_INVAL, "not a duration; write "))
            return;
    }
}

TEST(refuses_durations_out_of_bounds)
{
    CHECK(t, refused(t, "3651d", HVD_E_LIMIT, "longer than ten years; write \"never\" instead"));
    CHECK(t, refused(t, "3650d1us", HVD_E_LIMIT, "longer than ten years"));
    CHECK(t, refused(t, "315360000000001us", HVD_E_LIMIT, "longer than ten years"));
    CHECK(t, refused(t, "3650.5d", HVD_E_LIMIT, "longer than ten years"));
    CHECK(t, refused(t, "3649d24.000001h", HVD_E_LIMIT, "longer than ten years"));
    CHECK(t, refused(t, "99999999999999999999999999us", HVD_E_LIMIT, "longer than ten years"));
    CHECK(t, refused(t, "99999999999999999999999999", HVD_E_LIMIT, "longer than ten years"));
    CHECK(t, refused(t, "0.5us", HVD_E_INVAL, "finer than a microsecond"));
    CHECK(t, refused(t, "0.0001ms", HVD_E_INVAL, "finer than a microsecond"));
    CHECK(t, refused(t, "1.0000000s", HVD_E_INVAL, "more than six decimals; write a smaller unit"));
    CHECK(t, refused(t, "0.00000000000000000000001d", HVD_E_INVAL, "more than six decimals"));
}

TEST(shows_durations_as_users_write_them)
{
    static const struct reading shown[] = {
        {"0s",                       0                  },
        { "1us",                     1                  },
        { "999us",                   999                },
        { "1ms",                     TIME_MS            },
        { "1.5ms",                   1500               },
        { "999.999ms",               TIME_S - 1         },
        { "1s",                      TIME_S             },
        { "1.000001s",               TIME_S + 1         },
        { "12.5s",                   12500 * TIME_MS    },
        { "1m",                      TIME_MIN           },
        { "1m30s",                   90 * TIME_S        },
        { "1h0.001s",                TIME_HOUR + TIME_MS},
        { "1d1m",                    TIME_DAY + TIME_MIN},
        { "3650d",                   LIMIT_DURATION_US  },
        { "never",                   TIME_NEVER         },
        { "-1us",                    -1                 },
        { "-1.5ms",                  -1500              },
        { "-1.5s",                   -1500 * TIME_MS    },
        { "-1h",                     -TIME_HOUR         },
        { "106751991d4h54.775806s",  INT64_MAX - 1      },
        { "-106751991d4h54.775807s", INT64_MIN + 1      },
    };
    char text[TIME_TEXT_MAX];

    for (size_t i = 0; i < ARRAY_SIZE(shown); i++)
        CHECK_TEXT(t, time_format(shown[i].us, text), shown[i].text);
    CHECK_HAS(t, time_format(INT64_MIN, text), "-106751991d4h54.7758");
}

/* A random duration of any magnitude, often a round one. */
static int64_t any_duration(struct rng *rng)
{
    static const int64_t round_to[] = { 1, 1, 10, TIME_MS, TIME_S, TIME_MIN, TIME_HOUR, TIME_DAY };
    int64_t us = (int64_t)(rng_next(rng) >> rng_below(rng, 64)) & INT64_MAX;
    int64_t step = round_to[rng_below(rng, ARRAY_SIZE(round_to))];

    us %= LIMIT_DURATION_US + 1;
    return us - us % step;
}

TEST(reads_back_what_it_shows)
{
    struct rng rng;

    rng_seed(&rng, 1);
    for (int i = 0; i < 50000; i++) {
        int64_t us = any_duration(&rng);
        int64_t back = -1;
        char text[TIME_TEXT_MAX];

        CHECK_OK(t, time_parse(time_format(us, text), &back, NULL));
        CHECK_INT(t, back, ==, us);
    }
}

/* Random texts of the letters of durations: an accepted duration is within the limit, and reads
 * back as shown. */
TEST(accepted_durations_are_in_bounds)
{
    static const char letters[] = "0123456789dhms.u";
    struct rng rng;
    int accepted = 0;

    rng_seed(&rng, 2);
    for (int i = 0; i < 100000; i++) {
        int64_t us = -1;
        int64_t back = -1;
        char text[24];
        char shown[TIME_TEXT_MAX];
        size_t length = (size_t)rng_below(&rng, sizeof(text));

        for (size_t at = 0; at < length; at++)
            text[at] = letters[rng_below(&rng, sizeof(letters) - 1)];
        text[length] = '\0';
        if (time_parse(text, &us, NULL))
            continue;
        accepted++;
        CHECK_INT(t, us, >=, 0);
        CHECK_INT(t, us, <=, LIMIT_DURATION_US);
        CHECK_OK(t, time_parse(time_format(us, shown), &back, NULL));
        CHECK_INT(t, us, ==, back);
    }
    CHECK_INT(t, accepted, >, 1000);
}

TEST(adds_up_to_never)
{
    CHECK_INT(t, time_add(1, 2), ==, 3);
    CHECK_INT(t, time_add(TIME_NEVER, 0), ==, TIME_NEVER);
    CHECK_INT(t, time_add(0, TIME_NEVER), ==, TIME_NEVER);
    CHECK_INT(t, time_add(TIME_NEVER, TIME_NEVER), ==, TIME_NEVER);
    CHECK_INT(t, time_add(TIME_NEVER - 1, 1), ==, TIME_NEVER);
    CHECK_INT(t, time_add(TIME_NEVER - 1, 2), ==, TIME_NEVER);
    CHECK_INT(t, time_add(TIME_NEVER - 3, 2), ==, TIME_NEVER - 1);
}

TEST(shows_three_digits)
{
    static const struct {
        int64_t us;
        const char *text;
    } shown[] = {
        {0,                  "0s"    },
        { 999,               "999us" },
        { 1234,              "1.23ms"},
        { 31456,             "31.4ms"},
        { 999999,            "999ms" },
        { 1523400,           "1.52s" },
        { 3725 * TIME_S + 1, "1h2m5s"},
        { TIME_NEVER,        "never" },
    };
    char text[TIME_TEXT_MAX];

    for (size_t i = 0; i < ARRAY_SIZE(shown); i++)
        CHECK_TEXT(t, time_brief(shown[i].us, text), shown[i].text);
}
