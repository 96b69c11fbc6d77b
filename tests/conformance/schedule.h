/*
 * schedule.h: what is to happen at which epoch: who fails, and where a change is waited for.
 */
#ifndef TESTS_CONFORMANCE_SCHEDULE_H
#define TESTS_CONFORMANCE_SCHEDULE_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

enum schedule_how { SCHEDULE_RAISE, SCHEDULE_KILL, SCHEDULE_RAISE_ONCE, SCHEDULE_KILL_ONCE };

/* NULL: nothing is to happen. 0, or HVD_E_INVAL with the word that makes no sense. */
int schedule_check(const char *exits, const char *changes, struct hvd_err *err);

/* Is anybody to fail there? Then also: is the one of this start rank and host, and how. */
struct schedule_who {
    uint64_t start_rank;
    const char *host;
};
bool schedule_exits(const char *exits, uint64_t epoch, uint64_t batch,
                    const struct schedule_who *who, bool *ret_me, enum schedule_how *ret_how);

bool schedule_changes(const char *changes, uint64_t epoch);

#endif
