/*
 * state.h: what a driver's core knows. Private to this folder.
 *
 * Nothing points at a worker but its seat and the table of workers, so an end leaves nothing
 * dangling.
 */
#ifndef DRIVER_CORE_STATE_H
#define DRIVER_CORE_STATE_H

#include "base/names.h"
#include "base/rng.h"
#include "base/sm.h"
#include "base/time.h"
#include "discovery/hosts.h"
#include "driver/core/core.h"
#include "driver/core/people.h"
#include "driver/core/round_state.h"

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
    uint64_t stamps;       /* of things told to all */

    struct VEC(struct core_host *) hosts; /* in no order */
    struct names hosts_by_name;
    struct hosts listing;                  /* what discovery says, in order */
    struct VEC(struct core_host *) listed; /* the same hosts */
    struct VEC(struct core_host *) peers;  /* by peer number */
    struct VEC(struct worker *) workers;   /* by incarnation */
    struct worker *gone_workers;           /* actions of this step may point at them */
    struct core_host *gone_hosts;
    size_t count[WORKER_STATE_COUNT];
    size_t staying;         /* alive and not has_to_go */
    size_t going;           /* alive and has_to_go */
    uint64_t offered_slots; /* of listed hosts whose agent is there */
    struct round current, next;
    struct cost_notes costs;
    struct round last; /* the one before: some of it may not be past the agreed check yet */
    bool holder_missing;
    uint64_t floor;  /* no round may resume from an older commit: this one was trained on */
    uint32_t resets; /* rounds after the first */
    struct vain_notes vain;
    uint32_t prepare_tries; /* in a row that came to nothing */
    bool membership_closed; /* somebody had finished before this driver began */
    bool gate_open;         /* np slots have been there */
    bool anyone_joined;
    uint64_t boot_failures; /* before anyone had joined */
    uint64_t never_started; /* of those, whose program could not be started at all */
    uint64_t boot_failures_in_a_row;
    uint64_t failed_alone; /* rounds in which every member failed, of one member each */
    uint64_t done_seats;   /* in which a command has ended with 0 */
    uint32_t places_told;  /* seats whose place was told before anybody joined */
    size_t kept_told;      /* members that have to go and stay, when that was last said */
    char first_failure[LIMIT_REASON_BYTES + 1]; /* of this round, for the last words */
    char host_failure[LIMIT_REASON_BYTES + 1];  /* the newest */
    char boot_failure[LIMIT_REASON_BYTES + 1];  /* the first of boot_failures_in_a_row */
    struct manifest_notes manifest;
    char remarked[LIMIT_TEXT_BYTES + 1]; /* what a worker said last that people should know */

    int64_t earliest_us; /* no deadline comes before this */
    int64_t next_discovery_us, next_beat_us;
    bool discovering, discovered;
    bool alone;             /* nobody at all is heard */
    int64_t anybody_us;     /* when a message came last, whoever it was from */
    int64_t ready_since_us; /* the first of those that wait for a round */
    int64_t change_deadline_us;
    int64_t enter_deadline_us;
    struct stall_notes stalls;
    int64_t short_since_us; /* TIME_NEVER: it is not short of workers */
    int64_t short_left_us;
    int64_t closed_us; /* when the first had finished */
    int64_t over_deadline_us;
    bool dismissed;         /* DONE was told */
    uint32_t late_failures; /* of workers that had finished */
    uint32_t finished, unfinished;
    uint32_t unseen; /* had finished; how they ended then nobody saw */
    int exit_code;
    char exit_text[LIMIT_REASON_BYTES + 1];
    char discovery_failure[LIMIT_REASON_BYTES + 1]; /* "": the last one did not fail */
    int64_t discovery_failure_us;                   /* when it was said */
};

#define CORE_TRACE(core, ...) trace_add((core)->trace, (core)->now_us, __VA_ARGS__)

static inline enum job_state job_state(const struct core *core)
{
    return (enum job_state)core->sm.state;
}

#endif
