/*
 * policy.c: the formula of the cooldown, and the checks of its parameters, which come from the
 * options of hvd-elastic. Times are in microseconds.
 */
#include "blacklist/policy.h"

#include "base/limits.h"
#include "base/panic.h"
#include "base/time.h"

/* Sets the defaults: cooldowns from 10 s to 10 min, no limit of restarts (`restarts_max` 0), no
 * bar for ever. */
void policy_init(struct policy *policy)
{
    *policy = (struct policy){
        .lower_us = 10 * TIME_S,
        .upper_us = 10 * TIME_MIN,
        .scope = SCOPE_SLOT,
        .restarts_window_us = TIME_HOUR,
        .decay_us = 10 * TIME_MIN,
    };
}

/* Checks the parameters of cooldowns. The error names the wrong parameter and the remedy. */
int policy_check(const struct policy *policy, struct hvd_err *err)
{
    char lower[TIME_TEXT_MAX];
    char upper[TIME_TEXT_MAX];
    char text[TIME_TEXT_MAX];

    time_format(policy->lower_us, lower);
    time_format(policy->upper_us, upper);
    if (policy->lower_us < 0)
        return err_set(err, HVD_E_INVAL,
                       "cooldown range %s to %s: the first time is below 0; give 0 or more", lower,
                       upper);
    if (policy->upper_us > LIMIT_DURATION_US)
        return err_set(err, HVD_E_LIMIT,
                       "cooldown range %s to %s: the range is longer than ten years; give "
                       "--blacklist-forever instead",
                       lower, upper);
    if (policy->lower_us > policy->upper_us)
        return err_set(err, HVD_E_INVAL,
                       "cooldown range %s to %s: the first time may not be longer than the second; "
                       "swap the two",
                       lower, upper);
    if (policy->scope != SCOPE_SLOT && policy->scope != SCOPE_HOST)
        return err_set(err, HVD_E_INVAL, "scope %d: the scope must be slot or host",
                       (int)policy->scope);
    if (policy->decay_us <= 0)
        return err_set(
            err, HVD_E_INVAL,
            "decay %s: the time must be longer than 0; write \"never\" to forgive nothing",
            time_format(policy->decay_us, text));
    if (policy->restarts_max > LIMIT_BLACKLIST_REMEMBERED)
        return err_set(
            err, HVD_E_LIMIT,
            "restart budget %u: at most %d restarts can be counted; give at most %d, or 0 to allow "
            "any number of restarts",
            policy->restarts_max, LIMIT_BLACKLIST_REMEMBERED, LIMIT_BLACKLIST_REMEMBERED);
    if (policy->restarts_max > 0 &&
        (policy->restarts_window_us <= 0 || policy->restarts_window_us > LIMIT_DURATION_US))
        return err_set(err, HVD_E_INVAL,
                       "restart window %s: the time must be longer than 0 and at most ten years",
                       time_format(policy->restarts_window_us, text));
    return 0;
}

/* Returns how long a slot is not used after its failure number `failures` (forgiven ones do not
 * count): lower_us, doubled for each failure after the first, plus the jitter, at most upper_us.
 * docs/stories.md, `cooldowns_as_documented`, shows examples. */
int64_t policy_cooldown_us(const struct policy *policy, uint32_t failures, int64_t jitter_us)
{
    int64_t cooldown_us = policy->lower_us;

    ASSERT(failures > 0 && jitter_us >= 0 && jitter_us <= policy->lower_us);
    if (cooldown_us == 0)
        return 0;
    /* The jitter is added to the doubled value, so that slots that failed together are not used
     * again at the same moment. The doubling stops at the upper end, which is at most ten years and
     * far from an overflow. */
    for (uint32_t n = 1; n < failures && cooldown_us < policy->upper_us; n++)
        cooldown_us *= 2;
    cooldown_us += jitter_us;
    return cooldown_us < policy->upper_us ? cooldown_us : policy->upper_us;
}

/* Returns a random time from 0 to lower_us, which is added to a cooldown so that slots that failed
 * together are not used again at the same moment. */
int64_t policy_jitter_us(const struct policy *policy, struct rng *rng)
{
    return (int64_t)rng_below(rng, (uint64_t)policy->lower_us + 1);
}
