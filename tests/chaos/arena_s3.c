/*
 * arena_s3.c: starts the server of S3 in which the arena's checkpoints are, and asks its front.
 * arena.c opens and closes the server, faults_s3.c attacks it. Invariant: both processes die with
 * this one, and are no processes of the arena: the judge does not count them.
 */
#include "tests/chaos/arena_s3.h"

#include "base/buf.h"
#include "base/time.h"
#include "http/client.h"
#include "os/process.h"
#include "tests/lib/loopback.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef CHAOS_S3_SERVER /* the build defines the path */
#define CHAOS_S3_SERVER "tests/s3/serve"
#endif

#define S3_URL_BYTES  96
#define S3_PATH_BYTES 512
#define S3_ASK_US     TIME_MIN
#define S3_START_MS   120000 /* the bound of a start; it takes seconds on a busy machine */
#define S3_SKIPPED    77     /* the exit code of tests/s3/serve without moto */
#define S3_TEXT_BYTES 4096

static struct {
    pid_t backend, front; /* 0: not started */
    char moto[S3_URL_BYTES], url[S3_URL_BYTES];
} s3;

static void s3_end(pid_t *pid)
{
    if (!*pid)
        return;
    kill(*pid, SIGKILL);
    while (waitpid(*pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    *pid = 0;
}

/* Reads the line with the URL that the server writes when it is ready. An end without one: the
 * server has ended. A server that writes nothing for S3_START_MS is ended. */
static int s3_await(int from, pid_t *pid, char url[S3_URL_BYTES], struct hvd_err *err)
{
    struct pollfd ready = { .fd = from, .events = POLLIN };
    char line[S3_URL_BYTES];
    size_t length = 0;
    ssize_t got;
    int status = 0;

    do {
        if (!poll(&ready, 1, S3_START_MS)) {
            s3_end(pid);
            return err_set(err, HVD_E_TIMEOUT, "%s: is not ready after %d s; run it by hand",
                           CHAOS_S3_SERVER, S3_START_MS / 1000);
        }
        got = read(from, line + length, sizeof(line) - 1 - length);
        length += got > 0 ? (size_t)got : 0;
    } while ((got < 0 && errno == EINTR) ||
             (got > 0 && length < sizeof(line) - 1 && !memchr(line, '\n', length)));
    line[length] = '\0';
    if (length && line[length - 1] == '\n') {
        snprintf(url, S3_URL_BYTES, "%.*s", (int)length - 1, line);
        return 0;
    }
    while (waitpid(*pid, &status, 0) < 0 && errno == EINTR)
        continue;
    *pid = 0;
    if (WIFEXITED(status) && WEXITSTATUS(status) == S3_SKIPPED)
        return err_set(err, HVD_E_UNSUPPORTED,
                       "--checkpoints s3: moto is not there; ./dev setup s3 installs it");
    return err_set(err, HVD_E_IO, "%s: does not start, status 0x%x; run it by hand",
                   CHAOS_S3_SERVER, (unsigned)status);
}

/* Starts a process of the server, and waits until it is ready. */
static int s3_start(const char *const *words, pid_t *pid, char url[S3_URL_BYTES],
                    struct hvd_err *err)
{
    struct process_spec spec = {
        .argv = words, .in = -1, .err = STDERR_FILENO, .dies_with_us = SIGKILL
    };
    int ends[2];
    int rc;

    if (pipe2(ends, O_CLOEXEC))
        return err_set(err, HVD_E_IO, "pipe: %s", strerror(errno));
    spec.out = ends[1];
    rc = process_spawn(&spec, pid, err);
    close(ends[1]);
    if (!rc)
        rc = s3_await(ends[0], pid, url, err);
    close(ends[0]);
    return rc;
}

/* Asks the front; `out` (may be NULL) gets its answer. */
static int s3_ask(const char *path, struct buf *out, struct hvd_err *err)
{
    const struct http_config config = { .connect_us = S3_ASK_US,
                                        .request_us = S3_ASK_US,
                                        .remedy = "look at the server of S3 for tests" };
    struct http_answer answer = { .status = 0 };
    char url[S3_URL_BYTES + S3_PATH_BYTES];
    struct http_request get = { .method = HTTP_GET, .url = url };
    struct http_client *client;
    struct buf own;
    int rc = http_client_create(&config, &client, err);

    if (rc)
        return rc;
    buf_init(&own, S3_TEXT_BYTES);
    get.body_to = out ? out : &own;
    snprintf(url, sizeof(url), "%s%s", s3.url, path);
    rc = http_send(client, &get, &answer, err);
    if (!rc && answer.status != 200)
        rc =
            err_set(err, HVD_E_IO, "%s: status %ld: %s", url, answer.status, buf_text(get.body_to));
    buf_release(&own);
    http_client_free(client);
    return rc;
}

int arena_s3_again(struct hvd_err *err)
{
    char address[S3_URL_BYTES];
    const char *const words[] = { CHAOS_S3_SERVER,   "front", address,
                                  "/proc/self/fd/1", s3.moto, NULL };

    if (*s3.url)
        snprintf(address, sizeof(address), "%s", strstr(s3.url, "//") + 2);
    else
        snprintf(address, sizeof(address), "%s:0", loopback_own());
    return s3_start(words, &s3.front, s3.url, err);
}

int arena_s3_open(struct hvd_err *err)
{
    static const char *const words[] = { CHAOS_S3_SERVER, "backend", "/proc/self/fd/1", NULL };
    int rc;

    memset(&s3, 0, sizeof(s3));
    rc = s3_start(words, &s3.backend, s3.moto, err);
    if (!rc)
        rc = arena_s3_again(err);
    return rc ? rc : s3_ask("/-/bucket?name=kept", NULL, err);
}

void arena_s3_kill(void)
{
    s3_end(&s3.front);
}

void arena_s3_close(void)
{
    s3_end(&s3.front);
    s3_end(&s3.backend);
}

const char *arena_s3_url(void)
{
    return s3.url;
}

int arena_s3_fault(const char *kinds, unsigned percent, uint64_t seed, struct hvd_err *err)
{
    char path[S3_PATH_BYTES];

    snprintf(path, sizeof(path), "/-/fault?kind=%s&percent=%u&seed=%" PRIu64, kinds,
             *kinds ? percent : 0, seed);
    return s3_ask(path, NULL, err);
}

int arena_s3_faults(uint64_t *ret_count, struct hvd_err *err)
{
    static const char word[] = " faults ";
    const char *at;
    struct buf text;
    int rc;

    buf_init(&text, S3_TEXT_BYTES);
    rc = s3_ask("/-/counts", &text, err);
    at = rc ? NULL : strstr(buf_text(&text), word);
    if (!rc && !at)
        rc = err_set(err, HVD_E_PROTO, "%s: counts no faults: %s", s3.url, buf_text(&text));
    if (at)
        *ret_count = strtoull(at + sizeof(word) - 1, NULL, 10);
    buf_release(&text);
    return rc;
}

int arena_s3_copy(const char *folder, bool alone, struct hvd_err *err)
{
    char path[S3_PATH_BYTES];

    snprintf(path, sizeof(path), "/-/mirror?prefix=chaos/&into=%s%s", folder,
             alone ? "&alone=1" : "");
    return s3_ask(path, NULL, err);
}
