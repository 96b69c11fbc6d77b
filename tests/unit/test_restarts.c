/*
 * test_restarts.c: when the next driver comes: at once after one that ran, later after ones that
 * did not, and never more often than the limit says.
 */
#include "driver/front/restarts.h"
#include "tests/lib/test.h"

static struct restarts restarts;

TEST(a_driver_that_ran_is_followed_at_once)
{
    int64_t now_us = TIME_HOUR;

    restarts = (struct restarts){ .count = 0 };
    for (int i = 0; i < 10; i++, now_us += TIME_S)
        CHECK_INT(t, restarts_next(&restarts, true, now_us), ==, now_us);
out:;
}

TEST(drivers_that_do_not_run_come_less_and_less_often)
{
    static const int64_t waits_us[] = {
        0, TIME_S, 2 * TIME_S, 4 * TIME_S, RESTARTS_LONGEST_US, RESTARTS_LONGEST_US
    };
    int64_t now_us = TIME_HOUR;

    restarts = (struct restarts){ .count = 0 };
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < ARRAY_SIZE(waits_us); i++) {
            CHECK_INT(t, restarts_next(&restarts, false, now_us), ==, now_us + waits_us[i]);
            now_us += waits_us[i] + TIME_MS;
        }
        /* one that runs makes the next failure the first one again */
        CHECK_INT(t, restarts_next(&restarts, true, now_us), ==, now_us);
    }
out:;
}

TEST(a_minute_has_no_more_starts_than_the_limit)
{
    int64_t starts_us[3 * LIMIT_DRIVER_RESTARTS];
    int64_t now_us = 0;

    restarts = (struct restarts){ .count = 0 };
    for (size_t i = 0; i < ARRAY_SIZE(starts_us); i++)
        starts_us[i] = now_us = restarts_next(&restarts, true, now_us + TIME_MS);
    for (size_t i = LIMIT_DRIVER_RESTARTS; i < ARRAY_SIZE(starts_us); i++)
        CHECK_INT(t, starts_us[i] - starts_us[i - LIMIT_DRIVER_RESTARTS], >=, RESTARTS_WINDOW_US);
    CHECK_INT(t, starts_us[LIMIT_DRIVER_RESTARTS - 1], <, TIME_S); /* none of these had to wait */
out:;
}
