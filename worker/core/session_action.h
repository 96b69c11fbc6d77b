/*
 * session_action.h: the actions that a step of the session requests, in order. Each comment names
 * the fields that the action uses.
 */
#ifndef WORKER_CORE_SESSION_ACTION_H
#define WORKER_CORE_SESSION_ACTION_H

#include "base/actions.h"
#include "base/limits.h"
#include "proto/msg.h"
#include "proto/place.h"

enum session_action_kind {
    DO_SEND, /* msg: send it to the agent */
    /* yes true: the training loop brings each check (hvd_state_check, hvd_state_commit) to the
     * session, and waits for DO_ANSWER; false: each check returns 0 at once */
    DO_WATCH,
    /* round, msg (a PREPARE): open the connections of this next round, beside those of the running
     * round */
    DO_PREPARE,
    DO_ABANDON, /* round: close the prepared connections of this round */
    /* commit, code, text: the requests for a checkpoint of a commit up to this number are done */
    DO_PERSISTED,
    /* msg (a STORED): the program's call of hvd/store.h that has this channel and number is done */
    DO_STORED,
    DO_CANCEL,  /* round: end the collectives of this round and of all before it, at once */
    DO_COMMIT,  /* commit: copy the loop's live state into this commit */
    DO_ANSWER,  /* code: the answer to the waiting CHECK */
    DO_RESTORE, /* the training loop goes back to its last commit */
    /* round, msg (the ROUND of that round), place, yes: connect, load the commit, call train */
    DO_ENTER,
    DO_RETURN, /* code: hvd_elastic_run returns */
    DO_COUNT
};

struct session_action {
    enum session_action_kind kind;
    /* of DO_WATCH: checks are brought to the session; of DO_ENTER: the connections of the round are
     * open already */
    bool yes;
    int code;
    uint64_t round;
    uint64_t commit;
    struct place place;
    const char *text;      /* valid as long as `msg` */
    const struct msg *msg; /* valid until the event or the list ends, whichever ends first */
};

ACTION_LIST(session_action_list, struct session_action, 2 * (size_t)LIMIT_DECODE_BYTES_MAX)

#endif
