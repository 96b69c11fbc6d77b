/*
 * loop_internal.h: what the agent's event loop is made of. Private to loop*.c, which call each
 * other downwards only, in the order of README.md.
 */
#ifndef AGENT_IO_LOOP_INTERNAL_H
#define AGENT_IO_LOOP_INTERNAL_H

#include "agent/checkpoint/checkpoint_thread.h"
#include "agent/commits/state_thread.h"
#include "agent/io/driver_link.h"
#include "agent/io/loop.h"
#include "agent/io/workers_link.h"
#include "agent/notice/notice.h"
#include "agent/processes/agent_socket.h"
#include "agent/processes/children.h"
#include "base/buf.h"
#include "base/log.h"

#include <event2/event.h>

/* A process that was started as a worker, as long as that process runs. */
struct started {
    uint64_t incarnation;
    uint64_t pid; /* 0: the process is being started */
    uint32_t slot;
    bool left; /* the worker has left in order: no worker follows in its slot */
};

/* Events that happen while actions are carried out: they wait until all actions are done. */
struct loop_queue {
    struct VEC(struct loop_queued) waiting;
    size_t taken; /* how many of `waiting` the core has got */
    char *text;   /* text of the event that was taken last */
};

struct loop_events {
    struct event *timer;               /* the next deadline of the core */
    struct event *sigterm, *passed_on; /* passed_on: the supervisor has got SIGTERM */
    struct event *sigint, *sigusr2;
};

/* The encoded frame of the last message to workers: a message for all workers is encoded once and
 * sent many times. */
struct loop_frame {
    const struct msg *msg;
    struct buf bytes;
};

struct agent_loop {
    struct event_base *base;
    struct agent_loop_config config;
    struct agent *core;
    struct trace trace;
    struct agent_action_list actions;
    struct loop_queue queue;
    struct loop_events events;
    struct driver_link *driver;
    struct workers_link *workers;
    struct children *children;
    struct VEC(struct started) started;
    struct snapshots *snapshots;
    struct state_thread *state;
    struct checkpoint_thread *checkpoint;
    struct notice *notice; /* NULL: this machine has no giver of notices but SIGTERM */
    struct tls *state_tls; /* TLS with the keys of rounds, for the thread that moves commits */

    struct loop_frame frame;
    struct log_limit unreachable; /* limits the log lines that there is no driver */
    bool holds_output;            /* the output of workers is not read */
    /* SIGTERMs to this process, and SIGTERMs that the supervisor has passed on. A SIGTERM to all
     * processes comes in both ways, and counts once. */
    unsigned own_terms, passed_terms;
    bool stepping; /* the core's actions are being carried out: new events wait in `queue` */
    bool over;     /* the loop ends, with `code`: events and actions are ignored */
    int code;
};

/* loop_state.c: the end of the loop, events that wait, started workers */

void loop_end(struct agent_loop *loop, int code);
/* Ends the loop because of an error that the agent cannot survive; `what` names the failed step.
 * The driver replaces this agent like an agent that was killed. */
void loop_give_up(struct agent_loop *loop, int code, const char *what);
/* Queues the event until all actions are done. The text of the event is copied, the remains of a
 * worker are left out; other borrowed fields are not allowed. */
void loop_put_off(struct agent_loop *loop, const struct agent_event *event);
/* Takes the oldest event that waits; its text lives until the next call. false: no event waits. */
bool loop_take_waiting(struct agent_loop *loop, struct agent_event *ret_event);
void loop_release_waiting(struct agent_loop *loop);
/* Returns the entry of a worker whose process was started and has not ended; NULL: none */
struct started *loop_started(const struct agent_loop *loop, uint64_t incarnation);
void loop_forget_started(struct agent_loop *loop, uint64_t incarnation);
/* Writes the answer to "healthy", for struct workers_link_ops. */
void loop_health(void *arg, char ret_text[ERR_TEXT_MAX]);

/* loop_commits.c: the memory of commits, and the thread that moves commits between hosts */

int loop_commits_create(struct agent_loop *loop, struct hvd_err *err) MUST_CHECK;
void loop_commits_release(struct agent_loop *loop);
/* serves commits at the address from which the agent has dialled the driver */
void loop_commits_driver_up(struct agent_loop *loop);
/* From now on commits travel with the key of this STATE_KEY. */
void loop_commits_key(struct agent_loop *loop, const struct msg *msg);
/* "state=IP:PORT", where this agent serves commits; NULL: nowhere. `text` is the memory for it. */
const char *loop_commits_address(struct agent_loop *loop, char text[STATE_CONTACT_MAX]);
/* Sends the welcome of a worker, with that address, which the core does not know. */
int loop_commits_welcome(struct agent_loop *loop, uint32_t worker, const struct msg *msg,
                         struct hvd_err *err) MUST_CHECK;
/* The callbacks for commits in struct workers_link_ops. */
int loop_commits_snapshot(void *arg, uint64_t incarnation, const struct msg_snapshot *wanted,
                          int *ret_fd, struct hvd_err *err);
void loop_commits_fetch(void *arg, uint64_t requester, const struct msg *msg);
void loop_commits_hung_up(void *arg, uint64_t requester);

/* loop_actions.c: carries out one action of the core */

void loop_carry_out(struct agent_loop *loop, const struct agent_action *action);

#endif
