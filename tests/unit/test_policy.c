/*
 * test_policy.c: the blacklist's policy: cooldowns that follow a formula, jitter, budgets, and
 * what is refused.
 */
#include "base/limits.h"
#include "base/time.h"
#include "blacklist/policy.h"
#include "tests/lib/fixture.h"

TEST(defaults_are_ten_seconds_to_ten_minutes)
{
    struct policy policy;

    policy_init(&policy);
    CHECK_OK(t, policy_check(&policy, NULL));
    CHECK_INT(t, policy.lower_us, ==, 10 * TIME_S);
    CHECK_INT(t, policy.upper_us, ==, 600 * TIME_S);
    CHECK_INT(t, policy.decay_us, ==, 600 * TIME_S);
    CHECK_INT(t, policy.scope, ==, SCOPE_SLOT);
    CHECK_INT(t, policy.restarts_max, ==, 0);
    CHECK(t, !policy.forever);
}

/* The example in the header, in seconds. */
TEST(cooldown_is_what_the_header_says)
{
    static const int64_t least[] = { 10, 20, 40, 80, 160, 320, 600, 600, 600 };
    static const int64_t most[] = { 20, 30, 50, 90, 170, 330, 600, 600, 600 };
    struct policy policy;

    policy_init(&policy);
    for (uint32_t n = 1; n <= ARRAY_SIZE(least); n++) {
        CHECK_INT(t, policy_cooldown_us(&policy, n, 0), ==, least[n - 1] * TIME_S);
        CHECK_INT(t, policy_cooldown_us(&policy, n, policy.lower_us), ==, most[n - 1] * TIME_S);
    }
}

/* The formula computed step by step; it cannot overflow below n = 40 with L below 2^23. */
static int64_t expected(int64_t lower_us, int64_t upper_us, uint32_t n, int64_t jitter_us)
{
    int64_t cooldown_us = lower_us * (INT64_C(1) << (n - 1)) + jitter_us;

    return cooldown_us < upper_us ? cooldown_us : upper_us;
}

TEST(cooldown_follows_the_formula_for_every_n)
{
    static const struct {
        int64_t lower_us;
        int64_t upper_us;
    } ranges[] = {
        {0,           0                },
        { 0,          TIME_S           },
        { 1,          1                },
        { 1,          TIME_HOUR        },
        { 3,          7                },
        { TIME_S,     TIME_S           },
        { TIME_S,     2 * TIME_S       },
        { TIME_S,     TIME_DAY         },
        { 5 * TIME_S, LIMIT_DURATION_US},
    };

    for (size_t i = 0; i < ARRAY_SIZE(ranges); i++) {
        struct policy policy;

        policy_init(&policy);
        policy.lower_us = ranges[i].lower_us;
        policy.upper_us = ranges[i].upper_us;
        CHECK_OK(t, policy_check(&policy, NULL));
        for (uint32_t n = 1; n <= 40; n++) {
            int64_t jitters[] = { 0, policy.lower_us / 2, policy.lower_us };

            for (size_t j = 0; j < ARRAY_SIZE(jitters); j++)
                CHECK_INT(t, policy_cooldown_us(&policy, n, jitters[j]), ==,
                          expected(policy.lower_us, policy.upper_us, n, jitters[j]));
        }
    }
}

TEST(cooldown_never_overflows)
{
    struct policy policy;

    policy_init(&policy);
    policy.lower_us = LIMIT_DURATION_US;
    policy.upper_us = LIMIT_DURATION_US;
    CHECK_OK(t, policy_check(&policy, NULL));
    CHECK_INT(t, policy_cooldown_us(&policy, 1, LIMIT_DURATION_US), ==, LIMIT_DURATION_US);
    CHECK_INT(t, policy_cooldown_us(&policy, UINT32_MAX, LIMIT_DURATION_US), ==, LIMIT_DURATION_US);
    policy.lower_us = 1;
    CHECK_INT(t, policy_cooldown_us(&policy, UINT32_MAX, 1), ==, LIMIT_DURATION_US);
    policy.lower_us = 0;
    CHECK_INT(t, policy_cooldown_us(&policy, UINT32_MAX, 0), ==, 0);
}

TEST(jitter_lies_between_nothing_and_one_lower_end)
{
    struct policy policy;
    struct rng rng;
    bool seen[4] = { false };

    rng_seed(&rng, 1);
    policy_init(&policy);
    policy.lower_us = 3;
    for (int i = 0; i < 1000; i++) {
        int64_t jitter_us = policy_jitter_us(&policy, &rng);

        CHECK_INT(t, jitter_us, >=, 0);
        CHECK_INT(t, jitter_us, <=, 3);
        seen[jitter_us] = true;
    }
    CHECK(t, seen[0] && seen[1] && seen[2] && seen[3]);
    policy.lower_us = 0;
    CHECK_INT(t, policy_jitter_us(&policy, &rng), ==, 0);
}

TEST(refuses_senseless_values)
{
    struct policy usual;
    struct policy policy;
    struct hvd_err err;

    policy_init(&usual);
    policy = usual;
    policy.lower_us = 20 * TIME_S;
    policy.upper_us = 10 * TIME_S;
    CHECK_CODE(t, policy_check(&policy, &err), HVD_E_INVAL);
    CHECK_TEXT(t, err.text,
               "cooldown range 20s to 10s: the first time may not be longer than the second; swap "
               "the two");
    policy.lower_us = -1;
    CHECK_CODE(t, policy_check(&policy, &err), HVD_E_INVAL);
    CHECK_HAS(t, err.text, "below 0");
    policy = usual;
    policy.upper_us = TIME_NEVER;
    CHECK_CODE(t, policy_check(&policy, &err), HVD_E_LIMIT);
    CHECK_HAS(t, err.text, "10s to never");
    policy = usual;
    policy.scope = (enum scope)7;
    CHECK_CODE(t, policy_check(&policy, &err), HVD_E_INVAL);
    CHECK_HAS(t, err.text, "scope 7");
    policy = usual;
    policy.decay_us = 0;
    CHECK_CODE(t, policy_check(&policy, &err), HVD_E_INVAL);
    CHECK_HAS(t, err.text, "decay 0s");
    policy.decay_us = TIME_NEVER;
    CHECK_OK(t, policy_check(&policy, NULL));
}

TEST(refuses_a_budget_that_cannot_be_counted)
{
    struct policy policy;
    struct hvd_err err;

    policy_init(&policy);
    policy.restarts_max = LIMIT_BLACKLIST_REMEMBERED;
    CHECK_OK(t, policy_check(&policy, &err));
    policy.restarts_max++;
    CHECK_CODE(t, policy_check(&policy, &err), HVD_E_LIMIT);
    CHECK_HAS(t, err.text, "restart budget 33");
    policy.restarts_max = 1;
    policy.restarts_window_us = 0;
    CHECK_CODE(t, policy_check(&policy, &err), HVD_E_INVAL);
    CHECK_HAS(t, err.text, "restart window 0s");
    policy.restarts_window_us = LIMIT_DURATION_US + 1;
    CHECK_CODE(t, policy_check(&policy, &err), HVD_E_INVAL);
    policy.restarts_max = 0;
    CHECK_OK(t, policy_check(&policy, &err));
}

TEST_FLAGS(asks_for_a_failure_and_a_jitter_in_range, TEST_NO_TORTURE)
{
    struct policy policy;

    policy_init(&policy);
    CHECK_PANICS(t, "failures > 0", policy_cooldown_us(&policy, 0, 0));
    CHECK_PANICS(t, "jitter_us <= policy->lower_us",
                 policy_cooldown_us(&policy, 1, policy.lower_us + 1));
}
