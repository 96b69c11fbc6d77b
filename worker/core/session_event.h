/*
 * session_event.h: everything that can happen to a worker, as its session is told it. What an event
 * points to is borrowed during the step.
 */
#ifndef WORKER_CORE_SESSION_EVENT_H
#define WORKER_CORE_SESSION_EVENT_H

#include "proto/msg.h"

enum session_event_kind {
    SESSION_MSG,      /* msg: a frame from the agent, after the greeting; check, if counted */
    SESSION_CLOSED,   /* the agent's connection is gone */
    SESSION_TIMER,    /* session_deadline() has come; may come early */
    SESSION_RUN,      /* ready: the state is built and its loop waits for a round */
    SESSION_PREPARED, /* round, code, text: answers DO_PREPARE */
    SESSION_SYNCED,   /* code: answers DO_ENTER; 0: train is being called */
    SESSION_STEPPED,  /* entered: the first step of the round is done */
    SESSION_CHECK,    /* check: the loop's n-th check of the round, counted from 0 */
    SESSION_RETURNED, /* code, text: train returned */
    SESSION_SETTLED,  /* held: answers DO_RESTORE */
    SESSION_STUCK,    /* stalled: a collective has not moved for so long */
    SESSION_USELESS,  /* text: this process will never be of use again, whatever its loop does */
    SESSION_REMARK,   /* text: what people should know of this round */
    SESSION_EVENT_COUNT
};

struct session_event {
    enum session_event_kind kind;
    int64_t now_us;
    uint64_t round;
    bool counted; /* SESSION_MSG: check is the loop's next one, and from now on each is brought here
                   */
    uint64_t check;
    int code;
    int failed;       /* SESSION_RETURNED: what the collectives of the round have failed with; 0 */
    const char *text; /* may be NULL */
    const struct msg *msg;
    const struct msg_ready *ready;
    const struct msg_held_list *held;
    const struct msg_entered *entered;
    const struct msg_stalled *stalled;
};

#endif
