/*
 * test_http_client.c: requests to a server of the test: bodies in both directions, limits of time
 * and size, and errors that name the server and the remedy.
 */
#include "http/client.h"

#include "base/time.h"
#include "os/clock.h"
#include "os/thread.h"
#include "tests/lib/http_server.h"
#include "tests/lib/test.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#define PATIENCE_US (100 * TIME_S)
#define SHORT_US    (200 * TIME_MS)

static struct http_server server;
static struct http_client *client;
static struct buf body;
static struct http_answer answer;
static char url[128];

static bool begin(const char *text)
{
    static const struct http_config config = { .connect_us = PATIENCE_US,
                                               .request_us = PATIENCE_US,
                                               .remedy = "check --there" };

    buf_init(&body, 64);
    if (!http_server_start(&server, text) || http_client_create(&config, &client, NULL))
        return false;
    snprintf(url, sizeof(url), "http://%s/a/b?c=d", server.address);
    return true;
}

static void end(void)
{
    http_client_free(client);
    client = NULL;
    http_server_stop(&server);
    buf_release(&body);
}

static char etag[64];

static void keep_etag(void *arg, const char *name, const char *value)
{
    (void)arg;
    if (!strcmp(name, "ETag"))
        snprintf(etag, sizeof(etag), "%s", value);
}

TEST_FLAGS(an_answer_comes_with_status_headers_and_body, TEST_NO_TORTURE)
{
    struct http_request get = { .url = url, .body_to = &body, .header = keep_etag };

    CHECK(t, begin("HTTP/1.1 404 Not Found\r\nETag:  \"x1\"\r\nContent-Length: 5\r\n\r\nnone\n"));
    CHECK_OK(t, http_send(client, &get, &answer, NULL));
    CHECK_INT(t, answer.status, ==, 404);
    CHECK_TEXT(t, buf_text(&body), "none\n");
    CHECK_TEXT(t, etag, "\"x1\"");
    CHECK(t, !strncmp(server.request, "GET /a/b?c=d HTTP/1.1\r\n", 23));
out:
    end();
}

/* How many connections a child process would inherit. */
static int inherited_connections(void)
{
    int count = 0;

    for (int fd = 0; fd < 256; fd++) {
        struct sockaddr_in peer = { .sin_family = AF_UNSPEC };
        socklen_t size = sizeof(peer);

        count += !getpeername(fd, (struct sockaddr *)&peer, &size) && peer.sin_family == AF_INET &&
                 !(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    }
    return count;
}

TEST_FLAGS(a_child_inherits_no_connection, TEST_NO_TORTURE)
{
    struct http_request get = { .url = url };
    int before = inherited_connections();

    CHECK(t, begin("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"));
    CHECK_OK(t, http_send(client, &get, &answer, NULL));
    CHECK_INT(t, inherited_connections(), ==, before); /* libcurl keeps the connection */
out:
    end();
}

TEST_FLAGS(post_and_delete_send_body_and_headers, TEST_NO_TORTURE)
{
    static const char *const headers[] = { "Authorization: token",
                                           "Content-Type: application/json" };
    struct http_request request = { .method = HTTP_POST,
                                    .url = url,
                                    .headers = headers,
                                    .header_count = 2,
                                    .body = "{}",
                                    .body_length = 2 };

    CHECK(t, begin("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"));
    CHECK_OK(t, http_send(client, &request, &answer, NULL));
    CHECK_INT(t, answer.status, ==, 200);
    CHECK(t, !strncmp(server.request, "POST ", 5));
    CHECK(t, strstr(server.request, "\r\nAuthorization: token\r\n"));
    CHECK(t, strstr(server.request, "\r\n\r\n{}"));
    CHECK(t, !strstr(server.request, "Expect"));
    request = (struct http_request){ .method = HTTP_DELETE, .url = url };
    CHECK_OK(t, http_send(client, &request, &answer, NULL));
    CHECK(t, !strncmp(server.request, "DELETE ", 7));
    CHECK(t, !strstr(server.request, "Authorization")); /* nothing is left of the request before */
out:
    end();
}

#define GIVEN 20000

static ptrdiff_t give_letters(void *arg, char *into, size_t room, uint64_t at)
{
    (void)arg;
    if (room > 700)
        room = 700;
    for (size_t i = 0; i < room; i++)
        into[i] = (char)('a' + (at + i) % 26);
    return (ptrdiff_t)room;
}

static ptrdiff_t give_up(void *arg, char *into, size_t room, uint64_t at)
{
    (void)arg;
    memset(into, 'x', room);
    return at ? HVD_E_CORRUPT : 1;
}

TEST_FLAGS(a_body_is_asked_for_piece_by_piece, TEST_NO_TORTURE)
{
    struct http_request put = {
        .method = HTTP_PUT, .url = url, .give = give_letters, .body_length = GIVEN
    };
    struct hvd_err err;
    const char *at;

    CHECK(t, begin("HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n"));
    CHECK_OK(t, http_send(client, &put, &answer, NULL));
    CHECK_INT(t, answer.status, ==, 201);
    CHECK(t, (at = strstr(server.request, "\r\n\r\n")));
    CHECK_INT(t, strlen(at + 4), ==, GIVEN);
    for (size_t i = 0; i < GIVEN; i++)
        CHECK_INT(t, at[4 + i], ==, 'a' + (int)(i % 26));
    /* a source that fails ends the request with its own code */
    put.give = give_up;
    CHECK_CODE(t, http_send(client, &put, &answer, &err), HVD_E_CORRUPT);
    CHECK(t, strstr(err.text, server.address));
out:
    end();
}

static int take_some(void *arg, const char *bytes, size_t length)
{
    size_t *sum = arg;

    (void)bytes;
    *sum += length;
    return 0;
}

TEST_FLAGS(an_answer_that_is_too_long_is_refused, TEST_NO_TORTURE)
{
    size_t sum = 0;
    struct http_request get = { .url = url, .body_to = &body, .arg = &sum };
    struct hvd_err err;

    CHECK(t, begin("HTTP/1.1 200 OK\r\nContent-Length: 70\r\n\r\n"
                   "0123456789012345678901234567890123456789012345678901234567890123456789"));
    CHECK_CODE(t, http_send(client, &get, &answer, &err), HVD_E_LIMIT);
    CHECK(t, strstr(err.text, "longer than"));
    get.take = take_some;
    get.take_max = 69;
    CHECK_CODE(t, http_send(client, &get, &answer, &err), HVD_E_LIMIT);
    get.take_max = 70;
    sum = 0;
    CHECK_OK(t, http_send(client, &get, &answer, &err));
    CHECK_INT(t, sum, ==, 70);
out:
    end();
}

TEST_FLAGS(a_silent_server_and_a_missing_one_cost_only_the_limit, TEST_NO_TORTURE)
{
    struct http_request get = { .url = url, .limit_us = SHORT_US };
    struct hvd_err err;

    CHECK(t, begin(NULL));
    CHECK_CODE(t, http_send(client, &get, &answer, &err), HVD_E_BUSY);
    CHECK(t, !strncmp(err.text, server.address, strlen(server.address)));
    CHECK(t, strstr(err.text, "; check --there"));
    http_server_stop(&server);
    get.limit_us = 0;
    CHECK_CODE(t, http_send(client, &get, &answer, &err), HVD_E_BUSY);
    CHECK(t, !strncmp(err.text, server.address, strlen(server.address)));
out:
    end();
}

TEST_FLAGS(half_an_answer_is_no_answer, TEST_NO_TORTURE)
{
    struct http_request get = { .url = url, .body_to = &body };

    CHECK(t, begin("HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhalf"));
    CHECK_CODE(t, http_send(client, &get, &answer, NULL), HVD_E_BUSY);
out:
    end();
}

TEST_FLAGS(an_answer_counts_with_its_status_if_the_request_says_so, TEST_NO_TORTURE)
{
    static const char head[] = "HTTP/1.1 200 OK\r\nRetry-After: -7\r\n\r\n";
    static char flood[1024 * 1024];
    struct http_request post = { .method = HTTP_POST, .url = url, .head_counts = true };
    struct hvd_err err;

    CHECK(t, begin("HTTP/1.1 503 Away\r\nRetry-After: 7\r\nContent-Length: 50\r\n\r\nhalf"));
    CHECK_OK(t, http_send(client, &post, &answer, NULL));
    CHECK_INT(t, answer.status, ==, 503);
    CHECK_INT(t, answer.retry_after_us, ==, 7 * TIME_S);
    end();
    memset(flood, 'x', sizeof(flood) - 1);
    snprintf(flood, sizeof(flood), "%s", head);
    flood[strlen(head)] = 'x';
    CHECK(t, begin(flood));
    CHECK_OK(t, http_send(client, &post, &answer, NULL));
    CHECK_INT(t, answer.status, ==, 200);
    CHECK_INT(t, answer.retry_after_us, ==, 0);
    end();
    CHECK(t, begin("HTTP/1.1 100 Continue\r\n\r\n"));
    CHECK_CODE(t, http_send(client, &post, &answer, &err), HVD_E_BUSY);
out:
    end();
}

TEST_FLAGS(an_error_names_the_server_and_no_secret, TEST_NO_TORTURE)
{
    char secret[160];
    struct http_request get = { .url = secret, .limit_us = SHORT_US };
    struct hvd_err err;

    CHECK(t, begin(NULL));
    snprintf(secret, sizeof(secret), "http://anna:pa55@%s/s3cret?k3y", server.address);
    CHECK_CODE(t, http_send(client, &get, &answer, &err), HVD_E_BUSY);
    CHECK(t, !strncmp(err.text, server.address, strlen(server.address)));
    CHECK(t, !strstr(err.text, "anna") && !strstr(err.text, "pa55"));
    CHECK(t, !strstr(err.text, "s3cret") && !strstr(err.text, "k3y"));
out:
    end();
}

TEST(a_url_of_another_kind_is_refused)
{
    static const struct http_config config = { .connect_us = TIME_S, .request_us = TIME_S };
    struct http_request get = { .url = "file:///etc/passwd" };
    struct hvd_err err;

    CHECK_OK(t, http_client_create(&config, &client, NULL));
    CHECK_CODE(t, http_send(client, &get, &answer, &err), HVD_E_INVAL);
out:
    http_client_free(client);
    client = NULL;
}

static void *stop_later(void *arg)
{
    (void)arg;
    while (!server.requests) /* the request is under way */
        thread_pause(TIME_MS);
    http_client_stop(client);
    return NULL;
}

/* The server never answers, and the limit of the request is far away. */
TEST_FLAGS(another_thread_ends_a_request, TEST_NO_TORTURE)
{
    struct http_request get = { .url = url, .body_to = &body };
    int64_t began_us = clock_now_us();
    pthread_t thread;

    CHECK(t, begin(NULL));
    CHECK_OK(t, thread_start(&thread, 0, stop_later, NULL));
    CHECK_CODE(t, http_send(client, &get, &answer, NULL), HVD_E_BUSY);
    thread_join(thread);
    CHECK(t, clock_now_us() - began_us < PATIENCE_US / 2);
    CHECK_CODE(t, http_send(client, &get, &answer, NULL), HVD_E_BUSY); /* and all later ones */
    CHECK_INT(t, server.requests, ==, 1);
out:
    end();
}
