/*
 * core_internal.h: all that a driver's core knows, in one place. This header is private to its
 * folder.
 *
 * struct core is a set of groups (struct core_step, core_out, core_roster ...). Each group names
 * the file that owns it. Only the functions of that file write the group, and all other files only
 * read it. Two files may write every group: replay.c at the start, core.c to move deadlines.
 *
 * A worker's slot and the table of workers point at the worker, and no other table does. So the end
 * of a worker leaves no dangling pointer.
 *
 * Units: a field that ends in _us is in microseconds. It is a moment of the monotonic clock
 * (core->now_us), or a duration where its comment says so. TIME_NEVER is later than each moment.
 */
#ifndef DRIVER_CORE_INTERNAL_H
#define DRIVER_CORE_INTERNAL_H

#include "base/names.h"
#include "base/rng.h"
#include "base/time.h"
#include "base/vec.h"
#include "discovery/hosts.h"
#include "driver/core/checkpoint_internal.h"
#include "driver/core/core.h"
#include "driver/core/goodput_internal.h"
#include "driver/core/host_internal.h"
#include "driver/core/joins_internal.h"
#include "driver/core/pace_internal.h"
#include "driver/core/reported_internal.h"
#include "driver/core/say.h"
#include "driver/core/values_internal.h"
#include "proto/commit.h"
#include "proto/place.h"

#define RANK_NONE UINT32_MAX

/* ---- workers: roster.c -------------------------------------------------------------------- */

/* The most missing workers that are kept of one report of a wait. When these workers have come,
 * later reports name the rest. */
#define WAIT_NAMES_MAX     8
#define WAIT_OPERATION_MAX 64

/* The last wait that a worker has reported by STALLED. Owner: stall.c. `said_us` is the time when
 * the report came. */
struct worker_wait {
    int64_t said_us;
    /* For how long the worker had waited when its report came; 0: the worker reported no wait, or
     * the wait is over. */
    int64_t waited_us;
    /* When a report first said that this wait has lasted for --stall-shutdown; until then the time
     * of the last report. A worker repeats its report, so said_us changes. */
    int64_t long_us;
    bool itself;   /* the worker waits for its own training loop, not for another worker */
    bool at_check; /* the worker waits at a check, where it cannot name missing workers */
    size_t count;  /* the number of entries of `missing` */
    uint64_t missing[WAIT_NAMES_MAX]; /* incarnations of the workers for which this worker waits */
    char operation[WAIT_OPERATION_MAX];
};

/* A time limit of a worker. The worker is killed when it takes longer than in_us from since_us on;
 * `late` is the reason that is reported. See worker_limit in step.h. */
struct worker_limit {
    int64_t since_us;
    int64_t in_us; /* the duration that is allowed; TIME_NEVER: the worker has no limit */
    const char *late;
};

struct worker {
    struct worker *next_gone; /* the next worker in the list of ended workers: see roster_bury */
    uint64_t incarnation;
    struct core_host *host;
    uint32_t slot;
    enum worker_state state; /* changed only by roster_move */
    int64_t since_us;        /* the moment when the worker came into this state */
    int64_t launched_us;
    struct worker_limit limit;
    uint32_t rank;      /* the rank in the current round; RANK_NONE: the worker is no member */
    uint32_t next_rank; /* the rank in core->next, or RANK_NONE */
    bool joined;        /* the worker has said READY, which means that its state is registered */
    bool is_joiner;     /* the current round is the worker's first one */
    bool has_to_go;     /* its slot is given up: the worker leaves when the round can spare it */
    bool entered;       /* the worker trains in the current round: it has said ENTERED */
    bool prepared;      /* the worker has said PREPARED: it is connected for the next round */
    bool at_sent;       /* the worker has said NEXT_CHECK for the next round */
    bool left;          /* the worker has said LEFT */
    /* The worker is LEAVING, and other members may not have passed the agreed check yet: if the
     * worker dies now, the switch may hang. */
    bool may_block_switch;
    struct worker_pulse pulse;
    struct worker_wait wait;
    struct worker_persist persist;
    struct worker_values values;
    bool missing; /* waits.c or stall.c has found that another worker waits for this one */
    struct worker *next_missing;
    uint32_t failed_prepares; /* changes that failed because this worker was not connected */
    uint32_t gave_up; /* rounds in a row that this worker ended by a lack of memory or a limit */
    struct msg_held held[LIMIT_COMMITS_HELD]; /* that it held at its last READY or RECOVERING */
    size_t held_count;
    struct msg_texts addresses; /* the addresses in its READY, as KIND=VALUE; one block, owned */
    struct {
        char *text;  /* why the training of this worker failed; owned; NULL: no failure */
        bool raised; /* the program of this worker has raised an exception */
    } failure;       /* as its message FINISHED says */
};

/* ---- rounds --------------------------------------------------------------------------------- */

enum round_state {
    ROUND_NONE,
    ROUND_NEXT,     /* the members of the round are chosen, but the round has not begun */
    ROUND_BEGUN,    /* its members were told ROUND; not all of them train */
    ROUND_TRAINING, /* all of its members have said ENTERED */
    ROUND_REVOKED,  /* the round is dead; its survivors stop */
    ROUND_LEFT,     /* replaced by a switch; some workers may not have passed the agreed check */
    ROUND_STATE_COUNT
};

/*
 * One membership. Members are named by incarnation: a member that is not in the table of workers is
 * dead. round.c begins and ends rounds; change.c counts `prepared` and `at_sent`; backoff.c sets
 * `weighed`.
 */
struct round {
    enum round_state state;
    uint64_t number;   /* the number of the round; 0: this struct holds no round */
    uint64_t previous; /* the number of the round before */
    uint64_t commit;   /* the commit that the round begins with */
    uint64_t check;    /* at a switch: the check at which all members left the previous round */
    enum msg_cause cause;
    struct VEC(uint64_t) members;      /* incarnations; the index is the rank */
    struct VEC(uint64_t) holders;      /* incarnations of the members that hold `commit` */
    size_t entered, prepared, at_sent; /* members that said ENTERED, PREPARED, NEXT_CHECK */
    uint64_t max_check, min_check;     /* the highest and lowest check that NEXT_CHECK named */
    size_t failed_by_exit; /* number of members whose program ended with an error of its own */
    size_t lost;           /* number of members that died in this round or before the next one */
    int64_t trains_us;     /* since when all members train; TIME_NEVER: not all of them train */
    int failed_with;       /* the error code of the member whose failure ended the round; 0: none */
    bool weighed;          /* backoff.c has judged whether the round brought the job any further */
};

/* ---- groups of the core --------------------------------------------------------------------- */

#define WAIT_SAID_MAX 512

/* Requests of all files, which core.c carries out in the same step. Owner: step.c. */
struct core_step {
    bool failed;     /* no memory was left: the core must not be used again */
    bool want_slots; /* slots_reconcile runs at the end of the step */
    bool want_round; /* at the end of the step core.c tries to begin or change a round */
    int64_t due_us;  /* the earliest moment at which any deadline may be due */
};

/* The actions that the step makes. Owner: tell.c; of held_since_us core.c. */
struct core_out {
    struct action_list *list;
    int64_t held_since_us; /* since when actions wait for the journal; TIME_NEVER: not for long */
    bool awake; /* a step after the first one was made; before it the driver waits for its store */
    /* tell_msg and tell_record return these two when no memory is left; then the step has failed */
    struct msg spare;
    struct journal_record spare_record;
    uint64_t stamps;  /* number of broadcast messages so far: see core_host.stamp */
    uint64_t records; /* number of records so far */
};

/* The keys of all hosts, and the change to new ones. Owner: keys.c. */
struct core_keys {
    uint32_t versions; /* the highest version of the key of any host */
    bool changing;   /* an operator has asked for new keys, and some hosts may still use old ones */
    size_t left;     /* number of hosts that still have an old key */
    size_t told;     /* the value of `left` that operators were told last */
    size_t hosts;    /* number of hosts that had to get a new key in this change */
    int64_t look_us; /* when keys_look next checks the hosts */
    int64_t met_us;  /* by then each living agent has dialled this driver, after a takeover */
};

/* Hosts and workers. Owner: roster.c. */
struct core_roster {
    struct VEC(struct core_host *) hosts; /* in no order; `by_name` has the index of each host */
    struct names by_name;
    struct VEC(struct core_host *) peers; /* the index is the peer number; NULL: no agent has it */
    struct VEC(struct worker *) workers;  /* the index is the incarnation; NULL: it has ended */
    /* Workers that have ended; actions of this step may point at them. */
    struct worker *gone_workers;
    struct core_host *gone_hosts;
    struct core_keys keys;
    struct core_values values;
    uint64_t incarnations; /* the highest incarnation that a worker got */
    size_t count[WORKER_STATE_COUNT];
    size_t staying;         /* live workers whose `has_to_go` is false */
    size_t going;           /* live workers whose `has_to_go` is true */
    uint64_t offered_slots; /* number of slots of the listed hosts that have a connected agent */
    uint64_t done_slots;    /* number of slots of listed hosts in which a command ended with 0 */
};

/* The hosts that discovery names, and the runs of the discovery. Owner: listing.c. */
struct core_listing {
    /* the listed hosts: those that stay listed keep their order, and new hosts follow */
    struct hosts hosts;
    struct VEC(struct core_host *) list; /* the structs of `hosts`, in the same order */
    /* `discovering`: a discovery runs now; `discovered`: one has succeeded under this driver */
    bool discovering, discovered;
    int64_t next_us;                      /* when the next discovery begins */
    char failure[LIMIT_REASON_BYTES + 1]; /* why a discovery failed last; "": none has */
    int64_t failure_us;                   /* when `failure` was logged last */
    bool failing_said;                    /* the failure was logged, and no success came since */
    struct view_discovery health;         /* for status; its field `failure` is not used */
    struct core_joins joins;
};

/* Which workers are launched, and with which place (ranks and sizes). Owner: slots.c; of `told`
 * places.c. */
struct core_launch {
    bool gate_open;     /* np slots have been available once: workers may be launched */
    bool anyone_joined; /* a worker has said READY, under this driver or an earlier one */
    /* The index is a rank; the value is the last incarnation that was told this rank. */
    struct VEC(uint64_t) told;
};

/* Facts that outlive a single round. Owner: round.c; of `pace` pace.c, of `reported` reported.c. */
struct core_rounds {
    uint64_t told;    /* the highest round number that any agent may have been told */
    uint64_t trained; /* the newest round of which this driver saw all members train; 0: none */
    /* A round has trained from this commit: no later round may resume from an older commit. */
    uint64_t resume_min_commit;
    uint32_t resets; /* number of rounds after the first one */
    /* Since when enough workers are READY for the next round; TIME_NEVER: too few are. */
    int64_t ready_since_us;
    int64_t enter_deadline_us; /* when all members of the round have to train at the latest */
    struct core_pace pace;
    struct core_reported reported;
    char first_failure[LIMIT_REASON_BYTES + 1]; /* since the current round began */
};

/* A change that is under way. Owner: change.c. */
struct core_change {
    /* the deadline of the present phase; in use only while the job is PREPARING or PENDING */
    int64_t deadline_us;
    size_t kept_told; /* how many members that have to go are kept, as it was logged last */
    bool kept_few;    /* these are kept because fewer than --min-np would be left */
};

/* Failures between which the job made no progress. Owner: progress.c. */
struct core_progress {
    /* The newest commit when the first of `failures` was counted, and its checksum (0: unknown). As
     * long as no worker has joined, there are no commits: `commit` then counts how often plain
     * commands (programs that do not call hvd_init) have made progress. */
    uint64_t commit, checksum;
    uint32_t failures;         /* number of rounds and starts that failed since `commit` */
    uint64_t counted_round;    /* the last round that `failures` counts */
    uint64_t counted_launched; /* the highest incarnation when the newest of `failures` happened */
    bool pending;              /* a failure has been noted and is not counted yet */
    bool early;                /* the noted failure may be counted before the next round begins */
    char last[LIMIT_REASON_BYTES + 1]; /* the newest failure */
};

/* A recovery. Owner: recovery.c. */
struct core_recovery {
    bool holder_missing; /* no worker or connected agent has a commit to resume from */
    /* The last `unfetched` recoveries failed because members could not fetch unfetched_commit,
     * which only agents, or only workers of one host, say that they have. unfetched_since_us: the
     * time of the first of these failures. */
    uint64_t unfetched_commit;
    uint32_t unfetched;
    int64_t unfetched_since_us;
    /* When a checkpoint became the newest state that the job can get; TIME_NEVER: it is not. */
    int64_t fallback_us;
    bool store_awaited_told; /* the trace has said that the round waits for the store */
};

/* How long the next round or change has to wait. Owner: backoff.c. */
struct core_backoff {
    uint32_t fruitless; /* number of rounds in a row that gained nothing */
    /* How many of the newest fruitless rounds ended because ranks called different operations. */
    uint32_t mismatches;
    uint32_t failed_changes; /* number of changes in a row that were abandoned */
    uint64_t reached;        /* the checksum of the newest commit when a round was last weighed */
    int64_t not_before_us;   /* no round or change begins before this moment */
    char mismatch[LIMIT_REASON_BYTES + 1]; /* the error text of the newest of `mismatches` */
    /* Which workers the last fruitless round waited for when it was revoked. */
    char waited[WAIT_SAID_MAX];
};

/* The driver itself waits for workers, for example until all of them train. Owner: waits.c. */
struct core_watch {
    int64_t since_us; /* since when the driver waits for these workers */
    int64_t warn_us;  /* when the driver logs which of them have not come */
};

/* Waits and remarks that workers have reported, and the warnings about them. Owner: stall.c. */
struct core_stalls {
    int64_t look_us; /* when the driver next judges all reported waits together */
    int64_t said_us; /* when the last warning was logged */
    /* The text of the last warning: the guilty workers, and the operation. */
    char said[WAIT_SAID_MAX];
    char remark[LIMIT_TEXT_BYTES + 1]; /* the newest REMARK of any worker */
    struct core_watch watch;           /* the driver's own wait */
};

/* The costs of changes of the membership. Owner: cost.c. */
struct core_costs {
    struct view_change now; /* the costs of the change to the current round */
    int64_t since_us;       /* when the change began; TIME_NEVER: before this driver knew of it */
    int64_t lost_us, noticed_us; /* since when no worker trains; when the driver knew that */
    int64_t prepare_us;          /* since when a switch is being prepared */
    size_t size_before;          /* number of members of the last round in which all trained */
    struct view_change kept[VIEW_CHANGES_MAX];
    size_t count;
    struct view_histogram pauses[CAUSE_COUNT][PAUSE_PHASE_COUNT];
    struct view_notices notices; /* owner: notice.c */
    struct core_goodput goodput;
    struct view_checkpoint checkpoints; /* its field `commit` is not used; owner: checkpoint.c */
};

/* Failures, for the verdict on the job and its exit text. Owner: loss.c. */
struct core_failures {
    uint64_t boots;         /* number of workers that failed before any worker had joined */
    uint64_t never_started; /* how many of `boots` were programs that could not be started at all */
    uint64_t boots_in_a_row; /* how many workers failed before READY since the last READY */
    char host[LIMIT_REASON_BYTES + 1]; /* the text of the newest failure of a host */
    char boot[LIMIT_REASON_BYTES + 1]; /* the text of the first failure of boots_in_a_row */
};

/* A list of entries in memory of its own. */
struct core_entries {
    struct arena memory;
    struct msg_entry_list entries;
};

/* The entries that every worker's state must have. Owner: boot.c. */
struct core_manifest {
    bool known;
    uint64_t digest;
    struct core_entries *first; /* the entries themselves; NULL: no worker has sent them yet */
    /* The digest of the manifest that the last rejected worker had, before the first round. */
    uint64_t rival;
    size_t rivals; /* how many workers in a row were rejected with the digest `rival` */
};

/* How long agents have been silent. Owner: lease.c. */
struct core_leases {
    bool alone;         /* the driver hears no agent at all */
    int64_t anybody_us; /* when the last message of any agent came */
    int64_t crowded_us; /* the last time when strangers crowded the port that agents dial */
    int64_t next_beat_us;
    uint64_t beats; /* sequence number of the last BEAT */
};

/* How long the job has had too few workers. Owner: over.c. */
struct core_shortage {
    int64_t since_us;   /* since when the job has too few workers; TIME_NEVER: it has enough */
    int64_t counted_us; /* left_us is reduced by the shortage up to here; TIME_NEVER: none */
    int64_t left_us;    /* how much of --elastic-timeout is left */
};

/* The end of the job, and the facts for the verdict on it. Owner: over.c. */
struct core_over {
    bool closed;                   /* a worker had already finished under an earlier driver */
    bool dismissed;                /* workers that have not finished were told DONE */
    uint32_t late_failures;        /* number of workers that failed after they had finished */
    uint32_t finished, unfinished; /* workers that finished their training; that did not */
    /* Number of workers that had finished and then fell silent: their exit code is not known. */
    uint32_t unseen;
    /* When the driver stops waiting for agents; in use only while the job is STOPPING. */
    int64_t deadline_us;
    /* Until this moment the driver also waits for each process of a host that has joined
     * (`hvd-agent --join`) and has lost its connection. */
    int64_t joins_until_us;
    int exit_code;
    char exit_text[LIMIT_REASON_BYTES + 1];
    char late_failure[LIMIT_REASON_BYTES + 1]; /* the text of the first late failure */
    /* how many hosts with workers were not told that the job ends, and some of their names */
    uint32_t untold;
    char untold_names[LIMIT_REASON_BYTES / 2];
};

/* The times while the job is FINISHING. Owner: finish.c. */
struct core_finish {
    int64_t since_us;    /* when the first worker finished */
    int64_t deadline_us; /* when the wait for the other workers ends; TIME_NEVER: not set */
};

struct core {
    struct core_config config;
    struct trace *trace;
    struct rng rng;
    struct blacklist blacklist;
    enum job_state job; /* changed only by core_move_job */
    uint64_t term;
    int64_t now_us, wall_us; /* the time of this step: monotonic, and time of day */
    struct core_step step;
    struct core_out out;
    struct core_roster roster;
    struct core_listing listing;
    struct core_launch launch;
    struct round current, next;
    /* The round before a switch: some members may not have passed the agreed check yet. */
    struct round last;
    struct core_rounds rounds;
    struct core_change change;
    struct core_progress progress;
    struct core_recovery recovery;
    struct core_backoff backoff;
    struct core_stalls stalls;
    struct core_costs costs;
    struct core_failures failures;
    struct core_manifest manifest;
    struct core_checkpoint checkpoint;
    struct core_leases leases;
    struct core_shortage shortage;
    struct core_over over;
    struct core_finish finish;
};

#endif
