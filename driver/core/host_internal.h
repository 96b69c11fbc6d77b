/*
 * host_internal.h: the data of a host and its slots, which roster.c keeps. Only core_internal.h
 * includes this file; the rules about owners and units stand in core_internal.h.
 */
#ifndef DRIVER_CORE_HOST_INTERNAL_H
#define DRIVER_CORE_HOST_INTERNAL_H

#include "base/log.h"
#include "driver/core/slot_internal.h"

/* The keys that the agent of a host may use, by their versions. Owner: keys.c. */
struct core_host_key {
    uint32_t version; /* the version of the newest key; 0: the host has no key */
    /* The version of the previous key, which is accepted until the agent has the newest key; 0: no
     * previous key is accepted. */
    uint32_t old;
    int64_t told_us;  /* when a connected agent was first told the newest key; 0: it was not told */
    int64_t until_us; /* when the old key is dead at the latest */
};

/* The process on the host that has joined the job (`hvd-agent --join`). Owner: joins.c. */
struct core_host_join {
    bool here;      /* the host has joined, and its lease is not over */
    bool connected; /* the process has a connection to the driver, with the number `peer` */
    /* the process has dialled again while the job ended, and was told that the job is over */
    bool told;
    uint32_t peer;
    /* a number that the process has chosen for itself, by which its next JOIN is known */
    uint64_t number;
    uint32_t slots;
    int64_t heard_us; /* when a message of the process last came, or its connection broke */
    int64_t said_us;  /* when the driver last sent the process a message */
};

/* The notice of a machine, and how it is counted. Owner, but for the first field: notice.c. */
struct host_notice {
    /* The machine itself gave notice of its host's drain. If the host is still listed
     * DRAIN_NOTICE_LATE_US after drain_us, the drain ends. Owner: drain.c. */
    bool given;
    bool open; /* the notice is being counted: the host still has workers */
    bool lost; /* a member was lost before it could leave */
    /* the time from the notice to its deadline; TIME_NEVER: no deadline is known */
    int64_t lead_us;
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
    /* The agent is ending and starts no more workers; false again without an agent, and when
     * another agent says hello. */
    bool ending;
    /* When the host had left the job and its agent was told to end; 0: the host has not left, or
     * its agent was not told yet. Owner: lease.c. */
    int64_t leave_us;
    uint32_t peer;    /* the number of its agent's connection */
    int64_t heard_us; /* when a frame of its agent last came: its lease counts from then */
    /* After a takeover the driver waits for an agent that has not dialled yet until one lease after
     * this moment; 0: there is no such wait. See lease_is_spared. */
    int64_t spared_us;
    /* when the agent last connected again after a break; 0: its connection never broke */
    int64_t back_us;
    /* when the connection of the agent broke, or the agent was counted as dead; 0: neither */
    int64_t hung_up_us;
    int64_t said_us;    /* when the driver last sent its agent a message */
    int64_t started_us; /* when the driver last asked for the start of an agent */
    int64_t again_us;   /* no agent is started before this moment, because the last start failed */
    uint64_t sequence_heard; /* the highest sequence number in a BEAT of its agent */
    /* The addresses in the last READY of a worker on this host, or those in the agent's hello. Both
     * name the address of the agent. */
    struct msg_texts addresses;
    bool draining;
    struct host_notice notice;
    int64_t drain_us;
    /* the number of the broadcast (a message to several hosts) that was sent to this host last: so
     * no broadcast is sent twice to a host; see tell.c */
    uint64_t stamp;
    struct core_host_key key;
    struct core_host_join join;
    /* Limits of log lines about this agent: about statements that are refused (`refusals`),
     * and about messages that came after their worker's end (`late`). Owner: authority.c. */
    struct {
        struct log_limit refusals, late;
    } limits;
};

#endif
