/*
 * test_scrapes.c: the server of --metrics: answers, a storm of scrapes, clients that send nothing
 * or read nothing, rubbish. The clients are plain sockets, driven by the same loop.
 */
#include "driver/control/scrapes.h"
#include "driver/control/web.h"

#include "base/limits.h"
#include "base/time.h"
#include "os/clock.h"
#include "tests/lib/fixture.h"
#include "tests/lib/loop_client.h"

#include <event2/event.h>
#include <string.h>
#include <unistd.h>

static struct loop_client client;
static struct scrapes *scrapes;
static unsigned views;
static const char *trouble;
static size_t failure_count;
static int view_rc;
static int held[3 * LIMIT_SCRAPES]; /* connections that stay; negative: none */

static int on_view(void *arg, struct core_view *ret_view, struct table_facts *ret_facts)
{
    struct view_failures *failures =
        arena_alloc_array(&ret_view->memory, failure_count + 1, sizeof(*failures));

    (void)arg;
    views++;
    if (!failures || view_rc)
        return HVD_E_NOMEM;
    for (size_t i = 0; i < failure_count; i++)
        failures[i] = (struct view_failures){ "a-host-with-a-long-name", i };
    ret_view->goodput.failures = failures;
    ret_view->goodput.failure_count = failure_count;
    *ret_facts = (struct table_facts){ .job = "j1", .state_dir = "/s" };
    return 0;
}

static const char *on_trouble(void *arg)
{
    (void)arg;
    return trouble;
}

static const struct scrapes_ops ops = { .view = on_view, .trouble = on_trouble };

static bool server_begin(void)
{
    return loop_client_init(&client) && !web_place("--metrics", "0", &client.place, NULL) &&
           !scrapes_create(client.base, &client.place, &ops, NULL, &scrapes, NULL) &&
           !address_parse(scrapes_address(scrapes), &client.place, NULL);
}

static void begin_case(struct test *t)
{
    (void)t;
    scrapes = NULL;
    views = 0;
    trouble = NULL;
    failure_count = 1;
    view_rc = 0;
    for (size_t i = 0; i < ARRAY_SIZE(held); i++)
        held[i] = -1;
}

static void end_case(struct test *t)
{
    (void)t;
    for (size_t i = 0; i < ARRAY_SIZE(held); i++)
        if (held[i] >= 0)
            close(held[i]);
    scrapes_free(scrapes);
    loop_client_release(&client);
}
FIXTURE(begin_case, end_case)

static int ask(const char *text)
{
    return loop_client_ask(&client, text);
}

/* Reads until the end of the connection, and closes the socket. */
static const char *answer(int fd)
{
    return loop_client_read(&client, fd, NULL);
}

TEST(answers)
{
    CHECK(t, server_begin());
    CHECK_HAS(t, answer(ask("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")),
              "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n");
    CHECK_HAS(t,
              answer(ask("GET /metrics HTTP/1.1\r\nAccept: application/openmetrics-text\r\n\r\n")),
              "\n# EOF\n");
    CHECK_HAS(t, answer(ask("GET /healthz HTTP/1.1\r\n\r\n")), "200 OK\r\n");
    CHECK_HAS(t, answer(ask("GET /healthz HTTP/1.1\r\n\r\n")), "\r\n\r\nok\n");
    trouble = "the journal is not written";
    CHECK_HAS(t, answer(ask("GET /healthz HTTP/1.1\r\n\r\n")), "503 Service Unavailable\r\n");
    CHECK_HAS(t, answer(ask("GET / HTTP/1.1\r\n\r\n")), "404 Not Found\r\n");
    CHECK_HAS(t, answer(ask("POST /metrics HTTP/1.1\r\n\r\n{}")), "\r\nAllow: GET, HEAD\r\n");
    CHECK_HAS(t, answer(ask("\x16\x03\x01\n\n")), "400 Bad Request\r\n");
}

TEST(head_has_no_body)
{
    const char *text;

    CHECK(t, server_begin());
    text = answer(ask("HEAD /metrics HTTP/1.1\r\n\r\n"));
    CHECK_HAS(t, text, "HTTP/1.1 200 OK\r\n");
    CHECK_HAS(t, text, "\r\nContent-Length: ");
    CHECK(t, strlen(text) > 4 && !strcmp(text + strlen(text) - 4, "\r\n\r\n"));
}

TEST_FLAGS(a_view_that_cannot_be_made, TEST_NO_TORTURE)
{
    CHECK(t, server_begin());
    view_rc = HVD_E_NOMEM;
    CHECK_HAS(t, answer(ask("GET /metrics HTTP/1.1\r\n\r\n")), "503 Service Unavailable\r\n");
    view_rc = 0;
    CHECK_HAS(t, answer(ask("GET /metrics HTTP/1.1\r\n\r\n")), "200 OK\r\n");
}

/* Hundreds of scrapes make few views, and each one that stays has its answer. */
TEST_FLAGS(a_storm_of_scrapes, TEST_NO_TORTURE)
{
    int64_t began_us;

    CHECK(t, server_begin());
    began_us = clock_now_us();
    for (int i = 0; i < 300; i++)
        CHECK_HAS(t, answer(ask("GET /metrics HTTP/1.1\r\n\r\n")), "hvd_elastic_round 0\n");
    CHECK_INT(t, views, <=, 2 + (clock_now_us() - began_us) / (100 * TIME_MS));
}

/* More clients than are served: the oldest ones, which say nothing, leave for the newest. */
TEST_FLAGS(silent_clients_leave_for_others, TEST_NO_TORTURE)
{
    CHECK(t, server_begin());
    for (size_t i = 0; i < ARRAY_SIZE(held); i++) {
        held[i] = ask("GET /metr");
        CHECK(t, held[i] >= 0);
        event_base_loop(client.base, EVLOOP_ONCE);
    }
    CHECK_HAS(t, answer(ask("GET /healthz HTTP/1.1\r\n\r\n")), "\r\n\r\nok\n");
    CHECK_TEXT(t, answer(held[0]), ""); /* it was closed */
    held[0] = -1;
}

/* A client that never reads a long answer keeps no other one waiting. */
TEST_FLAGS(a_viewer_that_never_reads, TEST_NO_TORTURE)
{
    int small = 2048;

    failure_count = 12000;
    CHECK(t, server_begin());
    for (size_t i = 0; i < LIMIT_SCRAPES / 2; i++) {
        held[i] = ask("GET /metrics HTTP/1.1\r\n\r\n");
        CHECK(t,
              held[i] >= 0 && !setsockopt(held[i], SOL_SOCKET, SO_RCVBUF, &small, sizeof(small)));
    }
    for (int i = 0; i < 20; i++)
        CHECK_HAS(t, answer(ask("GET /healthz HTTP/1.1\r\n\r\n")), "\r\n\r\nok\n");
    CHECK_HAS(t, answer(ask("GET /metrics HTTP/1.1\r\n\r\n")), "hvd_elastic_pause_phase_seconds");
}

TEST(a_port_that_is_taken)
{
    struct scrapes *second = NULL;
    struct hvd_err err;
    int rc;

    CHECK(t, server_begin());
    rc = scrapes_create(client.base, &client.place, &ops, NULL, &second, &err);
    if (!rc)
        scrapes_free(second);
    CHECK_CODE(t, rc, HVD_E_BUSY);
}
