/*
 * client.c: one request at a time through libcurl's easy handle, on the caller's thread. Called by
 * the store in etcd, the checkpoints in S3, the hook of --on-event-url, and the agent's watch for
 * notices. Invariant: no request takes longer than its limit, no answer takes more memory than its
 * caller allows, libcurl installs no signal handler, and no child process inherits a connection.
 */
#include "http/client.h"

#include "base/mem.h"
#include "base/panic.h"
#include "base/time.h"

#include <curl/curl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define TEXTS 4 /* how many texts a http_config has */
/* With head_counts so many bytes of an answer's body are read, so that its connection can be used
 * again. The connection of a longer answer is closed. */
#define UNREAD_BYTES (64 * 1024)
/* a longer Retry-After counts as this one */
#define RETRY_AFTER_MAX_S (24 * 3600)

struct http_client {
    CURL *curl;
    int64_t connect_us;
    int64_t request_us;
    bool use_proxy;
    pthread_mutex_t mutex; /* guards `stopped` and `socket` */
    bool stopped;
    int socket;         /* the socket that libcurl has opened last; -1: none, or it is closed */
    char *texts[TEXTS]; /* copies of ca_file, cert_file, key_file and remedy; each may be NULL */
    char error[CURL_ERROR_SIZE]; /* libcurl writes the text of its last error here */
};

enum { CA_FILE, CERT_FILE, KEY_FILE, REMEDY }; /* indices in `texts` */

/* One request that is being sent. */
struct http_transfer {
    const struct http_request *request;
    CURL *curl;
    uint64_t given; /* how many bytes of the request's body libcurl has got */
    uint64_t taken; /* how many bytes of the answer's body have come, with `take` or head_counts */
    int rc; /* the error code with which a callback (give, take, body_to) has ended the request; 0:
               none has */
};

static pthread_once_t http_once = PTHREAD_ONCE_INIT;
static CURLcode http_started;

/* Called once in a process, by the first http_client_create. */
static void http_start_curl(void)
{
    http_started = curl_global_init(CURL_GLOBAL_DEFAULT);
}

/* Makes a client that has no connection yet. The first client of the process also starts libcurl
 * (http_start_curl). `whole`: libcurl was started, and all texts are copied; otherwise memory is
 * short. */
int http_client_create(const struct http_config *config, struct http_client **ret_client,
                       struct hvd_err *err)
{
    const char *const from[TEXTS] = { config->ca_file, config->cert_file, config->key_file,
                                      config->remedy };
    struct http_client *client = mem_zalloc(sizeof(*client));
    bool whole;
    int rc;

    pthread_once(&http_once, http_start_curl);
    if (!client)
        return err_set(err, HVD_E_NOMEM, "no memory for an HTTP client; free memory on this host");
    client->socket = -1;
    rc = pthread_mutex_init(&client->mutex, NULL);
    ASSERT(rc == 0);
    whole = !http_started && (client->curl = curl_easy_init());
    for (size_t i = 0; whole && i < TEXTS; i++)
        if (from[i])
            whole = (client->texts[i] = mem_strdup(from[i]));
    if (!whole) {
        http_client_free(client);
        return err_set(err, HVD_E_NOMEM, "no memory for an HTTP client; free memory on this host");
    }
    client->connect_us = config->connect_us;
    client->request_us = config->request_us;
    client->use_proxy = config->use_proxy;
    *ret_client = client;
    return 0;
}

void http_client_free(struct http_client *client)
{
    if (!client)
        return;
    if (client->curl)
        curl_easy_cleanup(client->curl);
    for (size_t i = 0; i < TEXTS; i++)
        mem_free(client->texts[i]);
    pthread_mutex_destroy(&client->mutex);
    mem_free(client);
}

/* Sets `stopped`, and shuts the present socket down: this wakes libcurl, which waits for the
 * socket. A request without a socket is ended by the next http_on_progress. A request that has not
 * begun is refused by http_send, which reads `stopped` first. */
void http_client_stop(struct http_client *client)
{
    pthread_mutex_lock(&client->mutex);
    client->stopped = true;
    if (client->socket >= 0)
        (void)shutdown(client->socket, SHUT_RDWR);
    pthread_mutex_unlock(&client->mutex);
}

static bool http_is_stopped(struct http_client *client)
{
    bool stopped;

    pthread_mutex_lock(&client->mutex);
    stopped = client->stopped;
    pthread_mutex_unlock(&client->mutex);
    return stopped;
}

/* Called by libcurl about once a second while it waits. libcurl ends the request when the result is
 * not 0, so `stopped` ends it. */
static int http_on_progress(void *arg, curl_off_t to_take, curl_off_t taken, curl_off_t to_give,
                            curl_off_t given)
{
    (void)to_take;
    (void)taken;
    (void)to_give;
    (void)given;
    return http_is_stopped(arg);
}

/* Called by libcurl for the next bytes of the request's body, from `body` or from the callback
 * `give`. */
static size_t http_on_read(char *into, size_t size, size_t count, void *arg)
{
    struct http_transfer *transfer = arg;
    const struct http_request *request = transfer->request;
    size_t room = size * count;
    uint64_t left = request->body_length - transfer->given;
    ptrdiff_t got;

    if (room > left)
        room = (size_t)left;
    if (!request->give) {
        memcpy(into, request->body + transfer->given, room);
        transfer->given += room;
        return room;
    }
    got = room ? request->give(request->arg, into, room, transfer->given) : 0;
    if (got < 0 || (room && !got)) { /* `give` has failed, or ends early */
        transfer->rc = got < 0 ? (int)got : HVD_E_IO;
        return CURL_READFUNC_ABORT;
    }
    transfer->given += (uint64_t)got;
    return (size_t)got;
}

/* Called by libcurl when it sends the request's body again on a new connection, because a
 * connection that was kept open has ended: the next http_on_read gives the bytes from `offset` on.
 */
static int http_on_seek(void *arg, curl_off_t offset, int origin)
{
    struct http_transfer *transfer = arg;

    if (origin != SEEK_SET || offset < 0 || (uint64_t)offset > transfer->request->body_length)
        return CURL_SEEKFUNC_FAIL;
    transfer->given = (uint64_t)offset;
    return CURL_SEEKFUNC_OK;
}

/* Called by libcurl with the next bytes of the answer's body. A result that differs from `length`
 * ends the request. */
static size_t http_on_write(char *bytes, size_t size, size_t count, void *arg)
{
    struct http_transfer *transfer = arg;
    const struct http_request *request = transfer->request;
    size_t length = size * count;
    long status = 0;

    curl_easy_getinfo(transfer->curl, CURLINFO_RESPONSE_CODE, &status);
    if (request->take && status >= 200 && status < 300) {
        transfer->rc = length <= request->take_max - transfer->taken
                           ? request->take(request->arg, bytes, length)
                           : HVD_E_LIMIT;
        transfer->taken += length;
    } else if (request->body_to) {
        transfer->rc = buf_append(request->body_to, bytes, length);
    } else if (request->head_counts) {
        transfer->taken += length;
        return transfer->taken > UNREAD_BYTES ? 0 : length;
    }
    return transfer->rc ? 0 : length;
}

/* Called by libcurl with one line of the answer's head; hands a header to the callback `header` as
 * name and value. The status line and the blank line have no colon, and are no headers. A line that
 * is longer than `copy` is ignored. */
static size_t http_on_header(char *line, size_t size, size_t count, void *arg)
{
    struct http_transfer *transfer = arg;
    const struct http_request *request = transfer->request;
    size_t length = size * count;
    char copy[4096];
    char *value;

    if (!request->header || length >= sizeof(copy))
        return length;
    memcpy(copy, line, length);
    copy[length] = '\0';
    copy[strcspn(copy, "\r\n")] = '\0';
    value = strchr(copy, ':');
    if (value) {
        *value++ = '\0';
        request->header(request->arg, copy, value + strspn(value, " \t"));
    }
    return length;
}

/* Sets the method of a request, and the length of its body. CURLOPT_NOBODY, POST and UPLOAD tell
 * libcurl which bodies to expect; CUSTOMREQUEST then sets the word in the request line. */
static CURLcode http_set_method(CURL *curl, const struct http_request *request)
{
    static const char *const names[] = { [HTTP_GET] = "GET",
                                         [HTTP_HEAD] = "HEAD",
                                         [HTTP_PUT] = "PUT",
                                         [HTTP_POST] = "POST",
                                         [HTTP_DELETE] = "DELETE" };
    CURLcode rc = CURLE_OK;

    if (request->method == HTTP_HEAD)
        rc = curl_easy_setopt(curl, CURLOPT_NOBODY, 1L);
    else if (request->method == HTTP_POST)
        rc = curl_easy_setopt(curl, CURLOPT_POST, 1L);
    else if (request->method == HTTP_PUT)
        rc = curl_easy_setopt(curl, CURLOPT_UPLOAD, 1L);
    if (!rc && request->method == HTTP_POST)
        rc = curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->body_length);
    if (!rc && request->method == HTTP_PUT)
        rc = curl_easy_setopt(curl, CURLOPT_INFILESIZE_LARGE, (curl_off_t)request->body_length);
    return rc ? rc : curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, names[request->method]);
}

/* Called by libcurl to open a socket. The sockets that libcurl 7.88 opens itself have no
 * SOCK_CLOEXEC: each program that the driver or agent starts would inherit them, and keep the
 * connection open after the death of the driver or agent. */
static curl_socket_t http_on_socket(void *arg, curlsocktype purpose, struct curl_sockaddr *address)
{
    struct http_client *client = arg;
    int fd = socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);

    (void)purpose;
    pthread_mutex_lock(&client->mutex);
    client->socket = fd;
    pthread_mutex_unlock(&client->mutex);
    return fd;
}

/* Called by libcurl to close a socket. `client->socket` is set to -1 under the mutex, because after
 * close() another file of the process may get the same number, and http_client_stop must not shut
 * that file down. */
static int http_on_close(void *arg, curl_socket_t fd)
{
    struct http_client *client = arg;
    int rc;

    pthread_mutex_lock(&client->mutex);
    if (client->socket == fd)
        client->socket = -1;
    rc = close(fd);
    pthread_mutex_unlock(&client->mutex);
    return rc;
}

/* Sets all options of a request but its method. curl_easy_reset removes the options of the request
 * before, but keeps the open connections. After the first failure SET does nothing. */
static CURLcode http_set_up(struct http_client *client, struct http_transfer *transfer,
                            struct curl_slist *headers)
{
    const struct http_request *request = transfer->request;
    int64_t limit_us = request->limit_us ? request->limit_us : client->request_us;
    CURL *curl = client->curl;
    CURLcode rc = CURLE_OK;

#define SET(option, value) rc = rc ? rc : curl_easy_setopt(curl, CURLOPT_##option, value)
    curl_easy_reset(curl);
    SET(NOSIGNAL, 1L);
    SET(ERRORBUFFER, client->error);
    SET(OPENSOCKETFUNCTION, http_on_socket);
    SET(OPENSOCKETDATA, client);
    SET(CLOSESOCKETFUNCTION, http_on_close);
    SET(CLOSESOCKETDATA, client);
    SET(NOPROGRESS, 0L);
    SET(XFERINFOFUNCTION, http_on_progress);
    SET(XFERINFODATA, client);
    SET(URL, request->url);
    SET(PROTOCOLS_STR, "http,https");
    SET(CONNECTTIMEOUT_MS, (long)(client->connect_us / TIME_MS));
    SET(TIMEOUT_MS, (long)(limit_us / TIME_MS));
    SET(HTTPHEADER, headers);
    SET(READFUNCTION, http_on_read);
    SET(READDATA, transfer);
    SET(SEEKFUNCTION, http_on_seek);
    SET(SEEKDATA, transfer);
    SET(WRITEFUNCTION, http_on_write);
    SET(WRITEDATA, transfer);
    SET(HEADERFUNCTION, http_on_header);
    SET(HEADERDATA, transfer);
    if (!client->use_proxy)
        SET(NOPROXY, "*");
    if (client->texts[CA_FILE])
        SET(CAINFO, client->texts[CA_FILE]);
    if (client->texts[CERT_FILE])
        SET(SSLCERT, client->texts[CERT_FILE]);
    if (client->texts[KEY_FILE])
        SET(SSLKEY, client->texts[KEY_FILE]);
    if (request->user_password)
        SET(USERPWD, request->user_password);
    if (request->aws_sigv4)
        SET(AWS_SIGV4, request->aws_sigv4);
#undef SET
    return rc;
}

/* Sets the error of a request that has failed: the server, the reason, and the remedy of the
 * client. The error code of a callback (transfer->rc) counts more than libcurl's code, which only
 * says that a callback has ended the request. */
static int http_failed(struct http_client *client, const struct http_transfer *transfer,
                       CURLcode failed, struct hvd_err *err)
{
    const char *url = transfer->request->url;
    const char *host = strstr(url, "://"), *sign;
    const char *why = *client->error ? client->error : curl_easy_strerror(failed);
    const char *remedy = client->texts[REMEDY];
    int length;
    int rc;

    host = host ? host + 3 : url;
    while ((sign = memchr(host, '@', strcspn(host, "/?#"))) != NULL)
        host = sign + 1; /* the user and the password are no part of an error */
    length = (int)strcspn(host, "/?#");
    if (transfer->rc == HVD_E_LIMIT)
        why = "the answer is longer than the request allows";
    else if (transfer->rc)
        why = err_text(transfer->rc);
    switch (failed) {
    case CURLE_OUT_OF_MEMORY: rc = HVD_E_NOMEM; break;
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_BAD_FUNCTION_ARGUMENT: rc = HVD_E_INVAL; break;
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CONNECT_ERROR: rc = HVD_E_DENIED; break;
    default: rc = HVD_E_BUSY;
    }
    return err_set(err, transfer->rc ? transfer->rc : rc, "%.*s: %s%s%s", length, host, why,
                   remedy ? "; " : "", remedy ? remedy : "");
}

/* Sends one request and waits for its answer. An entry "Expect:" without a value (i is 0) removes
 * the header "Expect" that libcurl adds: this header costs a round trip for each large body, and a
 * second of waiting with a server that does not know it. A signed request keeps libcurl's header (i
 * begins at 1): libcurl 7.88 would sign the empty header, and not send it. */
int http_send(struct http_client *client, const struct http_request *request,
              struct http_answer *ret_answer, struct hvd_err *err)
{
    struct http_transfer transfer = { .request = request, .curl = client->curl };
    struct curl_slist *headers = NULL, *longer;
    curl_off_t retry_after_s = 0;
    bool whole = true;
    long status = 0;
    CURLcode rc;

    for (size_t i = request->aws_sigv4 ? 1 : 0; whole && i <= request->header_count; i++) {
        longer = curl_slist_append(headers, i ? request->headers[i - 1] : "Expect:");
        whole = longer;
        headers = longer ? longer : headers;
    }
    *client->error = '\0';
    rc = whole ? http_set_up(client, &transfer, headers) : CURLE_OUT_OF_MEMORY;
    if (!rc)
        rc = http_set_method(client->curl, request);
    if (!rc)
        rc = http_is_stopped(client) ? CURLE_ABORTED_BY_CALLBACK : curl_easy_perform(client->curl);
    /* http_set_up has cleared the status of the request before. 100 to 199 is no final status. */
    (void)curl_easy_getinfo(client->curl, CURLINFO_RESPONSE_CODE, &status);
    (void)curl_easy_getinfo(client->curl, CURLINFO_RETRY_AFTER, &retry_after_s);
    curl_slist_free_all(headers);
    if (rc && (!request->head_counts || status < 200))
        return http_failed(client, &transfer, rc, err);
    if (retry_after_s > RETRY_AFTER_MAX_S)
        retry_after_s = RETRY_AFTER_MAX_S;
    ret_answer->status = status;
    ret_answer->retry_after_us = retry_after_s > 0 ? retry_after_s * TIME_S : 0;
    return 0;
}
