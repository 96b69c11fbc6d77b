/*
 * front_link.h: what a driver and its parent tell each other, over a pair of sockets. Both ends are
 * one program, as the driver is forked, so a message is a struct. A message is never waited for: an
 * end that is gone or stopped misses it.
 */
#ifndef DRIVER_FRONT_FRONT_LINK_H
#define DRIVER_FRONT_FRONT_LINK_H

#include "base/err.h"
#include "base/limits.h"

enum front_kind {
    /* from the driver */
    FRONT_TAKEN = 1, /* the driver has taken the folder of the job */
    FRONT_RUNS,      /* agents may connect, so the job is begun */
    /* from the parent */
    FRONT_STOP,   /* the user ends the job: `signal`, and `count` signals so far */
    FRONT_HANGUP, /* the terminal is gone: the job goes on without one */
    FRONT_LOOK,   /* look for hosts at once */
    FRONT_KINDS
};

struct front_msg {
    enum front_kind kind;
    int signal;
    uint32_t count;
    int64_t grace_us; /* FRONT_TAKEN: how long the workers go on without a driver */
    bool begun;       /* FRONT_TAKEN: a former driver has begun the job */
    char job[LIMIT_JOB_NAME_BYTES + 1];
};

int front_link_open(int ret_fds[2], struct hvd_err *err) MUST_CHECK;

/* fd -1: there is no other end, and nothing happens. */
void front_link_send(int fd, const struct front_msg *msg);

/* 0: a message. HVD_E_BUSY: there is none now. HVD_E_LOST: the other end is gone. */
int front_link_take(int fd, struct front_msg *ret_msg) MUST_CHECK;

#endif
