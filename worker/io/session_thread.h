/*
 * session_thread.h: the thread in which the worker's session (worker/core/session.h) lives. It
 * holds the worker's page (life.h), polls the agent's socket, brings events to the session, and
 * carries out the session's actions or passes them on. No code of the training program runs in it,
 * so a heartbeat proves only that this process lives.
 *
 *     loop ──session_thread_say──► session ──► DO_SEND ──► agent
 *       ▲                             │ DO_CANCEL, DO_PERSISTED, DO_STORED ... ──► hooks, at once
 *       └──session_thread_next────────┘ DO_COMMIT, DO_ANSWER, DO_RESTORE, DO_ENTER, DO_RETURN
 *
 * "The loop" is the training loop: the thread that has called hvd_elastic_run.
 */
#ifndef WORKER_IO_SESSION_THREAD_H
#define WORKER_IO_SESSION_THREAD_H

#include "proto/page.h"
#include "worker/core/session.h"

struct session_thread;

/* Callbacks that the session's thread calls. A callback must not wait. */
struct session_hooks {
    /* cancels this round and all earlier rounds */
    void (*cancel)(void *arg, uint64_t round);
    /* begins to prepare a round; the event SESSION_PREPARED reports the end of the preparation */
    void (*prepare)(void *arg, const struct msg *prepare);
    /* closes the connections that were prepared for this round */
    void (*abandon)(void *arg, uint64_t round);
    /* a change of the membership is coming (true), or is no longer coming */
    void (*watch)(void *arg, bool coming);
    /* the requests for a checkpoint of a commit up to `commit` are done; `text` is valid during the
     * callback */
    void (*persisted)(void *arg, uint64_t commit, int code, const char *text);
    /* a call of hvd/store.h has got its answer, which is valid during the callback; NULL: the agent
     * is gone, and no call will get an answer */
    void (*stored)(void *arg, const struct msg_stored *stored);
    /* The watchdog: returns true when the training loop or a collective has made no progress for
     * the stall warning time; *ret_stalled then describes the stall. It is called about four times
     * within the stall warning time. */
    bool (*stalled)(void *arg, int64_t now_us, struct msg_stalled *ret_stalled);
    void *arg;
};

/* Starts the thread, which connects to the agent (`agent` is the name of its socket), says hello as
 * this incarnation, and waits for the welcome, which the caller releases. The hooks are copied.
 * Fails with HVD_E_LOST, HVD_E_DENIED, HVD_E_TIMEOUT, HVD_E_PROTO, HVD_E_NOMEM. */
int session_thread_start(const char *agent, uint64_t incarnation, const struct session_hooks *hooks,
                         struct session_thread **ret_thread, struct msg *ret_welcome,
                         struct hvd_err *err) MUST_CHECK;

/* Lets the thread run on this core only. HVD_E_INVAL: the process may not use that core. */
int session_thread_pin(struct session_thread *self, unsigned core, struct hvd_err *err) MUST_CHECK;

/* Returns the page that this worker shares with its agent; it is valid until
 * session_thread_free. */
struct page *session_thread_page(const struct session_thread *self);

/* Ends the thread. Before it ends, the thread tries for at most 5 s to send its unsent messages.
 * Events that come later are dropped. NULL is allowed. */
void session_thread_stop(struct session_thread *self);
/* Called after session_thread_stop, when no thread can pass an event any more. NULL is allowed. */
void session_thread_free(struct session_thread *self);

/* Notes that the training loop makes the check with this number, counted from 0 in its round.
 * Returns true if the loop must bring the check to the session (SESSION_CHECK). The call costs
 * one atomic store and one load. */
bool session_thread_counts(struct session_thread *thread, uint64_t check);

/* true: this round is cancelled: it is revoked, or the session has ended. */
bool session_thread_cancelled(const struct session_thread *self, uint64_t round);

/* Passes an event to the session. Any thread may make this call. The data that the event points to
 * is copied, except `ready`, which must live until the loop has received its next order. Does
 * nothing when the session has ended. */
void session_thread_say(struct session_thread *self, const struct session_event *event);

/* Waits for the loop's next order: DO_COMMIT, DO_ANSWER, DO_RESTORE, DO_ENTER or DO_RETURN. When
 * the session has ended, the order is DO_RETURN with HVD_E_LOST, or DO_ANSWER with HVD_E_LOST if
 * a check waits. */
struct loop_order {
    enum session_action_kind kind;
    int code;
    uint64_t round;
    uint64_t commit;
    struct place place;
    bool prepared;
    struct msg msg; /* DO_ENTER: the ROUND message; the receiver releases it */
};
void session_thread_next(struct session_thread *self, struct loop_order *ret_order);

/* Waits for `us` microseconds; HVD_E_REVOKED as soon as this round is cancelled. */
int session_thread_pause(struct session_thread *self, uint64_t round, int64_t us) MUST_CHECK;

/* ---- requests of the loop to the agent; each call waits for the answer ---- */
int session_thread_snapshot(struct session_thread *self, const struct msg_snapshot *snapshot,
                            int *ret_fd, struct hvd_err *err) MUST_CHECK;

/* Lets the agent of this host connect to the agents that have a commit (`sources`), before a fetch
 * needs them. HVD_E_LOST: the agent reaches none of them. The thread that connects the next round
 * calls it, not the training loop: when the loop sends a SNAPSHOT or a FETCH at the same time, the
 * call returns 0 at once. */
int session_thread_reach(struct session_thread *self, uint64_t round,
                         const struct msg_source_list *sources, struct hvd_err *err) MUST_CHECK;

/* Fetches a commit, for the round that is being entered: all fields of the FETCH but its number are
 * the caller's. If that round is cancelled, the fetch is stopped, and then the call returns
 * HVD_E_REVOKED. HVD_E_LOST: the agent is gone. Any other code is that of the agent's answer. 0:
 * the caller releases the answer, a FETCHED. */
int session_thread_fetch(struct session_thread *self, uint64_t round, const struct msg_fetch *what,
                         struct msg *ret_answer, struct hvd_err *err) MUST_CHECK;

#endif
