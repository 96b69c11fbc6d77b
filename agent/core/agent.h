/*
 * agent.h: the core of the agent, the process that runs on each host and starts, watches and ends
 * its workers. Events with their time go in, actions come out in order. The core uses no process,
 * socket or clock. The comment of an event or action begins with the fields that it uses.
 *
 * An agent obeys one driver at a time: the driver with the highest term that the agent has seen.
 * The agent outlives a driver: workers train on for driver_grace_us without a driver. The agent
 * keeps the last messages of each worker and repeats them to a driver that comes back. The end of a
 * worker is reported again and again until the driver has it in its journal (FORGET).
 *
 *   ALONE ──driver up, hello, welcome──► SERVING ──STOP, or no driver for the grace──► ENDING
 *     ▲◄──────────lost, or silent──────────┘                                   all ended: EXIT
 */
#ifndef AGENT_CORE_AGENT_H
#define AGENT_CORE_AGENT_H

#include "agent/core/agent_config.h"
#include "agent/core/agent_remains.h"
#include "base/actions.h"
#include "base/sm.h"

enum agent_event_kind {
    AGENT_START,
    AGENT_TIMER,        /* kept, reports: the time that agent_deadline returned has come */
    AGENT_DRIVER_UP,    /* kept, text (where commits are served): the dialled connection is open */
    AGENT_DRIVER_DOWN,  /* text: the connection is lost, or could not be made */
    AGENT_DRIVER_MSG,   /* msg: a message of the driver */
    AGENT_WORKER_MSG,   /* worker, msg: the first msg is a HELLO_WORKER with a verified pid */
    AGENT_WORKER_DOWN,  /* worker: the connection of that worker is lost */
    AGENT_SPAWNED,      /* incarnation, pid: DO_SPAWN has succeeded */
    AGENT_SPAWN_FAILED, /* incarnation, code, text: DO_SPAWN has failed */
    /* incarnation, ended, value, witness, commit, remains: the process has ended */
    AGENT_ENDED,
    AGENT_EXAMINED,  /* incarnation, remains: for an EXAMINE of the driver */
    AGENT_OUTPUT,    /* incarnation, stream, data: the worker has written output */
    AGENT_NOTICE,    /* left_us, text: the machine will be taken away in left_us */
    AGENT_KEY_TAKEN, /* epoch: the agent dials with the key of this epoch from now on */
    /* msg: HOLDING or SAVED, the result of DO_HOLD or DO_SAVE; term and incarnation are not used */
    AGENT_CHECKPOINT_RESULT,
    AGENT_REPORTS,      /* reports: values that a worker which is about to end has reported */
    AGENT_DRIVER_MOVED, /* text: the driver has a new address: dial there now */
    AGENT_STOP,         /* text: the agent ends its workers, and then itself */
    AGENT_EVENT_COUNT
};

struct agent_event {
    enum agent_event_kind kind;
    int64_t now_us;
    uint32_t worker; /* number of a worker's connection; reused after WORKER_DOWN or DO_DROP */
    uint64_t incarnation;
    uint64_t pid, epoch;
    int code;
    uint32_t ended; /* enum msg_ended */
    int32_t value;
    uint32_t witness, stream; /* enum msg_witness, enum msg_stream */
    int64_t left_us;
    struct msg_bytes data;
    const char *text;
    const struct msg *msg;
    const struct msg_kept_list *kept;    /* the commits that the snapshots hold now; NULL: none */
    const struct report_list *reports;   /* values that workers have reported; NULL: none */
    const struct agent_remains *remains; /* what a worker has left behind; NULL: none */
    uint64_t commit;                     /* the newest commit in the slot's snapshot; 0: none */
};

enum agent_action_kind {
    AGENT_DO_DIAL, /* connect to the driver; then the event DRIVER_UP or DRIVER_DOWN */
    /* text: close the driver's connection after all messages are sent, or give up the attempt to
     * connect; no DRIVER_UP or DRIVER_DOWN follows */
    AGENT_DO_HANG_UP,
    AGENT_DO_SEND_DRIVER, /* msg: send it to the driver */
    AGENT_DO_SEND_WORKER, /* worker, msg: send it on the connection of this worker */
    /* worker, text: close the connection of the worker after all messages are sent; no WORKER_DOWN
     * follows */
    AGENT_DO_DROP,
    AGENT_DO_SPAWN,    /* incarnation, msg (LAUNCH): start; then SPAWNED or SPAWN_FAILED */
    AGENT_DO_TAKE_KEY, /* msg (REKEY): dial with this key, unless a later one is in use */
    /* msg (HOLD): keep the commits of this attempt at a checkpoint, and end earlier attempts; then
     * a CHECKPOINT_RESULT (HOLDING). A second HOLD of one attempt is answered again. */
    AGENT_DO_HOLD,
    /* msg (SAVE): write a file of the checkpoint, after those that were asked for before; then a
     * CHECKPOINT_RESULT (SAVED) */
    AGENT_DO_SAVE,
    AGENT_DO_RELEASE, /* msg (RELEASE): hold no commits for this checkpoint and earlier ones */
    AGENT_DO_TERM,    /* incarnation: send SIGTERM to the worker's process group */
    AGENT_DO_KILL,    /* incarnation: send SIGKILL to the worker's process group */
    /* code, text: the agent ends; always the last action. code: 0, or the enum hvd_code that says
     * why the agent ends by itself */
    AGENT_DO_EXIT,
    AGENT_DO_COUNT
};

struct agent_action {
    enum agent_action_kind kind;
    uint32_t worker;
    uint64_t incarnation;
    int code;
    const char *text;
    const struct msg *msg; /* valid until the event or the list ends, whichever is first */
};

ACTION_LIST(agent_action_list, struct agent_action, SIZE_MAX / 2)

struct agent;

struct agent *agent_create(const struct agent_config *config, struct trace *trace) MUST_CHECK;
void agent_free(struct agent *agent);

/* Handles one event and appends the resulting actions to the list. HVD_E_NOMEM: the agent must not
 * be used again, and the process ends. */
int agent_step(struct agent *agent, const struct agent_event *event,
               struct agent_action_list *list) MUST_CHECK;
int64_t agent_deadline(const struct agent *agent);

/* true: the agent starts no further worker, and EXIT follows when all workers have ended. */
bool agent_is_ending(const struct agent *agent);
/* true: no driver has ever welcomed the agent, so no worker depends on the agent. */
bool agent_was_never_welcomed(const struct agent *agent);

#endif
