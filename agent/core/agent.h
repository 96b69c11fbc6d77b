/*
 * agent.h: the mind of the process that runs on each host, and starts, watches and ends its
 * workers. Events with their time in, actions out, in order; no process, no socket, no clock.
 *
 * It obeys one driver at a time, that of the highest term it has seen, and outlives it: workers
 * train on for driver_grace_us without one. What a worker said last is kept and said again to a
 * driver that comes back, and an end is repeated until the driver has written it down (FORGET).
 *
 *     ALONE ──driver up, hello, welcome──► SERVING ──STOP, or no driver for the grace──► ENDING
 *       ▲◄──────────lost, or silent──────────┘                                  all ended: EXIT
 */
#ifndef AGENT_CORE_AGENT_H
#define AGENT_CORE_AGENT_H

#include "base/sm.h"
#include "base/vec.h"
#include "proto/msg.h"

struct agent_config {
    const char *job; /* borrowed as long as the agent lives, as host is */
    const char *host;
    uint64_t agent; /* this start of it: differs from every other on this host */
    uint32_t cores;
    uint64_t memory_bytes;
    uint32_t min_np, max_np;
    int64_t beat_us, lease_us, driver_grace_us; /* until a driver's welcome says otherwise */
    int64_t redial_us;                          /* from one attempt to the next */
    int64_t kill_grace_us; /* between SIGTERM and SIGKILL when it ends its workers by itself */
    int64_t stall_warning_us, stall_shutdown_us; /* passed on to workers */
};

enum agent_event_kind {
    AGENT_START,
    AGENT_TIMER,
    AGENT_DRIVER_UP,    /* the dialled connection is open: kept */
    AGENT_DRIVER_DOWN,  /* it is gone, or could not be made: text */
    AGENT_DRIVER_MSG,   /* msg */
    AGENT_WORKER_MSG,   /* worker, msg: the first is a HELLO_WORKER, its sender's pid verified */
    AGENT_WORKER_DOWN,  /* worker: its connection is gone */
    AGENT_SPAWNED,      /* incarnation, pid: answers DO_SPAWN */
    AGENT_SPAWN_FAILED, /* incarnation, code, text */
    AGENT_ENDED, /* incarnation, ended, value, witness, commit: the process is gone, and what it had
                    sent has been brought here: a LEFT or FINISHED comes before the end */
    AGENT_OUTPUT,       /* incarnation, stream, data */
    AGENT_NOTICE,       /* left_us, text: the machine will be taken away */
    AGENT_DRIVER_MOVED, /* text: the driver is elsewhere now: hang up, and dial at once */
    AGENT_STOP,         /* text: somebody here wants the workers to end, and then the agent */
    AGENT_EVENT_COUNT
};

struct agent_event {
    enum agent_event_kind kind;
    int64_t now_us;
    uint32_t worker; /* a small number for a worker's connection; not reused before WORKER_DOWN or
                        AGENT_DO_DROP */
    uint64_t incarnation;
    uint64_t pid;
    int code;
    uint32_t ended; /* enum msg_ended */
    int32_t value;
    uint32_t witness; /* enum msg_witness */
    uint32_t stream;  /* enum msg_stream */
    int64_t left_us;
    struct msg_bytes data;
    const char *text;
    const struct msg *msg;
    const struct msg_kept_list *kept; /* what the snapshots hold now; NULL: nothing */
    uint64_t commit;                  /* what that of its slot holds; 0: nothing */
};

enum agent_action_kind {
    AGENT_DO_DIAL,    /* answered by DRIVER_UP or DRIVER_DOWN */
    AGENT_DO_HANG_UP, /* close the driver's connection, once what was sent is out, or give up the
                         attempt to make one; no DRIVER_UP or DRIVER_DOWN follows; text */
    AGENT_DO_SEND_DRIVER, /* msg */
    AGENT_DO_SEND_WORKER, /* worker, msg */
    AGENT_DO_DROP,        /* worker: the same with its connection; no WORKER_DOWN follows; text */
    AGENT_DO_SPAWN,       /* incarnation, msg (a LAUNCH): answered by SPAWNED or SPAWN_FAILED */
    AGENT_DO_TERM,        /* incarnation: SIGTERM to its process group */
    AGENT_DO_KILL,        /* incarnation: SIGKILL to its process group */
    AGENT_DO_EXIT, /* code (0, or enum hvd_code: why it ends by itself), text: the last one */
    AGENT_DO_COUNT
};

struct agent_action {
    enum agent_action_kind kind;
    uint32_t worker;
    uint64_t incarnation;
    int code;
    const char *text;
    const struct msg *msg; /* lives as long as the event or the list, whichever ends first */
};

struct agent_action_list {
    struct VEC(struct agent_action);
    struct arena memory;
    bool failed;
};

struct agent;

void agent_action_list_init(struct agent_action_list *list);
void agent_action_list_release(struct agent_action_list *list);
void agent_action_list_clear(struct agent_action_list *list);

struct agent *agent_create(const struct agent_config *config, struct trace *trace) MUST_CHECK;
void agent_free(struct agent *agent);

/* As core_step: after HVD_E_NOMEM the agent must not be used again; its process ends. */
int agent_step(struct agent *agent, const struct agent_event *event,
               struct agent_action_list *list) MUST_CHECK;
int64_t agent_deadline(const struct agent *agent);

/* It takes no work any more, and EXIT is what it comes to. */
bool agent_is_ending(const struct agent *agent);
/* No driver has ever welcomed it: nothing depends on it. */
bool agent_is_unmet(const struct agent *agent);

#endif
