#include "worker/io/session_thread.h"

#include "base/mem.h"
#include "base/time.h"
#include "os/clock.h"
#include "os/thread.h"
#include "worker/io/greeting.h"
#include "worker/io/mailbox.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#define LAST_WORDS_US (5 * TIME_S)

struct session_thread {
    pthread_t thread;
    struct session_hooks hooks;
    struct mailbox mailbox;
    _Atomic bool watching;   /* as the session has said last, but while a PENDING is heard */
    _Atomic uint64_t checks; /* of the round, that the loop has come to */

    /* of whoever starts it, until it has started */
    const char *agent;
    struct msg *ret_welcome;
    struct hvd_err *err;
    _Atomic int started; /* 1: not yet; 0; or why not */

    /* of the thread alone */
    uint64_t incarnation;
    bool watches; /* what the session has said last */
    struct agent_link link;
    struct page *page;
    struct session *session;
    struct session_action_list list;
    int64_t look_every_us; /* TIME_NEVER: nobody wants to know what stands still */
    int64_t look_us;

    /* of the loop alone */
    uint64_t fetches;
};

/* ---- what the session wants done ------------------------------------------------------------- */

static int give_order(struct session_thread *self, const struct session_action *action)
{
    struct loop_order order = {
        .kind = action->kind,
        .code = action->code,
        .round = action->round,
        .commit = action->commit,
        .place = action->place,
        .prepared = action->yes,
    };
    int rc;

    if (action->kind == DO_ENTER && msg_copy(action->msg, &order.msg))
        return HVD_E_NOMEM;
    if (action->kind == DO_ENTER) /* the loop is outside of train */
        atomic_store(&self->checks, 0);
    rc = mailbox_order(&self->mailbox, &order);
    if (rc)
        msg_release(&order.msg);
    return rc;
}

static int carry_out(struct session_thread *self, const struct session_action *action)
{
    struct hvd_err err;
    int rc;

    switch (action->kind) {
    case DO_SEND:
        rc = agent_link_send(&self->link, action->msg, &err);
        return rc == HVD_E_LOST ? 0 : rc; /* the end of the stream will say so */
    case DO_WATCH: atomic_store(&self->watching, self->watches = action->yes); return 0;
    case DO_PREPARE: self->hooks.prepare(self->hooks.arg, action->msg); return 0;
    case DO_ABANDON: self->hooks.abandon(self->hooks.arg, action->round); return 0;
    case DO_CANCEL:
        self->hooks.cancel(self->hooks.arg, action->round);
        mailbox_cancel(&self->mailbox, action->round);
        return 0;
    case DO_COMMIT:
    case DO_ANSWER:
    case DO_RESTORE:
    case DO_ENTER:
    case DO_RETURN: return give_order(self, action);
    case DO_COUNT: break;
    }
    PANIC("a session's action of kind %d", (int)action->kind);
}

static int step(struct session_thread *self, struct session_event *event)
{
    int rc;

    event->now_us = clock_now_us();
    session_action_list_clear(&self->list);
    rc = session_step(self->session, event, &self->list);
    for (size_t i = 0; !rc && i < self->list.count; i++)
        rc = carry_out(self, &self->list.items[i]);
    return rc;
}

/* ---- the agent ------------------------------------------------------------------------------- */

static int lose(struct session_thread *self)
{
    struct session_event event = { .kind = SESSION_CLOSED };

    agent_link_cut(&self->link);
    mailbox_cancel(&self->mailbox, UINT64_MAX); /* no answer will come any more */
    return step(self, &event);
}

/* First it is watched, then counted; the loop counts first, then looks whether it is watched. So
 * each check is one of those that are counted here, or is brought to the session; some are both. */
static int step_pending(struct session_thread *self, struct session_event *event)
{
    int rc;

    atomic_store(&self->watching, true);
    event->counted = true;
    event->check = atomic_load(&self->checks);
    rc = step(self, event);
    atomic_store(&self->watching, self->watches);
    return rc;
}

/* GRANTED and FETCHED are for the loop. */
static int on_msg(struct session_thread *self, struct msg *msg)
{
    struct session_event event = { .kind = SESSION_MSG, .msg = msg };

    if (msg->type == MSG_GRANTED || msg->type == MSG_FETCHED) {
        if (msg->incarnation == self->incarnation)
            mailbox_answer(&self->mailbox, msg,
                           msg->type == MSG_GRANTED ? agent_link_take_fd(&self->link) : -1);
        return 0;
    }
    return msg->type == MSG_PENDING ? step_pending(self, &event) : step(self, &event);
}

static int hear(struct session_thread *self)
{
    struct hvd_err err;
    struct msg msg;
    int rc;

    for (;;) {
        memset(&msg, 0, sizeof(msg));
        rc = agent_link_receive(&self->link, &msg, &err);
        if (rc <= 0)
            return rc < 0 ? lose(self) : 0;
        rc = on_msg(self, &msg);
        msg_release(&msg);
        if (rc)
            return rc;
    }
}

static int send_request(struct session_thread *self, const struct msg *request)
{
    struct msg sent = *request;
    struct hvd_err err;
    int rc;

    sent.incarnation = self->incarnation;
    rc = agent_link_send(&self->link, &sent, &err);
    mailbox_sent(&self->mailbox);
    return rc == HVD_E_LOST ? 0 : rc;
}

/* ---- the loop -------------------------------------------------------------------------------- */

static int step_said(struct session_thread *self, struct said *said)
{
    struct session_event event = said->event;

    if (event.text)
        event.text = said->text;
    if (event.held) {
        said->held_list.items = said->held;
        event.held = &said->held_list;
    }
    if (event.entered)
        event.entered = &said->entered;
    return step(self, &event);
}

static int listen_to_loop(struct session_thread *self, struct said_list *said, bool *ret_closing)
{
    const struct msg *request;
    int rc = 0;

    mailbox_take(&self->mailbox, said, &request, ret_closing);
    for (size_t i = 0; !rc && i < said->count; i++)
        rc = step_said(self, &said->items[i]);
    said->count = 0;
    if (!rc && request)
        rc = send_request(self, request);
    return rc;
}

/* What stands still is asked of those who would know, and said. */
static int look(struct session_thread *self)
{
    struct session_event event = { .kind = SESSION_STUCK };
    struct msg_stalled stalled = { 0 };
    int64_t now_us = clock_now_us();

    if (now_us < self->look_us)
        return 0;
    self->look_us = time_add(now_us, self->look_every_us);
    if (!self->hooks.stalled(self->hooks.arg, now_us, &stalled))
        return 0;
    event.stalled = &stalled;
    return step(self, &event);
}

static int on_time(struct session_thread *self)
{
    struct session_event event = { .kind = SESSION_TIMER };
    int rc = 0;

    if (session_deadline(self->session) <= clock_now_us())
        rc = step(self, &event);
    return rc ? rc : look(self);
}

static int64_t deadline_of(const struct session_thread *self)
{
    int64_t session_us = session_deadline(self->session);

    return session_us < self->look_us ? session_us : self->look_us;
}

/* Until it is closed, or memory is out. */
static void serve(struct session_thread *self)
{
    struct said_list said = { NULL, 0, 0 };
    bool closing = false;
    struct hvd_err err;
    int rc = 0;

    while (!rc && !closing) { /* it does not begin with waiting: more may have come with WELCOME */
        if (self->link.fd >= 0) {
            /* Who does not listen any more may have had a last word: hear() finds the end. */
            rc = agent_link_flush(&self->link, &err);
            if (!rc || rc == HVD_E_LOST)
                rc = hear(self);
        }
        if (!rc)
            rc = listen_to_loop(self, &said, &closing);
        if (!rc)
            rc = on_time(self);
        if (!rc && !closing)
            greeting_wait(&self->link, self->mailbox.wake_fd, deadline_of(self));
    }
    VEC_RELEASE(&said);
}

static void say_the_rest(struct session_thread *self)
{
    int64_t deadline_us = clock_now_us() + LAST_WORDS_US;
    struct hvd_err err;

    while (self->link.fd >= 0 && self->link.unsent.length && clock_now_us() < deadline_us) {
        if (agent_link_flush(&self->link, &err))
            return;
        if (self->link.unsent.length)
            greeting_wait(&self->link, -1, deadline_us);
    }
}

/* ---- its life -------------------------------------------------------------------------------- */

static void set_times(struct session_thread *self, const struct msg_welcome_worker *welcome)
{
    self->look_every_us = self->look_us = TIME_NEVER;
    if (welcome->stall_warning_us > 0 && welcome->stall_warning_us != TIME_NEVER) {
        self->look_every_us = welcome->stall_warning_us / 4 + 1;
        self->look_us = time_add(clock_now_us(), self->look_every_us);
    }
}

static int greet(struct session_thread *self, struct hvd_err *err)
{
    struct msg welcome = { 0 };
    int rc = greeting_exchange(&self->link, self->incarnation, &welcome, &self->page, err);

    if (rc)
        return rc;
    set_times(self, &welcome.u.welcome_worker);
    self->session =
        session_create(self->incarnation, &welcome.u.welcome_worker, clock_now_us(), NULL);
    if (!self->session) {
        msg_release(&welcome);
        return err_set(err, HVD_E_NOMEM, "no memory for a session");
    }
    *self->ret_welcome = welcome;
    return 0;
}

static void say_started(struct session_thread *self, int code)
{
    pthread_mutex_lock(&self->mailbox.lock);
    atomic_store(&self->started, code);
    pthread_cond_broadcast(&self->mailbox.changed);
    pthread_mutex_unlock(&self->mailbox.lock);
}

/* Whatever was still waited for is not coming: collectives end, the loop is told. */
static void *live(void *arg)
{
    struct session_thread *self = arg;
    int rc = agent_link_open(&self->link, self->agent, self->err);

    if (rc) {
        say_started(self, rc);
        return NULL;
    }
    rc = greet(self, self->err);
    say_started(self, rc);
    if (!rc) {
        serve(self);
        say_the_rest(self);
        mailbox_break(&self->mailbox);
        mailbox_cancel(&self->mailbox, UINT64_MAX);
        self->hooks.cancel(self->hooks.arg, UINT64_MAX);
        atomic_store(&self->watching, true);
    }
    agent_link_close(&self->link);
    greeting_undo(self->page);
    return NULL;
}

static void wait_until_started(struct session_thread *self)
{
    pthread_mutex_lock(&self->mailbox.lock);
    while (atomic_load(&self->started) == 1)
        pthread_cond_wait(&self->mailbox.changed, &self->mailbox.lock);
    pthread_mutex_unlock(&self->mailbox.lock);
}

static void free_all(struct session_thread *self)
{
    session_free(self->session);
    session_action_list_release(&self->list);
    mailbox_release(&self->mailbox);
    mem_free(self);
}

int session_thread_start(const char *agent, uint64_t incarnation, const struct session_hooks *hooks,
                         struct session_thread **ret_thread, struct msg *ret_welcome,
                         struct hvd_err *err)
{
    struct session_thread *self = mem_zalloc(sizeof(*self));
    int rc = self ? mailbox_init(&self->mailbox) : HVD_E_NOMEM;

    if (rc) {
        mem_free(self);
        return err_set(err, rc,
                       rc == HVD_E_LIMIT
                           ? "no descriptor is left for a session; raise the limit of open files "
                             "(ulimit -n)"
                           : "no memory for a session");
    }
    self->hooks = *hooks;
    self->agent = agent;
    self->incarnation = incarnation;
    self->ret_welcome = ret_welcome;
    self->err = err;
    self->started = 1;
    session_action_list_init(&self->list);
    rc = thread_start(&self->thread, 0, live, self);
    if (rc) {
        err_set(err, rc, "no thread can be started");
    } else {
        wait_until_started(self);
        rc = atomic_load(&self->started);
        if (rc)
            pthread_join(self->thread, NULL);
    }
    if (rc) {
        free_all(self);
        return rc;
    }
    *ret_thread = self;
    return 0;
}

void session_thread_stop(struct session_thread *self)
{
    if (!self)
        return;
    mailbox_close(&self->mailbox);
    pthread_join(self->thread, NULL);
}

void session_thread_free(struct session_thread *self)
{
    if (self)
        free_all(self);
}

/* ---- for the others -------------------------------------------------------------------------- */

bool session_thread_counts(struct session_thread *self, uint64_t check)
{
    atomic_store(&self->checks, check + 1);
    return atomic_load(&self->watching);
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

int session_thread_snapshot(struct session_thread *self, const struct msg_snapshot *snapshot,
                            int *ret_fd, struct hvd_err *err)
{
    const struct msg request = { .type = MSG_SNAPSHOT, .u.snapshot = *snapshot };
    struct msg answer = { 0 };
    int fd = -1;
    int rc = mailbox_ask(&self->mailbox, &request, 0, &answer, &fd);

    if (rc)
        return err_set(err, rc, "the agent is gone");
    if (answer.u.granted.code)
        rc = err_set(err, answer.u.granted.code, "the agent gives no memory for commits: %s",
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

/* One FETCH and its answer. That of an earlier one, which was ended by this, is passed over. */
static int fetch_once(struct session_thread *self, uint64_t round, uint64_t commit,
                      const struct msg_source_list *sources, struct msg *ret_answer)
{
    struct msg request = { .type = MSG_FETCH, .round = round };
    int fd = -1;
    int rc;

    request.u.fetch = (struct msg_fetch){ .number = ++self->fetches, .commit = commit };
    if (sources)
        request.u.fetch.sources = *sources;
    rc = mailbox_ask(&self->mailbox, &request, round, ret_answer, &fd);
    if (fd >= 0)
        close(fd);
    return rc;
}

int session_thread_fetch(struct session_thread *self, uint64_t round, uint64_t commit,
                         const struct msg_source_list *sources, struct msg_fetched *ret_fetched,
                         struct hvd_err *err)
{
    struct msg answer = { 0 };
    int rc = fetch_once(self, round, commit, sources, &answer);

    if (rc == HVD_E_REVOKED) {
        rc = fetch_once(self, 0, 0, NULL, &answer);
        msg_release(&answer);
        return err_set(err, rc ? rc : HVD_E_REVOKED, "round %" PRIu64 " is revoked", round);
    }
    if (rc)
        return err_set(err, rc, "the agent is gone");
    *ret_fetched = answer.u.fetched;
    ret_fetched->text = "";
    if (answer.u.fetched.code)
        rc = err_set(err, answer.u.fetched.code, "%s", answer.u.fetched.text);
    msg_release(&answer);
    return rc;
}
