/*
 * mailbox.h: passes data between the session's thread and all other threads, in both directions,
 * under one lock: events for the session, orders for the training loop, and one request to the
 * agent with its answer.
 *
 * "Broken" means that the session's thread has ended: nothing is put in any more. A thread that
 * waits for orders gets those that are still in the mailbox, and then HVD_E_LOST.
 */
#ifndef WORKER_IO_MAILBOX_H
#define WORKER_IO_MAILBOX_H

#include "base/limits.h"
#include "base/vec.h"
#include "worker/io/session_thread.h"

#include <pthread.h>

/* An event that another thread has passed to the session, with copies of the data that it points
 * to. */
struct said {
    struct session_event event;
    char text[ERR_TEXT_MAX];
    struct msg_held held[LIMIT_COMMITS_HELD];
    struct msg_held_list held_list;
    struct msg_entered entered;
    struct msg msg; /* the message of a SESSION_STORE; the mailbox owns its memory */
};

struct said_list VEC(struct said);

struct mailbox {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int wake_fd; /* an eventfd that is readable when the session's thread has something to do */
    struct said_list said;
    struct VEC(struct loop_order) orders;
    /* a request that is not sent yet, in the memory of the thread that waits for the answer. NULL:
     * there is no request, or it was sent */
    const struct msg *request;
    bool asking; /* true: a thread waits for the answer to its request */
    /* how many requests of the training loop are being made or wait for their turn */
    unsigned urgent;
    enum msg_type awaits; /* the type of the expected answer; a FETCHED must also have the number
                             awaits_number */
    uint64_t awaits_number;
    struct msg answer; /* the answer to the request; type 0: there is no answer yet */
    int answer_fd;     /* the descriptor that came with the answer; -1: none */
    /* true: the session's thread must end, because mailbox_close was called or an event was lost */
    bool closing;
    bool broken; /* true: the session's thread has ended or is about to end */
    /* the number of a round: that round and all earlier rounds are cancelled */
    _Atomic uint64_t cancelled;
};

int mailbox_init(struct mailbox *mailbox) MUST_CHECK;
void mailbox_release(struct mailbox *mailbox);

/* ---- called by the session's thread ---- */

/* Takes all events, by swapping the list with *ret_said, which must be empty. Also returns the
 * request that is to be sent (NULL: there is none), and whether the thread must end. */
void mailbox_take(struct mailbox *mailbox, struct said_list *ret_said,
                  const struct msg **ret_request, bool *ret_closing);
/* tells the sender of the request that the session's thread does not read the request any more */
void mailbox_sent(struct mailbox *mailbox);

/* Puts in an order for the training loop. On success the mailbox owns the msg in the order. */
int mailbox_order(struct mailbox *mailbox, const struct loop_order *order) MUST_CHECK;
/* puts in the answer to the request; the mailbox takes the msg, and owns or closes the fd */
void mailbox_answer(struct mailbox *mailbox, struct msg *answer, int fd);
void mailbox_cancel(struct mailbox *mailbox, uint64_t round);
/* called when the session's thread ends: no request is sent any more, and threads that wait
 * return */
void mailbox_break(struct mailbox *mailbox);

/* ---- called by other threads ---- */

void mailbox_say(struct mailbox *mailbox, const struct session_event *event);
/* waits for the next order; DO_RETURN with HVD_E_LOST if the session's thread has ended and no
 * order is left */
void mailbox_next(struct mailbox *mailbox, struct loop_order *ret_order);
/* lets the session's thread end */
void mailbox_close(struct mailbox *mailbox);

/* Waits until the time until_us (of clock_now_us) and returns 0. HVD_E_REVOKED as soon as the
 * round is cancelled. */
int mailbox_pause(struct mailbox *mailbox, uint64_t round, int64_t until_us) MUST_CHECK;

/* Sends a SNAPSHOT or FETCH request to the agent and waits for the answer. HVD_E_REVOKED as soon
 * as the round `round` is cancelled (round 0: no round cancels the wait); HVD_E_LOST: the agent
 * is gone. The caller releases the answer and closes the descriptor. */
int mailbox_ask(struct mailbox *mailbox, const struct msg *request, uint64_t round,
                struct msg *ret_answer, int *ret_fd) MUST_CHECK;

/* Sends a request as mailbox_ask does, for a thread other than the training loop. The training loop
 * comes first: when it has a request for the agent, this one ends with HVD_E_REVOKED. */
int mailbox_ask_aside(struct mailbox *mailbox, const struct msg *request, uint64_t round,
                      struct msg *ret_answer, int *ret_fd) MUST_CHECK;

#endif
