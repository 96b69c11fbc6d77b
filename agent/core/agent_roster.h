/*
 * agent_roster.h: the workers of an agent, from LAUNCH to FORGET, found by their incarnation, their
 * slot and their connection. Private to this folder.
 */
#ifndef AGENT_CORE_AGENT_ROSTER_H
#define AGENT_CORE_AGENT_ROSTER_H

#include "agent/core/agent.h"
#include "base/buf.h"
#include "base/limits.h"
#include "proto/place.h"

/* agent_states.c says which state may follow which. */
enum process { SPAWNING, RUNNING, ENDED, FAILED, FORGOTTEN, PROCESS_COUNT };

/* How the agent has asked a process to end. ASKED_WAITS: SIGTERM is sent as soon as the process is
 * RUNNING. */
enum end_asked { ASKED_NOT, ASKED_WAITS, ASKED_TERM, ASKED_KILL };

/* The signals that a worker's process was sent or will be sent, and the reason. */
struct agent_killing {
    enum end_asked asked;
    bool by_driver; /* the driver has sent KILL, so the driver knows why this worker ends */
    int64_t kill_at_us;
    uint32_t blamed; /* enum msg_witness of a silent worker that is killed; else WITNESS_NONE */
    char *reason;    /* the reason of the first KILL; owned; NULL: none */
};

/* How a worker ended. If `ended` is ENDED_NOT, only `code` and `text` count: they say why a start
 * failed. */
struct agent_ending {
    uint32_t ended;   /* enum msg_ended: by an exit, a signal, or silent; ENDED_NOT */
    int32_t value;    /* the exit code or the signal */
    uint32_t witness; /* enum msg_witness */
    int64_t ran_us;
    uint64_t commit; /* the newest commit that is kept for the worker's slot */
    int code;
    char *text;
    struct msg autopsy; /* type 0: none is due */
};

/* A worker's connection to this agent. */
struct agent_contact {
    bool connected;
    bool dismissed; /* the worker got DONE, or sent LEFT or FINISHED: it has no lease any more */
    uint32_t number;
    /* the lease at the time of the worker's welcome, which set its heartbeat interval */
    int64_t lease_us;
    int64_t silent_at_us;
};

/* A heartbeat of the agent tells the driver these facts of a worker. */
struct agent_pulse {
    uint64_t commit;   /* the newest commit that was seen in the memory of the slot; 0: none */
    int64_t commit_us; /* when this commit was first seen */
    int64_t heard_us;  /* when the last message of the worker came */
    /* for each name: the count of reports (report_seen.said) that the driver was told; 0: none */
    uint64_t told[LIMIT_REPORTS];
};

/* The last messages of a worker, kept for a driver that comes back. Type 0: no message. */
struct agent_words {
    struct msg ready;    /* the READY message, once another message or a round has followed */
    struct msg last;     /* the last of READY, NEXT_CHECK, RECOVERING, LEFT, FINISHED, UNUSABLE */
    struct msg entered;  /* the ENTERED message of the round in which the worker is */
    struct msg prepared; /* the PREPARED message of a round that has not begun */
    struct msg persist;  /* the newest PERSIST message that has no answer */
    struct msg stores[LIMIT_STORE_CALLS]; /* of each channel: the STORE that has no answer */
};

struct agent_output {
    struct buf kept;        /* the newest output that was printed while no driver was connected */
    uint64_t dropped_bytes; /* bytes that were dropped before `kept` */
};

struct agent_worker {
    uint64_t incarnation;
    uint32_t slot;
    struct sm process;
    uint64_t pid; /* of the worker's process; 0: not known yet */
    int64_t started_us;
    struct place place;
    uint32_t phase; /* enum msg_phase */
    uint64_t round; /* the last round in which the worker was, or from which it wanted to recover */

    struct agent_contact contact;
    struct agent_pulse pulse;
    struct agent_killing killing;
    struct agent_ending ending;
    struct agent_words words;
    struct agent_output output[STREAM_COUNT];
};

struct agent_slot {
    uint64_t highest;            /* the highest incarnation that was ever started in this slot */
    struct agent_worker *worker; /* the worker that is spawning or running; NULL: none */
    /* the last worker of this slot, if that worker could not be started; else NULL */
    struct agent_worker *failed;
};

struct agent_connection {
    uint32_t number;
    struct agent_worker *worker;
};

/* true: the worker is spawning or running */
bool agent_worker_is_alive(const struct agent_worker *worker);
void agent_worker_move(struct agent *agent, struct agent_worker *worker, enum process to,
                       const char *why);
struct agent_worker *agent_roster_find(const struct agent *agent, uint64_t incarnation);
/* Adds the worker that a LAUNCH describes; NULL when no memory is left. */
struct agent_worker *agent_roster_add(struct agent *agent, const struct msg *msg);
void agent_roster_remove(struct agent *agent, struct agent_worker *worker);
/* Returns the worker of a connection; NULL when no worker has said hello on that connection. */
struct agent_worker *agent_roster_at(const struct agent *agent, uint32_t number);
void agent_roster_connect(struct agent *agent, struct agent_worker *worker, uint32_t number);
void agent_roster_disconnect(struct agent *agent, struct agent_worker *worker);
void agent_roster_release(struct agent *agent);

#endif
