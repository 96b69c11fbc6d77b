/*
 * test_join_health.c: agent/join/join_health: several probes ask at once, a probe that never asks
 * keeps no other one away, and a name at which a probe looks while it is taken is taken later.
 */
#include "agent/join/join_health.h"

#include "base/log.h"
#include "os/clock.h"
#include "tests/lib/fixture.h"
#include "wire/conn.h"

#include <event2/event.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

/* A process that asks. */
struct probe {
    struct conn *conn; /* NULL: it is closed */
    bool opened, over;
    char text[64];
};

static struct event_base *base;
static struct join_health health;
static struct agent_socket before;
static struct probe probes[JOIN_PROBERS + 1];
static int held_fd; /* the lock that another process holds; -1: none */
static int waits;   /* how often the attempts to take the name have waited */

/* join.c is not linked: this is the state of a process that joins. */
void __wrap_join_say_health(void *arg, char ret_text[ERR_TEXT_MAX]);
void __wrap_join_say_health(void *arg, char ret_text[ERR_TEXT_MAX])
{
    (void)arg;
    snprintf(ret_text, ERR_TEXT_MAX, "host h waits");
}

/* The wait between two attempts to take the name: the other process gives its lock back. */
int __real_poll(struct pollfd *fds, nfds_t count, int timeout_ms);
int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout_ms);
int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
    if (fds)
        return __real_poll(fds, count, timeout_ms);
    waits++;
    if (held_fd >= 0)
        close(held_fd);
    held_fd = -1;
    return 0;
}

static void probe_opened(void *arg)
{
    ((struct probe *)arg)->opened = true;
}

static void probe_msg(void *arg, const struct msg *msg)
{
    struct probe *probe = arg;

    if (msg->type == MSG_TELL && !msg->u.tell.code)
        snprintf(probe->text, sizeof(probe->text), "%.*s", (int)msg->u.tell.text.length,
                 (const char *)msg->u.tell.text.at);
}

static void probe_closed(void *arg, const char *why)
{
    struct probe *probe = arg;

    (void)why;
    probe->conn = NULL;
    probe->opened = probe->over = true;
}

static void begin(struct test *t)
{
    setenv("XDG_STATE_HOME", test_dir(t), 1);
    signal(SIGPIPE, SIG_IGN);
    memset(probes, 0, sizeof(probes));
    health = (struct join_health){ .socket.fd = -1 };
    before = (struct agent_socket){ .fd = -1 };
    held_fd = -1;
    waits = 0;
    base = event_base_new();
    CHECK(t, base);
}

static void end(struct test *t)
{
    (void)t;
    for (size_t i = 0; i < ARRAY_SIZE(probes); i++)
        if (probes[i].conn)
            conn_drop(probes[i].conn);
    join_health_close(&health);
    agent_socket_release(&before);
    if (held_fd >= 0)
        close(held_fd);
    if (base) {
        event_base_dispatch(base); /* connections that were closed send their last bytes */
        event_base_free(base);
    }
}
FIXTURE(begin, end)

/* Runs the loop until the flag is set; a connection that is silent for too long is closed. */
static void await(struct test *t, const bool *flag)
{
    while (!*flag)
        CHECK_INT(t, event_base_loop(base, EVLOOP_ONCE), ==, 0);
}

static void dial(struct test *t, struct probe *probe)
{
    static const struct conn_ops ops = { probe_opened, probe_msg, probe_closed, NULL };

    CHECK_OK(t, conn_dial_unix(base, health.socket.name, &ops, probe, &probe->conn, NULL));
    await(t, &probe->opened);
}

/* Asks, if the connection is still there, and waits for its end. Returns the answer. */
static const char *ask(struct test *t, struct probe *probe)
{
    const struct msg msg = { .type = MSG_ASK, .u.ask.verb = "healthy" };

    if (probe->conn) {
        conn_greeted(probe->conn);
        CHECK_OK(t, conn_send(probe->conn, &msg, NULL));
    }
    await(t, &probe->over);
    return probe->text;
}

/* Without memory an answered connection does not linger, and a silent one is lost. */
TEST_FLAGS(two_ask_at_once, TEST_SURVIVES_ALLOC)
{
    join_health_open(&health, base, "h");
    CHECK(t, health.listener);
    dial(t, &probes[0]);
    dial(t, &probes[1]);
    CHECK_TEXT(t, ask(t, &probes[1]), "host h waits");
    CHECK_TEXT(t, ask(t, &probes[0]), "host h waits");
}

TEST_FLAGS(probes_that_never_ask_give_way, TEST_SURVIVES_ALLOC)
{
    join_health_open(&health, base, "h");
    CHECK(t, health.listener);
    for (size_t i = 0; i < ARRAY_SIZE(probes); i++)
        dial(t, &probes[i]);
    CHECK_TEXT(t, ask(t, &probes[JOIN_PROBERS]), "host h waits");
    await(t, &probes[0].over);
    CHECK_TEXT(t, probes[0].text, "");
    CHECK_TEXT(t, ask(t, &probes[1]), "host h waits");
}

/* A process that was killed has left its file, with its name, and a probe that looks at the file
 * holds a shared lock for a moment. */
TEST_FLAGS(a_name_that_is_looked_at_is_taken, TEST_SURVIVES_ALLOC)
{
    CHECK_OK(t, agent_socket_take(".join", "h", &before, NULL));
    held_fd = open(before.path, O_RDONLY);
    CHECK(t, held_fd >= 0);
    close(before.fd);
    before.fd = -1;
    CHECK_INT(t, flock(held_fd, LOCK_SH | LOCK_NB), ==, 0);
    join_health_open(&health, base, "h");
    CHECK(t, health.listener);
    CHECK_INT(t, waits, ==, 1);
    dial(t, &probes[0]);
    CHECK_TEXT(t, ask(t, &probes[0]), "host h waits");
}

static char logged[2048];

static void take_log(void *arg, const char *line, size_t length)
{
    (void)arg;
    snprintf(logged, sizeof(logged), "%.*s", (int)length, line);
}

TEST(a_name_that_is_taken_is_named)
{
    static const struct log_sink sink = { .write = take_log, .wall_us = clock_wall_us };

    CHECK_OK(t, agent_socket_take(".join", "h", &before, NULL));
    log_open(&sink);
    join_health_open(&health, base, "h");
    log_open(NULL);
    CHECK(t, !health.listener);
    CHECK_HAS(t, logged, "another hvd-agent --join of this user has the name h on this machine");
}
