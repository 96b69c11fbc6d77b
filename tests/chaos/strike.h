/*
 * strike.h: what the faults have in common: choosing victims, and caring for the driver.
 *
 * A worker's commits outlive the worker, in its agent; an agent's commits do not outlive the agent.
 * If all processes that hold the newest commit are killed at once, the job's state is lost, and
 * users are told so (docs/operations.md, Memory). So agents are hit on one host at a time, and only
 * while a worker that has trained before the fault lives on another host that stays.
 */
#ifndef TESTS_CHAOS_STRIKE_H
#define TESTS_CHAOS_STRIKE_H

#include "tests/chaos/fault.h"

/* Sends the signal, and notes the victim. false: the process had already ended. */
bool strike_signal(struct chaos *chaos, const struct proc_info *process, int number);

/* Kills one process of this kind on this host (-1: any host). HVD_DONE: no such process may be hit.
 */
int strike_kill(struct chaos *chaos, enum proc_kind kind, int host);

/* true: the newest commit survives the loss of this host: a worker that has trained lives on
 * another listed host. */
bool strike_spares(const struct chaos *chaos, const struct proc_scan *now, int host);

/* A random agent or supervisor that may be hit; NULL: there is none. */
const struct proc_info *strike_pick(struct chaos *chaos, const struct proc_scan *now,
                                    enum proc_kind kind);

/* A random listed host other than `but` (-1: any host); -1: there is none. */
int strike_host(struct chaos *chaos, int but);

/* A random time in [low, high). */
int64_t strike_time(struct chaos *chaos, int64_t low_us, int64_t high_us);

/* Waits this long. */
void strike_wait(int64_t time_us);

/* For strikes with two parts: if the second part found no victim (HVD_DONE), the first is undone by
 * relent. Returns the code for the strike. */
int strike_whole(struct chaos *chaos, int rc, int (*relent)(struct chaos *, struct hvd_err *),
                 struct hvd_err *err) MUST_CHECK;

/* Removes a random host from the list. HVD_DONE: the last one has to stay. */
int strike_unlist(struct chaos *chaos, struct hvd_err *err) MUST_CHECK;

/* Puts the hosts back on the list. */
int strike_list(struct chaos *chaos, struct hvd_err *err) MUST_CHECK;

/* If the driver's parent was hit, starts another one. A driver that was hit alone has a successor
 * by itself. */
int strike_drive(struct chaos *chaos, struct hvd_err *err) MUST_CHECK;

/* true: the driver answers. A fault that limits the driver to what it has so far must ask first: a
 * driver that is still loading could never start under such a limit. */
bool strike_driver_runs(struct chaos *chaos);

/* Runs a command of hvd-elastic until it succeeds: a new driver does not answer yet, and a driver
 * that has taken over does not know the hosts yet. */
int strike_ask(struct chaos *chaos, const char *const *words, struct hvd_err *err) MUST_CHECK;

/* Waits until the job is whole, and has made a step since this call, while the fault lasts. After
 * --patience: HVD_E_TIMEOUT, and the text begins with `when`. */
int strike_await_whole(struct chaos *chaos, const char *when, struct hvd_err *err) MUST_CHECK;

const char *strike_needs_two_hosts(const struct chaos *chaos);

#endif
