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
#include "agent/io/state_thread.h"
#include "agent/io/workers_link.h"
#include "base/buf.h"
#include "base/log.h"

#include <event2/event.h>

/* The process that was started as a worker, as long as that runs. */
struct started {
    uint64_t incarnation;
    uint64_t pid; /* 0: it is being started */
    uint32_t slot;
    bool left; /* in order: nobody follows it in its slot */
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
    struct snapshots *snapshots;
    struct state_thread *state;

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

/* body_commits.c: what concerns the state of workers */
int body_commits_create(struct body *body, struct hvd_err *err) MUST_CHECK;
void body_commits_release(struct body *body);
void body_commits_driver_up(struct body *body); /* others reach us the way that we reach it */
struct started *body_started(const struct body *body, uint64_t incarnation); /* NULL */
void body_forget_started(struct body *body, uint64_t incarnation);
/* The welcome of a worker, with what the mind does not know. */
int body_commits_welcome(struct body *body, uint32_t worker, const struct msg *msg,
                         struct hvd_err *err) MUST_CHECK;
/* Of workers_link_ops. */
int body_commits_snapshot(void *arg, uint64_t incarnation, const struct msg_snapshot *wanted,
                          int *ret_fd, struct hvd_err *err);
void body_commits_fetch(void *arg, uint64_t who, const struct msg *msg);
void body_commits_hung_up(void *arg, uint64_t who);

/* body_deeds.c */

/* There is no way on from here, and the way back is the one of an agent that was killed. */
void body_give_up(struct body *body, int code, const char *what);
/* For an event that happens while actions are carried out. */
void body_put_off(struct body *body, const struct agent_event *event);
void body_carry_out(struct body *body, const struct agent_action *action);

#endif
