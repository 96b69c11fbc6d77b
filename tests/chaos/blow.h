/*
 * blow.h: what faults on processes have in common.
 *
 * A worker's commits outlive it in its agent, those of an agent do not: if all that hold the newest
 * commit are killed at once, the job's state is lost, and that is said to users
 * (docs/operations.md, Memory). So agents are hit on one host at a time, and only while a worker
 * that has trained before the fault lives on another host that stays.
 */
#ifndef TESTS_CHAOS_BLOW_H
#define TESTS_CHAOS_BLOW_H

#include "tests/chaos/fault.h"

/* Sends the signal, and notes who got it; false: there was nobody any more. */
bool blow(struct chaos *chaos, const struct sight_process *process, int number);

/* Would the newest commit be left without that host, as things are now? */
bool blow_spares(const struct chaos *chaos, const struct sight *now, int host);

/* An agent or keeper that may be hit, by chance; NULL: there is none. */
const struct sight_process *blow_pick(struct chaos *chaos, const struct sight *now,
                                      enum sight_kind kind);

/* In [low, high). */
int64_t blow_time(struct chaos *chaos, int64_t low_us, int64_t high_us);

/* Lets that time go by. */
void blow_wait(int64_t time_us);

/* A host by chance leaves the list; false: one has to stay. */
int blow_unlist(struct chaos *chaos, struct hvd_err *err) MUST_CHECK;

/* The hosts that have left are on it again, */
int blow_list(struct chaos *chaos, struct hvd_err *err) MUST_CHECK;

/* and if the driver was hit, there is a successor. */
int blow_drive(struct chaos *chaos, struct hvd_err *err) MUST_CHECK;

const char *blow_needs_two_hosts(const struct chaos *chaos);

#endif
