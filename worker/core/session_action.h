/*
 * session_action.h: what a session wants done, in order.
 */
#ifndef WORKER_CORE_SESSION_ACTION_H
#define WORKER_CORE_SESSION_ACTION_H

#include "base/arena.h"
#include "base/vec.h"
#include "proto/msg.h"
#include "proto/place.h"

enum session_action_kind {
    DO_SEND,    /* msg, to the agent */
    DO_WATCH,   /* yes: checks must be brought to the session; else they need not */
    DO_PREPARE, /* round, msg (a PREPARE): open its connections beside the running ones */
    DO_ABANDON, /* round: close what was prepared of it */
    DO_CANCEL,  /* round: end the collectives of this round and of all before it, at once */
    DO_COMMIT,  /* commit: the loop's live state becomes this commit */
    DO_ANSWER,  /* code: the answer to the CHECK that waits */
    DO_RESTORE, /* the loop goes back to its last commit */
    DO_ENTER,   /* round, msg (its ROUND), place, prepared: connect, get the commit, call train */
    DO_RETURN,  /* code: hvd_elastic_run returns */
    DO_COUNT
};

struct session_action {
    enum session_action_kind kind;
    bool yes; /* DO_WATCH; DO_ENTER: its connections are prepared */
    int code;
    uint64_t round;
    uint64_t commit;
    struct place place;
    const struct msg *msg; /* lives as long as the event or the list, whichever ends first */
};

struct session_action_list {
    struct VEC(struct session_action);
    struct arena memory;
    bool failed;
};

void session_action_list_init(struct session_action_list *list);
void session_action_list_release(struct session_action_list *list);
void session_action_list_clear(struct session_action_list *list);

#endif
