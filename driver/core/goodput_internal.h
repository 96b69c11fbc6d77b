/*
 * goodput_internal.h: the part of the core's data that is about goodput. Only core_internal.h
 * includes this file; the rules about owners and units stand in core_internal.h.
 */
#ifndef DRIVER_CORE_GOODPUT_INTERNAL_H
#define DRIVER_CORE_GOODPUT_INTERNAL_H

#include "base/limits.h"
#include "driver/core/view_parts.h"

/* How many hosts have a count of failures of their own; all further hosts share one count. */
#define GOODPUT_HOSTS 32

struct goodput_host {
    char name[LIMIT_HOST_NAME_BYTES + 1];
    uint64_t failures;
};

/* For what the time of workers was used. Owner: goodput.c. */
struct core_goodput {
    struct goodput_part sums[GOODPUT_COUNT];
    enum goodput_use use; /* for what the time since counted_us counts */
    int64_t counted_us;   /* the sums are complete up to this moment */
    size_t trained_with;  /* number of members of the last round that trained; 0: none did */
    uint64_t round;       /* the number of the current round when goodput_look last ran */
    bool trains;          /* all members of `round` were seen to train */
    /* the time for which `round` has trained; it counts as lost if no commit of it is left */
    struct goodput_part trained;
    /* The time for which no driver has seen the round `unseen_round`; 0: there is no such time. */
    uint64_t unseen_round;
    struct goodput_part unseen;
    int64_t noticed_us;    /* costs.noticed_us of the newest revoke that is counted */
    unsigned changed;      /* bit N: the sum of the use N has changed since its newest record */
    bool stale;            /* the use has changed since the newest record */
    int64_t wall_us;       /* the time of day of the newest record; 0: there is none */
    int64_t written_us;    /* when the newest record was written */
    uint64_t records_seen; /* core_out.records when goodput_look last ran */
    size_t host_count;
    struct goodput_host hosts[GOODPUT_HOSTS], others;
};

#endif
