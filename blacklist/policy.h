/*
 * policy.h: how long a failure keeps a slot or a host from being used.
 *
 * The n-th counted failure is answered with a cooldown of
 *
 *     min(U, L * 2^(n-1) + jitter)        jitter uniform in [0, L]
 *
 * L is the lower end of the range, and U is its upper end: the cooldown is L, 2L, 4L ... plus at
 * most one L, and never more than U. With the default range of 10 s to 10 min the cooldowns lie in
 * 10-20 s, 20-30 s, 40-50 s, 80-90 s, 160-170 s, 320-330 s, and are 600 s from then on. With L = 0
 * there is no cooldown.
 */
#ifndef BLACKLIST_POLICY_H
#define BLACKLIST_POLICY_H

#include "base/err.h"
#include "base/rng.h"

enum scope {
    SCOPE_SLOT, /* a failure counts for the slot it happened in */
    SCOPE_HOST  /* a failure counts for the whole host */
};

struct policy {
    int64_t lower_us; /* the first cooldown, without its random part */
    int64_t upper_us; /* no cooldown is longer */
    /* True: the first failure bars a slot or host until an operator clears it; then lower_us and
     * upper_us are not used. */
    bool forever;
    enum scope scope;
    /* The budget of restarts: a slot or host with more failures than this number within
     * restarts_window_us is barred until an operator clears it. 0: any number of failures is
     * allowed. */
    uint32_t restarts_max;
    int64_t restarts_window_us; /* the time window of restarts_max */
    /* one failure is forgiven for each time of this length that a worker has run without a failure;
     * TIME_NEVER: failures are never forgiven */
    int64_t decay_us;
};

/* Sets the defaults: cooldowns of 10 s to 10 min, failures count for the slot, one failure is
 * forgiven for each 10 min, and the number of restarts has no limit. */
void policy_init(struct policy *policy);

/* Checks a policy. Returns 0, or HVD_E_INVAL or HVD_E_LIMIT; then err says what is wrong. The
 * policy of the functions below must have passed this check. */
int policy_check(const struct policy *policy, struct hvd_err *err);

/* Returns the cooldown after failure number `failures` (1: the first failure), with the random part
 * `jitter_us` from policy_jitter_us. */
int64_t policy_cooldown_us(const struct policy *policy, uint32_t failures, int64_t jitter_us);
int64_t policy_jitter_us(const struct policy *policy, struct rng *rng);

#endif
