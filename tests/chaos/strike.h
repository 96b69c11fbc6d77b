/*
 * strike.h: what faults have in common.
 *
 * A worker's commits outlive it in its agent, those of an agent do not: if all that hold the newest
 * commit are killed at once, the job's state is lost, and that is said to users
 * (docs/operations.md, Memory). So agents are hit on one host at a time, and only while a worker
 * that has trained before the fault lives on another host that stays.
 */
#ifndef TESTS_CHAOS_STRIKE_H
#define TESTS_CHAOS_STRIKE_H

#include "tests/chaos/fault.h"

/* Sends the signal, and notes who got it; false: there was nobody any more. */
bool strike_signal(struct chaos *chaos, const struct sight_process *process, int number);

/* SIGKILL to one of that kind on that host (-1: any). HVD_DONE: there is none that may be hit. */
int strike_kill(struct chaos *chaos, enum sight_kind kind, int host);

/* Would the newest commit be left without that host, as things are now? */
bool strike_spares(const struct chaos *chaos, const struct sight *now, int host);

/* An agent or keeper that may be hit, by chance; NULL: there is none. */
const struct sight_process *strike_pick(struct chaos *chaos, const struct sight *now,
                                        enum sight_kind kind);

/* A listed host by chance, other than that one (-1: any); -1: there is none. */
int strike_host(struct chaos *chaos, int but);

/* In [low, high). */
int64_t strike_time(struct chaos *chaos, int64_t low_us, int64_t high_us);

/* Lets that time go by. */
void strike_wait(int64_t time_us);

/* What a strike returns: if there was nobody for its second half, HVD_DONE, its first is taken
 * back. */
int strike_whole(struct chaos *chaos, int rc, int (*relent)(struct chaos *, struct hvd_err *),
                 struct hvd_err *err) MUST_CHECK;

/* A host by chance leaves the list. HVD_DONE: one has to stay. */
int strike_unlist(struct chaos *chaos, struct hvd_err *err) MUST_CHECK;

/* The hosts that have left are on it again. */
int strike_list(struct chaos *chaos, struct hvd_err *err) MUST_CHECK;

/* If the driver was hit, there is a successor. */
int strike_drive(struct chaos *chaos, struct hvd_err *err) MUST_CHECK;

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

const char *strike_needs_two_hosts(const struct chaos *chaos);

#endif
