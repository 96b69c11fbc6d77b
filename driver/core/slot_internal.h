/*
 * slot_internal.h: the data of a slot of a host. Only host_internal.h includes this file; the rules
 * about owners and units stand in core_internal.h.
 */
#ifndef DRIVER_CORE_SLOT_INTERNAL_H
#define DRIVER_CORE_SLOT_INTERNAL_H

#include "driver/core/core.h"
#include "proto/place.h"

struct worker;

/* Failed starts of workers in a slot that core_slot.stuck does not count yet. Owner: progress.c. */
struct slot_starts {
    uint32_t failed;
    int64_t since_us;     /* when the newest of these workers failed */
    uint64_t incarnation; /* the newest of these workers */
    uint64_t launched;    /* the highest incarnation when the newest of them failed */
};

struct core_slot {
    struct worker *worker;
    bool draining; /* the slot is drained: its worker must leave by drain_us */
    bool done; /* a command that never called hvd_init has ended in this slot with exit code 0 */
    /* A worker of this slot was told `place`. As long as no worker of the job has joined (said
     * READY), each later worker of this slot is told the same place, because a command that does
     * not use the library may choose its share of the work by the rank it was told. Owner:
     * places.c. */
    bool told;
    struct place place; /* the place (ranks and sizes) that was told last */
    int64_t drain_us;
    /* A worker of this slot has failed as a member of a round, and `stuck` does not count this
     * failure yet. Owner of this field and the next three: progress.c. */
    bool failed_as_member;
    struct slot_starts starts;
    uint32_t stuck;        /* number of failures in this slot since `stuck_since` */
    uint64_t stuck_since;  /* core_progress.commit at the first failure that `stuck` counts */
    uint32_t failed_boots; /* number of workers in a row that failed here before READY */
    /* The newest round in which a worker of this slot has trained, and its rank there; 0: none.
     * The agent keeps commits of that worker also after its end. Owner: round.c. */
    uint64_t trained_round;
    uint32_t trained_rank;
    /* the newest commit that the host's agent may keep for this slot; 0: no commit is known */
    uint64_t commit;
};

#endif
