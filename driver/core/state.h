/*
 * state.h: what a driver's core knows. Private to this folder.
 *
 * Nothing points at a worker but its seat and the table of workers: rounds name their members by
 * incarnation, so an end leaves nothing dangling. A member that is not in the table is dead.
 */
#ifndef DRIVER_CORE_STATE_H
#define DRIVER_CORE_STATE_H

#include "base/names.h"
#include "base/rng.h"
#include "base/sm.h"
#include "base/time.h"
#include "discovery/hosts.h"
#include "driver/core/core.h"

#define RANK_NONE UINT32_MAX

struct worker {
    uint64_t incarnation;
    struct core_host *host;
    uint32_t slot;
    struct sm sm; /* enum worker_state */
    int64_t since_us;
    int64_t launched_us;
    int64_t deadline_us; /* it is killed then, for what `late` says; TIME_NEVER */
    const char *late;
    uint32_t rank; /* in the current round, or RANK_NONE */
    uint32_t next_rank;
    bool joined;    /* it has said READY */
    bool has_to_go; /* its seat is to be given up; it stays until the round can spare it */
    bool blameless; /* its end is our doing */
    bool entered;   /* trains in the current round */
    bool prepared;  /* its connections of the next round are open */
    bool at;        /* it has said AT for the next round */
    bool left;      /* it has said LEFT */
    bool tied;      /* LEAVING, but the others may not be past the agreed check yet */
    uint32_t failed_prepares;
    struct msg_held held[LIMIT_COMMITS_HELD];
    size_t held_count;
    struct msg_texts addresses; /* one block, owned */
};

struct seat {
    struct worker *worker;
    bool draining;
    bool done; /* a command that never joined ended with 0 here */
    int64_t drain_us;
};

struct core_host {
    char *name;
    bool listed;
    uint32_t place; /* among those that are listed */
    uint32_t slots; /* 0 when it is not listed */
    struct seat *seats;
    uint32_t seat_count; /* at least slots, and one for each that is taken */
    uint32_t taken;
    enum agent_state agent;
    uint64_t agent_id;
    uint32_t peer;
    int64_t heard_us;
    int64_t said_us;
    int64_t started_us; /* when its agent was asked for */
    uint64_t sequence_heard;
    bool draining;
    int64_t drain_us;
    uint64_t stamp; /* of the last thing told to all: see tell.c */
};

struct round {
    uint64_t number; /* 0: none */
    uint64_t previous;
    uint64_t commit;
    uint64_t check;
    enum msg_cause cause;
    struct VEC(uint64_t) members; /* by rank */
    struct VEC(uint64_t) holders; /* of the commit */
    size_t entered, prepared, at;
    uint64_t max_check;
    size_t failed_by_exit; /* members whose program ended with an error of its own */
    bool revoked;
    int64_t begun_us;
};

struct core {
    struct core_config config;
    struct trace *trace;
    struct rng rng;
    struct sm sm; /* enum job_state */
    struct blacklist blacklist;

    /* of the step that is being made */
    int64_t now_us, wall_us;
    struct action_list *out;
    struct msg spare; /* filled in place of what there is no memory for */
    struct journal_record spare_record;
    bool broken;
    bool look_at_seats;  /* something may be launched, or somebody may have to go */
    bool look_at_rounds; /* a round may begin or change */

    uint64_t term;
    uint64_t incarnations; /* the highest that was given */
    uint64_t rounds;       /* the highest number that was told */
    uint64_t stamps;

    struct VEC(struct core_host *) hosts; /* in no order */
    struct names hosts_by_name;
    struct hosts listing;                  /* what discovery says, in order */
    struct VEC(struct core_host *) listed; /* the same hosts */
    struct VEC(struct core_host *) peers;  /* by peer number */
    struct VEC(struct worker *) workers;   /* by incarnation */
    size_t count[WORKER_STATE_COUNT];
    size_t staying;         /* alive and not has_to_go */
    size_t going;           /* alive and has_to_go */
    uint64_t offered_slots; /* of listed hosts whose agent is there */

    struct round current, next;
    struct round last; /* the one before: some of it may not be past the agreed check yet */
    bool holder_missing;
    uint64_t floor;
    uint32_t resets;
    uint32_t barren;        /* rounds in a row in which nobody trained */
    uint32_t prepare_tries; /* in a row that came to nothing */
    bool membership_closed; /* somebody had finished before this driver began */
    bool gate_open;         /* np slots have been there */
    bool anyone_joined;
    uint64_t boot_failures;
    uint64_t done_seats;
    char first_failure[LIMIT_REASON_BYTES + 1]; /* of this round, for the last words */
    bool manifest_known;
    uint64_t manifest_digest;
    struct manifest *manifest; /* its entries, once somebody has said them */

    int64_t earliest_us; /* no deadline comes before this */
    int64_t next_discovery_us;
    bool discovering, discovered;
    int64_t next_beat_us;
    int64_t ready_since_us; /* the first of those that wait for a round */
    int64_t not_before_us;  /* no round before this: the last ones came to nothing */
    int64_t change_deadline_us;
    int64_t short_since_us; /* TIME_NEVER: it is not short of workers */
    int64_t short_left_us;
    int64_t over_deadline_us;
    bool dismissed;         /* DONE was told */
    uint32_t late_failures; /* of workers that had finished */
    uint32_t finished, unfinished;
    int exit_code;
    char exit_text[LIMIT_REASON_BYTES + 1];
};

#define CORE_TRACE(core, ...) trace_add((core)->trace, (core)->now_us, __VA_ARGS__)

static inline enum job_state job_state(const struct core *core)
{
    return (enum job_state)core->sm.state;
}

static inline enum worker_state worker_state(const struct worker *worker)
{
    return (enum worker_state)worker->sm.state;
}

/* "a:1#7": host, slot and incarnation, as traces name a worker. */
#define WORKER_NAME_MAX (LIMIT_HOST_NAME_BYTES + 40)
const char *worker_name(const struct worker *worker, char text[WORKER_NAME_MAX]);

#endif
