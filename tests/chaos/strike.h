/*
 * strike.h: what faults on what surrounds the job have in common.
 */
#ifndef TESTS_CHAOS_STRIKE_H
#define TESTS_CHAOS_STRIKE_H

#include "tests/chaos/blow.h"

/* SIGKILL to one of that kind on that host (-1: any). HVD_DONE: there is none that may be hit. */
int strike_kill(struct chaos *chaos, enum sight_kind kind, int host);

/* What a strike returns: if there was nobody for its second half, HVD_DONE, its first is taken
 * back. */
int strike_whole(struct chaos *chaos, int rc, int (*relent)(struct chaos *, struct hvd_err *),
                 struct hvd_err *err) MUST_CHECK;

/* A listed host by chance, other than that one (-1: any); -1: there is none. */
int strike_host(struct chaos *chaos, int but);

/* Does it answer? One that is still being loaded would not be by a limit of what it has so far. */
bool strike_driver_runs(struct chaos *chaos);

/* A verb of hvd-elastic, until it is done: a driver that has just been started does not answer yet,
 * and one that has taken over does not know the hosts yet. */
int strike_ask(struct chaos *chaos, const char *const *words, struct hvd_err *err) MUST_CHECK;

/* If the driver has ended, which it may only have done with code 4, storage or internal error, a
 * successor is started. */
int strike_succeed(struct chaos *chaos, struct hvd_err *err) MUST_CHECK;

/* The same when nobody can tell whether it is about to: it is asked, and watched for a moment. */
int strike_settle(struct chaos *chaos, struct hvd_err *err) MUST_CHECK;

#endif
