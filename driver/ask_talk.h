/*
 * ask_talk.h: one question to a driver, and what it says to standard output.
 */
#ifndef DRIVER_ASK_TALK_H
#define DRIVER_ASK_TALK_H

#include "proto/msg.h"

struct ask_outcome {
    int code;         /* of the answer */
    bool answered;    /* to the end */
    bool begun;       /* something of it came */
    bool interrupted; /* Ctrl-C */
    bool deaf;        /* nobody reads what we print */
};

/*
 * Asks at the socket, and prints what comes; an answer that is a refusal goes to the err.
 * patience_us bounds the wait for the first word; TIME_NEVER. 0 when the connection was made: the
 * outcome says the rest. HVD_E_NOTFOUND: nobody listens there.
 */
int ask_talk(const char *name, const struct msg_ask *ask, int64_t patience_us,
             struct ask_outcome *ret_outcome, struct hvd_err *err) MUST_CHECK;

#endif
