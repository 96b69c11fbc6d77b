/*
 * strike.h: what strikes have in common.
 */
#ifndef TESTS_CHAOS_STRIKE_H
#define TESTS_CHAOS_STRIKE_H

#include "tests/chaos/fault.h"

/* A time of that range, by chance. */
int64_t strike_between(struct chaos *chaos, int64_t low_us, int64_t high_us);

/* SIGKILL to one of that kind on that host (-1: any). HVD_DONE: there is none. */
int strike_kill(struct chaos *chaos, enum sight_kind kind, int host);

/* A listed host by chance, other than that one (-1: any); -1: there is none. */
int strike_host(struct chaos *chaos, int but);

/* If the driver has ended, which it may only have done with code 4, storage or internal error, a
 * successor is started. */
int strike_succeed(struct chaos *chaos, struct hvd_err *err) MUST_CHECK;

/* The same when nobody can tell whether it is about to: it is asked, and watched for a moment. */
int strike_settle(struct chaos *chaos, struct hvd_err *err) MUST_CHECK;

#endif
