/*
 * waits.h: which worker waits for which. A worker reports a wait by STALLED. All reports are put
 * together before a worker is blamed, because a missing worker may itself wait for another worker.
 * A worker is to blame if it is missing and does not wait itself.
 */
#ifndef DRIVER_CORE_WAITS_H
#define DRIVER_CORE_WAITS_H

#include "driver/core/core_internal.h"

/* A question about one worker, such as waits_is_waiting; waits_longest asks it of each worker. */
typedef bool worker_is_fn(const struct core *core, const struct worker *worker);

/* Returns how long a report of a wait counts. A worker that still waits reports again in each
 * --stall-warning interval, sometimes a little late. */
int64_t waits_repeat_us(const struct core *core);

/* waits_is_reported: the worker has reported a wait, and the report still counts. waits_is_waiting:
 * moreover the worker waits for another worker, not for its own training loop. waits_is_at_check:
 * moreover the worker waits at a check. */
bool waits_is_reported(const struct core *core, const struct worker *worker);
bool waits_is_waiting(const struct core *core, const struct worker *worker);
bool waits_is_at_check(const struct core *core, const struct worker *worker);

/* True: other members may wait for this worker in a collective, because it is in this round, or is
 * leaving the round before. */
bool waits_is_in_round(const struct worker *worker);

/* The worker has made progress: the wait that it reported is over. */
void waits_moved(struct worker *worker);

/* waits_watch: from now on the driver itself waits for workers; when 1.5 times --stall-warning has
 * passed, stall.c warns. waits_watch_again: stall.c warns next at warn_us. */
void waits_watch(struct core *core);
void waits_watch_again(struct core *core, int64_t warn_us);

/* waits_mark_missing sets `missing` of the workers for which another worker has waited for at least
 * waited_us, if the `long_us` of this wait is at most long_by_us, and workers for which a
 * missing worker waits in turn. It returns how many of them do not wait themselves: these are
 * guilty. waits_is_guilty, called after it: the worker is guilty. */
size_t waits_mark_missing(struct core *core, int64_t waited_us, int64_t long_by_us);
bool waits_is_guilty(const struct core *core, const struct worker *worker);

/* Returns a host if only workers of this host say that they wait, although the round has members on
 * at least two other hosts: a true wait would hold these up too. NULL: there is no such host. */
const struct core_host *waits_of_one_host(const struct core *core);

/* True: other workers wait for a worker of this host, and this worker does not wait itself. */
bool waits_for_host(struct core *core, const struct core_host *host);

/* Among the workers for which `is` returns true, returns the worker with the longest wait; NULL:
 * there is no such worker. *ret_count: how many such workers there are. */
struct worker *waits_longest(const struct core *core, worker_is_fn *is, size_t *ret_count);

/* Returns the moment since when the members of the current round have probably made no step: since
 * then `lost`, a member that is dead now (NULL: none), was not heard, or a member has waited, as it
 * has reported; and no commit was made. Now, if nothing says so. */
int64_t waits_stood_since(const struct core *core, const struct worker *lost);

/* Returns the last warning without its round: "rank 3 (b:1#4), for 5s in allreduce (number 17)".
 * "": no worker waits. The text is valid until the next event. */
const char *waits_said(const struct core *core);

#endif
