/*
 * session_thread.c: the thread in which the session of this worker lives: one loop over the agent's
 * socket, the mailbox and the time.
 *
 * worker.c starts and stops it; the training loop talks to it through the mailbox. Invariant: this
 * thread waits only in poll, and no code of the program runs in it. So its heartbeats prove that
 * the process lives, and a REVOKE ends collectives at once, also when the training loop hangs.
 */
#include "worker/io/session_thread.h"

#include "base/mem.h"
#include "base/time.h"
#include "os/clock.h"
#include "os/thread.h"
#include "worker/io/greeting.h"
#include "worker/io/life.h"
#include "worker/io/mailbox.h"

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#define STARTING 1 /* `started` until the thread has greeted the agent, or has failed */

/* how long the thread tries to send unsent messages before it ends */
#define FLUSH_US (5 * TIME_S)

struct session_thread {
    pthread_t thread;
    struct session_hooks hooks;
    struct mailbox mailbox;
    /* true: the training loop brings each of its checks to the session: after DO_WATCH, while this
     * thread handles a PENDING, and when the session has ended */
    _Atomic bool watched;
    _Atomic uint64_t checks; /* number of checks of the round that the training loop has come to */

    /* memory of the thread that starts this one; valid only while `started` is STARTING */
    const char *agent;
    struct msg *ret_welcome;
    struct hvd_err *err;
    /* STARTING; 0: the thread has started; an error code: the start has failed */
    _Atomic int started;

    /* used by the session's thread alone */
    uint64_t incarnation;
    bool watch; /* the last DO_WATCH; `watched` has this value while no PENDING is being handled */
    struct agent_link link;
    struct page *page;
    struct session *session;
    struct session_action_list list;
    int64_t watchdog_every_us; /* how often the watchdog is asked; TIME_NEVER: not at all */
    int64_t watchdog_us;       /* when the watchdog is asked next */

    /* number of FETCH requests that were made; the training loop and the connecting thread count
     * it */
    _Atomic uint64_t fetches;
};

/* Takes one step of the session with this event, and carries out the resulting actions: messages
 * and hooks here, all others as orders for the training loop. A code other than 0: the session
 * cannot go on, and the thread must end. */
static int step_session(struct session_thread *self, struct session_event *event)
{
    const struct session_hooks *hooks = &self->hooks;
    int rc;

    event->now_us = clock_now_us();
    session_action_list_clear(&self->list);
    rc = session_step(self->session, event, &self->list);
    for (size_t i = 0; !rc && i < self->list.count; i++) {
        const struct session_action *action = &self->list.items[i];
        struct loop_order order = {
            .kind = action->kind,
            .code = action->code,
            .round = action->round,
            .commit = action->commit,
            .place = action->place,
            .prepared = action->yes,
        };

        switch (action->kind) {
        case DO_SEND:
            rc = agent_link_send(&self->link, action->msg, NULL);
            /* the agent is gone: hear_agent will find the end of the stream, and tell the
             * session */
            rc = rc == HVD_E_LOST ? 0 : rc;
            continue;
        case DO_WATCH:
            atomic_store(&self->watched, self->watch = action->yes);
            hooks->watch(hooks->arg, action->yes);
            continue;
        case DO_PREPARE: hooks->prepare(hooks->arg, action->msg); continue;
        case DO_ABANDON: hooks->abandon(hooks->arg, action->round); continue;
        case DO_PERSISTED:
            hooks->persisted(hooks->arg, action->commit, action->code, action->text);
            continue;
        case DO_STORED: hooks->stored(hooks->arg, &action->msg->u.stored); continue;
        case DO_CANCEL:
            /* First the round is noted as cancelled, then the hook ends the collectives with
             * HVD_E_REVOKED: train may return that code at once, and close_train then asks whether
             * the round was cancelled. */
            mailbox_cancel(&self->mailbox, action->round);
            hooks->cancel(hooks->arg, action->round);
            continue;
        case DO_ENTER: /* the training loop is outside train and makes no check */
            rc = msg_copy(action->msg, &order.msg);
            if (rc)
                continue;
            atomic_store(&self->checks, 0);
            break;
        case DO_COMMIT:
        case DO_ANSWER:
        case DO_RESTORE:
        case DO_RETURN: break;
        case DO_COUNT:
            PANIC("the thread of the session has got an action of kind %d", (int)action->kind);
        }
        rc = mailbox_order(&self->mailbox, &order);
        if (rc)
            msg_release(&order.msg);
    }
    return rc;
}

/* ---- one iteration of the thread ------------------------------------------------------------- */

/* Handles everything that the agent has sent by now. GRANTED and FETCHED are for the thread that
 * has sent the request, all other messages are for the session. A code other than 0: the session
 * cannot go on. */
static int hear_agent(struct session_thread *self)
{
    struct session_event event;
    struct hvd_err err;
    struct msg msg;
    int rc;

    for (;;) {
        memset(&msg, 0, sizeof(msg));
        rc = agent_link_receive(&self->link, &msg, &err);
        if (rc == 0)
            return 0;
        if (rc < 0) { /* the agent is gone, so no answer will come */
            event = (struct session_event){ .kind = SESSION_CLOSED };
            agent_link_cut(&self->link);
            mailbox_cancel(&self->mailbox, UINT64_MAX);
            self->hooks.stored(self->hooks.arg, NULL);
            return step_session(self, &event);
        }
        rc = 0;
        event = (struct session_event){ .kind = SESSION_MSG, .msg = &msg };
        if (msg.type == MSG_GRANTED || msg.type == MSG_FETCHED) {
            /* an answer for another worker is dropped */
            if (msg.incarnation == self->incarnation)
                mailbox_answer(&self->mailbox, &msg,
                               msg.type == MSG_GRANTED ? agent_link_take_fd(&self->link) : -1);
        } else if (msg.type == MSG_PENDING) {
            /* PENDING needs the number of the loop's next check. Two threads meet here without a
             * lock: this one sets `watched` and then reads the number of checks; the training loop
             * counts its check and then reads `watched`. So a check that is not in the number that
             * this thread reads is brought to the session by the loop; a check may also be both
             * counted and brought. */
            atomic_store(&self->watched, true);
            event.counted = true;
            event.check = atomic_load(&self->checks);
            rc = step_session(self, &event);
            atomic_store(&self->watched, self->watch);
        } else {
            rc = step_session(self, &event);
        }
        msg_release(&msg);
        if (rc)
            return rc;
    }
}

/* Handles everything that other threads have put into the mailbox: events, and one request to the
 * agent. `said`: a list that is empty before and after the call; its memory is used again. A code
 * other than 0: the session cannot go on. */
static int hear_mailbox(struct session_thread *self, struct said_list *said, bool *ret_closing)
{
    const struct msg *request;
    int rc = 0;

    mailbox_take(&self->mailbox, said, &request, ret_closing);
    for (size_t i = 0; i < said->count; i++) {
        struct said *one = &said->items[i];
        struct session_event event = one->event;

        /* The pointers of the event point to data of its sender: the copies in the mailbox are
         * used. */
        if (event.text)
            event.text = one->text;
        if (event.held) {
            one->held_list.items = one->held;
            event.held = &one->held_list;
        }
        if (event.entered)
            event.entered = &one->entered;
        if (event.msg)
            event.msg = &one->msg;
        if (!rc)
            rc = step_session(self, &event);
        msg_release(&one->msg);
    }
    said->count = 0;
    if (!rc && request) {
        struct msg sent = *request;
        struct hvd_err err;

        sent.incarnation = self->incarnation;
        rc = agent_link_send(&self->link, &sent, &err);
        mailbox_sent(&self->mailbox);
        /* the agent is gone: hear_agent will find the end of the stream, and tell the session */
        rc = rc == HVD_E_LOST ? 0 : rc;
    }
    return rc;
}

/* Runs the session until mailbox_close was called, or a step had no memory. */
static void serve_session(struct session_thread *self)
{
    struct said_list said = { NULL, 0, 0 };
    bool closing = false;
    struct hvd_err err;
    int64_t deadline_us;
    int64_t now_us;
    int rc = 0;

    /* the wait comes last, because messages may have come already, with WELCOME_WORKER */
    while (!rc && !closing) {
        if (self->link.fd >= 0) {
            /* When the agent reads no more, sending fails; but the agent may have sent a last
             * message before, which must still be handled. */
            rc = agent_link_flush(&self->link, &err);
            if (!rc || rc == HVD_E_LOST)
                rc = hear_agent(self);
        }
        if (!rc)
            rc = hear_mailbox(self, &said, &closing);
        if (!rc && session_deadline(self->session) <= clock_now_us()) {
            struct session_event timer = { .kind = SESSION_TIMER };

            rc = step_session(self, &timer);
        }
        /* The watchdog of this worker says whether the training loop or a collective makes no
         * progress. */
        now_us = clock_now_us();
        if (!rc && now_us >= self->watchdog_us) {
            struct msg_stalled stalled = { 0 };
            struct session_event stuck = { .kind = SESSION_STUCK, .stalled = &stalled };

            self->watchdog_us = time_add(now_us, self->watchdog_every_us);
            if (self->hooks.stalled(self->hooks.arg, now_us, &stalled))
                rc = step_session(self, &stuck);
        }
        if (!rc && !closing) {
            deadline_us = session_deadline(self->session);
            greeting_wait(&self->link, self->mailbox.wake_fd,
                          deadline_us < self->watchdog_us ? deadline_us : self->watchdog_us);
        }
    }
    VEC_RELEASE(&said);
}

/* ---- start and end of the thread ------------------------------------------------------------- */

/* Tells session_thread_start, which waits, that the greeting is over. `code` 0: this thread serves
 * the session; else the reason of the failure. */
static void tell_started(struct session_thread *self, int code)
{
    pthread_mutex_lock(&self->mailbox.lock);
    atomic_store(&self->started, code);
    pthread_cond_broadcast(&self->mailbox.changed);
    pthread_mutex_unlock(&self->mailbox.lock);
}

/* The thread: greets the agent, tells session_thread_start the result, serves the session until
 * session_thread_stop, and sends what is still unsent. */
static void *run_session(void *arg)
{
    struct session_thread *self = arg;
    struct agent_link *link = &self->link;
    struct msg welcome = { 0 };
    int64_t warning_us;
    int64_t deadline_us;
    int rc = agent_link_open(link, self->agent, self->err);

    if (rc) {
        tell_started(self, rc);
        return NULL;
    }
    rc = greeting_exchange(link, self->incarnation, &welcome, &self->page, self->err);
    if (!rc) {
        warning_us = welcome.u.welcome_worker.stall_warning_us;
        self->watchdog_every_us = self->watchdog_us = TIME_NEVER;
        if (warning_us > 0 && warning_us != TIME_NEVER) {
            self->watchdog_every_us = warning_us / 4 + 1;
            self->watchdog_us = time_add(clock_now_us(), self->watchdog_every_us);
        }
        self->session =
            session_create(self->incarnation, &welcome.u.welcome_worker, clock_now_us(), NULL);
        if (!self->session)
            rc = err_set(self->err, HVD_E_NOMEM,
                         "no memory for the session with the agent; free memory on this host");
    }
    if (rc)
        msg_release(&welcome);
    else
        *self->ret_welcome = welcome;
    tell_started(self, rc);
    if (!rc) {
        serve_session(self);
        deadline_us = clock_now_us() + FLUSH_US;
        while (link->fd >= 0 && link->unsent.length && clock_now_us() < deadline_us &&
               !agent_link_flush(link, NULL)) {
            if (link->unsent.length)
                greeting_wait(link, -1 /* no other thread wakes this wait */, deadline_us);
        }
        /* No answer will come any more: waiting threads return, collectives end, and each later
         * check of the training loop gets HVD_E_LOST. */
        mailbox_break(&self->mailbox);
        mailbox_cancel(&self->mailbox, UINT64_MAX);
        self->hooks.cancel(self->hooks.arg, UINT64_MAX);
        atomic_store(&self->watched, true);
    }
    agent_link_close(link);
    if (self->page)
        life_release(self->page);
    return NULL;
}

/* Starts the thread, and waits until the thread has greeted the agent or has failed: `started` is
 * then no longer STARTING. */
int session_thread_start(const char *agent, uint64_t incarnation, const struct session_hooks *hooks,
                         struct session_thread **ret_thread, struct msg *ret_welcome,
                         struct hvd_err *err)
{
    struct session_thread *self = mem_zalloc(sizeof(*self));
    int rc = self ? mailbox_init(&self->mailbox) : HVD_E_NOMEM;

    if (rc) {
        mem_free(self);
        return err_set(
            err, rc,
            rc == HVD_E_LIMIT
                ? "this process has no free file descriptor for the session with the agent; "
                  "raise the limit of open files (ulimit -n)"
                : "no memory for the session with the agent; free memory on this host");
    }
    self->hooks = *hooks;
    self->agent = agent;
    self->incarnation = incarnation;
    self->ret_welcome = ret_welcome;
    self->err = err;
    self->started = STARTING;
    session_action_list_init(&self->list);
    rc = thread_start(&self->thread, 0, run_session, self);
    if (rc) {
        err_set(err, rc,
                "no thread can be started for the session with the agent; raise the limit of "
                "processes (ulimit -u)");
    } else {
        pthread_mutex_lock(&self->mailbox.lock);
        while (atomic_load(&self->started) == STARTING)
            pthread_cond_wait(&self->mailbox.changed, &self->mailbox.lock);
        pthread_mutex_unlock(&self->mailbox.lock);
        rc = atomic_load(&self->started);
        if (rc)
            pthread_join(self->thread, NULL);
    }
    if (rc) {
        session_thread_free(self);
        return rc;
    }
    *ret_thread = self;
    return 0;
}

/* Returns the page that this worker shares with its agent. The page stays mapped until
 * session_thread_free, also when the agent is gone. */
struct page *session_thread_page(const struct session_thread *self)
{
    return self->page;
}

/* Lets the thread run on this core only. HVD_E_INVAL: the process may not use that core. */
int session_thread_pin(struct session_thread *self, unsigned core, struct hvd_err *err)
{
    cpu_set_t cores;
    int fault = EINVAL; /* the error for a core above CPU_SETSIZE */

    CPU_ZERO(&cores);
    if (core < CPU_SETSIZE) {
        CPU_SET(core, &cores);
        fault = pthread_setaffinity_np(self->thread, sizeof(cores), &cores);
    }
    if (fault)
        return err_set(err, HVD_E_INVAL,
                       "HVD_THREAD_AFFINITY: this process cannot use core %u: %s; name one of its "
                       "cores, which taskset -p shows",
                       core, strerror(fault));
    return 0;
}

/* Lets the thread end, and waits until it has ended. */
void session_thread_stop(struct session_thread *self)
{
    if (!self)
        return;
    mailbox_close(&self->mailbox);
    pthread_join(self->thread, NULL);
}

void session_thread_free(struct session_thread *self)
{
    if (!self)
        return;
    greeting_unmap(self->page);
    session_free(self->session);
    session_action_list_release(&self->list);
    mailbox_release(&self->mailbox);
    mem_free(self);
}

/* ---- called by other threads ----------------------------------------------------------------- */

/* Counts the check first and reads `watched` second, because hear_agent does the two in the other
 * order: so at least one of the two threads notices each check. */
bool session_thread_counts(struct session_thread *self, uint64_t check)
{
    atomic_store(&self->checks, check + 1);
    return atomic_load(&self->watched);
}

bool session_thread_cancelled(const struct session_thread *self, uint64_t round)
{
    return round <= atomic_load(&self->mailbox.cancelled);
}

void session_thread_say(struct session_thread *self, const struct session_event *event)
{
    mailbox_say(&self->mailbox, event);
}

void session_thread_next(struct session_thread *self, struct loop_order *ret_order)
{
    mailbox_next(&self->mailbox, ret_order);
}

int session_thread_pause(struct session_thread *self, uint64_t round, int64_t us)
{
    return mailbox_pause(&self->mailbox, round, clock_now_us() + us);
}

/* Asks the agent for memory for commits, and waits for its descriptor. The wait belongs to no
 * round (round 0), so no revoke of a round ends it. */
int session_thread_snapshot(struct session_thread *self, const struct msg_snapshot *snapshot,
                            int *ret_fd, struct hvd_err *err)
{
    const struct msg request = { .type = MSG_SNAPSHOT, .u.snapshot = *snapshot };
    struct msg answer = { 0 };
    int fd = -1;
    int rc = mailbox_ask(&self->mailbox, &request, 0 /* no cancelled round ends the wait */,
                         &answer, &fd);

    if (rc)
        return err_set(err, rc, AGENT_LINK_GONE);
    if (answer.u.granted.code)
        rc = err_set(err, answer.u.granted.code,
                     "the agent of this host gives no memory for commits: %s",
                     answer.u.granted.text);
    else if (fd < 0)
        rc = agent_link_no_fd(fd, "the agent granted memory", err);
    msg_release(&answer);
    if (rc && fd >= 0)
        close(fd);
    if (!rc)
        *ret_fd = fd;
    return rc;
}

/* Sends one FETCH and waits for its answer. The answer to an earlier FETCH, which this FETCH has
 * ended, is skipped. A FETCH of commit 0 without sources fetches nothing: it only ends the FETCH
 * before it. round 0: no cancelled round ends the wait. */
static int fetch_once(struct session_thread *self, uint64_t round, const struct msg_fetch *what,
                      struct msg *ret_answer)
{
    struct msg request = { .type = MSG_FETCH, .round = round, .u.fetch = *what };
    int fd = -1;
    int rc;

    request.u.fetch.number = ++self->fetches;
    rc = mailbox_ask(&self->mailbox, &request, round, ret_answer, &fd);
    if (fd >= 0)
        close(fd);
    return rc;
}

/* Lets the agent of this host connect to the agents of these sources (with a FETCH of commit 0),
 * so that a later fetch begins at once. Returns 0 when one source is connected, and also when
 * the training loop sends a request to the agent, because the agent answers one request at a
 * time. */
int session_thread_reach(struct session_thread *self, uint64_t round,
                         const struct msg_source_list *sources, struct hvd_err *err)
{
    struct msg request = { .type = MSG_FETCH, .round = round };
    struct msg answer = { 0 };
    int fd = -1;
    int rc;

    request.u.fetch = (struct msg_fetch){ .number = ++self->fetches, .sources = *sources };
    rc = mailbox_ask_aside(&self->mailbox, &request, 0 /* no cancelled round ends the wait */,
                           &answer, &fd);
    if (fd >= 0)
        close(fd);
    if (rc == HVD_E_REVOKED) /* The training loop has sent a SNAPSHOT or a FETCH. A FETCH connects
                                to its sources itself, so they need not be connected before it. */
        return 0;
    if (rc)
        return err_set(err, rc, AGENT_LINK_GONE);
    if (answer.u.fetched.code)
        rc = err_set(err, answer.u.fetched.code,
                     "none of the agents that have the state of the next round can be reached: %s; "
                     "check the network between the hosts",
                     answer.u.fetched.text);
    msg_release(&answer);
    return rc;
}

/* Fetches a commit into this worker's snapshot. If the round is cancelled, a second FETCH, of
 * commit 0, ends the first one: after its answer the agent writes to the snapshot no more. */
int session_thread_fetch(struct session_thread *self, uint64_t round, const struct msg_fetch *what,
                         struct msg *ret_answer, struct hvd_err *err)
{
    static const struct msg_fetch nothing = { .commit = 0 };
    struct msg answer = { 0 };
    int rc = fetch_once(self, round, what, &answer);

    if (rc == HVD_E_REVOKED) {
        rc = fetch_once(self, 0, &nothing, &answer); /* ends the first FETCH */
        msg_release(&answer);
        if (!rc)
            return err_set(err, HVD_E_REVOKED, "round %" PRIu64 " is revoked", round);
    }
    if (rc)
        return err_set(err, rc, AGENT_LINK_GONE);
    if (answer.u.fetched.code) {
        rc = err_set(err, answer.u.fetched.code, "%s", answer.u.fetched.text);
        msg_release(&answer);
        return rc;
    }
    *ret_answer = answer;
    return 0;
}
