/*
 * epoch_schedule.h: what happens in which epoch: which worker fails, and where the trainer waits
 * for a change of the hosts.
 */
#ifndef TESTS_WORKERS_EPOCH_SCHEDULE_H
#define TESTS_WORKERS_EPOCH_SCHEDULE_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

enum epoch_schedule_how { EPOCH_RAISE, EPOCH_KILL, EPOCH_RAISE_ONCE, EPOCH_KILL_ONCE };

/* exits and changes may be NULL: nothing happens. 0, or HVD_E_INVAL with the word that makes no
 * sense. */
int epoch_schedule_check(const char *exits, const char *changes, struct hvd_err *err);

/* A worker, by the rank and the host with which it started. */
struct epoch_schedule_who {
    uint64_t start_rank;
    const char *host;
};
/* true: a worker fails in this epoch and batch. Then *ret_me: is it `who`? *ret_how: how it fails.
 */
bool epoch_schedule_exits(const char *exits, uint64_t epoch, uint64_t batch,
                          const struct epoch_schedule_who *who, bool *ret_me,
                          enum epoch_schedule_how *ret_how);

/* true: after this epoch the trainer waits for a change of the hosts. */
bool epoch_schedule_changes(const char *changes, uint64_t epoch);

#endif
