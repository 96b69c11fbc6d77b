#include "worker/io/mailbox.h"

#include "base/mem.h"
#include "base/panic.h"
#include "os/thread.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* A loop says a handful of things before it waits; beyond that something runs in circles. */
#define SAID_MAX   1024
#define ORDERS_MAX 1024

static void lock(struct mailbox *mailbox)
{
    pthread_mutex_lock(&mailbox->lock);
}

static void unlock(struct mailbox *mailbox)
{
    pthread_mutex_unlock(&mailbox->lock);
}

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
    VEC_RELEASE(&mailbox->orders);
    VEC_RELEASE(&mailbox->said);
    forget_answer(mailbox);
    close(mailbox->wake_fd);
    pthread_cond_destroy(&mailbox->changed);
    pthread_mutex_destroy(&mailbox->lock);
}

static void wake_thread(struct mailbox *mailbox)
{
    const uint64_t one = 1;

    while (write(mailbox->wake_fd, &one, sizeof(one)) < 0 && errno == EINTR) {
    }
}

/* ---- by the session's thread ----------------------------------------------------------------- */

void mailbox_take(struct mailbox *mailbox, struct said_list *ret_said,
                  const struct msg **ret_request, bool *ret_closing)
{
    struct said_list empty = *ret_said;
    uint64_t count;

    ASSERT(empty.count == 0);
    (void)!read(mailbox->wake_fd, &count, sizeof(count));
    lock(mailbox);
    *ret_said = mailbox->said;
    mailbox->said = empty;
    *ret_request = mailbox->request;
    *ret_closing = mailbox->closing;
    unlock(mailbox);
}

void mailbox_sent(struct mailbox *mailbox)
{
    lock(mailbox);
    mailbox->request = NULL;
    pthread_cond_broadcast(&mailbox->changed);
    unlock(mailbox);
}

int mailbox_order(struct mailbox *mailbox, const struct loop_order *order)
{
    int rc;

    lock(mailbox);
    rc = VEC_RESERVE(&mailbox->orders, 1, ORDERS_MAX);
    if (!rc)
        mailbox->orders.items[mailbox->orders.count++] = *order;
    pthread_cond_broadcast(&mailbox->changed);
    unlock(mailbox);
    return rc;
}

void mailbox_answer(struct mailbox *mailbox, struct msg *answer, int fd)
{
    lock(mailbox);
    forget_answer(mailbox);
    mailbox->answer = *answer;
    mailbox->answer_fd = fd;
    memset(answer, 0, sizeof(*answer));
    pthread_cond_broadcast(&mailbox->changed);
    unlock(mailbox);
}

void mailbox_cancel(struct mailbox *mailbox, uint64_t round)
{
    lock(mailbox);
    if (round > atomic_load(&mailbox->cancelled))
        atomic_store(&mailbox->cancelled, round);
    pthread_cond_broadcast(&mailbox->changed);
    unlock(mailbox);
}

void mailbox_break(struct mailbox *mailbox)
{
    lock(mailbox);
    mailbox->broken = true;
    mailbox->request = NULL;
    pthread_cond_broadcast(&mailbox->changed);
    unlock(mailbox);
}

/* ---- by the others --------------------------------------------------------------------------- */

static void copy_event(struct said *said, const struct session_event *event)
{
    said->event = *event;
    ASSERT(!event->msg && !event->stalled);
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

void mailbox_say(struct mailbox *mailbox, const struct session_event *event)
{
    lock(mailbox);
    if (!mailbox->broken && !mailbox->closing) { /* what follows a lost event makes no sense */
        if (VEC_RESERVE(&mailbox->said, 1, SAID_MAX))
            mailbox->closing = true; /* a session that misses an event is no session */
        else
            copy_event(&mailbox->said.items[mailbox->said.count++], event);
        wake_thread(mailbox);
    }
    unlock(mailbox);
}

void mailbox_next(struct mailbox *mailbox, struct loop_order *ret_order)
{
    lock(mailbox);
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
    unlock(mailbox);
}

void mailbox_close(struct mailbox *mailbox)
{
    lock(mailbox);
    mailbox->closing = true;
    wake_thread(mailbox);
    unlock(mailbox);
}

static bool is_cancelled(struct mailbox *mailbox, uint64_t round)
{
    return round && round <= atomic_load(&mailbox->cancelled);
}

int mailbox_pause(struct mailbox *mailbox, uint64_t round, int64_t until_us)
{
    bool cancelled;
    bool late = false;

    lock(mailbox);
    while (!(cancelled = mailbox->broken || is_cancelled(mailbox, round)) && !late)
        late = thread_cond_wait(&mailbox->changed, &mailbox->lock, until_us);
    unlock(mailbox);
    return cancelled ? HVD_E_REVOKED : 0;
}

static bool is_answer(const struct msg *answer, const struct msg *request)
{
    if (request->type == MSG_SNAPSHOT)
        return answer->type == MSG_GRANTED;
    return answer->type == MSG_FETCHED && answer->u.fetched.number == request->u.fetch.number;
}

/* Until the answer is there; the request is borrowed by the other thread until it is sent. */
static int wait_for_answer(struct mailbox *mailbox, const struct msg *request, uint64_t round)
{
    for (;;) {
        if (mailbox->broken) /* then the other thread does not look at the request any more */
            return HVD_E_LOST;
        if (!mailbox->request && is_answer(&mailbox->answer, request))
            return 0;
        if (!mailbox->request && is_cancelled(mailbox, round))
            return HVD_E_REVOKED;
        if (!mailbox->request && atomic_load(&mailbox->cancelled) == UINT64_MAX)
            return HVD_E_LOST;
        pthread_cond_wait(&mailbox->changed, &mailbox->lock);
    }
}

int mailbox_ask(struct mailbox *mailbox, const struct msg *request, uint64_t round,
                struct msg *ret_answer, int *ret_fd)
{
    int rc;

    ASSERT(request);
    lock(mailbox);
    forget_answer(mailbox);
    mailbox->request = mailbox->broken ? NULL : request;
    wake_thread(mailbox);
    rc = wait_for_answer(mailbox, request, round);
    if (!rc) {
        *ret_answer = mailbox->answer;
        *ret_fd = mailbox->answer_fd;
        memset(&mailbox->answer, 0, sizeof(mailbox->answer));
        mailbox->answer_fd = -1;
    }
    unlock(mailbox);
    return rc;
}
