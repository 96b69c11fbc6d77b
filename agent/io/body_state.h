/*
 * body_state.h: what the agent's body is made of. Private to body*.c.
 */
#ifndef AGENT_IO_BODY_STATE_H
#define AGENT_IO_BODY_STATE_H

#include "agent/io/agent_socket.h"
#include "agent/io/body.h"
#include "agent/io/body_queue.h"
#include "agent/io/children.h"
#include "agent/io/driver_link.h"
#include "agent/io/workers_link.h"
#include "base/buf.h"
#include "base/log.h"

#include <event2/event.h>

/* The process that was started as a worker, as long as that runs. */
struct started {
    uint64_t incarnation;
    uint64_t pid;
};

struct body {
    struct event_base *base;
    struct body_config config;
    char socket[AGENT_SOCKET_MAX];
    struct agent *mind;
    struct trace trace;
    struct agent_action_list actions;
    struct body_queue queue; /* what happened while actions were carried out */
    struct event *timer;
    struct event *sigterm;
    struct event *sigint;
    struct driver_link *driver;
    struct workers_link *workers;
    struct children *children;
    struct VEC(struct started) started;

    /* The frame of the last message to workers: one for all of them goes out many times. */
    const struct msg *encoded;
    struct buf frame;

    struct log_limit unreachable; /* "cannot reach the driver" */
    bool holds_output;
    bool noticed; /* by a SIGTERM */
    bool stepping;
    bool over;
    int code;
};

/* body_deeds.c */

/* There is no way on from here, and the way back is the one of an agent that was killed. */
void body_give_up(struct body *body, int code, const char *what);
/* For an event that happens while actions are carried out. */
void body_put_off(struct body *body, const struct agent_event *event);
void body_carry_out(struct body *body, const struct agent_action *action);

#endif
