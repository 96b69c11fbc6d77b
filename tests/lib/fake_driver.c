/*
 * fake_driver.c: a driver for tests of the real agent program: an event loop that accepts the agent
 * over TLS, welcomes it, and notes each message that it sends.
 */
#include "tests/lib/fake_driver.h"

#include "base/time.h"
#include "os/clock.h"
#include "os/process.h"
#include "proto/codec.h"
#include "tests/lib/loopback.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define HEARD_BYTES   (1024 * 1024)
#define PRINTED_BYTES (256 * 1024 * 1024)

static void must(bool did, const char *what)
{
    if (did)
        return;
    fprintf(stderr, "fake driver: cannot %s\n", what);
    abort();
}

static void note(struct fake_driver *fake, const char *line)
{
    must(buf_printf(&fake->heard, "%s\n", line) == 0, "note a message");
}

/* ---- the connection -------------------------------------------------------------------------- */

/* The lease is longer than any case: the workers of the tests send no heartbeats, and this driver
 * sends none while a case waits for a process. */
static void welcome(struct fake_driver *fake)
{
    struct msg msg = {
        .type = MSG_WELCOME_AGENT,
        .term = fake->term,
        .u.welcome_agent = {.version = "test",
                            .beat_us = 200 * TIME_MS,
                            .lease_us = 10 * TIME_MIN,
                            .driver_grace_us = fake->grace_us}
    };

    fake_say(fake, &msg);
    if (fake->conn)
        conn_greeted(fake->conn);
}

static void on_msg(void *arg, const struct msg *msg)
{
    struct fake_driver *fake = arg;
    struct msg shown = *msg;
    char text[1024];

    if (msg->type == MSG_BEAT) {
        fake_say(fake, &(struct msg){ .type = MSG_BEAT, .u.beat = msg->u.beat });
        return;
    }
    if (msg->type == MSG_OUTPUT)
        must(buf_append(&fake->printed, msg->u.output.data.at, msg->u.output.data.length) == 0,
             "keep what is printed");
    if (msg->type != MSG_HELLO_AGENT)
        shown.term = 0; /* the term is always this driver's */
    note(fake, msg_describe(&shown, text, sizeof(text)));
    if (msg->type == MSG_HELLO_AGENT && !fake->silent)
        welcome(fake);
}

static void on_closed(void *arg, const char *why)
{
    struct fake_driver *fake = arg;

    (void)why;
    fake->conn = NULL;
    note(fake, "closed");
}

static const struct conn_ops conn_ops = { NULL, on_msg, on_closed, NULL };

static void on_accepted(void *arg, struct conn *conn)
{
    struct fake_driver *fake = arg;

    if (fake->conn)
        conn_drop(fake->conn);
    fake->conn = conn;
    conn_own(conn, &conn_ops, fake);
}

int fake_init(struct fake_driver *fake, struct event_base *base, const char *job, uint64_t term)
{
    uint8_t key[TLS_KEY_BYTES];
    struct hvd_err err;
    int rc;

    for (unsigned i = 0; i < sizeof(key); i++)
        key[i] = (uint8_t)(0x11 * (i % 16)); /* the bytes of FAKE_KEY */
    *fake = (struct fake_driver){ .term = term };
    buf_init(&fake->heard, HEARD_BYTES);
    buf_init(&fake->printed, PRINTED_BYTES);
    signal(SIGPIPE, SIG_IGN);
    fake->base = base ? base : event_base_new();
    must(fake->base, "make a loop");
    rc = tls_create(job, key, &fake->tls, &err);
    if (!rc)
        rc = listener_tcp(fake->base, &(struct listener_place){ loopback_own(), 0, fake->tls },
                          on_accepted, fake, &fake->listener, &err);
    if (rc)
        fprintf(stderr, "fake driver: %s\n", err.text);
    return rc;
}

void fake_close(struct fake_driver *fake)
{
    listener_free(fake->listener);
    fake->listener = NULL;
    if (fake->conn)
        conn_drop(fake->conn);
    fake->conn = NULL;
}

void fake_release(struct fake_driver *fake)
{
    fake_close(fake);
    if (fake->base) {
        /* one iteration frees objects that only the event loop frees */
        event_base_loop(fake->base, EVLOOP_NONBLOCK);
        tls_free(fake->tls);
        event_base_free(fake->base);
    }
    buf_release(&fake->heard);
    buf_release(&fake->printed);
    *fake = (struct fake_driver){ .term = 0 };
}

/* ---- sending --------------------------------------------------------------------------------- */

void fake_say(struct fake_driver *fake, const struct msg *msg)
{
    struct hvd_err err = { 0 };

    if (fake->conn && conn_send(fake->conn, msg, &err))
        note(fake, err.text);
}

void fake_launch(struct fake_driver *fake, uint64_t incarnation, uint32_t slot,
                 const char *const *argv)
{
    static const char *const env[] = { "GIVEN=by the launch" };
    struct msg msg = {
        .type = MSG_LAUNCH,
        .term = fake->term,
        .incarnation = incarnation,
        .u.launch = {.slot = slot,
                     .argv = { .items = argv },
                     .env = { env, ARRAY_SIZE(env) },
                     .cwd = "/",
                     .rank = slot,
                     .size = 4}
    };

    while (argv[msg.u.launch.argv.count])
        msg.u.launch.argv.count++;
    fake_say(fake, &msg);
}

void fake_shell(struct fake_driver *fake, uint64_t incarnation, uint32_t slot, const char *command)
{
    const char *argv[] = { "sh", "-c", command, NULL };

    fake_launch(fake, incarnation, slot, argv);
}

void fake_kill(struct fake_driver *fake, uint64_t incarnation, int64_t grace_us)
{
    fake_say(fake, &(struct msg){
                       .type = MSG_KILL,
                       .term = fake->term,
                       .incarnation = incarnation,
                       .u.kill = {grace_us, "test"}
    });
}

void fake_stop(struct fake_driver *fake, int64_t grace_us)
{
    fake_say(fake, &(struct msg){
                       .type = MSG_STOP, .term = fake->term, .u.stop = {grace_us, "test"}
    });
}

/* ---- waiting --------------------------------------------------------------------------------- */

static void on_late(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    *(bool *)arg = true;
}

/* Runs the event loop until buf contains the part behind *from; *from is then behind the part. */
static bool wait_in(struct fake_driver *fake, const struct buf *buf, size_t *from, const char *part)
{
    struct timeval patience = { .tv_sec = FAKE_PATIENCE_S };
    bool late = false;
    struct event *timer = evtimer_new(fake->base, on_late, &late);
    const char *found = NULL;

    must(timer && !event_add(timer, &patience), "set a timer");
    while (!late && !(found = strstr(buf_text(buf) + *from, part)))
        must(event_base_loop(fake->base, EVLOOP_ONCE) >= 0, "loop");
    event_free(timer);
    if (found)
        *from = (size_t)(found - buf_text(buf)) + strlen(part);
    else
        fprintf(stderr, "fake driver: no '%s' in:\n%s", part, buf_text(&fake->heard));
    return found;
}

bool fake_wait(struct fake_driver *fake, const char *part)
{
    return wait_in(fake, &fake->heard, &fake->seen, part);
}

bool fake_wait_printed(struct fake_driver *fake, const char *part)
{
    size_t from = 0;

    return wait_in(fake, &fake->printed, &from, part);
}

bool fake_heard(const struct fake_driver *fake, const char *part)
{
    return strstr(buf_text(&fake->heard), part);
}

pid_t fake_printed_pid(const struct fake_driver *fake, const char *name)
{
    const char *found = strstr(buf_text(&fake->printed), name);

    return found ? (pid_t)strtol(found + strlen(name) + 1, NULL, 10) : 0;
}

/* ---- processes ------------------------------------------------------------------------------- */

static void read_back(int fd, char *text, size_t size)
{
    size_t length = 0;
    ssize_t got;

    must(lseek(fd, 0, SEEK_SET) == 0, "seek");
    while (length < size - 1 && (got = read(fd, text + length, size - 1 - length)) > 0)
        length += (size_t)got;
    text[length] = '\0';
    close(fd);
}

int fake_run_agent(const char *program, const char *text, char *out, char *err, size_t size)
{
    const char *const argv[] = { program, "--stdin", NULL };

    return fake_run_program(argv, text, out, err, size);
}

int fake_run_program(const char *const *argv, const char *text, char *out, char *err, size_t size)
{
    FILE *files[3] = { tmpfile(), tmpfile(), tmpfile() };
    struct process_spec spec = { .argv = argv };
    struct hvd_err reason;
    pid_t pid;
    int status = 0;

    must(files[0] && files[1] && files[2], "make a file");
    must(fputs(text, files[0]) >= 0 && fflush(files[0]) == 0, "write a file");
    must(lseek(fileno(files[0]), 0, SEEK_SET) == 0, "seek");
    spec.in = fileno(files[0]);
    spec.out = fileno(files[1]);
    spec.err = fileno(files[2]);
    if (process_spawn(&spec, &pid, &reason)) {
        fprintf(stderr, "fake driver: %s\n", reason.text);
        abort();
    }
    while (waitpid(pid, &status, 0) < 0)
        must(errno == EINTR, "wait");
    read_back(dup(fileno(files[1])), out, size);
    read_back(dup(fileno(files[2])), err, size);
    for (int i = 0; i < 3; i++)
        fclose(files[i]);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

bool fake_wait_end(pid_t pid)
{
    struct pollfd ended = { .fd = process_watch(pid), .events = POLLIN };
    int ready;

    if (ended.fd < 0)
        return errno == ESRCH;
    do
        ready = poll(&ended, 1, FAKE_PATIENCE_S * 1000);
    while (ready < 0 && errno == EINTR);
    close(ended.fd);
    return ready > 0;
}

bool fake_wait_childless(struct fake_driver *fake)
{
    int64_t until_us = clock_now_us() + FAKE_PATIENCE_S * TIME_S;

    while (clock_now_us() < until_us) {
        struct pollfd nothing = { .fd = -1 };
        pid_t reaped = waitpid(-1, NULL, WNOHANG);

        if (reaped < 0 && errno == ECHILD)
            return true;
        event_base_loop(fake->base, EVLOOP_NONBLOCK);
        if (reaped == 0)
            poll(&nothing, 1, 5); /* no descriptor reports the end of any child */
    }
    return false;
}

const char *fake_socket_name(const char *job, const char *host)
{
    static char line[1024];
    char prefix[512];
    FILE *sockets = fopen("/proc/net/unix", "re");
    const char *found = NULL;

    must(sockets, "read /proc/net/unix");
    snprintf(prefix, sizeof(prefix), "@hvd-agent/%s/%s/", job, host);
    while (!found && fgets(line, sizeof(line), sockets))
        found = strstr(line, prefix);
    fclose(sockets);
    line[strcspn(line, "\n")] = '\0';
    return found;
}
