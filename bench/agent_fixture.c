#include "bench/agent_fixture.h"

#include "base/mem.h"
#include "base/time.h"
#include "os/clock.h"
#include "os/process.h"
#include "proto/catalog.h"
#include "wire/listener.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATIENCE_S 120
#define TERM       1
#define JOB_MAX    64
#define KEY        0x42

struct agent_fixture_inside {
    struct agent_fixture fixture;
    char job[JOB_MAX];
    char hold[JOB_MAX + 8]; /* the socket that victims hold */
    char agent_path[4096];
    char worker_path[4096];
    struct event_base *base;
    struct event *patience;
    struct event *knock;
    struct event *held;
    struct tls *tls;
    struct listener *listener;
    struct conn *conn;
    bool greeted;
    bool tired; /* waited too long */
    int hold_fd;
    int held_fd;
    char gone[256];
};

/* ---- waiting ----------------------------------------------------------------------------------
 */

static void on_patience(evutil_socket_t fd, short what, void *arg)
{
    struct agent_fixture_inside *inside = arg;

    (void)fd;
    (void)what;
    inside->tired = true;
}

typedef bool condition_fn(const struct agent_fixture_inside *inside);

static int await(struct agent_fixture_inside *inside, condition_fn *condition, const char *what,
                 struct hvd_err *err)
{
    inside->tired = false;
    evtimer_add(inside->patience, &(struct timeval){ .tv_sec = PATIENCE_S });
    while (!condition(inside) && !inside->tired && !inside->gone[0])
        event_base_loop(inside->base, EVLOOP_ONCE);
    evtimer_del(inside->patience);
    if (condition(inside))
        return 0;
    if (inside->gone[0])
        return err_set(err, HVD_E_LOST, "the agent is gone: %s", inside->gone);
    return err_set(err, HVD_E_TIMEOUT, "waited %d s for %s", PATIENCE_S, what);
}

static bool is_greeted(const struct agent_fixture_inside *inside)
{
    return inside->greeted;
}

static bool is_there(const struct agent_fixture_inside *inside)
{
    const struct agent_fixture_victim *victim = &inside->fixture.victim;

    return (victim->ready && victim->pid > 0 && inside->held_fd >= 0) || victim->known_us;
}

static bool is_over(const struct agent_fixture_inside *inside)
{
    return inside->fixture.victim.known_us && inside->fixture.victim.eof_us;
}

static bool is_gone(const struct agent_fixture_inside *inside)
{
    return inside->gone[0] || !inside->conn;
}

/* ---- the agent --------------------------------------------------------------------------------
 */

static void tell(struct agent_fixture_inside *inside, struct msg msg)
{
    struct hvd_err err;

    msg.term = TERM;
    if (inside->conn && conn_send(inside->conn, &msg, &err))
        snprintf(inside->gone, sizeof(inside->gone), "cannot send: %.200s", err.text);
}

static void on_msg(void *arg, const struct msg *msg)
{
    struct agent_fixture_inside *inside = arg;
    struct agent_fixture_victim *victim = &inside->fixture.victim;

    if (msg->type == MSG_HELLO_AGENT && !inside->greeted) {
        tell(inside,
             (struct msg){
                 .type = MSG_WELCOME_AGENT,
                 .u.welcome_agent = {PROTO_MINOR, "bench", TIME_S, TIME_HOUR, TIME_HOUR}
        });
        conn_greeted(inside->conn);
        inside->greeted = true;
    }
    if (msg->incarnation != victim->incarnation)
        return;
    if (msg->type == MSG_LAUNCHED)
        victim->pid = (pid_t)msg->u.launched.pid;
    else if (msg->type == MSG_READY)
        victim->ready = true;
    else if (msg->type == MSG_LAUNCH_FAILED)
        snprintf(inside->gone, sizeof(inside->gone), "%.200s", msg->u.launch_failed.text);
    else if (msg->type == MSG_OUTPUT)
        fwrite(msg->u.output.data.at, 1, msg->u.output.data.length, stderr);
    if (msg->type != MSG_EXITED || victim->known_us)
        return;
    victim->known_us = clock_now_us();
    victim->witness = msg->u.exited.witness;
    tell(inside, (struct msg){ .type = MSG_FORGET, .incarnation = msg->incarnation });
}

static void on_closed(void *arg, const char *why)
{
    struct agent_fixture_inside *inside = arg;

    inside->conn = NULL;
    snprintf(inside->gone, sizeof(inside->gone), "%.200s", why);
}

static void on_accepted(void *arg, struct conn *conn)
{
    static const struct conn_ops ops = { .msg = on_msg, .closed = on_closed };
    struct agent_fixture_inside *inside = arg;

    if (inside->conn) {
        conn_drop(conn);
        return;
    }
    inside->conn = conn;
    conn_own(conn, &ops, inside);
}

/* ---- the socket that the victim holds -----------------------------------------------------------
 */

static void on_held(evutil_socket_t fd, short what, void *arg)
{
    struct agent_fixture_inside *inside = arg;
    char byte;

    (void)what;
    if (recv(fd, &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN)
        return;
    inside->fixture.victim.eof_us = clock_now_us();
    event_free(inside->held);
    inside->held = NULL;
    close(fd);
    inside->held_fd = -1;
}

static void on_knock(evutil_socket_t fd, short what, void *arg)
{
    struct agent_fixture_inside *inside = arg;
    int held_fd = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

    (void)what;
    if (held_fd < 0)
        return;
    if (inside->held) { /* of a victim that did not get far */
        event_free(inside->held);
        close(inside->held_fd);
    }
    inside->held_fd = held_fd;
    inside->held = event_new(inside->base, held_fd, EV_READ | EV_PERSIST, on_held, inside);
    event_add(inside->held, NULL);
}

static int listen_for_victims(struct agent_fixture_inside *inside, struct hvd_err *err)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    size_t length = strlen(inside->hold);

    memcpy(address.sun_path + 1, inside->hold + 1, length - 1);
    inside->hold_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (inside->hold_fd < 0 ||
        bind(inside->hold_fd, (const struct sockaddr *)&address,
             (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length)) ||
        listen(inside->hold_fd, 4))
        return err_set(err, HVD_E_IO, "%s: %s", inside->hold, strerror(errno));
    inside->knock =
        event_new(inside->base, inside->hold_fd, EV_READ | EV_PERSIST, on_knock, inside);
    if (!inside->knock)
        return HVD_E_NOMEM;
    event_add(inside->knock, NULL);
    return 0;
}

/* ---- starting it -------------------------------------------------------------------------------
 */

/* build/PRESET/bench/bench_detect: the others are beside its folder. */
static int find_programs(struct agent_fixture_inside *inside, struct hvd_err *err)
{
    char path[2048];
    ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);
    char *end;

    if (length < 0)
        return err_set(err, HVD_E_IO, "/proc/self/exe: %s", strerror(errno));
    path[length] = '\0';
    for (int i = 0; i < 2; i++) {
        end = strrchr(path, '/');
        if (end)
            *end = '\0';
    }
    snprintf(inside->agent_path, sizeof(inside->agent_path), "%s/agent/hvd-agent", path);
    snprintf(inside->worker_path, sizeof(inside->worker_path), "%s/tests/workers/bare_trainer",
             path);
    if (access(inside->agent_path, X_OK) || access(inside->worker_path, X_OK))
        return err_set(err, HVD_E_NOTFOUND, "%s or %s is missing; build all of the preset",
                       inside->agent_path, inside->worker_path);
    return 0;
}

static int start_agent(struct agent_fixture_inside *inside, struct hvd_err *err)
{
    const char *const argv[] = { inside->agent_path, "--stdin", NULL };
    struct process_spec spec = { .argv = argv, .out = -1, .err = STDERR_FILENO };
    char config[1024];
    int ends[2];
    int length;
    int status;
    pid_t pid;
    int rc;

    length = snprintf(config, sizeof(config),
                      "job = %s\nhost = localhost\ndrivers = %s\nmin-np = 1\nmax-np = 1\nkey = ",
                      inside->job, listener_address(inside->listener));
    for (int i = 0; i < TLS_KEY_BYTES; i++)
        length += snprintf(config + length, sizeof(config) - (size_t)length, "%02x", KEY);
    config[length++] = '\n';
    if (pipe2(ends, O_CLOEXEC))
        return err_set(err, HVD_E_IO, "pipe: %s", strerror(errno));
    spec.in = ends[0];
    rc = process_spawn(&spec, &pid, err);
    close(ends[0]);
    if (!rc && write(ends[1], config, (size_t)length) != length)
        rc = err_set(err, HVD_E_IO, "hvd-agent does not read what it is to know");
    close(ends[1]);
    if (rc)
        return rc;
    if (waitpid(pid, &status, 0) != pid || status)
        return err_set(err, HVD_E_IO, "hvd-agent did not start: wait status 0x%x", status);
    return await(inside, is_greeted, "the agent's hello", err);
}

static int open_all(struct agent_fixture_inside *inside, struct hvd_err *err)
{
    uint8_t key[TLS_KEY_BYTES];
    int rc;

    memset(key, KEY, sizeof(key));
    inside->base = event_base_new();
    if (!inside->base)
        return HVD_E_NOMEM;
    inside->patience = evtimer_new(inside->base, on_patience, inside);
    if (!inside->patience)
        return HVD_E_NOMEM;
    rc = find_programs(inside, err);
    if (!rc)
        rc = tls_create(inside->job, key, &inside->tls, err);
    if (!rc)
        rc = listener_tcp(inside->base, &(struct listener_place){ "127.0.0.1", 0, inside->tls },
                          on_accepted, inside, &inside->listener, err);
    if (!rc)
        rc = listen_for_victims(inside, err);
    return rc ? rc : start_agent(inside, err);
}

int agent_fixture_create(struct agent_fixture **ret_fixture, struct hvd_err *err)
{
    struct agent_fixture_inside *inside = mem_zalloc(sizeof(*inside));
    int rc;

    if (!inside)
        return err_set(err, HVD_E_NOMEM, "out of memory");
    inside->fixture.inside = inside;
    inside->hold_fd = -1;
    inside->held_fd = -1;
    snprintf(inside->job, sizeof(inside->job), "bench-%d", (int)getpid());
    snprintf(inside->hold, sizeof(inside->hold), "@%s/hold", inside->job);
    rc = open_all(inside, err);
    if (rc) {
        agent_fixture_free(&inside->fixture);
        return rc;
    }
    *ret_fixture = &inside->fixture;
    return 0;
}

void agent_fixture_free(struct agent_fixture *fixture)
{
    struct agent_fixture_inside *inside = fixture ? fixture->inside : NULL;
    struct hvd_err err;

    if (!inside)
        return;
    tell(inside, (struct msg){
                     .type = MSG_STOP, .u.stop = {0, "the bench is over"}
    });
    if (inside->conn && await(inside, is_gone, "the agent's end", &err) && inside->conn)
        conn_drop(inside->conn);
    listener_free(inside->listener);
    if (inside->knock)
        event_free(inside->knock);
    if (inside->held)
        event_free(inside->held);
    if (inside->hold_fd >= 0)
        close(inside->hold_fd);
    if (inside->held_fd >= 0)
        close(inside->held_fd);
    tls_free(inside->tls);
    if (inside->patience)
        event_free(inside->patience);
    if (inside->base)
        event_base_free(inside->base);
    mem_free(inside);
}

/* ---- victims -----------------------------------------------------------------------------------
 */

int agent_fixture_begin_victim(struct agent_fixture *fixture, uint32_t mib, struct hvd_err *err)
{
    struct agent_fixture_inside *inside = fixture->inside;
    char memory[16];
    const char *const argv[] = { inside->worker_path, "--memory",   memory, "--hold",
                                 inside->hold,        "--no-daemon" };
    struct msg launch = {
        .type = MSG_LAUNCH,
        .incarnation = fixture->victim.incarnation + 1,
        .u.launch = {.argv = { argv, ARRAY_SIZE(argv) },
                     .cwd = "/",
                     .size = 1,
                     .local_size = 1,
                     .cross_size = 1},
    };
    int rc;

    snprintf(memory, sizeof(memory), "%u", mib);
    fixture->victim = (struct agent_fixture_victim){ .incarnation = launch.incarnation };
    tell(inside, launch);
    rc = await(inside, is_there, "a worker that is ready", err);
    if (!rc && fixture->victim.known_us)
        return err_set(err, HVD_E_STATE, "a worker ended before it was killed");
    return rc;
}

int agent_fixture_await_end(struct agent_fixture *fixture, struct hvd_err *err)
{
    return await(fixture->inside, is_over, "the end of a worker to be known", err);
}
