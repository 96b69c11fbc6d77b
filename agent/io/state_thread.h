/*
 * state_thread.h: the thread in which commits travel: it serves what this agent's snapshots hold to
 * other agents, and fetches for its workers what others hold. It has a loop of its own, so that
 * gigabytes never stand in the way of the agent's.
 *
 *     agent's loop ──state_thread_fetch──► queue ──► thread: copies, dials holders, is dialled
 *          ▲                                            │
 *          └───────────────fetched◄── queue ◄───────────┘
 */
#ifndef AGENT_IO_STATE_THREAD_H
#define AGENT_IO_STATE_THREAD_H

#include "agent/io/snapshots.h"
#include "wire/tls.h"

struct event_base;
struct state_thread;

struct state_config {
    struct tls *tls; /* borrowed as long as the thread lives, as all of this is */
    struct snapshots *snapshots;
    const char *host; /* what this agent's host is called among sources */
};

/* Called from the agent's loop. */
struct state_ops {
    /* For each fetch, in their order; borrowed. */
    void (*fetched)(void *arg, uint64_t who, const struct msg *fetched);
};

/* HVD_E_NOMEM, HVD_E_LIMIT. */
int state_thread_start(struct event_base *base, const struct state_config *config,
                       const struct state_ops *ops, void *arg, struct state_thread **ret_thread,
                       struct hvd_err *err) MUST_CHECK;

/* Nobody is told any more, and nothing is written into a snapshot. */
void state_thread_stop(struct state_thread *thread);

/* Serves on this address too ("10.0.0.7"), on any port. An address that it has it keeps. */
void state_thread_listen(struct state_thread *thread, const char *host);

/* "10.0.0.7:4001": where others reach what it serves, by the address that was named last; NULL:
 * nowhere. Borrowed until the next call. */
const char *state_thread_address(struct state_thread *thread);

/* A FETCH of the worker that runs in the slot; `who` is anything but 0, and one worker's own. It
 * ends the fetch of the same `who` before it. HVD_E_NOMEM: there will be no answer. */
int state_thread_fetch(struct state_thread *thread, uint64_t who, uint32_t slot,
                       const struct msg *asked) MUST_CHECK;

/* Its fetches are over: on return nothing more is written for it, and no answer follows. */
void state_thread_forget(struct state_thread *thread, uint64_t who);

#endif
