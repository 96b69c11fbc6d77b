/*
 * view.h: what can be seen of a core, for status, metrics and tests. A copy: it says what was true
 * when it was taken.
 */
#ifndef DRIVER_CORE_VIEW_H
#define DRIVER_CORE_VIEW_H

#include "base/arena.h"
#include "proto/msg.h"

enum job_state {
    JOB_NEW,        /* not started */
    JOB_GATHERING,  /* waits for np workers: there has been no round */
    JOB_RUNNING,    /* a round runs, and nothing is being changed */
    JOB_PREPARING,  /* the next round's connections are being made beside it */
    JOB_PENDING,    /* its members are being asked at which check they are */
    JOB_RECOVERING, /* the round is dead; waits for survivors, or for enough of them */
    JOB_FINISHING,  /* somebody has finished: no further round */
    JOB_STOPPING,   /* everything is being ended */
    JOB_OVER,
    JOB_STATE_COUNT
};

enum worker_state {
    WORKER_LAUNCHING, /* its agent was, or will be, told to start it */
    WORKER_BOOTING,   /* the process runs */
    WORKER_READY,     /* built; waits for its first round */
    WORKER_MEMBER,    /* in the current round */
    WORKER_REVOKED,   /* its round is dead; it has not said RECOVERING */
    WORKER_RECOVERED, /* it has, and waits for the next round */
    WORKER_LEAVING,   /* told to leave; not gone */
    WORKER_FINISHED,  /* its training returned 0 */
    WORKER_DOOMED,    /* counted as dead; its process may still be there and is being killed */
    WORKER_ENDED,
    WORKER_STATE_COUNT
};

enum agent_state {
    AGENT_NONE,
    AGENT_STARTING, /* asked to run there; has not said hello */
    AGENT_THERE,    /* connected */
    AGENT_AWAY,     /* was connected, or is expected; its lease still runs */
    AGENT_STATE_COUNT
};

const char *job_state_name(enum job_state state);
const char *worker_state_name(enum worker_state state);
const char *agent_state_name(enum agent_state state);

struct view_worker {
    uint64_t incarnation;
    uint32_t slot;
    uint32_t rank; /* UINT32_MAX: not in the current round */
    enum worker_state state;
    bool entered; /* it trains in the current round */
    int64_t since_us;
};

struct view_host {
    const char *name;
    uint32_t slots;
    bool listed;   /* discovery names it */
    bool draining; /* all of it; of single slots the reason says so */
    enum agent_state agent;
    const char *why; /* why slots of it are not used; "" when all that can be are */
    const struct view_worker *workers;
    size_t worker_count;
};

/* Somewhere that failures count against: the blacklist, by host and slot. */
struct view_held {
    const char *host;
    uint32_t slot; /* UINT32_MAX: the host itself */
    uint32_t failures;
    int64_t left_us; /* until it may be used; 0: it may be, TIME_NEVER: not before it is cleared */
    const char *reason;
};

/* What a change of the membership has cost: see cost.h. */
#define VIEW_CHANGES_MAX 64
struct view_change {
    uint64_t round; /* that it led to */
    enum msg_cause cause;
    uint32_t from, to;  /* sizes; from is 0 where there was none before */
    int64_t ended_us;   /* when all trained */
    int64_t pause_us;   /* that those who trained before have lost */
    int64_t agree_us;   /* until all were told the round; before a switch they train meanwhile */
    int64_t rebuild_us; /* connections, reset callbacks */
    int64_t state_us;
    int64_t first_step_us;
};

const char *change_cause_name(enum msg_cause cause);

struct core_view {
    enum job_state job;
    uint64_t term;
    uint64_t round;          /* the current one; 0: there has been none */
    uint64_t next;           /* the one being prepared; 0: none */
    uint64_t commit;         /* what the current round resumed from */
    uint64_t floor;          /* the oldest commit that a new round may resume from */
    const uint64_t *members; /* of the current round, by rank */
    size_t member_count;
    uint32_t resets;
    bool enough; /* the job has the workers that it needs */
    int64_t short_since_us;
    const struct view_host *hosts; /* listed ones in order, then others that still run workers */
    size_t host_count;
    const struct view_held *held;
    size_t held_count;
    const struct view_change *changes; /* the last ones, the newest last */
    size_t change_count;
    const char *waiting_for; /* one sentence; "" when nothing is waited for */
    struct arena memory;
};

void core_view_init(struct core_view *view);
void core_view_release(struct core_view *view);

#endif
