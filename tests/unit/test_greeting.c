/* hvd_init and hvd_shutdown, against an agent that does what it should not. */
#include "tests/lib/fake_agent.h"
#include "tests/lib/test.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct msg refused = {
    .type = MSG_REFUSED, .u.refused = {.code = HVD_E_DENIED, .text = "it was not started here"}
};
static const struct msg bye = { .type = MSG_BYE, .u.bye = { .reason = "the job has ended" } };
static const struct msg done = { .type = MSG_DONE, .term = 1 };

/* What hvd_init comes to with an agent that does this. */
static int init_with(struct test *t, const struct fake_step *script)
{
    static struct fake_agent fake;
    int rc = HVD_E_INTERNAL;

    CHECK_OK(t, fake_agent_init(&fake));
    CHECK_OK(t, fake_agent_start(&fake, script));
    rc = hvd_init();
    CHECK(t, rc == HVD_E_NOMEM || fake_agent_stop(&fake));
out:
    hvd_shutdown();
    fake_agent_release(&fake);
    return rc;
}

static void a_worker_is_welcome(struct test *t)
{
    static const struct fake_step script[] = { HEAR(MSG_HELLO_WORKER), DO(FAKE_WELCOME),
                                               DO(FAKE_OVER) };
    static struct fake_agent fake;

    CHECK_INT(t, hvd_rank(), ==, HVD_E_STATE);
    CHECK_HAS(t, hvd_last_error(), "hvd_init");
    CHECK_OK(t, fake_agent_init(&fake));
    fake.welcome.rank = 2;
    fake.welcome.size = 4;
    fake.welcome.local_rank = 1;
    fake.welcome.local_size = 2;
    fake.welcome.cross_rank = 1;
    fake.welcome.cross_size = 2;
    fake.welcome.min_np = 3;
    fake.welcome.slot = 5;
    CHECK_OK(t, fake_agent_start(&fake, script));
    CHECK_OK(t, hvd_init());
    CHECK_OK(t, hvd_init()); /* changes nothing */
    CHECK_INT(t, hvd_slot(), ==, 5);
    CHECK_INT(t, hvd_rank(), ==, 2);
    CHECK_INT(t, hvd_size(), ==, 4);
    CHECK_INT(t, hvd_local_rank(), ==, 1);
    CHECK_INT(t, hvd_local_size(), ==, 2);
    CHECK_INT(t, hvd_cross_rank(), ==, 1);
    CHECK_INT(t, hvd_cross_size(), ==, 2);
    CHECK_INT(t, hvd_min_np(), ==, 3);
    CHECK_INT(t, hvd_max_np(), ==, 4);
    CHECK_INT(t, hvd_round(), ==, 0);
    CHECK_INT(t, hvd_barrier(), ==, HVD_E_STATE);
    hvd_shutdown();
    hvd_shutdown();
    CHECK_INT(t, hvd_size(), ==, HVD_E_STATE);
    CHECK(t, fake_agent_stop(&fake));
    CHECK_INT(t, fake_agent_count(&fake, "HELLO_WORKER"), ==, 1);
out:
    hvd_shutdown();
    fake_agent_release(&fake);
}

static void who_is_refused_is_told_why(struct test *t)
{
    static const struct fake_step script[] = { HEAR(MSG_HELLO_WORKER), SAY(&refused),
                                               DO(FAKE_CLOSE) };

    CHECK_CODE(t, init_with(t, script), HVD_E_DENIED);
    CHECK_HAS(t, hvd_last_error(), "it was not started here");
out:;
}

static void an_agent_that_is_ending_is_gone(struct test *t)
{
    static const struct fake_step script[] = { HEAR(MSG_HELLO_WORKER), SAY(&bye), DO(FAKE_CLOSE) };

    CHECK_CODE(t, init_with(t, script), HVD_E_LOST);
    CHECK_HAS(t, hvd_last_error(), "the job has ended");
out:;
}

static void a_greeting_that_is_cut_is_a_loss(struct test *t)
{
    static const struct fake_step scripts[][4] = {
        {DO(FAKE_CLOSE)},
        {           HEAR(MSG_HELLO_WORKER),                    DO(FAKE_CLOSE) },
        { HEAR(MSG_HELLO_WORKER), { FAKE_RAW, 0, NULL, "hvdE" }, DO(FAKE_CLOSE) },
    };

    for (size_t i = 0; i < ARRAY_SIZE(scripts); i++) {
        CHECK_CODE(t, init_with(t, scripts[i]), HVD_E_LOST);
        CHECK_HAS(t, hvd_last_error(), "agent");
    }
out:;
}

static void a_wrong_answer_breaks_the_protocol(struct test *t)
{
    static const struct fake_step scripts[][3] = {
        {HEAR(MSG_HELLO_WORKER),  SAY(&done),                                    DO(FAKE_OVER)},
        { HEAR(MSG_HELLO_WORKER), { FAKE_RAW, 0, NULL, "HTTP/1.1 400 Bad\r\n" }, DO(FAKE_OVER)},
        { HEAR(MSG_HELLO_WORKER), DO(FAKE_PAGELESS),                             DO(FAKE_OVER)},
        { HEAR(MSG_HELLO_WORKER), DO(FAKE_WRONG_PAGE),                           DO(FAKE_OVER)},
        { HEAR(MSG_HELLO_WORKER), DO(FAKE_SHORT_PAGE),                           DO(FAKE_OVER)},
    };

    for (size_t i = 0; i < ARRAY_SIZE(scripts); i++) {
        CHECK_CODE(t, init_with(t, scripts[i]), HVD_E_PROTO);
        CHECK(t, hvd_last_error()[0]);
    }
out:;
}

static void a_silent_agent_is_not_waited_for_for_ever(struct test *t)
{
    static const struct fake_step script[] = { DO(FAKE_HOLD), DO(FAKE_OVER) };
    static struct fake_agent fake;

    CHECK_OK(t, fake_agent_init(&fake));
    CHECK_OK(t, fake_agent_start(&fake, script));
    CHECK_CODE(t, hvd_init(), HVD_E_TIMEOUT);
    CHECK_HAS(t, hvd_last_error(), "does not answer");
out:
    fake_agent_release(&fake);
}

/* Its process is stopped, and more workers have dialled than it has room for. */
static void nor_is_one_that_takes_no_connection(struct test *t)
{
    static struct fake_agent fake;
    int fds[16];
    size_t count = 0;
    struct hvd_err err;
    int rc = 0;

    CHECK_OK(t, fake_agent_init(&fake));
    while (!rc && count < ARRAY_SIZE(fds)) {
        rc = agent_link_connect(fake.name, 100 * 1000, &fds[count], &err);
        count += rc == 0;
    }
    CHECK_CODE(t, rc, HVD_E_TIMEOUT);
    CHECK_HAS(t, err.text, "does not answer");
out:
    while (count > 0)
        close(fds[--count]);
    fake_agent_release(&fake);
}

static void the_environment_must_make_sense(struct test *t)
{
    static struct fake_agent fake;
    char longer[300];

    CHECK_OK(t, fake_agent_init(&fake));
    unsetenv("HVD_INCARNATION");
    CHECK_CODE(t, hvd_init(), HVD_E_INVAL);
    CHECK_HAS(t, hvd_last_error(), "HVD_INCARNATION");
    setenv("HVD_INCARNATION", "0", 1);
    CHECK_CODE(t, hvd_init(), HVD_E_INVAL);
    CHECK_HAS(t, hvd_last_error(), "HVD_INCARNATION");
    setenv("HVD_INCARNATION", "7", 1);
    setenv("HVD_AGENT", "@hvd-no-such-agent", 1);
    CHECK_CODE(t, hvd_init(), HVD_E_LOST);
    CHECK_HAS(t, hvd_last_error(), "@hvd-no-such-agent");
    memset(longer, 'x', sizeof(longer) - 1);
    longer[sizeof(longer) - 1] = '\0';
    setenv("HVD_AGENT", longer, 1);
    CHECK_CODE(t, hvd_init(), HVD_E_INVAL);
    CHECK_HAS(t, hvd_last_error(), "HVD_AGENT");
    setenv("HVD_AGENT", fake.name, 1);
out:
    fake_agent_release(&fake);
}

static void a_fork_is_no_worker(struct test *t)
{
    static const struct fake_step script[] = { HEAR(MSG_HELLO_WORKER), DO(FAKE_WELCOME),
                                               DO(FAKE_OVER) };
    static struct fake_agent fake;
    int status = 1;
    pid_t child;

    CHECK_OK(t, fake_agent_init(&fake));
    CHECK_OK(t, fake_agent_start(&fake, script));
    CHECK_OK(t, hvd_init());
    child = fork();
    if (child == 0) {
        bool right = hvd_init() == HVD_E_STATE && hvd_rank() == HVD_E_STATE &&
                     hvd_barrier() == HVD_E_STATE && test_has_text(hvd_last_error(), "fork");

        hvd_shutdown();
        _exit(right ? 0 : 1);
    }
    CHECK_INT(t, waitpid(child, &status, 0), ==, child);
    CHECK_INT(t, status, ==, 0);
    CHECK_INT(t, hvd_rank(), ==, 0);
out:
    hvd_shutdown();
    fake_agent_release(&fake);
}

TESTS(CASE(a_worker_is_welcome), CASE(who_is_refused_is_told_why),
      CASE(an_agent_that_is_ending_is_gone),
      CASE_FLAGS(a_greeting_that_is_cut_is_a_loss, TEST_SURVIVES_ALLOC),
      CASE(a_wrong_answer_breaks_the_protocol),
      CASE_FLAGS(a_silent_agent_is_not_waited_for_for_ever, TEST_NO_TORTURE),
      CASE_FLAGS(nor_is_one_that_takes_no_connection, TEST_NO_TORTURE),
      CASE(the_environment_must_make_sense), CASE_FLAGS(a_fork_is_no_worker, TEST_NO_TORTURE))
