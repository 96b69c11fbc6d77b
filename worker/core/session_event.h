/*
 * session_event.h: the events of a session. Each comment names the fields that the event uses. Data
 * that an event points to stays the caller's, and is valid during the step.
 */
#ifndef WORKER_CORE_SESSION_EVENT_H
#define WORKER_CORE_SESSION_EVENT_H

#include "proto/msg.h"

enum session_event_kind {
    /* msg: a message of the agent, after the greeting. `check` is valid only if `counted` is
     * true. */
    SESSION_MSG,
    SESSION_CLOSED, /* the connection to the agent is lost */
    /* the time of session_deadline() has come; too early an event does nothing */
    SESSION_TIMER,
    SESSION_RUN,      /* ready: the state is registered, and the loop waits for a round */
    SESSION_PREPARED, /* round, code, text: the answer to DO_PREPARE */
    SESSION_SYNCED,   /* code: the answer to DO_ENTER; 0: train is about to be called */
    SESSION_STEPPED,  /* entered: the first step of the round is done */
    /* check: the training loop has come to the check with this number in its round, counted from 0,
     * and waits for DO_ANSWER */
    SESSION_CHECK,
    SESSION_RETURNED, /* code, text: train has returned */
    SESSION_RESTORED, /* held: the answer to DO_RESTORE */
    SESSION_STUCK,    /* stalled: the loop or a collective makes no progress */
    SESSION_UNUSABLE, /* text: this process can never train again, even if its loop goes on */
    SESSION_REMARK,   /* text: information about this round for the operator */
    SESSION_PERSIST,  /* commit: the program wants this commit, or a later one, in a checkpoint */
    SESSION_STORE,    /* msg: a STORE of the program, whose incarnation session_send sets */
    SESSION_EVENT_COUNT
};

struct session_event {
    enum session_event_kind kind;
    int64_t now_us;
    uint64_t round;
    /* of SESSION_MSG; true: `check` is the number of the training loop's next check, and from now
     * on the loop brings each check to the session */
    bool counted;
    uint64_t check;
    uint64_t commit;
    int code;
    int failed;       /* SESSION_RETURNED: the first failure of the round's collectives; 0: none */
    const char *text; /* may be NULL */
    const struct msg *msg;
    const struct msg_ready *ready;
    const struct msg_held_list *held;
    const struct msg_entered *entered;
    const struct msg_stalled *stalled;
};

#endif
