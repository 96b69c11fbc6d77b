/* hvd_init and hvd_shutdown, with an agent that breaks the rules. */
#include "base/time.h"
#include "tests/lib/fake_agent.h"
#include "tests/lib/test.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct msg refused = {
    .type = MSG_REFUSED, .u.refused = {.code = HVD_E_DENIED, .text = "it was not started here"}
};
static const struct msg bye = { .type = MSG_BYE, .u.bye = { .reason = "the job has ended" } };
static const struct msg done = { .type = MSG_DONE, .term = 1 };

/* Returns the result of hvd_init while the agent plays this script. */
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

TEST(a_worker_is_welcome)
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

TEST(a_refused_worker_is_told_why)
{
    static const struct fake_step script[] = { HEAR(MSG_HELLO_WORKER), SAY(&refused),
                                               DO(FAKE_CLOSE) };

    CHECK_CODE(t, init_with(t, script), HVD_E_DENIED);
    CHECK_HAS(t, hvd_last_error(), "it was not started here");
out:;
}

TEST(an_agent_that_is_ending_is_gone)
{
    static const struct fake_step script[] = { HEAR(MSG_HELLO_WORKER), SAY(&bye), DO(FAKE_CLOSE) };

    CHECK_CODE(t, init_with(t, script), HVD_E_LOST);
    CHECK_HAS(t, hvd_last_error(), "the job has ended");
out:;
}

TEST_FLAGS(a_greeting_that_is_cut_is_a_loss, TEST_SURVIVES_ALLOC)
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

TEST(a_wrong_answer_breaks_the_protocol)
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

TEST_FLAGS(a_silent_agent_is_given_up, TEST_NO_TORTURE)
{
    static const struct fake_step script[] = { DO(FAKE_HOLD), DO(FAKE_OVER) };
    static struct fake_agent fake;

    CHECK_OK(t, fake_agent_init(&fake));
    CHECK_OK(t, fake_agent_start(&fake, script));
    CHECK_CODE(t, hvd_init(), HVD_E_TIMEOUT);
    CHECK_HAS(t, hvd_last_error(), "has not answered");
out:
    fake_agent_release(&fake);
}

static void nothing(int signal_number)
{
    (void)signal_number;
}

/* The agent's process is stopped, and the queue of its socket is full. Signals that come meanwhile
 * neither end the wait nor prolong it. */
TEST_FLAGS(an_agent_that_accepts_no_connection_is_given_up, TEST_NO_TORTURE)
{
    const struct itimerval tick = { .it_interval.tv_usec = 10000, .it_value.tv_usec = 10000 };
    const struct itimerval never = { .it_value.tv_usec = 0 };
    const struct sigaction action = { .sa_handler = nothing };
    static struct fake_agent fake;
    int fds[16];
    size_t count = 0;
    struct hvd_err err;
    int rc = 0;

    CHECK_OK(t, fake_agent_init(&fake));
    CHECK(t, !sigaction(SIGALRM, &action, NULL) && !setitimer(ITIMER_REAL, &tick, NULL));
    while (!rc && count < ARRAY_SIZE(fds)) {
        rc = agent_link_connect(fake.name, 100 * 1000, &fds[count], &err);
        count += rc == 0;
    }
    CHECK_CODE(t, rc, HVD_E_TIMEOUT);
    CHECK_HAS(t, err.text, "does not answer");
out:
    setitimer(ITIMER_REAL, &never, NULL);
    while (count > 0)
        close(fds[--count]);
    fake_agent_release(&fake);
}

/* The agent is gone, and another user has bound its name. Only root can become other users, so the
 * case tests something only as root. */
TEST_FLAGS(a_socket_of_another_user_is_no_agent, TEST_NO_TORTURE)
{
    static const uid_t users[][2] = {
        {65534,  65533},
        { 65534, 0    },
        { 0,     65533}
    };
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    int there = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct hvd_err err;
    char name[64];
    int fd, rc;

    if (geteuid() != 0)
        goto out;
    snprintf(name, sizeof(name), "@hvd-test-squat-%d", (int)getpid());
    memcpy(at.sun_path + 1, name + 1, strlen(name) - 1);
    CHECK(t, !bind(there, (const struct sockaddr *)&at,
                   (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name))));
    for (size_t i = 0; i < ARRAY_SIZE(users); i++) {
        /* The socket belongs to the user that has called listen last. */
        CHECK(t, !seteuid(users[i][0]) && !listen(there, 4) && !seteuid(0));
        CHECK(t, !seteuid(users[i][1]));
        rc = agent_link_connect(name, TIME_S, &fd, &err);
        CHECK(t, !seteuid(0));
        if (!rc)
            close(fd);
        CHECK_INT(t, rc, ==, i == 0 ? HVD_E_DENIED : 0);
        if (rc)
            CHECK_HAS(t, err.text, "of user 65534 listens at this name");
    }
out:
    close(there);
}

TEST(the_environment_must_make_sense)
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

TEST_FLAGS(a_fork_is_no_worker, TEST_NO_TORTURE)
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
