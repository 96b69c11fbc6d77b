/*
 * test_event_url.c: the web server of --on-event-url: it gets each event that it wants as JSON; one
 * that is down, slow or broken gets it again; one that refuses, floods or hangs costs its events
 * and nothing else; no secret is in the log. The pauses of the thread are some milliseconds here.
 */
#include "driver/io/event_url.h"

#include "base/limits.h"
#include "base/log.h"
#include "base/time.h"
#include "driver/io/event_post.h"
#include "http/client.h"
#include "os/clock.h"
#include "os/thread.h"
#include "tests/lib/fixture.h"
#include "tests/lib/heap.h"
#include "tests/lib/http_server.h"
#include "tests/lib/log_kept.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define ANSWER(status, more) "HTTP/1.1 " status "\r\nConnection: close\r\n" more "\r\n"
#define OK                   ANSWER("200 OK", "Content-Length: 0\r\n")
#define BROKEN               ANSWER("500 Internal Server Error", "Content-Length: 4\r\n") "oops"
#define AWAY                 ANSWER("503 Service Unavailable", "Content-Length: 0\r\n")

static struct http_server server;
static struct events *events;
static struct event_url *hook;
static struct event_hook_config config;
static char url[256], header_file[400];

/* ---- the pauses of the thread, and a request that no one can break off ---- */

static pthread_t driver_thread;
static _Atomic int64_t longest_us; /* the longest pause that the thread wanted */
static _Atomic bool pauses;        /* the thread pauses as long as it wants */
static _Atomic bool stuck;         /* http_send does not return while this is true */
static _Atomic bool hanging;       /* the thread has called it meanwhile */

bool __real_thread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *held, int64_t deadline_us);
bool __wrap_thread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *held, int64_t deadline_us);
int __real_http_send(struct http_client *client, const struct http_request *request,
                     struct http_answer *ret_answer, struct hvd_err *err);
int __wrap_http_send(struct http_client *client, const struct http_request *request,
                     struct http_answer *ret_answer, struct hvd_err *err);

bool __wrap_thread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *held, int64_t deadline_us)
{
    int64_t now_us = clock_now_us(), soon_us = now_us + 5 * TIME_MS;

    if (pauses || pthread_equal(pthread_self(), driver_thread))
        return __real_thread_cond_wait(cond, held, deadline_us);
    if (deadline_us - now_us > longest_us)
        longest_us = deadline_us - now_us;
    return __real_thread_cond_wait(cond, held, deadline_us < soon_us ? deadline_us : soon_us);
}

int __wrap_http_send(struct http_client *client, const struct http_request *request,
                     struct http_answer *ret_answer, struct hvd_err *err)
{
    while (stuck) {
        hanging = true;
        sched_yield();
    }
    return __real_http_send(client, request, ret_answer, err);
}

/* ---- the log and the driver ---- */

static void begin(struct test *t)
{
    driver_thread = pthread_self();
    setenv("no_proxy", "*", 1); /* the server of a test is on this machine */
    longest_us = 0;
    pauses = stuck = hanging = false;
    log_kept_begin();
    config = (struct event_hook_config){ .url = url, .limit_us = TIME_MIN };
    snprintf(header_file, sizeof(header_file), "%s/headers", test_dir(t));
    CHECK_OK(t, event_filter_parse("info,job_over", &config.filter, NULL));
    CHECK_OK(t, events_create(NULL, "j1", &events, NULL));
}

static void end(struct test *t)
{
    (void)t;
    stuck = false;
    event_url_free(hook);
    hook = NULL;
    http_server_stop(&server);
    events_free(events);
    events = NULL;
    log_open(NULL);
}
FIXTURE(begin, end)

/* The server gives these answers, the last one again and again; NULL: the server hangs. */
static void serve(struct test *t, const char *const *answers, const char *last)
{
    CHECK(t, http_server_start_list(&server, answers, last, 0));
    snprintf(url, sizeof(url), "http://anna:pa55@%s/hook/s3cret?key=k3y", server.address);
}

static void hook_runs(struct test *t)
{
    CHECK_OK(t, event_url_create(&config, events, &hook, NULL));
}

static void add(const char *text)
{
    events_add(events, TRACE_INFO, FACTS(.kind = KIND_HOSTS_CHANGED, .host = "a\"\n<b>"), text);
}

/* Waits until the server has read so many requests. */
static void await_requests(struct test *t, unsigned count)
{
    int64_t until_us = clock_now_us() + TIME_MIN;

    while (server.requests < count) {
        CHECK(t, clock_now_us() < until_us);
        sched_yield();
    }
}

/* The job is over: the events are told, or their time is over. */
static void finish(struct test *t)
{
    event_url_end(hook);
    event_url_free(hook);
    hook = NULL;
    http_server_stop(&server);
    CHECK(t, !strstr(log_kept(), "pa55") && !strstr(log_kept(), "anna"));
    CHECK(t, !strstr(log_kept(), "s3cret") && !strstr(log_kept(), "k3y") &&
                 !strstr(log_kept(), "t0ken"));
}

/* Returns how many events with this text have come, each as often as it was sent. */
static unsigned came(const char *text)
{
    char field[64];
    unsigned count = 0;

    snprintf(field, sizeof(field), "\"text\":\"%s\"", text);
    for (const char *at = server.bodies; (at = strstr(at, field)) != NULL; at++)
        count++;
    return count;
}

/* ---- the cases ---- */

TEST(each_event_is_posted_as_a_line_of_json)
{
    FILE *file = fopen(header_file, "w");

    CHECK(t, file && fputs("# a secret\n\nAuthorization: Bearer t0ken\r\nX-Job:j1", file) >= 0);
    CHECK(t, !fclose(file) && !chmod(header_file, 0600));
    config.header_file = header_file;
    serve(t, NULL, OK);
    events_add(events, TRACE_WARNING, FACTS(.kind = KIND_HOST_LOST), "in memory already");
    hook_runs(t);
    add("say \"x\"\x1b[2J\xff");
    events_add(events, TRACE_DETAIL, FACTS(.kind = KIND_WORKER_READY), "not wanted");
    events_add(events, TRACE_DETAIL, FACTS(.kind = KIND_JOB_OVER), "wanted");
    finish(t);
    CHECK_TEXT(t, log_kept(), "");
    CHECK_INT(t, server.requests, ==, 3);
    CHECK_HAS(t, server.bodies,
              "\"severity\":\"warning\",\"text\":\"in memory already\",\"job\":\"j1\",\"kind\":"
              "\"host_lost\"}\n{");
    CHECK_HAS(t, server.bodies,
              "\"text\":\"say \\\"x\\\" [2J\\ufffd\",\"job\":\"j1\",\"kind\":\"hosts_changed\","
              "\"host\":\"a\\\" <b>\"}\n{");
    CHECK_HAS(t, server.bodies, "\"text\":\"wanted\",\"job\":\"j1\",\"kind\":\"job_over\"}\n");
    CHECK_INT(t, came("not wanted"), ==, 0);
    CHECK(t, !strncmp(server.request, "POST /hook/s3cret?key=k3y HTTP/1.1\r\n", 36));
    CHECK_HAS(t, server.request, "\r\nContent-Type: application/json\r\n");
    CHECK_HAS(t, server.request, "\r\nUser-Agent: hvd-elastic/");
    CHECK_HAS(t, server.request, "\r\nAuthorization: Bearer t0ken\r\n");
    CHECK_HAS(t, server.request, "\r\nX-Job:j1\r\n");
    CHECK(t, !strstr(server.request, "Expect"));
}

TEST_FLAGS(the_user_of_the_url_signs_in, TEST_NO_TORTURE)
{
    serve(t, NULL, ANSWER("204 No Content", ""));
    hook_runs(t);
    add("one");
    finish(t);
    CHECK_HAS(t, server.request, "\r\nAuthorization: Basic YW5uYTpwYTU1\r\n");
    CHECK_TEXT(t, log_kept(), "");
    CHECK_INT(t, server.requests, ==, 1);
}

/* A refused event is not sent again. One warning names the server, the status and the remedy. */
TEST_FLAGS(a_refused_event_is_lost, TEST_NO_TORTURE)
{
    static const char *const refusals[][2] = {
        {ANSWER("400 Bad Request",      "Content-Length: 4\r\n") "k3y\n",
         "answers with the HTTP status 400; the server must accept a POST"                      },
        { ANSWER("401 Unauthorized",    "Content-Length: 0\r\n"),
         "answers with the HTTP status 401; check the credentials in --on-event-url-header-file"},
        { ANSWER("404 Not Found",       "Content-Length: 0\r\n"),
         "answers with the HTTP status 404; correct the path of --on-event-url"                 },
        { ANSWER("302 Found",           "Location: http://127.0.0.1:1/?key=k3y\r\nContent-Length: 0\r\n"),
         "answers with the HTTP status 302; redirections are not followed"                      },
        { ANSWER("501 Not Implemented", "Content-Length: 0\r\n"),
         "answers with the HTTP status 501; look at the log of the server"                      },
    };
    char expected[200];

    for (size_t i = 0; i < ARRAY_SIZE(refusals); i++) {
        log_kept_forget();
        serve(t, NULL, refusals[i][0]);
        hook_runs(t);
        add("one");
        add("two");
        finish(t);
        snprintf(expected, sizeof(expected), "an event is lost, and the job goes on: http://%s %s",
                 server.address, refusals[i][1]);
        CHECK_HAS(t, log_kept(), expected);
        CHECK_INT(t, log_kept_times("is lost"), ==, 1);
        CHECK_HAS(t, log_kept(),
                  "was not told the last 2 events; \"hvd-elastic events\" shows them");
        CHECK_INT(t, server.requests, ==, 2);
        events_free(events);
        CHECK_OK(t, events_create(NULL, "j1", &events, NULL));
    }
}

TEST_FLAGS(the_next_event_after_a_refusal_says_that_the_server_works_again, TEST_NO_TORTURE)
{
    static const char *const answers[] = { ANSWER("403 Forbidden", "Content-Length: 0\r\n"), AWAY,
                                           NULL };

    serve(t, answers, OK);
    hook_runs(t);
    add("one");
    add("two");
    finish(t);
    CHECK_INT(t, came("one"), ==, 1);
    CHECK_INT(t, came("two"), ==, 2);
    CHECK_INT(t, log_kept_times("is lost"), ==, 1);
    CHECK_INT(t, log_kept_times("held up"), ==, 0); /* a failure in a row */
    CHECK_INT(t, log_kept_times("works again; 1 events were lost"), ==, 1);
}

TEST_FLAGS(a_server_that_fails_for_a_moment_gets_the_event_again, TEST_NO_TORTURE)
{
    static const char *const answers[] = { BROKEN, AWAY, "", NULL };

    serve(t, answers, OK);
    hook_runs(t);
    add("one");
    add("two");
    finish(t);
    CHECK_INT(t, came("one"), ==, 4);
    CHECK_INT(t, came("two"), ==, 1);
    CHECK_INT(
        t, log_kept_times("held up, and later ones wait; it is sent again, and the job goes on: "),
        ==, 1);
    CHECK_HAS(t, log_kept(), "answers with the HTTP status 500; look at the log of the server");
    CHECK_INT(t, log_kept_times("works again; 0 events were lost"), ==, 1);
    CHECK_INT(t, longest_us, <=, 4 * TIME_S);
}

/* An event that breaks the server does not keep later ones from it. */
TEST_FLAGS(an_event_that_breaks_the_server_is_given_up, TEST_NO_TORTURE)
{
    static const char *const answers[] = { BROKEN, BROKEN, BROKEN,          BROKEN, BROKEN,
                                           BROKEN, BROKEN, "SSH-2.0-x\r\n", NULL };

    serve(t, answers, OK);
    hook_runs(t);
    add("one");
    add("two");
    await_requests(t, 9);
    finish(t);
    CHECK_INT(t, came("one"), ==, 8);
    CHECK_INT(t, came("two"), ==, 1);
    CHECK_INT(t, log_kept_times("held up"), ==, 1);
    CHECK_INT(t, log_kept_times("is lost"), ==, 1);
    CHECK_HAS(t, log_kept(), "works again; 1 events were lost");
    CHECK_INT(t, longest_us, <=, 30 * TIME_S);
}

TEST_FLAGS(the_server_says_how_long_it_wants_to_be_left_alone, TEST_NO_TORTURE)
{
    static const char *const answers[] = {
        ANSWER("429 Too Many Requests", "Retry-After: 77\r\nContent-Length: 0\r\n"), NULL
    };
    static const char *const too_long[] = {
        ANSWER("503 Service Unavailable", "Retry-After: 99999999999\r\nContent-Length: 0\r\n"),
        ANSWER("503 Service Unavailable", "Retry-After: soon\r\nContent-Length: 0\r\n"), NULL
    };

    serve(t, answers, OK);
    hook_runs(t);
    add("one");
    await_requests(t, 2);
    finish(t);
    CHECK_HAS(t, log_kept(), "status 429; choose fewer events with --on-event-filter");
    CHECK_INT(t, longest_us, >, 60 * TIME_S);
    CHECK_INT(t, longest_us, <=, 77 * TIME_S);
    serve(t, too_long, OK);
    hook_runs(t);
    await_requests(t, 3);
    finish(t);
    CHECK_INT(t, longest_us, >, 200 * TIME_S);
    CHECK_INT(t, longest_us, <=, EVENT_POST_AFTER_US);
}

TEST_FLAGS(a_request_that_hangs_is_broken_off_and_sent_again, TEST_NO_TORTURE)
{
    static const char *const answers[] = { HTTP_SERVER_HANGS, NULL };

    config.limit_us = TIME_S / 4;
    serve(t, answers, OK);
    hook_runs(t);
    add("one");
    await_requests(t, 2);
    finish(t);
    /* On a busy machine the answer to the second request may be late, too. */
    CHECK_INT(t, came("one"), >=, 2);
    CHECK_HAS(t, log_kept(), "it is sent again, and the job goes on: 127.");
    CHECK_HAS(t, log_kept(), "imed out");
    CHECK_HAS(t, log_kept(),
              "see that the server runs and can be reached from the driver's machine");
}

TEST_FLAGS(a_server_that_starts_late_gets_all_events, TEST_NO_TORTURE)
{
    uint16_t port;

    serve(t, NULL, OK);
    http_server_stop(&server);
    port = (uint16_t)strtoul(strrchr(server.address, ':') + 1, NULL, 10);
    hook_runs(t);
    add("one");
    add("two");
    while (!log_kept_times("held up"))
        sched_yield();
    CHECK_INT(t, log_kept_times("onnect"), >=, 1); /* connection refused */
    CHECK(t, http_server_start_list(&server, NULL, OK, port));
    await_requests(t, 2);
    finish(t);
    CHECK_INT(t, came("one"), ==, 1);
    CHECK_INT(t, came("two"), ==, 1);
    CHECK_INT(t, log_kept_times("held up"), ==, 1);
    CHECK_INT(t, log_kept_times("works again"), ==, 1);
}

/* The status counts. An answer that breaks off before its status is none. */
TEST_FLAGS(an_answer_that_is_cut_counts_if_its_status_has_come, TEST_NO_TORTURE)
{
    static const char *const answers[] = { "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf",
                                           "HTTP/1.1", NULL };

    serve(t, answers, OK);
    hook_runs(t);
    add("one");
    add("two");
    await_requests(t, 3);
    finish(t);
    CHECK_INT(t, came("one"), ==, 1);
    CHECK_INT(t, came("two"), ==, 2);
    CHECK_HAS(t, log_kept(), "works again; 0 events were lost");
}

/* The server wants to send 32 MiB: that is no failure, and neither memory nor time is spent on it.
 */
TEST_FLAGS(a_flood_of_an_answer_is_not_read, TEST_NO_TORTURE)
{
    static char flood[32 * 1024 * 1024];
    int length = snprintf(flood, sizeof(flood), "HTTP/1.1 200 OK\r\n\r\n");

    memset(flood + length, 'x', sizeof(flood) - 1 - (size_t)length);
    serve(t, NULL, flood);
    hook_runs(t);
    add("one");
    add("two");
    finish(t);
    CHECK_INT(t, came("one"), ==, 1);
    CHECK_INT(t, came("two"), ==, 1);
    CHECK_TEXT(t, log_kept(), "");
}

/* The first request waits while more events come than may wait: the oldest are dropped, and told.
 */
TEST_FLAGS(events_that_have_no_room_are_counted, TEST_NO_TORTURE)
{
    static const char *const answers[] = { HTTP_SERVER_WAITS, OK, NULL };
    static const char *const failing[] = { HTTP_SERVER_WAITS, AWAY, NULL };
    char text[32];

    for (int failed = 0; failed < 2; failed++) {
        log_kept_forget();
        serve(t, failed ? failing : answers, OK);
        hook_runs(t);
        add("first");
        await_requests(t, 1);
        for (int i = 0; i < LIMIT_HOOK_EVENTS + 7; i++) {
            snprintf(text, sizeof(text), "event %d", i);
            add(text);
        }
        http_server_go(&server);
        await_requests(t, LIMIT_HOOK_EVENTS + 1);
        finish(t);
        CHECK_INT(t, came("event 6"), ==, 0);
        CHECK_INT(t, came("event 8"), ==, 1);
        if (failed) {
            CHECK_INT(t, log_kept_times("held up"), ==, 1);
            CHECK_INT(t, log_kept_times("works again; 7 events were lost"), ==, 1);
            CHECK_INT(t, log_kept_times("slower"), ==, 0);
        } else {
            CHECK_HAS(t, server.bodies, "\"text\":\"event 7\",\"dropped\":7,\"job\"");
            CHECK_HAS(t, server.bodies, "\"text\":\"event 8\",\"job\"");
            CHECK_INT(t, log_kept_times("is slower than events come: 7 events were dropped"), ==,
                      1);
            CHECK_INT(t, log_kept_times("works again"), ==, 0);
        }
        events_free(events);
        CHECK_OK(t, events_create(NULL, "j1", &events, NULL));
    }
}

TEST_FLAGS(the_end_waits_for_a_moment_only, TEST_NO_TORTURE)
{
    int64_t began_us;

    config.limit_us = TIME_HOUR;
    serve(t, NULL, NULL);
    hook_runs(t);
    add("one");
    add("two");
    await_requests(t, 1);
    began_us = clock_now_us();
    finish(t);
    CHECK_INT(t, clock_now_us() - began_us, >=, LIMIT_OUTPUT_LINGER_US);
    CHECK_INT(t, clock_now_us() - began_us, <, TIME_MIN);
    CHECK_HAS(t, log_kept(), "was not told the last 2 events");
}

/* The server has been away for long when the job ends: it gets another chance at once. */
TEST_FLAGS(the_end_cuts_a_long_pause_short, TEST_NO_TORTURE)
{
    static const char *const answers[] = {
        ANSWER("503 Service Unavailable", "Retry-After: 3000\r\nContent-Length: 0\r\n"), NULL
    };

    pauses = true;
    serve(t, answers, OK);
    hook_runs(t);
    add("one");
    while (!log_kept_times("held up"))
        sched_yield();
    finish(t);
    CHECK_INT(t, came("one"), ==, 2);
    CHECK_INT(t, log_kept_times("not told"), ==, 0);
}

/* A driver that dies of an error frees the hook at once. */
TEST_FLAGS(a_request_that_runs_is_broken_off_by_free, TEST_NO_TORTURE)
{
    int64_t began_us;

    config.limit_us = TIME_HOUR;
    serve(t, NULL, NULL);
    hook_runs(t);
    add("one");
    await_requests(t, 1);
    began_us = clock_now_us();
    event_url_free(hook);
    hook = NULL;
    CHECK_INT(t, clock_now_us() - began_us, <, TIME_MIN);
    CHECK_HAS(t, log_kept(), "was not told the last 1 events");
    add("no hook hears this");
}

/* libcurl may wait for a name server, and cannot be woken then: the thread is left behind. */
TEST_FLAGS(a_thread_that_hangs_is_abandoned, TEST_NO_TORTURE)
{
    size_t blocks = heap_blocks();

    serve(t, NULL, OK);
    stuck = true;
    hook_runs(t);
    add("one");
    while (!hanging)
        sched_yield();
    event_url_free(hook);
    hook = NULL;
    CHECK_HAS(t, log_kept(), "hangs, so the last events are not told; see that its name");
    stuck = false; /* the thread goes on, and frees everything */
    while (heap_blocks() > blocks)
        sched_yield();
    CHECK_INT(t, server.requests, ==, 0);
}

TEST(what_is_wrong_is_named)
{
    struct hvd_err err;

    snprintf(url, sizeof(url), "ftp://x/?key=k3y");
    CHECK_CODE(t, event_url_check(&config, true, &err), HVD_E_INVAL);
    CHECK_HAS(t, err.text, "--on-event-url: it is not the URL of a web server");
    CHECK(t, !strstr(err.text, "k3y"));
    CHECK_CODE(t, event_url_create(&config, events, &hook, &err), HVD_E_INVAL);
    snprintf(url, sizeof(url), "http://127.0.0.1:1/");
    config.header_file = header_file;
    CHECK_CODE(t, event_url_check(&config, true, &err), HVD_E_NOTFOUND);
    CHECK_HAS(t, err.text, "--on-event-url-header-file: ");
    CHECK_OK(t, event_url_check(&config, false, &err)); /* a driver that takes a job over */
    config.url = NULL;
    CHECK_CODE(t, event_url_check(&config, true, &err), HVD_E_INVAL);
    CHECK_HAS(t, err.text, "there is no URL; give --on-event-url too");
    config.header_file = NULL;
    CHECK_OK(t, event_url_check(&config, true, &err));
}
