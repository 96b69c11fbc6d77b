/*
 * test_page.c: the server of --page: the page and its headers, hosts and tokens that are refused,
 * the stream of messages, hostile texts, viewers that read nothing or are too many, a large job.
 */
#include "base/limits.h"
#include "base/time.h"
#include "driver/control/live.h"
#include "driver/control/page.h"
#include "driver/control/page_text.h"
#include "driver/control/web.h"
#include "proto/commit.h"
#include "tests/lib/fixture.h"
#include "tests/lib/loop_client.h"

#include <event2/event.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define HOSTILE "</script><img src=x onerror=1>\n\ndata: {}\r\x1b[31m\xff\"\\"

static struct loop_client client;
static struct page *page;
static struct events *events;
static size_t host_count;
static unsigned views;
static int view_rc;
static enum job_state job_state;
static struct view_checkpoint checkpoint;
static const char *checkpoint_dir;
static int held[LIMIT_VIEWERS]; /* streams that stay; negative: none */

static int on_view(void *arg, struct core_view *ret_view, struct table_facts *ret_facts)
{
    static const struct view_worker workers[] = {
        {.incarnation = 1,  .rank = 0,          .state = WORKER_MEMBER, .entered = true        },
        { .incarnation = 2, .rank = UINT32_MAX, .slot = 1,              .state = WORKER_BOOTING},
    };
    struct view_host *hosts = arena_alloc_array(&ret_view->memory, host_count + 1, sizeof(*hosts));
    struct view_held *rows = arena_alloc_array(&ret_view->memory, host_count + 1, sizeof(*rows));

    (void)arg;
    views++;
    if (!hosts || !rows || view_rc)
        return HVD_E_NOMEM;
    for (size_t i = 0; i < host_count; i++) {
        hosts[i] = (struct view_host){ .name = i + 1 < host_count ? "quiet" : HOSTILE,
                                       .why = i + 1 < host_count ? "" : HOSTILE,
                                       .slots = 2,
                                       .listed = true,
                                       .agent = AGENT_THERE,
                                       .heard_us = TIME_NEVER,
                                       .workers = workers,
                                       .worker_count = ARRAY_SIZE(workers) };
        rows[i] = (struct view_held){ .host = HOSTILE, .failures = 1, .reason = HOSTILE };
    }
    ret_view->hosts = hosts;
    ret_view->host_count = host_count;
    ret_view->held = rows;
    ret_view->held_count = host_count;
    ret_view->job = job_state;
    ret_view->waiting_for = HOSTILE;
    ret_view->shortage.since_us = ret_view->shortage.fails_us = TIME_NEVER;
    ret_view->discovery = (struct view_discovery){ .failure = HOSTILE };
    ret_view->checkpoint = checkpoint;
    *ret_facts = (struct table_facts){ .job = HOSTILE,
                                       .state_dir = "/s",
                                       .now_us = 3500 * TIME_MS,
                                       .checkpoint_dir = checkpoint_dir };
    return 0;
}

/* The newest request of the page to the core, and how many there were. */
static struct event asked;
static char asked_host[LIMIT_HOST_NAME_BYTES + 1];
static unsigned acts;
static bool answers_late;

static void on_act(void *arg, const struct event *event)
{
    (void)arg;
    acts++;
    asked = *event;
    snprintf(asked_host, sizeof(asked_host), "%s", event->host ? event->host : "");
    if (event->kind != EVENT_STOP && !answers_late)
        page_reply(page, event->ask, strcmp(asked_host, "x") ? 0 : HVD_E_NOTFOUND,
                   strcmp(asked_host, "x") ? "" : "x: no such host in this job");
}

static const struct scrapes_ops ops = { .view = on_view, .act = on_act };
static bool control;

static bool server_begin(const char *token)
{
    const struct page_access access = { .token = token, .control = control };

    return loop_client_init(&client) && !events_create(NULL, "j1", &events, NULL) &&
           !web_place("--page", "0", &client.place, NULL) &&
           !page_create(client.base, &client.place, &access, events, &ops, NULL, &page, NULL) &&
           !address_parse(page_address(page), &client.place, NULL);
}

static void begin_case(struct test *t)
{
    (void)t;
    page = NULL;
    events = NULL;
    host_count = 1;
    views = 0;
    view_rc = 0;
    job_state = JOB_RUNNING;
    checkpoint = (struct view_checkpoint){ .commit = 0 };
    checkpoint_dir = NULL;
    control = answers_late = false;
    acts = 0;
    for (size_t i = 0; i < ARRAY_SIZE(held); i++)
        held[i] = -1;
}

static void end_case(struct test *t)
{
    (void)t;
    for (size_t i = 0; i < ARRAY_SIZE(held); i++)
        if (held[i] >= 0)
            close(held[i]);
    page_free(page);
    events_free(events);
    loop_client_release(&client);
}
FIXTURE(begin_case, end_case)

/* Asks for a path with a host, and reads the whole answer. */
static const char *get(const char *path, const char *host)
{
    char text[512];

    snprintf(text, sizeof(text), "GET %s HTTP/1.1\r\nHost: %s\r\n\r\n", path, host);
    return loop_client_read(&client, loop_client_ask(&client, text), NULL);
}

static int watch(void)
{
    return loop_client_ask(&client, "GET /live HTTP/1.1\r\nHost: localhost\r\n\r\n");
}

TEST(the_page)
{
    const char *text;

    CHECK(t, server_begin(NULL));
    text = get("/", "localhost:1");
    CHECK_HAS(t, text, "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n");
    CHECK_HAS(t, text, "\r\nContent-Security-Policy: default-src 'none'; connect-src 'self'; ");
    CHECK_HAS(t, text, "<script>\n");
    CHECK_HAS(t, text, "</html>\n");
    CHECK_HAS(t, get("/nothing", "127.0.0.1"), "404 Not Found\r\n");
    CHECK_HAS(t,
              loop_client_read(&client, loop_client_ask(&client, "POST / HTTP/1.1\r\n\r\n"), NULL),
              "\r\nAllow: GET, HEAD\r\n");
}

/* The page asks no other server for anything, and makes no HTML of any text. */
TEST(the_page_needs_nothing_else)
{
    static const char *const words[] = { " src=",          "url(",      "@import",
                                         "innerHTML",      "outerHTML", "insertAdjacentHTML",
                                         "document.write", "eval(" };
    const char *text = (const char *)page_text;
    const char *namespace = strstr(text, "http://");

    CHECK_INT(t, strlen(text), ==, page_text_length);
    for (size_t i = 0; i < ARRAY_SIZE(words); i++)
        CHECK(t, !strstr(text, words[i]));
    CHECK(t, !strstr(text, "https://"));
    CHECK(t, namespace && !strncmp(namespace, "http://www.w3.org/2000/svg", 26) &&
                 !strstr(namespace + 1, "http://"));
}

TEST(names_of_other_sites_are_refused)
{
    CHECK(t, server_begin(NULL));
    CHECK_HAS(t, get("/", "evil.example"), "403 Forbidden\r\n");
    CHECK_HAS(t, get("/live", "evil.example:9470"), "403 Forbidden\r\n");
    CHECK_HAS(t, get("/", ""), "403 Forbidden\r\n");
    CHECK_HAS(t, get("/", "[::1]:9470"), "200 OK\r\n");
    CHECK_INT(t, views, ==, 0);
}

TEST(token)
{
    int fd;

    CHECK(t, server_begin("0123456789abcdef"));
    CHECK_HAS(t, get("/", "node7:9470"), "403 Forbidden\r\n");
    CHECK_HAS(t, get("/?token=", "localhost"), "403 Forbidden\r\n");
    CHECK_HAS(t, get("/?token=0123456789abcdeF", "localhost"), "403 Forbidden\r\n");
    CHECK_HAS(t, get("/live?token=0123456789abcde", "localhost"), "403 Forbidden\r\n");
    CHECK_HAS(t, get("/?token=0123456789abcdef", "node7:9470"), "200 OK\r\n");
    CHECK_INT(t, views, ==, 0);
    fd = loop_client_ask(&client, "GET /live?token=0123456789abcdef HTTP/1.1\r\n\r\n");
    CHECK_HAS(t, loop_client_read(&client, fd, "\n\n"), "\r\n\r\ndata: {");
    close(fd);
}

/* A message is one line, also with hostile texts; the next one comes with an event. A
 * later message that lacks memory is left out, so this case is not tortured. */
TEST_FLAGS(messages, TEST_NO_TORTURE)
{
    const char *text, *data;

    CHECK(t, server_begin(NULL));
    events_add(events, TRACE_WARNING, NULL, "before " HOSTILE);
    held[0] = watch();
    text = loop_client_read(&client, held[0], "\n\n");
    CHECK_HAS(t, text, "200 OK\r\nContent-Type: text/event-stream\r\n");
    data = strstr(text, "\r\n\r\ndata: {\"status\":{\"job\":\"</script>");
    CHECK(t, data);
    CHECK(t, strcspn(data + 4, "\n") == strlen(data + 4) - 2);
    CHECK_HAS(t, data, "\"hosts\":{\"job\":");
    CHECK_HAS(t, data, "\"blacklist\":{\"job\":");
    CHECK_HAS(t, data, "\"severity\":\"warning\",\"text\":\"before </script>");
    CHECK_HAS(t, data,
              "\"checkpoint\":{\"commit\":null,\"age_s\":null,\"where\":null},\"series\":[],"
              "\"events\":[");
    checkpoint_dir = HOSTILE;
    checkpoint = (struct view_checkpoint){ .commit = COMMIT_FIRST_OF(3), .made_us = TIME_NEVER };
    events_add(
        events, TRACE_ERROR,
        &(struct facts){ .kind = KIND_WORKER_FAILED, .round = 3, .cause = "killed </script>" },
        "after");
    text = loop_client_read(&client, held[0],
                            "\"text\":\"after\",\"job\":\"j1\",\"kind\":\"worker_failed\","
                            "\"round\":3,\"cause\":\"killed </script>\"}]}\n\n");
    CHECK_HAS(t, text, "\"number\":2,");
    CHECK_HAS(t, text, "\"checkpoint\":{\"commit\":\"3.");
    CHECK_HAS(t, text, ",\"age_s\":null,\"where\":\"</script>");
    /* the age of a checkpoint that this driver has heard of is known */
    checkpoint.made_us = TIME_S;
    /* without an event, too */
    text = loop_client_read(&client, held[0], "\n\n");
    CHECK_HAS(t, text, "data: {\"status\":");
    CHECK_HAS(t, text, "\"age_s\":2.500,\"where\"");
}

TEST_FLAGS(a_view_that_cannot_be_made, TEST_NO_TORTURE)
{
    CHECK(t, server_begin(NULL));
    view_rc = HVD_E_NOMEM;
    CHECK_HAS(t, get("/live", "localhost"), "503 Service Unavailable\r\n");
    view_rc = 0;
    held[0] = watch();
    CHECK_HAS(t, loop_client_read(&client, held[0], "\n\n"), "data: {");
    view_rc = HVD_E_NOMEM;
    events_add(events, TRACE_INFO, NULL, "while there is no memory");
    while (views < 3)
        event_base_loop(client.base, EVLOOP_ONCE);
    view_rc = 0;
    CHECK_HAS(t, loop_client_read(&client, held[0], "while there is no memory"), "data: {");
}

/* Viewers beyond the limit are told so; no viewer has to leave, and requests are answered. */
TEST_FLAGS(too_many_viewers, TEST_NO_TORTURE)
{
    CHECK(t, server_begin(NULL));
    for (size_t i = 0; i < ARRAY_SIZE(held); i++) {
        held[i] = watch();
        CHECK_HAS(t, loop_client_read(&client, held[i], "\n\n"), "data: {");
    }
    for (int i = 0; i < 200; i++)
        CHECK_HAS(t, get("/live", "localhost"), "\r\nRetry-After: 5\r\n");
    CHECK_HAS(t, get("/", "localhost"), "200 OK\r\n");
    events_add(events, TRACE_INFO, NULL, "all hear this");
    for (size_t i = 0; i < ARRAY_SIZE(held); i++)
        CHECK_HAS(t, loop_client_read(&client, held[i], "all hear this"), "data: {");
    CHECK_INT(t, views, <, 100);
    close(held[7]);
    for (held[7] = -1; held[7] < 0;) {
        int fd = watch();

        if (strstr(loop_client_read(&client, fd, "\r\n\r\n"), "event-stream"))
            held[7] = fd;
        else
            close(fd);
    }
}

/* A large job: the message is bounded, the host with a reason is in it, the count of the others
 * too. Viewers that read nothing keep none waiting. */
TEST_FLAGS(a_large_job, TEST_NO_TORTURE)
{
    const char *text;
    int small = 2048;

    host_count = LIMIT_HOSTS;
    CHECK(t, server_begin(NULL));
    for (size_t i = 1; i < 8; i++) {
        held[i] = watch();
        CHECK(t,
              held[i] >= 0 && !setsockopt(held[i], SOL_SOCKET, SO_RCVBUF, &small, sizeof(small)));
    }
    held[0] = watch();
    text = loop_client_read(&client, held[0], "\n\n");
    CHECK_INT(t, strlen(text), <, LIMIT_LIVE_BYTES / 8);
    CHECK_HAS(t, text, "\"hosts\":{\"listed\":16384,");
    CHECK_HAS(t, text, "\"hosts\":[{\"name\":\"</script>");
    CHECK_HAS(t, text, "\"hosts_left_out\":16128,\"blacklist_left_out\":16128,");
    for (int i = 0; i < 5; i++)
        CHECK_HAS(t, loop_client_read(&client, held[0], "\n\n"), "data: {");
}

/* Nothing is made while no viewer is there. */
TEST_FLAGS(no_viewers, TEST_NO_TORTURE)
{
    CHECK(t, server_begin(NULL));
    held[0] = watch();
    CHECK_HAS(t, loop_client_read(&client, held[0], "\n\n"), "data: {");
    close(held[0]);
    held[0] = -1;
    CHECK_HAS(t, get("/", "localhost"), "200 OK\r\n");
    views = 0;
    for (int i = 0; i < 200; i++) {
        events_add(events, TRACE_INFO, NULL, "no viewer hears this");
        event_base_loop(client.base, EVLOOP_ONCE);
    }
    CHECK_INT(t, views, ==, 0);
}

/* ---- --page-control ---- */

#define SECRET "0123456789abcdef"
#define BEARER "Authorization: Bearer " SECRET "\r\n"
#define LOCAL  "Host: 127.0.0.1:9470\r\n"

/* Posts a body with headers. Returns the whole answer. */
static const char *post(const char *path, const char *headers, const char *body)
{
    char text[2048];

    snprintf(text, sizeof(text), "POST %s HTTP/1.1\r\n%sContent-Length: %zu\r\n\r\n%s", path,
             headers, strlen(body), body);
    return loop_client_read(&client, loop_client_ask(&client, text), NULL);
}

TEST(drains_undrains_and_stops)
{
    control = true;
    CHECK(t, server_begin(SECRET));
    CHECK_HAS(t, post("/drain", LOCAL BEARER, "node7:3"), "200 OK\r\n");
    CHECK_INT(t, asked.kind, ==, EVENT_DRAIN);
    CHECK_TEXT(t, asked_host, "node7");
    CHECK_INT(t, asked.slot, ==, 3);
    CHECK_INT(t, asked.left_us, ==, TIME_NEVER);
    CHECK(t, asked.ask & PAGE_ASK);
    /* twice the same, and from the page itself, which a browser names as the origin */
    CHECK_HAS(t, post("/drain", LOCAL BEARER "Origin: http://127.0.0.1:9470\r\n", "node7:3"),
              "\r\n\r\nnode7:3 is being drained\n");
    CHECK_HAS(t, post("/undrain", LOCAL BEARER, "node7"), "\r\n\r\nnode7 may be used again\n");
    CHECK_INT(t, asked.kind, ==, EVENT_UNDRAIN);
    CHECK_INT(t, asked.slot, ==, EVENT_WHOLE_HOST);
    CHECK_HAS(t, post("/drain", LOCAL BEARER, "x"), "404 Not Found\r\n");
    CHECK_HAS(t, post("/drain", LOCAL BEARER, "x"), "\r\n\r\nx: no such host in this job\n");
    CHECK_INT(t, acts, ==, 5);
    CHECK_HAS(t, post("/stop", LOCAL BEARER, ""), "\r\n\r\nthe job is being stopped\n");
    CHECK_INT(t, asked.kind, ==, EVENT_STOP);
    CHECK_INT(t, asked.code, ==, 1); /* a checkpoint is written first */
    /* a second stop would kill the workers at once */
    CHECK_HAS(t, post("/stop", LOCAL BEARER, ""), "the job is being stopped already; ");
    CHECK_INT(t, acts, ==, 6);
}

TEST(a_job_that_stops_already)
{
    control = true;
    job_state = JOB_STOPPING;
    CHECK(t, server_begin(SECRET));
    CHECK_HAS(t, post("/stop", LOCAL BEARER, ""), "the job is being stopped already; ");
    CHECK_INT(t, acts, ==, 0);
}

TEST(requests_that_change_nothing)
{
    static const struct {
        const char *path, *headers, *body, *status;
    } wrong[] = {
        {"/drain",                LOCAL,                                                          "a",   "403 "},
        { "/drain?token=" SECRET, LOCAL,                                                          "a",   "403 "},
        { "/drain",               LOCAL "Authorization: Bearer 0123456789abcdeF\r\n",             "a",   "403 "},
        { "/drain",               LOCAL "Authorization: Bearer \r\n",                             "a",   "403 "},
        { "/drain",               LOCAL "Authorization: Basic " SECRET "\r\n",                    "a",   "403 "},
        { "/drain",               LOCAL BEARER BEARER,                                            "a",   "400 "},
        { "/drain",               LOCAL BEARER "Origin: http://evil.example\r\n",                 "a",   "403 "},
        { "/drain",               LOCAL BEARER "Origin: null\r\n",                                "a",   "403 "},
        { "/drain",               LOCAL BEARER "Origin: http://127.0.0.1:9471\r\n",               "a",   "403 "},
        { "/drain",               "Host: evil.example\r\n" BEARER,                                "a",   "403 "},
        { "/stop",                "Host: evil.example\r\nOrigin: http://evil.example\r\n" BEARER, "",    "403 "},
        { "/stop",                BEARER,                                                         "",    "403 "},
        { "/stop",                LOCAL,                                                          "",    "403 "},
        { "/drain",               LOCAL BEARER,                                                   "",    "400 "},
        { "/drain",               LOCAL BEARER,                                                   "a:b", "400 "},
        { "/",                    LOCAL BEARER,                                                   "a",   "405 "},
        { "/live",                LOCAL BEARER,                                                   "a",   "405 "},
        { "/undrain",             LOCAL BEARER "Content-Length: 1\r\n",                           "a",   "400 "},
        { "/undrain",             LOCAL BEARER "Transfer-Encoding: chunked\r\n",                  "a",   "411 "},
    };
    char body[HTTP_BODY_MAX + 2] = "";
    const char *text;

    control = true;
    CHECK(t, server_begin(SECRET));
    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
        text = post(wrong[i].path, wrong[i].headers, wrong[i].body);
        CHECK(t, *text && strlen(text) > 9 && !strncmp(text + 9, wrong[i].status, 4));
        CHECK(t, !strstr(text, SECRET));
    }
    memset(body, 'a', sizeof(body) - 1);
    CHECK_HAS(t, post("/drain", LOCAL BEARER, body), "413 Content Too Large\r\n");
    /* a body without a length is none */
    text = "POST /drain HTTP/1.1\r\n" LOCAL BEARER "\r\na";
    CHECK_HAS(t, loop_client_read(&client, loop_client_ask(&client, text), NULL),
              "400 Bad Request\r\n");
    text = "GET /stop?token=" SECRET " HTTP/1.1\r\n" LOCAL BEARER "\r\n";
    text = loop_client_read(&client, loop_client_ask(&client, text), NULL);
    CHECK_HAS(t, text, "405 Method Not Allowed\r\n");
    CHECK_HAS(t, text, "\r\nAllow: POST\r\n");
    CHECK_INT(t, acts, ==, 0);
}

/* Without --page-control, or without a token, the page only shows the job. */
TEST(a_page_that_only_shows)
{
    CHECK(t, server_begin(SECRET));
    CHECK_HAS(t, post("/stop", LOCAL BEARER, ""), "403 Forbidden\r\n");
    CHECK_INT(t, acts, ==, 0);
}

TEST(no_token_no_control)
{
    control = true;
    CHECK(t, server_begin(NULL));
    CHECK_HAS(t, post("/stop", LOCAL BEARER, ""), "start its driver with --page-control");
    CHECK_INT(t, acts, ==, 0);
}

/* The core answers late: after another request, after the viewer has gone, or never, because the
 * driver ends; and a second answer to the same request has no effect. */
TEST_FLAGS(late_answers, TEST_NO_TORTURE)
{
    static const char ask[] = "POST /drain HTTP/1.1\r\n" LOCAL BEARER "Content-Length: 1\r\n\r\na";
    uint64_t first;

    control = answers_late = true;
    CHECK(t, server_begin(SECRET));
    held[0] = loop_client_ask(&client, ask);
    while (acts < 1)
        event_base_loop(client.base, EVLOOP_ONCE);
    first = asked.ask;
    held[1] = loop_client_ask(&client, ask);
    while (acts < 2)
        event_base_loop(client.base, EVLOOP_ONCE);
    CHECK(t, asked.ask != first);
    CHECK_HAS(t, get("/?token=" SECRET, "localhost"), "200 OK\r\n");
    page_reply(page, first, HVD_E_STATE, "the job has come to its end");
    page_reply(page, first, 0, "");
    CHECK_HAS(t, loop_client_read(&client, held[0], "come to its end\n"), "409 Conflict\r\n");
    close(held[1]);
    held[1] = -1;
    page_reply(page, asked.ask, 0, "");
    page_reply(page, 12345, 0, "");
    held[2] = loop_client_ask(&client, ask);
    while (acts < 3)
        event_base_loop(client.base, EVLOOP_ONCE);
    page_free(page);
    page = NULL;
    page_reply(page, asked.ask, 0, "");
    CHECK_HAS(t, loop_client_read(&client, held[2], "may know more\n"),
              "503 Service Unavailable\r\n");
}

TEST(viewers_are_told_of_control)
{
    const char *text;

    control = true;
    CHECK(t, server_begin(SECRET));
    held[0] = loop_client_ask(&client, "GET /live?token=" SECRET " HTTP/1.1\r\n\r\n");
    text = loop_client_read(&client, held[0], "event: control\ndata: yes\n\n");
    CHECK_HAS(t, text, "}\n\nevent: control\n");
}

TEST(places)
{
    char text[ADDRESS_TEXT_MAX];
    struct address place;
    struct hvd_err err;

    CHECK_OK(t, web_place("--page", "9464", &place, NULL));
    CHECK_TEXT(t, address_show(&place, text), "127.0.0.1:9464");
    CHECK_OK(t, web_place("--page", ":9464", &place, NULL));
    CHECK_TEXT(t, address_show(&place, text), "127.0.0.1:9464");
    CHECK_OK(t, web_place("--page", "[::1]:9", &place, NULL));
    CHECK_TEXT(t, address_show(&place, text), "[::1]:9");
    CHECK_CODE(t, web_place("--page", "9464x", &place, &err), HVD_E_INVAL);
    CHECK_CODE(t, web_place("--page", "nowhere:1", &place, &err), HVD_E_INVAL);
    CHECK_HAS(t, err.text, "--page nowhere:1: ");
    CHECK_CODE(t, web_place("--page", "1.2.3.4:70000", &place, &err), HVD_E_INVAL);
    CHECK_CODE(t, web_place("--page", "", &place, &err), HVD_E_INVAL);
}
