#include "wire/listener_state.h"

#include "tests/lib/wire_side.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static struct wire wire;
static char path[1024];

static void came(void *arg, struct conn *conn)
{
    (void)arg;
    conn_drop(conn);
}

static void a_taken_port_is_busy(struct test *t)
{
    struct listener *second = NULL;
    struct hvd_err err;

    CHECK(t, wire_begin(&wire));
    CHECK_OK(t, wire_listen(&wire));
    CHECK_INT(t, listener_port(wire.listener), >, 0);
    CHECK_CODE(t,
               listener_tcp(wire.base, "127.0.0.1", listener_port(wire.listener), wire.tls, came,
                            NULL, &second, &err),
               HVD_E_BUSY);
    CHECK_HAS(t, err.text, "the port is taken");
    CHECK_CODE(t, listener_tcp(wire.base, "localhost", 0, wire.tls, came, NULL, &second, &err),
               HVD_E_INVAL);
    CHECK_CODE(t, listener_tcp(wire.base, "192.0.2.1", 0, wire.tls, came, NULL, &second, &err),
               HVD_E_INVAL);
out:
    listener_free(second);
    wire_end(&wire);
}

static void ipv6_has_brackets(struct test *t)
{
    struct listener *listener = NULL;
    int rc;

    CHECK(t, wire_begin(&wire));
    rc = listener_tcp(wire.base, "::1", 0, wire.tls, came, NULL, &listener, NULL);
    if (rc != HVD_E_INVAL) { /* a machine may have none */
        CHECK_OK(t, rc);
        CHECK_HAS(t, listener_address(listener), "[::1]:");
    }
out:
    listener_free(listener);
    wire_end(&wire);
}

static void serve_path(struct test *t)
{
    struct stat st;

    CHECK(t, wire_begin(&wire));
    CHECK_OK(t, wire_listen_unix(&wire, path));
    CHECK(t, !lstat(path, &st) && S_ISSOCK(st.st_mode) && (st.st_mode & 0777) == 0600);
    CHECK_OK(t, wire_dial_unix(&wire, path));
    WIRE_UNTIL(&wire, wire.accepted && wire.client.opened);
    CHECK(t, wire.server.conn);
    CHECK_INT(t, conn_peer_pid(wire.server.conn), ==, getpid());
    CHECK_OK(t, wire_send_beat(&wire.client, 1));
    WIRE_UNTIL(&wire, wire.server.messages || wire.server.closed);
    CHECK_INT(t, wire.server.messages, ==, 1);
    listener_free(wire.listener);
    wire.listener = NULL;
    CHECK(t, lstat(path, &st) && errno == ENOENT);
out:
    wire_end(&wire);
}

static void a_path_is_made_and_removed(struct test *t)
{
    snprintf(path, sizeof(path), "%s/socket", test_dir(t));
    serve_path(t);
}

static void a_path_may_be_long(struct test *t)
{
    size_t length = (size_t)snprintf(path, sizeof(path), "%s", test_dir(t));

    for (int i = 0; i < 4; i++) {
        length += (size_t)snprintf(path + length, sizeof(path) - length, "/%0100d", i);
        CHECK(t, !mkdir(path, 0700));
    }
    snprintf(path + length, sizeof(path) - length, "/%0120d", 7);
    serve_path(t);
out:;
}

static void what_a_dead_process_left_is_replaced(struct test *t)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_un at = { .sun_family = AF_UNIX };

    snprintf(path, sizeof(path), "%s/socket", test_dir(t));
    snprintf(at.sun_path, sizeof(at.sun_path), "%.100s", path);
    CHECK(t, fd >= 0 && !bind(fd, (const struct sockaddr *)&at, sizeof(at)));
    close(fd);
    fd = -1;
    serve_path(t);
out:
    if (fd >= 0)
        close(fd);
}

/* Killed while it was making the socket: INT32_MAX is no pid that a kernel gives. */
static void what_was_half_made_is_removed(struct test *t)
{
    const char *folder = test_dir(t);
    char half[300];
    char mine[300];

    snprintf(path, sizeof(path), "%s/socket", folder);
    snprintf(half, sizeof(half), "%s/.hvd-%d", folder, INT32_MAX);
    snprintf(mine, sizeof(mine), "%s/.hvd-%d", folder, (int)getppid());
    CHECK(t, !mkfifo(half, 0600) && !mkfifo(mine, 0600));
    CHECK(t, wire_begin(&wire));
    CHECK_OK(t, wire_listen_unix(&wire, path));
    CHECK(t, access(half, F_OK) && !access(mine, F_OK)); /* that one lives */
out:
    unlink(half);
    unlink(mine);
    wire_end(&wire);
}

static void a_living_one_is_not(struct test *t)
{
    struct listener *second = NULL;
    struct hvd_err err;

    snprintf(path, sizeof(path), "%s/socket", test_dir(t));
    CHECK(t, wire_begin(&wire));
    CHECK_OK(t, wire_listen_unix(&wire, path));
    CHECK_CODE(t, listener_unix(wire.base, path, came, NULL, &second, &err), HVD_E_BUSY);
    CHECK_HAS(t, err.text, "somebody listens there");
    CHECK(t, !access(path, F_OK));
out:
    listener_free(second);
    wire_end(&wire);
}

static void an_abstract_name_is_held_once(struct test *t)
{
    struct listener *second = NULL;
    char name[200];

    CHECK(t, wire_begin(&wire));
    snprintf(name, sizeof(name), "@hvd-test-%d", (int)getpid());
    CHECK_OK(t, wire_listen_unix(&wire, name));
    CHECK_CODE(t, listener_unix(wire.base, name, came, NULL, &second, NULL), HVD_E_BUSY);
    snprintf(name, sizeof(name), "@%0150d", 1);
    CHECK_CODE(t, listener_unix(wire.base, name, came, NULL, &second, NULL), HVD_E_LIMIT);
    CHECK_CODE(t, wire_dial_unix(&wire, "@hvd-test-nobody"), HVD_E_NOTFOUND);
out:
    listener_free(second);
    wire_end(&wire);
}

static void a_file_is_not_replaced(struct test *t)
{
    struct listener *listener = NULL;
    int fd;

    snprintf(path, sizeof(path), "%s/file", test_dir(t));
    CHECK(t, wire_begin(&wire));
    fd = open(path, O_CREAT | O_CLOEXEC | O_WRONLY, 0600);
    CHECK(t, fd >= 0 && !close(fd));
    CHECK_CODE(t, listener_unix(wire.base, path, came, NULL, &listener, NULL), HVD_E_EXISTS);
    CHECK(t, !access(path, F_OK));
    CHECK_CODE(t, listener_unix(wire.base, "/no/such/folder/s", came, NULL, &listener, NULL),
               HVD_E_NOTFOUND);
out:
    listener_free(listener);
    wire_end(&wire);
}

/* Only root can be somebody else, so the case has something to show where it runs as root. */
static void another_user_is_turned_away(struct test *t)
{
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    char name[64];
    pid_t child = -1;

    if (geteuid() != 0)
        return;
    CHECK(t, wire_begin(&wire));
    snprintf(name, sizeof(name), "@hvd-test-user-%d", (int)getpid());
    CHECK_OK(t, wire_listen_unix(&wire, name));
    memcpy(at.sun_path + 1, name + 1, strlen(name) - 1);
    child = fork();
    if (child == 0) {
        int fd = socket(AF_UNIX, SOCK_STREAM, 0);
        char byte;

        if (setresuid(65534, 65534, 65534) ||
            connect(fd, (const struct sockaddr *)&at,
                    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name))))
            _exit(1);
        _exit(read(fd, &byte, 1) == 0 ? 0 : 2);
    }
    WIRE_UNTIL(&wire, wire.log_lines);
    CHECK_INT(t, wire_logged(&wire, "is user 65534's"), ==, 1);
    CHECK_INT(t, wire.accepted, ==, 0);
out:
    if (child > 0) {
        int status = 1;

        waitpid(child, &status, 0);
        if (status && !t->failed)
            test_fail(t, __FILE__, __LINE__, "the other user: status %d", status);
    }
    wire_end(&wire);
}

/* Without descriptors it says so once, does not spin, and goes on when there are some again. */
static void it_waits_for_descriptors(struct test *t)
{
    struct rlimit had;
    struct rlimit few;
    int turns = 0;
    int fd = -1;

    CHECK(t, !getrlimit(RLIMIT_NOFILE, &had));
    few = had;
    CHECK(t, wire_begin(&wire));
    CHECK_OK(t, wire_listen(&wire));
    fd = wire_stranger(&wire);
    few.rlim_cur = (rlim_t)fd + 1;
    CHECK(t, !setrlimit(RLIMIT_NOFILE, &few));
    WIRE_UNTIL(&wire, wire.log_lines);
    CHECK_INT(t, wire_logged(&wire, "Too many open files"), ==, 1);
    for (; turns < 3; turns++)
        wire_turn(&wire); /* each is a pause that is over */
    CHECK_INT(t, wire.log_lines, ==, 1);
    CHECK(t, !setrlimit(RLIMIT_NOFILE, &had));
    CHECK_OK(t, wire_dial(&wire, wire.tls));
    WIRE_UNTIL(&wire, wire.accepted || wire.client.closed);
    CHECK_INT(t, wire.accepted, ==, 1);
out:
    setrlimit(RLIMIT_NOFILE, &had);
    if (fd >= 0)
        close(fd);
    wire_end(&wire);
}

/* The silent ones make room for who has the key. */
static void strangers_are_limited(struct test *t)
{
    int fds[6] = { -1, -1, -1, -1, -1, -1 };

    CHECK(t, wire_begin(&wire));
    CHECK_OK(t, wire_listen(&wire));
    wire.listener->strangers_max = 3;
    for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
        fds[i] = wire_stranger(&wire);
    CHECK_OK(t, wire_dial(&wire, wire.tls));
    while (!wire.accepted && !wire.client.closed && wire_turn(&wire))
        CHECK_INT(t, wire.listener->stranger_count, <=, 3);
    CHECK_INT(t, wire.accepted, ==, 1);
    CHECK_INT(t, wire_logged(&wire, "others are waiting"), >=, 4);
out:
    for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
        if (fds[i] >= 0)
            close(fds[i]);
    wire_end(&wire);
}

TESTS(CASE(a_taken_port_is_busy), CASE(ipv6_has_brackets), CASE(a_path_is_made_and_removed),
      CASE(a_path_may_be_long), CASE(what_a_dead_process_left_is_replaced),
      CASE(what_was_half_made_is_removed), CASE(a_living_one_is_not),
      CASE(an_abstract_name_is_held_once), CASE(a_file_is_not_replaced),
      CASE_FLAGS(another_user_is_turned_away, TEST_NO_TORTURE),
      CASE_FLAGS(it_waits_for_descriptors, TEST_NO_TORTURE),
      CASE_FLAGS(strangers_are_limited, TEST_NO_TORTURE))
