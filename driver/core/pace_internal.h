/*
 * pace_internal.h: what the core keeps of the pulses in heartbeats. Owner: pace.c. Private to this
 * folder.
 */
#ifndef DRIVER_CORE_PACE_INTERNAL_H
#define DRIVER_CORE_PACE_INTERNAL_H

#include "base/base.h"

/* The last heartbeat of its agent has said this of a worker. */
struct worker_pulse {
    uint64_t commit;             /* the newest commit in the memory of its slot; 0: none is known */
    int64_t commit_us, heard_us; /* when its agent first saw that commit, and last heard it */
    int64_t behind_us; /* since when it is two commits behind a member; TIME_NEVER: it is not */
};

/* How far the members were at a moment. */
struct pace_mark {
    uint64_t round, made; /* the current round, and how many of its commits were known */
    int64_t at_us;
};

/* How far the members are, as heartbeats say. */
struct core_pace {
    uint64_t newest;   /* the newest commit that a member was seen to have; 0: none */
    int64_t newest_us; /* when its agent first saw it */
    struct pace_mark marks[2];
};

#endif
