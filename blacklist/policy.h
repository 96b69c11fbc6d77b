/*
 * policy.h: how long a failure keeps a slot or a host from being used.
 *
 * The n-th counted failure is answered with a cooldown of
 *
 *     min(U, L * 2^(n-1) + jitter)        jitter uniform in [0, L]
 *
 * L and U being the lower and the upper end of the range: L, 2L, 4L ... plus up to one L, and never
 * more than U. With the default range of 10 s to 10 min the cooldowns lie in 10-20 s, 20-30 s,
 * 40-50 s, 80-90 s, 160-170 s, 320-330 s, and are 600 s from then on. With L = 0 there is none.
 */
#ifndef BLACKLIST_POLICY_H
#define BLACKLIST_POLICY_H

#include "base/err.h"
#include "base/rng.h"

enum scope {
    SCOPE_SLOT, /* a failure counts for the slot it happened in */
    SCOPE_HOST  /* it counts for the whole host */
};

struct policy {
    int64_t lower_us;
    int64_t upper_us;
    bool forever; /* the first failure bars until cleared; the range is not used */
    enum scope scope;
    uint32_t restarts_max;      /* more failures than this within the window bar until cleared; */
    int64_t restarts_window_us; /* 0: there is no such budget */
    int64_t decay_us; /* healthy running that forgives one failure; TIME_NEVER: none does */
};

/* 10 s to 10 min, by slot, a failure forgiven per 10 min, no budget. */
void policy_init(struct policy *policy);

/* 0, or HVD_E_INVAL or HVD_E_LIMIT with what is wrong. What follows takes only a checked policy. */
int policy_check(const struct policy *policy, struct hvd_err *err);

/* The cooldown of the failure that is the failures-th (1 = the first). */
int64_t policy_cooldown_us(const struct policy *policy, uint32_t failures, int64_t jitter_us);
int64_t policy_jitter_us(const struct policy *policy, struct rng *rng);

#endif
