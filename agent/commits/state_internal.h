/*
 * state_internal.h: what the files behind state_thread.h share.
 *
 *     asked ──taken by the thread──► running ──ended──► answered ──told in the loop──► freed
 *
 * A fetch is in one of the three lists, which the mutex protects. The other fields of a fetch
 * belong to the thread while the fetch is in `running`, else to the agent's loop; but the agent's
 * loop may set `forgotten` at any time.
 */
#ifndef AGENT_COMMITS_STATE_INTERNAL_H
#define AGENT_COMMITS_STATE_INTERNAL_H

#include "agent/commits/state_thread.h"
#include "base/list.h"
#include "base/vec.h"
#include "wire/listener.h"

#include <event2/event.h>
#include <pthread.h>
#include <stdatomic.h>

struct fetch;

struct state_thread {
    struct state_config config;
    const struct state_ops *ops;
    void *arg;
    pthread_t thread;

    pthread_mutex_t mutex;   /* protects the fields up to `stopping`; held for short moments only */
    pthread_cond_t listened; /* the thread has tried to listen at the address in `wanted` */
    struct list asked;       /* lists of struct fetch, the oldest first: asked, running, answered */
    struct list running;     /* at most one fetch per `requester` */
    struct list answered;
    char wanted[ADDRESS_TEXT_MAX]; /* the host address to listen at next; "": no request is open */
    /* the address at which the thread serves commits; "": the thread serves none */
    char address[ADDRESS_TEXT_MAX];
    struct VEC(uint64_t) gone; /* `requester`s that need no connections to holders any more */
    uint64_t key_round;        /* the round of `key`, which the thread has to take; 0: none */
    uint8_t key[STATE_KEY_BYTES];
    bool stopping;

    /* eventfds that say "look at the lists": to the thread, and to the agent's loop. A write fails
     * only if the eventfd is full: then the eventfd is readable anyway. */
    int to_thread;
    int to_loop;
    struct event *told;           /* fires in the agent's loop when to_loop is readable */
    char shown[ADDRESS_TEXT_MAX]; /* a copy of `address` for the agent's loop */

    /* the thread's own event base; the fields below belong to the thread, too */
    struct event_base *base;
    struct event *woken;    /* fires in the thread when to_thread is readable */
    struct event *old_keys; /* timer: when it fires, only the newest key stays accepted */
    uint64_t round;         /* the round of the newest key; 0: no key has come yet */
    uint64_t kept_round;    /* the round of the previous key; 0: that key is refused */
    struct VEC(struct listener *) listeners;
    struct list servings; /* connections of agents that fetch commits from this one */
    struct list early;    /* connections to holders that no fetch uses yet (state_reach.c) */
    size_t serving_count;
};

/* state_serve.c: serves this host's commits to other agents */
void serve_accepted(void *arg, struct conn *conn);
/* closes each connection of a puller (an agent that fetches commits from this one) whose key is of
 * a round lower than `before` */
void serve_end(struct state_thread *thread, uint64_t before);

/* state_reach.c: a fetch of commit 0 only connects to holders (agents that have a commit): it ends
 * when one holder is connected, or all have failed */
void reach_begin(struct fetch *fetch);
/* Returns an open connection to this address, which the caller owns from now on; NULL: none. */
struct conn *reach_take(struct fetch *fetch, const char *address);
/* Closes the connections that were opened for `requester`; 0: all connections. */
void reach_drop(struct state_thread *thread, uint64_t requester);

/* state_progress.c, state_fetch.c: one fetch, from its beginning to its answer */
struct fetch *fetch_create(struct state_thread *thread, uint64_t requester, uint32_t slot,
                           const struct msg *msg) MUST_CHECK;
void fetch_free(struct fetch *fetch);
/* begins a fetch, which is in the list `running`; fetch_end is called when the fetch is done */
void fetch_begin(struct fetch *fetch);
/* the thread was woken: ends the fetch if it was forgotten, or its checkpoint was read */
void fetch_look(struct fetch *fetch);
/* The worker no longer awaits the fetch, which may be in any list. Called from the agent's loop. */
void fetch_forget(struct fetch *fetch);
void fetch_tell(struct fetch *fetch); /* calls ops->fetched, in the agent's loop */

#endif
