/*
 * view.h: the visible part of a core, for status, metrics and tests. The view is a copy: it shows
 * the core as it was when the view was made.
 */
#ifndef DRIVER_CORE_VIEW_H
#define DRIVER_CORE_VIEW_H

#include "base/arena.h"
#include "driver/core/view_parts.h"
#include "driver/core/view_reports.h"
#include "proto/msg.h"

enum job_state {
    JOB_NEW,        /* the job has not started */
    JOB_GATHERING,  /* the driver waits for np workers; there has been no round */
    JOB_RUNNING,    /* a round runs, and no change is under way */
    JOB_PREPARING,  /* the connections of the next round are being made while the round runs */
    JOB_PENDING,    /* the members are being asked at which check they are */
    JOB_RECOVERING, /* the round is dead; the driver waits for survivors, or for enough workers */
    JOB_FINISHING,  /* a worker has finished: no further round begins */
    JOB_STOPPING,   /* all workers and agents are being ended */
    JOB_OVER,
    JOB_STATE_COUNT
};

enum worker_state {
    WORKER_LAUNCHING, /* its agent was told to start the worker, or will be told */
    WORKER_BOOTING,   /* the process of the worker runs */
    WORKER_READY,     /* the worker has registered its state and waits for its first round */
    WORKER_MEMBER,    /* the worker is in the current round */
    WORKER_REVOKED,   /* the round of the worker is dead, and the worker has not said RECOVERING */
    WORKER_RECOVERED, /* the worker has said RECOVERING and waits for the next round */
    WORKER_LEAVING,   /* the worker was told to leave, and its process has not ended */
    WORKER_FINISHED,  /* its training returned 0 */
    WORKER_DOOMED,    /* the worker counts as dead; its process may still run and is being killed */
    WORKER_ENDED,
    WORKER_STATE_COUNT
};

enum agent_state {
    AGENT_NONE,
    AGENT_STARTING, /* the driver has asked for an agent, and no agent has said hello */
    AGENT_THERE,    /* the agent is connected */
    AGENT_AWAY,     /* the agent was connected, or is expected after a takeover; its lease runs */
    AGENT_STATE_COUNT
};

const char *job_state_name(enum job_state state);
const char *worker_state_name(enum worker_state state);
const char *agent_state_name(enum agent_state state);

struct view_worker {
    uint64_t incarnation;
    uint32_t slot;
    uint32_t rank; /* UINT32_MAX: the worker is not in the current round */
    enum worker_state state;
    bool entered, draining;      /* trains in the current round; its slot or host is drained */
    int64_t since_us, drain_us;  /* drain_us: the deadline of that drain; TIME_NEVER: none */
    uint64_t commit;             /* the worker's newest commit that its agent has seen; 0: none */
    int64_t commit_us, heard_us; /* when its agent first saw `commit`; last heard the worker */
    bool silent, behind;         /* not heard, or without new commits, for too long (pace.h) */
};

struct view_host {
    const char *name;
    uint32_t slots;
    bool listed;      /* discovery lists the host */
    bool draining;    /* the whole host is drained; if single slots are drained, `why` says so */
    int64_t drain_us; /* when that drain's deadline is; TIME_NEVER: no deadline, or no drain */
    enum agent_state agent;
    int64_t heard_us; /* when the agent was last heard; TIME_NEVER: it was not heard */
    const char *why;  /* why slots of the host are not used; "": all usable slots are used */
    const struct view_worker *workers;
    size_t worker_count;
};

/* The costs of a change of membership (see cost.h). Each duration is the longest of all members. */
#define VIEW_CHANGES_MAX 64
struct view_change {
    uint64_t round; /* the number of the round that the change led to */
    enum msg_cause cause;
    uint32_t from, to;  /* the numbers of members before and after; from is 0 for the first round */
    int64_t ended_us;   /* when all members trained */
    int64_t pause_us;   /* how long members of the round before did not train, in this change */
    int64_t detect_us;  /* how much of that had gone before the driver knew of the failure */
    int64_t agree_us;   /* the time until all members were told the round */
    int64_t rebuild_us; /* the time for connections and reset callbacks */
    int64_t state_us, first_step_us;
};

const char *change_cause_name(enum msg_cause cause); /* CAUSE_COUNT: "unknown" */

struct core_view {
    enum job_state job;
    uint64_t term;
    uint64_t round;                /* the number of the current round; 0: there has been no round */
    uint64_t next;                 /* the number of the round that is being prepared; 0: none */
    uint64_t commit;               /* the commit that the current round began with */
    uint64_t resume_min_commit;    /* no new round may resume from an older commit */
    uint64_t newest;               /* the newest commit that a member was seen to have; 0: none */
    uint64_t commits;              /* number of commits in the last commits_us; 0 us: not known */
    int64_t newest_us, commits_us; /* newest_us: when `newest` was first seen */
    const uint64_t *members; /* the incarnations of the current round; the index is the rank */
    size_t member_count;
    uint32_t resets;
    struct view_shortage shortage;
    const struct view_host *hosts; /* listed ones, unlisted ones, ones that have not joined */
    size_t host_count;
    const struct view_held *held;
    size_t held_count;
    struct view_tokens tokens;
    const struct view_change *changes; /* the newest changes; the newest of all is the last one */
    size_t change_count;
    struct view_reports reports; /* what the program has reported */
    struct view_notices notices;
    struct view_discovery discovery;
    struct view_goodput goodput;
    struct view_checkpoint checkpoint;
    struct view_histogram pauses[CAUSE_COUNT][PAUSE_PHASE_COUNT];
    const char *waiting_for; /* what the driver waits for, as a sentence; "": nothing */
    struct arena memory;
};

void core_view_init(struct core_view *view);
void core_view_release(struct core_view *view);

#endif
