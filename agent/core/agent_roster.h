/*
 * agent_roster.h: the workers of an agent, from LAUNCH to FORGET, found by their incarnation, their
 * slot and their connection. Private to this folder.
 *
 *     spawning ──► running ──► ended ──FORGET──► forgotten
 *         └──────► failed ───────────FORGET────────┘
 */
#ifndef AGENT_CORE_AGENT_ROSTER_H
#define AGENT_CORE_AGENT_ROSTER_H

#include "agent/core/agent.h"
#include "base/buf.h"
#include "base/limits.h"
#include "proto/place.h"

enum process { SPAWNING, RUNNING, ENDED, FAILED, FORGOTTEN, PROCESS_COUNT };

/* How far its end has been asked for. */
enum end_asked { ASKED_NOT, ASKED_WAITS, ASKED_TERM, ASKED_KILL }; /* WAITS: for its SPAWNED */

struct agent_output {
    struct buf kept;        /* printed while no driver was there: the newest of it */
    uint64_t dropped_bytes; /* before it */
};

struct agent_worker {
    uint64_t incarnation;
    uint32_t slot;
    struct sm process;
    uint64_t pid; /* 0: not known yet */
    struct place place;
    uint32_t phase; /* enum msg_phase */
    uint64_t round; /* the last that it was in, or wanted to recover from */
    int64_t started_us;

    uint32_t ended; /* enum msg_ended; with the two below when it is not ENDED_NOT */
    int32_t value;
    uint32_t witness;
    int64_t ran_us;
    uint64_t commit; /* kept for its slot when it ended */
    int code;        /* why it could not be started */
    char *text;      /* the same in words */

    enum end_asked asked;
    bool driver_asked; /* a KILL of the driver's: it knows why this worker ends */
    int64_t kill_at_us;
    uint32_t blamed; /* enum msg_witness: we end it because it does not answer */

    bool connected;
    bool dismissed; /* it was told DONE, or says that its training is over: it may go silent */
    uint32_t connection;
    int64_t lease_us; /* as it was when the worker was told how often to beat */
    int64_t silent_at_us;

    struct agent_output output[STREAM_COUNT];
    struct msg word;     /* last of READY, AT, RECOVERING, LEFT, FINISHED; type 0: none */
    struct msg entered;  /* the ENTERED of the round that it is in */
    struct msg prepared; /* the PREPARED of a round that has not begun */
};

struct agent_slot {
    uint64_t highest;            /* incarnation that was ever started here */
    struct agent_worker *worker; /* spawning or running */
    struct agent_worker *failed; /* the last one, when that could not be started */
};

struct agent_connection {
    uint32_t number;
    struct agent_worker *worker;
};

bool agent_worker_is_alive(const struct agent_worker *worker);
void agent_worker_move(struct agent *agent, struct agent_worker *worker, enum process to,
                       const char *why);
struct agent_worker *agent_roster_find(const struct agent *agent, uint64_t incarnation);
/* The worker of a LAUNCH; NULL when memory is out. */
struct agent_worker *agent_roster_add(struct agent *agent, const struct msg *msg);
void agent_roster_remove(struct agent *agent, struct agent_worker *worker);
/* The worker behind a connection; NULL when that has not said hello. */
struct agent_worker *agent_roster_at(const struct agent *agent, uint32_t number);
void agent_roster_connect(struct agent *agent, struct agent_worker *worker, uint32_t number);
void agent_roster_disconnect(struct agent *agent, struct agent_worker *worker);
void agent_roster_release(struct agent *agent);

#endif
