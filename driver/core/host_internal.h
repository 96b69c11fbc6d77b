/*
 * host_internal.h: a host and its slots, as roster.c keeps them. Part of core_internal.h, which
 * alone includes it; the rules about owners and units stand there.
 */
#ifndef DRIVER_CORE_HOST_INTERNAL_H
#define DRIVER_CORE_HOST_INTERNAL_H

#include "base/log.h"
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
    /* A worker of this slot was told `place`. Until any worker of the job joins, each worker that
     * is started here is told the same place, because a command may do the share of the work that
     * its rank has. Owner: places.c. */
    bool told;
    struct place place; /* the place (ranks and sizes) that was told last */
    int64_t drain_us;
    /* a member failed here; not counted yet. progress.c owns this field and the next three */
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

/* The keys that the agent of a host may use, by their epochs. Owner: keys.c. */
struct core_host_key {
    uint32_t epoch; /* the epoch of the newest key; 0: the host has no key */
    /* The epoch of the key before, which is accepted until the agent has the newest; 0: it is
     * dead. */
    uint32_t old;
    int64_t told_us;  /* when a connected agent was first told the newest key; 0: it was not told */
    int64_t until_us; /* when the old key is dead at the latest */
};

struct core_host {
    struct core_host *next_gone; /* the next host in the list of dropped hosts: see roster_bury */
    char *name;
    bool listed;
    uint32_t listing_index; /* the index among the listed hosts */
    uint32_t listed_slots;  /* slots that discovery names; 0: the host is not listed */
    struct core_slot *slots;
    /* The length of `slots`: at least listed_slots, and enough for each slot with a worker. */
    uint32_t slot_count;
    uint32_t taken;         /* number of slots that have a worker */
    enum agent_state agent; /* changed only by roster_move_agent */
    uint32_t minor;         /* the minor version of the protocol that its agent speaks */
    uint64_t agent_id;      /* which start of the agent was heard last; 0: no agent was heard */
    /* The agent is ending and starts no more workers; false again when another agent says hello. */
    bool ending;
    /* Since when the host has left the job and its agent has been told to end; 0: this is not so.
     * Owner: lease.c. */
    int64_t leave_us;
    uint32_t peer;    /* the number of its agent's connection */
    int64_t heard_us; /* when a frame of its agent last came: its lease counts from then */
    /* After a takeover the driver waits for an agent that has not dialled yet until one lease after
     * this moment; 0: there is no such wait. See lease_is_spared. */
    int64_t spared_us;
    /* when the agent last connected again after a break; 0: its connection never broke */
    int64_t back_us;
    /* when the connection of the agent broke; 0: the connection did not break */
    int64_t hung_up_us;
    int64_t said_us;    /* when the driver last sent its agent a message */
    int64_t started_us; /* when the driver last asked for the start of an agent */
    int64_t again_us;   /* no agent is started before this moment, because the last start failed */
    uint64_t sequence_heard; /* the highest sequence number in a BEAT of its agent */
    /* The addresses in the last READY of a worker on this host. They also name the address of the
     * host's agent. */
    struct msg_texts addresses;
    bool draining;
    /* The machine itself gave notice of this drain. If the host is still listed
     * DRAIN_NOTICE_LATE_US after drain_us, the drain ends. */
    bool noticed;
    int64_t drain_us;
    /* the number of the last broadcast message that was sent to this host: see tell.c */
    uint64_t stamp;
    struct core_host_key key;
    /* Limits of log lines about this agent: about statements that are not believed (`refusals`),
     * and about messages that came after their worker's end (`late`). Owner: authority.c. */
    struct log_limit refusals, late;
};

#endif
