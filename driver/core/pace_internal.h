/*
 * pace_internal.h: what the core keeps of the pulses in heartbeats. Owner: pace.c. Private to this
 * folder.
 */
#ifndef DRIVER_CORE_PACE_INTERNAL_H
#define DRIVER_CORE_PACE_INTERNAL_H

#include "base/base.h"

/* The statements about a worker in the last heartbeat of its agent. */
struct worker_pulse {
    /* the worker's newest commit, in the memory of its slot; 0: none is known */
    uint64_t commit;
    /* when the agent first saw that commit, and last heard the worker */
    int64_t commit_us, heard_us;
    /* since when the worker is two commits behind another member (TIME_NEVER: it is not), and the
     * round in which this time began */
    int64_t behind_us;
    uint64_t behind_round;
    uint64_t told_round; /* the last round in which a warning has named the worker; 0: none */
};

/* How far the members were at the moment at_us; pace_commits measures from such a mark. */
struct pace_mark {
    uint64_t round, made; /* the current round, and how many of its commits were known */
    int64_t at_us;
};

/* How far the members are, as heartbeats of agents say; only shown to operators. */
struct core_pace {
    uint64_t newest;   /* the newest commit that a member was seen to have; 0: none */
    int64_t newest_us; /* when the agent of that member first saw this commit */
    struct pace_mark marks[2];
};

#endif
