/*
 * state_thread.h: the thread in which commits travel. The thread serves the commits in this agent's
 * snapshots to other agents, and fetches commits from other holders for this agent's workers. The
 * thread has an event loop of its own, so that the transfer of gigabytes never delays the agent's
 * heartbeats.
 */
#ifndef AGENT_COMMITS_STATE_THREAD_H
#define AGENT_COMMITS_STATE_THREAD_H

#include "agent/commits/snapshots.h"
#include "wire/tls.h"

/* In the list of a worker's addresses, the address that begins with this text is the one at which
 * the worker's agent serves commits. */
#define STATE_ADDRESS_KIND "state="
#define STATE_CONTACT_MAX  (sizeof(STATE_ADDRESS_KIND) + ADDRESS_TEXT_MAX)

struct event_base;
struct state_thread;

struct state_config {
    /* TLS between agents, with the keys of rounds. All pointers here are borrowed as long as the
     * thread lives. */
    struct tls *tls;
    struct snapshots *snapshots; /* the commits that are served, and the places of fetched ones */
    /* how long the key of the previous round is still accepted: LIMIT_STATE_KEY_US */
    int64_t key_us;
    const char *host; /* the name of this agent's host in lists of sources */
};

/* These callbacks are called from the agent's loop. */
struct state_ops {
    /* Called once for each fetch that ended, in the order of the ends. `fetched` is borrowed. */
    void (*fetched)(void *arg, uint64_t requester, const struct msg *fetched);
};

/* Starts the thread. HVD_E_NOMEM: no memory is left; HVD_E_LIMIT: no further thread or descriptor
 * can be had. */
int state_thread_start(struct event_base *base, const struct state_config *config,
                       const struct state_ops *ops, void *arg, struct state_thread **ret_thread,
                       struct hvd_err *err) MUST_CHECK;

/* Ends the thread. After the return no callback is called, and no byte is written into a
 * snapshot. */
void state_thread_stop(struct state_thread *thread);

/* Makes the thread serve on this address, too ("10.0.0.7"), on any free port. An address at which
 * the thread serves already is kept. */
void state_thread_listen(struct state_thread *thread, const char *host);

/* Fetches with this key from now on, and serves agents that have it. The key of the previous round
 * is accepted for `key_us` more; then connections with that key are closed. A call with the key of
 * a round lower than the newest has no effect. */
void state_thread_key(struct state_thread *thread, uint64_t round,
                      const uint8_t key[STATE_KEY_BYTES]);

/* Returns the address, "10.0.0.7:4001", at which other agents reach this thread's server: the
 * address that was last given to state_thread_listen. NULL: the thread does not serve. Borrowed
 * until the next call. */
const char *state_thread_address(struct state_thread *thread);

/* Starts a FETCH for the worker that runs in the slot. `requester` is not 0 and names one worker
 * connection. A new fetch ends an older fetch of the same `requester`. HVD_E_NOMEM: no fetch was
 * started, and no answer follows. */
int state_thread_fetch(struct state_thread *thread, uint64_t requester, uint32_t slot,
                       const struct msg *asked) MUST_CHECK;

/* Ends the fetches of `requester`. After the return no byte is written for `requester`, and no
 * answer follows. */
void state_thread_forget(struct state_thread *thread, uint64_t requester);

#endif
