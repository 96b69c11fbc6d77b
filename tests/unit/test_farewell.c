/*
 * test_farewell.c: the process that tells late agents that their job is over: agents that come,
 * come again, or are new; strangers, connections that break off, and a port that is taken. The
 * process is a thread here.
 */
#include "driver/io/farewell.h"

#include "driver/io/host_keys.h"
#include "driver/io/server.h"
#include "driver/store/store.h"
#include "os/clock.h"
#include "proto/catalog.h"
#include "tests/lib/core_tape.h"
#include "tests/lib/fixture.h"
#include "tests/lib/loopback.h"
#include "tests/lib/wire_side.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static struct core_tape tape;
static struct wire wire;
static struct farewell *farewell;
static struct server *taken; /* that has the port */
static struct tls *agent_tls, *stranger_tls;
static char source[32], address[64];
static uint16_t port;
static int silent_fd; /* of a connection; -1: none */
static pthread_t thread;
static bool runs;

static void on_msg(void *arg, uint32_t number, const struct msg *msg)
{
    (void)arg;
    (void)number;
    (void)msg;
}

static void on_event(void *arg, struct event *event)
{
    (void)arg;
    (void)event;
}

static const struct server_ops ops = { on_msg, on_event };

static void *run_farewell(void *arg)
{
    farewell_run(arg);
    return NULL;
}

/* Takes the port of the job, as its driver does, or as another program. */
static bool take_port(struct server **ret_server)
{
    const char *found;
    struct hvd_err err;
    bool moved;

    if (server_create(wire.base, wire.tls, &ops, NULL, ret_server) ||
        server_listen(*ret_server, source, port, &found, &moved, &err))
        return false;
    snprintf(address, sizeof(address), "%s", found);
    return server_place(*ret_server, 0, &port) && !moved;
}

/* A job has ended while host b was silent. */
static void begin(struct test *t)
{
    const struct job_facts facts = { .job = "job", .key = { 7 } };
    struct core_missing missing;
    uint8_t key[TLS_KEY_BYTES];
    size_t at = 0;

    port = 0;
    silent_fd = -1;
    taken = NULL;
    runs = false;
    farewell = NULL;
    agent_tls = stranger_tls = NULL;
    snprintf(source, sizeof(source), "%s", loopback_own());
    CHECK(t, wire_begin(&wire));
    CHECK_OK(t, tape_init(&tape));
    tape.now_us = clock_now_us();
    CHECK_PLAY(t, &tape, TAPE_RUNNING "silent b\nwait 11s\nstop me\n");
    CHECK(t, core_missing(tape.core, tape.now_us, &at, &missing));
    CHECK_OK(t, host_keys_derive(facts.key, "b", missing.epoch, key));
    CHECK_OK(t, tls_create("b", key, &agent_tls, NULL));
    CHECK_OK(t, host_keys_derive(facts.key, "c", missing.epoch, key));
    CHECK_OK(t, tls_create("c", key, &stranger_tls, NULL));
    CHECK(t, take_port(&taken));
    farewell = farewell_create(tape.core, &facts, taken, tape.now_us);
    CHECK(t, farewell);
    server_free(taken); /* the driver is gone */
    taken = NULL;
}

static void end(struct test *t)
{
    (void)t;
    wire_drop(&wire.client);
    if (silent_fd >= 0)
        close(silent_fd);
    if (runs) { /* the case has failed: it would wait for its agent */
        pthread_cancel(thread);
        pthread_join(thread, NULL);
    }
    server_free(taken);
    farewell_free(farewell);
    tls_free(agent_tls);
    tls_free(stranger_tls);
    wire_end(&wire);
    tape_release(&tape);
}
FIXTURE(begin, end)

static bool start(void)
{
    runs = !pthread_create(&thread, NULL, run_farewell, farewell);
    return runs;
}

/* Dials once. True: the handshake is made. */
static bool dial(struct tls *tls)
{
    const char *const list[] = { address };
    const struct msg_texts addresses = { list, 1 };
    struct wire_side *client = &wire.client;

    *client = (struct wire_side){ .wire = &wire };
    if (conn_dial(wire.base, &addresses, tls, &wire_side_ops, client, &client->conn, NULL))
        return false;
    WIRE_UNTIL(&wire, client->opened || client->closed);
    return client->opened && !client->closed;
}

/* An agent dials until the process listens, says hello, and reads that the job is over. Then it
 * closes the connection. `term`: of the last driver that the agent has obeyed. */
static bool is_refused(uint64_t term)
{
    struct msg hello = { .type = MSG_HELLO_AGENT, .term = term };

    hello.u.hello_agent = (struct msg_hello_agent){
        .minor = PROTO_MINOR, .version = "0", .job = "job", .host = "b", .agent = 1
    };
    while (!dial(agent_tls))
        if (wire.late)
            return false;
    if (conn_send(wire.client.conn, &hello, NULL))
        return false;
    WIRE_UNTIL(&wire, wire.client.messages || wire.client.closed);
    if (wire.client.type != MSG_REFUSED)
        return false;
    wire_drop(&wire.client);
    return true;
}

/* The missing agent comes; the process has then told all, and ends. */
static bool agent_is_told(void)
{
    if (!is_refused(1))
        return false;
    runs = false;
    return !pthread_join(thread, NULL);
}

TEST_FLAGS(an_agent_that_comes_late_is_told, TEST_NO_TORTURE)
{
    CHECK(t, start());
    CHECK(t, agent_is_told());
}

/* The last driver has started an agent anew while the missing one was frozen. The new agent is told
 * that the job is over, and the process still waits for the missing one. */
TEST_FLAGS(a_new_agent_is_not_the_missing_one, TEST_NO_TORTURE)
{
    CHECK(t, start());
    for (int i = 0; i < 3; i++)
        CHECK(t, is_refused(0));
    CHECK(t, agent_is_told());
}

/* An agent that was frozen says hello, and closes its connection before it has read the answer; it
 * comes again soon. */
TEST_FLAGS(an_agent_that_has_not_read_the_answer_is_told_again, TEST_NO_TORTURE)
{
    CHECK(t, start());
    for (int i = 0; i < 3; i++)
        CHECK(t, is_refused(1));
    CHECK(t, agent_is_told());
}

/* A program that has connected, and an agent that has proved its key, say nothing more. */
TEST_FLAGS(a_silent_peer_keeps_no_agent_waiting, TEST_NO_TORTURE)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(port) };
    struct wire_side silent;

    silent_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    inet_pton(AF_INET, source, &at.sin_addr);
    CHECK(t, start());
    while (!dial(agent_tls))
        CHECK(t, !wire.late);
    silent = wire.client; /* it stays open, without an owner */
    wire.client.conn = NULL;
    CHECK_OK(t, connect(silent_fd, (struct sockaddr *)&at, sizeof(at)));
    CHECK(t, agent_is_told());
    wire.client = silent;
}

TEST_FLAGS(an_agent_that_breaks_off_is_told_when_it_comes_again, TEST_NO_TORTURE)
{
    CHECK(t, start());
    for (int i = 0; i < 3; i++) {
        while (!dial(agent_tls))
            CHECK(t, !wire.late);
        wire_drop(&wire.client); /* before its hello */
    }
    CHECK(t, agent_is_told());
}

TEST_FLAGS(an_agent_of_another_host_is_told_nothing, TEST_NO_TORTURE)
{
    CHECK(t, start());
    while (!dial(agent_tls))
        CHECK(t, !wire.late);
    wire_drop(&wire.client);
    CHECK(t, !dial(stranger_tls));
    CHECK_INT(t, wire.client.messages, ==, 0);
    CHECK(t, agent_is_told());
}

/* The agent dials the port of its job alone, so at another one no agent would come. */
TEST_FLAGS(a_port_that_is_taken_ends_it_at_once, TEST_NO_TORTURE)
{
    CHECK(t, take_port(&taken));
    farewell_run(farewell);
}

/* The connection is refused: no process listens before it runs, and none after it has ended. */
TEST_FLAGS(no_process_listens_after_the_end, TEST_NO_TORTURE)
{
    CHECK(t, !dial(agent_tls));
    CHECK(t, start());
    CHECK(t, agent_is_told());
    farewell_free(farewell);
    farewell = NULL;
    CHECK(t, !dial(agent_tls));
}
