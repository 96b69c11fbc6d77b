/*
 * mailbox.c: the exchange between the session's thread and all other threads of this process, under
 * one lock: events for the session, orders for the training loop, requests to the agent and their
 * answers.
 *
 * session_thread.c is the only file that calls it, for both sides. Invariant: the mailbox copies
 * what is put in, so no thread keeps a pointer into another thread's stack. Only a request to the
 * agent is not copied: its sender waits until it is sent.
 */
#include "worker/io/mailbox.h"

#include "base/panic.h"
#include "os/thread.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* The most events, and the most orders, that may wait in the mailbox. The training loop puts in a
 * handful of events before it waits for an order; more than this is a bug. */
#define SAID_MAX   1024
#define ORDERS_MAX 1024

int mailbox_init(struct mailbox *mailbox)
{
    *mailbox = (struct mailbox){ .answer_fd = -1 };
    mailbox->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (mailbox->wake_fd < 0)
        return errno == EMFILE || errno == ENFILE ? HVD_E_LIMIT : HVD_E_NOMEM;
    if (thread_cond_init(&mailbox->changed)) {
        close(mailbox->wake_fd);
        return HVD_E_NOMEM;
    }
    pthread_mutex_init(&mailbox->lock, NULL);
    return 0;
}

static void forget_answer(struct mailbox *mailbox)
{
    msg_release(&mailbox->answer);
    memset(&mailbox->answer, 0, sizeof(mailbox->answer));
    if (mailbox->answer_fd >= 0)
        close(mailbox->answer_fd);
    mailbox->answer_fd = -1;
}

void mailbox_release(struct mailbox *mailbox)
{
    for (size_t i = 0; i < mailbox->orders.count; i++)
        msg_release(&mailbox->orders.items[i].msg);
    for (size_t i = 0; i < mailbox->said.count; i++)
        msg_release(&mailbox->said.items[i].msg);
    VEC_RELEASE(&mailbox->orders);
    VEC_RELEASE(&mailbox->said);
    forget_answer(mailbox);
    close(mailbox->wake_fd);
    pthread_cond_destroy(&mailbox->changed);
    pthread_mutex_destroy(&mailbox->lock);
}

/* Wakes the session's thread, which polls this eventfd. */
static void wake_thread(struct mailbox *mailbox)
{
    const uint64_t one = 1;

    while (write(mailbox->wake_fd, &one, sizeof(one)) < 0 && errno == EINTR) {
    }
}

/* ---- called by the session's thread ---------------------------------------------------------- */

/* Takes all events out of the mailbox. *ret_said must be an empty list: the two lists change
 * places, so that their memory is used again. Also returns the request that is not sent yet (NULL:
 * none), and whether the session's thread must end. */
void mailbox_take(struct mailbox *mailbox, struct said_list *ret_said,
                  const struct msg **ret_request, bool *ret_closing)
{
    struct said_list empty = *ret_said;
    uint64_t count;

    ASSERT(empty.count == 0);
    (void)!read(mailbox->wake_fd, &count, sizeof(count)); /* makes the eventfd unreadable again */
    pthread_mutex_lock(&mailbox->lock);
    *ret_said = mailbox->said;
    mailbox->said = empty;
    *ret_request = mailbox->request;
    *ret_closing = mailbox->closing;
    pthread_mutex_unlock(&mailbox->lock);
}

/* Called by the session's thread when it has sent the request: the thread that waits for the answer
 * may use the memory of the request again. */
void mailbox_sent(struct mailbox *mailbox)
{
    pthread_mutex_lock(&mailbox->lock);
    mailbox->request = NULL;
    pthread_cond_broadcast(&mailbox->changed);
    pthread_mutex_unlock(&mailbox->lock);
}

/* Puts an order for the training loop at the end of the queue, and wakes the loop. */
int mailbox_order(struct mailbox *mailbox, const struct loop_order *order)
{
    int rc;

    pthread_mutex_lock(&mailbox->lock);
    rc = VEC_RESERVE(&mailbox->orders, 1, ORDERS_MAX);
    if (!rc)
        mailbox->orders.items[mailbox->orders.count++] = *order;
    pthread_cond_broadcast(&mailbox->changed);
    pthread_mutex_unlock(&mailbox->lock);
    return rc;
}

/* Gives the agent's answer to the thread that waits for it. An answer that no thread waits for is
 * dropped: its request was given up. fd is the descriptor that came with the answer; -1: none. */
void mailbox_answer(struct mailbox *mailbox, struct msg *answer, int fd)
{
    pthread_mutex_lock(&mailbox->lock);
    if (mailbox->asking && answer->type == mailbox->awaits &&
        (answer->type != MSG_FETCHED || answer->u.fetched.number == mailbox->awaits_number)) {
        forget_answer(mailbox);
        mailbox->answer = *answer;
        mailbox->answer_fd = fd;
        memset(answer, 0, sizeof(*answer)); /* the mailbox owns the message now */
        pthread_cond_broadcast(&mailbox->changed);
    } else if (fd >= 0) {
        close(fd);
    }
    pthread_mutex_unlock(&mailbox->lock);
}

/* Notes that this round and all earlier ones are cancelled, and wakes the threads that wait for
 * such a round. round UINT64_MAX: the agent is gone, so no answer will come any more. */
void mailbox_cancel(struct mailbox *mailbox, uint64_t round)
{
    pthread_mutex_lock(&mailbox->lock);
    if (round > atomic_load(&mailbox->cancelled))
        atomic_store(&mailbox->cancelled, round);
    pthread_cond_broadcast(&mailbox->changed);
    pthread_mutex_unlock(&mailbox->lock);
}

/* Called when the session's thread ends. From then on no request is sent to the agent, and the
 * threads that wait for an answer return. */
void mailbox_break(struct mailbox *mailbox)
{
    pthread_mutex_lock(&mailbox->lock);
    mailbox->broken = true;
    mailbox->request = NULL;
    pthread_cond_broadcast(&mailbox->changed);
    pthread_mutex_unlock(&mailbox->lock);
}

/* ---- called by other threads ----------------------------------------------------------------- */

/* Puts an event in for the session's thread, with copies of all data to which the event points.
 * Only the message `ready` is not copied: its sender does not change it until the loop gets an
 * order. */
void mailbox_say(struct mailbox *mailbox, const struct session_event *event)
{
    struct msg copy = { .type = 0 };
    struct said *said;

    ASSERT(!event->stalled && (!event->msg || event->kind == SESSION_STORE));
    pthread_mutex_lock(&mailbox->lock);
    /* the thread of the session has ended, or must end: the event would change nothing */
    if (mailbox->broken || mailbox->closing) {
        pthread_mutex_unlock(&mailbox->lock);
        return;
    }
    if ((event->msg && msg_copy(event->msg, &copy)) || VEC_RESERVE(&mailbox->said, 1, SAID_MAX)) {
        msg_release(&copy);
        /* a session that has missed an event cannot go on: its thread must end */
        mailbox->closing = true;
    } else {
        said = &mailbox->said.items[mailbox->said.count++];
        said->event = *event;
        said->msg = copy;
        if (event->text)
            snprintf(said->text, sizeof(said->text), "%s", event->text);
        if (event->held) {
            ASSERT(event->held->count <= ARRAY_SIZE(said->held));
            said->held_list.count = event->held->count;
            for (size_t i = 0; i < event->held->count; i++)
                said->held[i] = event->held->items[i];
        }
        if (event->entered)
            said->entered = *event->entered;
    }
    wake_thread(mailbox);
    pthread_mutex_unlock(&mailbox->lock);
}

/* Waits for the next order for the training loop. When the session's thread has ended (`broken`),
 * the loop still gets the orders that are there, and then DO_RETURN. */
void mailbox_next(struct mailbox *mailbox, struct loop_order *ret_order)
{
    pthread_mutex_lock(&mailbox->lock);
    while (!mailbox->orders.count && !mailbox->broken)
        pthread_cond_wait(&mailbox->changed, &mailbox->lock);
    if (mailbox->orders.count) {
        *ret_order = mailbox->orders.items[0];
        mailbox->orders.count--;
        memmove(mailbox->orders.items, mailbox->orders.items + 1,
                mailbox->orders.count * sizeof(*mailbox->orders.items));
    } else {
        *ret_order = (struct loop_order){ .kind = DO_RETURN, .code = HVD_E_LOST };
    }
    pthread_mutex_unlock(&mailbox->lock);
}

/* Called by a thread of the program: lets the session's thread end. */
void mailbox_close(struct mailbox *mailbox)
{
    pthread_mutex_lock(&mailbox->lock);
    mailbox->closing = true;
    wake_thread(mailbox);
    pthread_mutex_unlock(&mailbox->lock);
}

/* true: this round was cancelled; round 0 never is. */
static bool is_cancelled(struct mailbox *mailbox, uint64_t round)
{
    return round && round <= atomic_load(&mailbox->cancelled);
}

/* Waits until the time until_us and returns 0. HVD_E_REVOKED: the round was cancelled, or the
 * session's thread has ended. */
int mailbox_pause(struct mailbox *mailbox, uint64_t round, int64_t until_us)
{
    bool cancelled;
    bool late = false;

    pthread_mutex_lock(&mailbox->lock);
    while (!(cancelled = mailbox->broken || is_cancelled(mailbox, round)) && !late)
        late = thread_cond_wait(&mailbox->changed, &mailbox->lock, until_us);
    pthread_mutex_unlock(&mailbox->lock);
    return cancelled ? HVD_E_REVOKED : 0;
}

/* Sends a request to the agent and waits for the answer. A request of the training loop (aside is
 * false) waits until an earlier request is done. A request of another thread (aside is true) is
 * less urgent: it ends with HVD_E_REVOKED when the training loop has a request. Both end with
 * HVD_E_REVOKED when `round` is cancelled (round 0: no cancelled round ends the wait), and with
 * HVD_E_LOST when the agent or the session's thread is gone. */
static int ask(struct mailbox *mailbox, const struct msg *request, uint64_t round, bool aside,
               struct msg *ret_answer, int *ret_fd)
{
    int rc = 0;

    ASSERT(request);
    pthread_mutex_lock(&mailbox->lock);
    mailbox->urgent += !aside;
    /* a thread that asks aside may be waiting: it wakes up, and ends its request for this one */
    pthread_cond_broadcast(&mailbox->changed);
    while (!aside && mailbox->asking)
        pthread_cond_wait(&mailbox->changed, &mailbox->lock);
    if (aside && (mailbox->asking || mailbox->urgent)) {
        pthread_mutex_unlock(&mailbox->lock);
        return HVD_E_REVOKED;
    }
    mailbox->asking = true;
    mailbox->awaits = request->type == MSG_SNAPSHOT ? MSG_GRANTED : MSG_FETCHED;
    mailbox->awaits_number = request->type == MSG_SNAPSHOT ? 0 : request->u.fetch.number;
    forget_answer(mailbox);
    mailbox->request = mailbox->broken ? NULL : request;
    wake_thread(mailbox);
    /* The session's thread borrows the request until it is sent: until then this thread waits,
     * even if the round is cancelled. A broken mailbox: the session's thread does not read the
     * request any more. */
    while (!rc && (mailbox->broken || mailbox->request || !mailbox->answer.type)) {
        if (!mailbox->broken && !mailbox->request &&
            (is_cancelled(mailbox, round) || (aside && mailbox->urgent)))
            rc = HVD_E_REVOKED;
        else if (mailbox->broken ||
                 (!mailbox->request && atomic_load(&mailbox->cancelled) == UINT64_MAX))
            rc = HVD_E_LOST;
        else
            pthread_cond_wait(&mailbox->changed, &mailbox->lock);
    }
    if (!rc) {
        *ret_answer = mailbox->answer;
        *ret_fd = mailbox->answer_fd;
        memset(&mailbox->answer, 0, sizeof(mailbox->answer));
        mailbox->answer_fd = -1;
    }
    mailbox->asking = false;
    mailbox->urgent -= !aside;
    pthread_cond_broadcast(&mailbox->changed);
    pthread_mutex_unlock(&mailbox->lock);
    return rc;
}

int mailbox_ask(struct mailbox *mailbox, const struct msg *request, uint64_t round,
                struct msg *ret_answer, int *ret_fd)
{
    return ask(mailbox, request, round, false /* the training loop asks */, ret_answer, ret_fd);
}

int mailbox_ask_aside(struct mailbox *mailbox, const struct msg *request, uint64_t round,
                      struct msg *ret_answer, int *ret_fd)
{
    return ask(mailbox, request, round, true /* another thread asks */, ret_answer, ret_fd);
}
