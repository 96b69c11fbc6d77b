/*
 * front_link.h: what a driver and its parent tell each other, over a pair of sockets. Both
 * processes are the same program, as the driver is forked, so a message is a struct. Neither
 * process waits for the other: if the other has ended, or reads nothing, a message is lost.
 */
#ifndef DRIVER_FRONT_FRONT_LINK_H
#define DRIVER_FRONT_FRONT_LINK_H

#include "base/err.h"
#include "base/limits.h"

enum front_kind {
    /* messages of the driver */
    FRONT_TAKEN = 1, /* the driver has taken the folder of the job */
    FRONT_RUNS,      /* agents may connect now, so the job has begun */
    /* messages of the parent */
    /* the user asks to end the job, with `signal`, the newest of `count` signals so far */
    FRONT_STOP,
    FRONT_HANGUP, /* the terminal is gone: the job goes on without a terminal */
    FRONT_LOOK,   /* look for hosts at once */
    FRONT_KINDS
};

struct front_msg {
    enum front_kind kind;
    int signal;       /* FRONT_STOP: the signal */
    uint32_t count;   /* FRONT_STOP: how many signals have asked for the end so far */
    int64_t grace_us; /* FRONT_TAKEN: how long the workers go on without a driver */
    bool begun;       /* FRONT_TAKEN: a former driver has begun the job */
    char job[LIMIT_JOB_NAME_BYTES + 1];
};

/* Makes the two sockets of a link, one for each process. */
int front_link_open(int ret_fds[2], struct hvd_err *err) MUST_CHECK;

/* Sends a message without waiting. fd -1: there is no other process, and nothing is sent. */
void front_link_send(int fd, const struct front_msg *msg);

/* Takes the next message. HVD_E_BUSY: there is none now. HVD_E_LOST: the other process has closed
 * the link. */
int front_link_take(int fd, struct front_msg *ret_msg) MUST_CHECK;

#endif
