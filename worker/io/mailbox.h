/*
 * mailbox.h: what passes between the session's thread and all others, in both directions, under one
 * lock: events for the session, orders for the loop, one request to the agent with its answer.
 *
 * Broken means that the session is no more: nothing is put in any more, and whoever waits for
 * something gets HVD_E_LOST, or the orders that were there.
 */
#ifndef WORKER_IO_MAILBOX_H
#define WORKER_IO_MAILBOX_H

#include "base/limits.h"
#include "base/vec.h"
#include "worker/io/session_thread.h"

#include <pthread.h>

/* An event, with copies of what it points to. */
struct said {
    struct session_event event;
    char text[ERR_TEXT_MAX];
    struct msg_held held[LIMIT_COMMITS_HELD];
    struct msg_held_list held_list;
    struct msg_entered entered;
};

struct said_list VEC(struct said);

struct mailbox {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int wake_fd; /* readable when the session's thread has something to do */
    struct said_list said;
    struct VEC(struct loop_order) orders;
    const struct msg *request;  /* of the loop, which waits and owns it; NULL once it is sent */
    struct msg answer;          /* its type is 0: none */
    int answer_fd;              /* that came beside it; -1 */
    bool closing;               /* the thread is to end, as it is told so or an event was lost */
    bool broken;                /* it has ended, or is about to */
    _Atomic uint64_t cancelled; /* this round and all before it */
};

int mailbox_init(struct mailbox *mailbox) MUST_CHECK;
void mailbox_release(struct mailbox *mailbox);

/* ---- by the session's thread ----------------------------------------------------------------- */

/* Takes what has been said into ret_said (swapped: give it back the next time, emptied), and the
 * request, if one is to be sent. */
void mailbox_take(struct mailbox *mailbox, struct said_list *ret_said,
                  const struct msg **ret_request, bool *ret_closing);
void mailbox_sent(struct mailbox *mailbox); /* the request is out, and not looked at again */

/* The msg in the order is given. */
int mailbox_order(struct mailbox *mailbox, const struct loop_order *order) MUST_CHECK;
void mailbox_answer(struct mailbox *mailbox, struct msg *answer, int fd); /* both are given */
void mailbox_cancel(struct mailbox *mailbox, uint64_t round);
void mailbox_break(struct mailbox *mailbox);

/* ---- by the others --------------------------------------------------------------------------- */

void mailbox_say(struct mailbox *mailbox, const struct session_event *event);
void mailbox_next(struct mailbox *mailbox, struct loop_order *ret_order); /* waits */
void mailbox_close(struct mailbox *mailbox);

/* Until then (by clock_now_us), or until the round is cancelled: HVD_E_REVOKED. */
int mailbox_pause(struct mailbox *mailbox, uint64_t round, int64_t until_us) MUST_CHECK;

/* Sends a SNAPSHOT or FETCH and waits for its answer, passing over those to earlier ones, or until
 * `round` is cancelled (0: never): HVD_E_REVOKED. The answer is given; a descriptor too.
 * HVD_E_LOST. */
int mailbox_ask(struct mailbox *mailbox, const struct msg *request, uint64_t round,
                struct msg *ret_answer, int *ret_fd) MUST_CHECK;

#endif
