/*
 * session_thread.h: the thread in which the worker's session lives (worker/core/session.h): it
 * holds the life of the page, polls the agent's socket, brings events to the session, and carries
 * out or passes on what that decides. No training code ever runs in it, so a beat proves only that
 * this process is there.
 *
 *     loop ──session_thread_say──► session ──► DO_SEND ──► agent
 *       ▲                             │ DO_CANCEL, DO_PREPARE, DO_ABANDON ──► hooks, at once
 *       └──session_thread_next────────┘ DO_COMMIT, DO_ANSWER, DO_RESTORE, DO_ENTER, DO_RETURN
 */
#ifndef WORKER_IO_SESSION_THREAD_H
#define WORKER_IO_SESSION_THREAD_H

#include "worker/core/session.h"

struct session_thread;

/* Called by the session's thread; none of them may wait. */
struct session_hooks {
    void (*cancel)(void *arg, uint64_t round);             /* this and all before it */
    void (*prepare)(void *arg, const struct msg *prepare); /* to be answered by PREPARED */
    void (*abandon)(void *arg, uint64_t round);
    /* Has anything stood still for so long that it is to be said? Then true, and what. Asked about
     * four times in each stall warning time. */
    bool (*stalled)(void *arg, int64_t now_us, struct msg_stalled *ret_stalled);
    void *arg;
};

/* Says hello as this incarnation and waits for the welcome, which is copied: release it.
 * HVD_E_LOST, HVD_E_DENIED, HVD_E_TIMEOUT, HVD_E_PROTO, HVD_E_NOMEM. The hooks are copied. */
int session_thread_start(const char *agent, uint64_t incarnation, const struct session_hooks *hooks,
                         struct session_thread **ret_thread, struct msg *ret_welcome,
                         struct hvd_err *err) MUST_CHECK;

/* Sends what is unsent (for 5 s at most), and ends the thread: what is said to it from here on is
 * heard by nobody. NULL is fine, for both. */
void session_thread_stop(struct session_thread *self);
void session_thread_free(struct session_thread *self); /* after that, and after all who may say */

/* The loop has come to this check of its round. True: it must be brought to the session. A store
 * and a load. */
bool session_thread_counts(struct session_thread *thread, uint64_t check);

/* Is this round cancelled? */
bool session_thread_cancelled(const struct session_thread *self, uint64_t round);

/* An event for the session; any thread. What it points to is copied, but for `ready`, which must
 * stay until the next order has come. When the session is no more, nothing happens. */
void session_thread_say(struct session_thread *self, const struct session_event *event);

/* The loop's next order: DO_COMMIT, DO_ANSWER, DO_RESTORE, DO_ENTER or DO_RETURN. Waits for it. A
 * session that is no more says DO_RETURN, or DO_ANSWER to a check, of HVD_E_LOST. */
struct loop_order {
    enum session_action_kind kind;
    int code;
    uint64_t round;
    uint64_t commit;
    struct place place;
    bool prepared;
    struct msg msg; /* DO_ENTER: its ROUND, to be released */
};
void session_thread_next(struct session_thread *self, struct loop_order *ret_order);

/* Waits for so long; HVD_E_REVOKED as soon as this round is cancelled. */
int session_thread_pause(struct session_thread *self, uint64_t round, int64_t us) MUST_CHECK;

/* What the agent is asked for, by the loop. Each waits for the answer. */
int session_thread_snapshot(struct session_thread *self, const struct msg_snapshot *snapshot,
                            int *ret_fd, struct hvd_err *err) MUST_CHECK;

/* commit, from these sources, for the round that is being entered. When that is cancelled the fetch
 * is ended first: HVD_E_REVOKED. ret_fetched has no text. */
int session_thread_fetch(struct session_thread *self, uint64_t round, uint64_t commit,
                         const struct msg_source_list *sources, struct msg_fetched *ret_fetched,
                         struct hvd_err *err) MUST_CHECK;

#endif
