/*
 * test_mailbox.c: the mailbox between the session's thread and the training loop: orders and
 * answers come in their order, and texts are copied.
 */
#include "os/thread.h"
#include "tests/lib/test.h"
#include "worker/io/mailbox.h"

#include <poll.h>
#include <unistd.h>

static bool is_awake(const struct mailbox *mailbox)
{
    struct pollfd fd = { .fd = mailbox->wake_fd, .events = POLLIN };

    return poll(&fd, 1, 0) == 1;
}

/* mailbox_take with a list that is cleared by itself. */
struct taken {
    struct said_list said;
    const struct msg *request;
    bool closing;
};

static void take(struct mailbox *mailbox, struct taken *taken)
{
    taken->said.count = 0;
    mailbox_take(mailbox, &taken->said, &taken->request, &taken->closing);
}

TEST(posted_messages_are_copied)
{
    struct mailbox mailbox;
    struct taken taken = { .request = NULL };
    char text[] = "why";
    struct msg_held items[2] = {
        {7,  70},
        { 6, 60}
    };
    struct msg_held_list held = { items, 2 };
    struct msg_entered entered = { .commit = 9 };
    bool made = false;

    CHECK_OK(t, mailbox_init(&mailbox));
    made = true;
    take(&mailbox, &taken);
    CHECK(t, !is_awake(&mailbox) && !taken.said.count && !taken.request && !taken.closing);
    mailbox_say(&mailbox, &(struct session_event){ .kind = SESSION_RESTORED, .held = &held });
    mailbox_say(&mailbox, &(struct session_event){ .kind = SESSION_RETURNED, .text = text });
    mailbox_say(&mailbox, &(struct session_event){ .kind = SESSION_STEPPED, .entered = &entered });
    items[1].checksum = 0;
    text[0] = 'W';
    entered.commit = 0;
    CHECK(t, is_awake(&mailbox));
    take(&mailbox, &taken);
    CHECK(t, !is_awake(&mailbox));
    CHECK(t, taken.said.count == 3 || taken.closing); /* a lost event ends the session */
    CHECK(t, !taken.closing);
    CHECK_INT(t, taken.said.items[0].event.kind, ==, SESSION_RESTORED);
    CHECK_INT(t, taken.said.items[0].held_list.count, ==, 2);
    CHECK_INT(t, taken.said.items[0].held[1].checksum, ==, 60);
    CHECK_TEXT(t, taken.said.items[1].text, "why");
    CHECK_INT(t, taken.said.items[2].entered.commit, ==, 9);
out:
    VEC_RELEASE(&taken.said);
    if (made)
        mailbox_release(&mailbox);
}

TEST(orders_come_in_their_order)
{
    struct mailbox mailbox;
    struct loop_order order = { .code = 0 };
    bool made = false;

    CHECK_OK(t, mailbox_init(&mailbox));
    made = true;
    CHECK_OK(t, mailbox_order(&mailbox, &(struct loop_order){ .kind = DO_COMMIT, .commit = 5 }));
    CHECK_OK(t, mailbox_order(&mailbox, &(struct loop_order){ .kind = DO_ANSWER, .code = 1 }));
    mailbox_break(&mailbox);
    mailbox_next(&mailbox, &order);
    CHECK_INT(t, order.kind, ==, DO_COMMIT);
    CHECK_INT(t, order.commit, ==, 5);
    mailbox_next(&mailbox, &order);
    CHECK_INT(t, order.kind, ==, DO_ANSWER);
    mailbox_next(&mailbox, &order);
    CHECK_INT(t, order.kind, ==, DO_RETURN);
    CHECK_INT(t, order.code, ==, HVD_E_LOST);
    /* no thread takes the request */
    mailbox_say(&mailbox, &(struct session_event){ .kind = SESSION_RUN });
    CHECK_INT(t, mailbox.said.count, ==, 0);
out:
    if (made)
        mailbox_release(&mailbox);
}

/* The agent's side of a question: takes the request, and answers as the case says. */
struct agent {
    struct mailbox *mailbox;
    void (*answer)(struct mailbox *mailbox, const struct msg *request);
    int asked;
};

static void *play_agent(void *arg)
{
    struct agent *agent = arg;
    struct taken taken = { .request = NULL };

    while (!taken.request) {
        struct pollfd fd = { .fd = agent->mailbox->wake_fd, .events = POLLIN };

        poll(&fd, 1, -1);
        take(agent->mailbox, &taken);
    }
    agent->asked++;
    agent->answer(agent->mailbox, taken.request);
    VEC_RELEASE(&taken.said);
    return NULL;
}

static void answer_fetches(struct mailbox *mailbox, const struct msg *request)
{
    uint64_t number = request->u.fetch.number;
    struct msg late = { .type = MSG_FETCHED, .u.fetched.number = number - 1 };
    struct msg other = { .type = MSG_GRANTED };
    struct msg right = {
        .type = MSG_FETCHED, .u.fetched = {.number = number, .bytes = 8}
    };

    mailbox_sent(mailbox);
    mailbox_answer(mailbox, &late, -1);
    mailbox_answer(mailbox, &other, dup(STDOUT_FILENO));
    mailbox_answer(mailbox, &right, -1);
}

static void sent_only(struct mailbox *mailbox, const struct msg *request)
{
    (void)request;
    mailbox_sent(mailbox);
}

static void cancel_instead(struct mailbox *mailbox, const struct msg *request)
{
    (void)request;
    mailbox_cancel(mailbox, 3); /* not yet: the request is being looked at */
    mailbox_sent(mailbox);
}

static void break_instead(struct mailbox *mailbox, const struct msg *request)
{
    (void)request;
    mailbox_break(mailbox);
}

static void lose_instead(struct mailbox *mailbox, const struct msg *request)
{
    (void)request;
    mailbox_sent(mailbox);
    mailbox_cancel(mailbox, UINT64_MAX);
}

static int ask(struct test *t, uint64_t round,
               void (*answer)(struct mailbox *mailbox, const struct msg *request),
               struct msg *ret_answer)
{
    struct mailbox mailbox;
    struct agent agent = { &mailbox, answer, 0 };
    struct msg request = { .type = MSG_FETCH, .u.fetch.number = 4 };
    pthread_t thread;
    int fd = -1;
    int rc;

    rc = mailbox_init(&mailbox);
    if (rc)
        return rc;
    rc = thread_start(&thread, 0, play_agent, &agent);
    if (!rc) {
        rc = mailbox_ask(&mailbox, &request, round, ret_answer, &fd);
        pthread_join(thread, NULL);
        CHECK_INT(t, agent.asked, ==, 1);
        CHECK_INT(t, fd, ==, -1);
    }
out:
    mailbox_release(&mailbox);
    return rc;
}

TEST_FLAGS(a_question_has_one_answer, TEST_NO_TORTURE)
{
    struct msg answer = { 0 };

    CHECK_CODE(t, ask(t, 0, answer_fetches, &answer), 0);
    CHECK_INT(t, answer.u.fetched.bytes, ==, 8);
    CHECK_CODE(t, ask(t, 3, cancel_instead, &answer), HVD_E_REVOKED);
    CHECK_CODE(t, ask(t, 3, break_instead, &answer), HVD_E_LOST);
    CHECK_CODE(t, ask(t, 0, lose_instead, &answer), HVD_E_LOST);
out:;
}

/* A thread beside the training loop, whose request the agent takes and does not answer. */
struct asks_aside {
    struct mailbox *mailbox;
    int code;
};

static void *ask_aside(void *arg)
{
    struct asks_aside *aside = arg;
    struct msg request = { .type = MSG_FETCH, .u.fetch.number = 4 };
    struct msg answer = { 0 };
    int fd = -1;

    aside->code = mailbox_ask_aside(aside->mailbox, &request, 0, &answer, &fd);
    return NULL;
}

/* The answer to the request that gave way comes late, and is dropped. */
TEST_FLAGS(a_question_aside_gives_way_to_the_loop, TEST_NO_TORTURE)
{
    struct msg request = { .type = MSG_FETCH, .u.fetch.number = 5 };
    struct mailbox mailbox;
    struct agent silent = { &mailbox, sent_only, 0 };
    struct agent answers = { &mailbox, answer_fetches, 0 };
    struct asks_aside aside = { &mailbox, 1 };
    struct msg answer = { 0 };
    pthread_t asking, agent;
    int fd = -1;

    CHECK_OK(t, mailbox_init(&mailbox));
    CHECK_OK(t, thread_start(&asking, 0, ask_aside, &aside));
    play_agent(&silent);
    CHECK_OK(t, thread_start(&agent, 0, play_agent, &answers));
    CHECK_OK(t, mailbox_ask(&mailbox, &request, 0, &answer, &fd));
    pthread_join(asking, NULL);
    pthread_join(agent, NULL);
    CHECK_INT(t, aside.code, ==, HVD_E_REVOKED);
    CHECK_INT(t, answer.u.fetched.bytes, ==, 8);
out:
    mailbox_release(&mailbox);
}
