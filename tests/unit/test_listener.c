/*
 * test_listener.c: wire/listener: ports and paths that are taken, stale sockets of dead processes,
 * abstract names.
 */
#include "wire/listener_internal.h"

#include "base/time.h"
#include "tests/lib/descriptors.h"
#include "tests/lib/fixture.h"
#include "tests/lib/loopback.h"
#include "tests/lib/wire_side.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
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

static struct listener *second;

static void begin(struct test *t)
{
    second = NULL;
    CHECK(t, wire_begin(&wire));
}

static void end(struct test *t)
{
    (void)t;
    listener_free(second);
    wire_end(&wire);
}
FIXTURE(begin, end)

TEST(a_taken_port_is_busy)
{
    struct hvd_err err;

    CHECK_OK(t, wire_listen(&wire));
    CHECK_INT(t, listener_port(wire.listener), >, 0);
    CHECK_CODE(t,
               listener_tcp(wire.base,
                            &(struct listener_place){ loopback_own(), listener_port(wire.listener),
                                                      wire.tls },
                            came, NULL, &second, &err),
               HVD_E_BUSY);
    CHECK_HAS(t, err.text, "the port is in use");
    CHECK_CODE(t,
               listener_tcp(wire.base, &(struct listener_place){ "localhost", 0, wire.tls }, came,
                            NULL, &second, &err),
               HVD_E_INVAL);
    CHECK_CODE(t,
               listener_tcp(wire.base, &(struct listener_place){ "192.0.2.1", 0, wire.tls }, came,
                            NULL, &second, &err),
               HVD_E_INVAL);
}

TEST(ipv6_has_brackets)
{
    int rc;

    rc = listener_tcp(wire.base, &(struct listener_place){ "::1", 0, wire.tls }, came, NULL,
                      &second, NULL);
    if (rc != HVD_E_INVAL) { /* a machine may have none */
        CHECK_OK(t, rc);
        CHECK_HAS(t, listener_address(second), "[::1]:");
    }
}

static void serve_path(struct test *t)
{
    struct stat st;

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
}

TEST(a_path_is_made_and_removed)
{
    snprintf(path, sizeof(path), "%s/socket", test_dir(t));
    serve_path(t);
}

TEST(a_path_may_be_long)
{
    size_t length = (size_t)snprintf(path, sizeof(path), "%s", test_dir(t));

    for (int i = 0; i < 4; i++) {
        length += (size_t)snprintf(path + length, sizeof(path) - length, "/%0100d", i);
        CHECK(t, !mkdir(path, 0700));
    }
    snprintf(path + length, sizeof(path) - length, "/%0120d", 7);
    serve_path(t);
}

TEST(the_socket_of_a_dead_process_is_replaced)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_un at = { .sun_family = AF_UNIX };

    snprintf(path, sizeof(path), "%s/socket", test_dir(t));
    snprintf(at.sun_path, sizeof(at.sun_path), "%.100s", path);
    CHECK(t, fd >= 0 && !bind(fd, (const struct sockaddr *)&at, sizeof(at)));
    close(fd);
    serve_path(t);
}

/* The maker was killed while it made the socket: INT32_MAX is no pid that a kernel gives. */
TEST(a_half_made_socket_is_removed)
{
    const char *folder = test_dir(t);
    char half[300];
    char mine[300];

    snprintf(path, sizeof(path), "%s/socket", folder);
    snprintf(half, sizeof(half), "%s/.hvd-%d", folder, INT32_MAX);
    snprintf(mine, sizeof(mine), "%s/.hvd-%d", folder, (int)getppid());
    CHECK(t, !mkfifo(half, 0600) && !mkfifo(mine, 0600));
    CHECK_OK(t, wire_listen_unix(&wire, path));
    CHECK(t, access(half, F_OK) && !access(mine, F_OK)); /* the maker of that socket lives */
    unlink(half);
    unlink(mine);
}

TEST(the_socket_of_a_living_process_is_kept)
{
    struct hvd_err err;

    snprintf(path, sizeof(path), "%s/socket", test_dir(t));
    CHECK_OK(t, wire_listen_unix(&wire, path));
    CHECK_CODE(t, listener_unix(wire.base, path, came, NULL, &second, &err), HVD_E_BUSY);
    CHECK_HAS(t, err.text, "another process listens at this address");
    CHECK(t, !access(path, F_OK));
}

TEST(an_abstract_name_is_held_once)
{
    char name[200];

    snprintf(name, sizeof(name), "@hvd-test-%d", (int)getpid());
    CHECK_OK(t, wire_listen_unix(&wire, name));
    CHECK_CODE(t, listener_unix(wire.base, name, came, NULL, &second, NULL), HVD_E_BUSY);
    snprintf(name, sizeof(name), "@%0150d", 1);
    CHECK_CODE(t, listener_unix(wire.base, name, came, NULL, &second, NULL), HVD_E_LIMIT);
    CHECK_CODE(t, wire_dial_unix(&wire, "@hvd-test-nobody"), HVD_E_NOTFOUND);
}

TEST(a_file_is_not_replaced)
{
    int fd;

    snprintf(path, sizeof(path), "%s/file", test_dir(t));
    fd = open(path, O_CREAT | O_CLOEXEC | O_WRONLY, 0600);
    CHECK(t, fd >= 0 && !close(fd));
    CHECK_CODE(t, listener_unix(wire.base, path, came, NULL, &second, NULL), HVD_E_EXISTS);
    CHECK(t, !access(path, F_OK));
    CHECK_CODE(t, listener_unix(wire.base, "/no/such/folder/s", came, NULL, &second, NULL),
               HVD_E_NOTFOUND);
}

/* Only root can become another user, so the case tests something only as root. */
TEST_FLAGS(another_user_is_turned_away, TEST_NO_TORTURE)
{
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    char name[64];
    int status;
    pid_t child;

    if (geteuid() != 0)
        return;
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
    CHECK_INT(t, wire_logged(&wire, "is of user 65534"), ==, 1);
    CHECK_INT(t, wire.accepted, ==, 0);
    CHECK_INT(t, waitpid(child, &status, 0), ==, child);
    CHECK_INT(t, status, ==, 0);
}

/* Without descriptors the listener warns once, sleeps, and goes on when descriptors are free
 * again. */
TEST_FLAGS(the_listener_waits_for_descriptors, TEST_NO_TORTURE)
{
    struct rlimit had;
    int turns = 0;
    int fd;

    CHECK_OK(t, wire_listen(&wire));
    wire.listener->failing.window_us = TIME_HOUR;
    CHECK_OK(t, descriptors_allow(1, &had));
    fd = wire_stranger(&wire); /* takes the last descriptor */
    WIRE_UNTIL(&wire, wire.log_lines);
    CHECK_INT(t, wire_logged(&wire, "Too many open files"), ==, 1);
    for (; turns < 3; turns++)
        wire_turn(&wire); /* each turn ends a pause */
    CHECK_INT(t, wire.log_lines, ==, 1);
    CHECK(t, !setrlimit(RLIMIT_NOFILE, &had));
    CHECK_OK(t, wire_dial(&wire, wire.tls));
    WIRE_UNTIL(&wire, wire.accepted || wire.client.closed);
    CHECK_INT(t, wire.accepted, ==, 1);
    close(fd);
}

/* Strangers that hold the last descriptors give them up for a peer. */
TEST_FLAGS(strangers_give_up_descriptors, TEST_NO_TORTURE)
{
    struct rlimit had;
    int fds[3];

    CHECK_OK(t, wire_listen(&wire));
    for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
        fds[i] = wire_stranger(&wire);
    WIRE_UNTIL(&wire, wire.listener->door.count == ARRAY_SIZE(fds));
    CHECK_OK(t, descriptors_allow(1, &had)); /* for the peer's own socket */
    CHECK_OK(t, wire_dial(&wire, wire.tls));
    WIRE_UNTIL(&wire, wire.accepted || wire.client.closed);
    CHECK(t, !setrlimit(RLIMIT_NOFILE, &had));
    CHECK_TEXT(t, wire.client.why, "");
    CHECK_INT(t, wire.accepted, ==, 1);
    CHECK_INT(t, wire.listener->door.count, <, ARRAY_SIZE(fds));
    for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
        close(fds[i]);
}

/* A stranger in its handshake keeps its descriptor as long as there are silent ones, also if it
 * came first. */
TEST_FLAGS(silent_strangers_give_up_descriptors_first, TEST_NO_TORTURE)
{
    const struct list *first;
    struct rlimit had;
    int fds[3];

    CHECK_OK(t, wire_listen(&wire));
    fds[0] = wire_stranger(&wire);
    CHECK_INT(t, send(fds[0], "\x16", 1, MSG_NOSIGNAL), ==, 1); /* the beginning of a ClientHello */
    for (size_t i = 1; i < ARRAY_SIZE(fds); i++)
        fds[i] = wire_stranger(&wire);
    WIRE_UNTIL(&wire, wire.listener->door.count == ARRAY_SIZE(fds));
    first = wire.listener->door.guests.next;
    CHECK_OK(t, descriptors_allow(1, &had)); /* for the peer's own socket */
    CHECK_OK(t, wire_dial(&wire, wire.tls));
    WIRE_UNTIL(&wire, wire.accepted || wire.client.closed);
    CHECK(t, !setrlimit(RLIMIT_NOFILE, &had));
    CHECK_INT(t, wire.accepted, ==, 1);
    CHECK_INT(t, wire.listener->door.count, <, ARRAY_SIZE(fds));
    CHECK(t, wire.listener->door.guests.next == first);
    for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
        close(fds[i]);
}

/* Without a free descriptor an accept fails so also when no peer waits: the peer that has got the
 * last one keeps it. */
TEST_FLAGS(a_peer_gets_the_last_descriptor, TEST_NO_TORTURE)
{
    struct rlimit had;

    CHECK_OK(t, wire_listen(&wire));
    CHECK_OK(t, descriptors_allow(2, &had)); /* for both ends of the connection */
    CHECK_OK(t, wire_dial(&wire, wire.tls));
    WIRE_UNTIL(&wire, wire.accepted || wire.client.closed);
    CHECK(t, !setrlimit(RLIMIT_NOFILE, &had));
    CHECK_TEXT(t, wire.client.why, "");
    CHECK_INT(t, wire.accepted, ==, 1);
    CHECK_INT(t, wire.log_lines, ==, 0);
}

/* Silent strangers make room for a peer that has the key. */
TEST_FLAGS(strangers_are_limited, TEST_NO_TORTURE)
{
    int fds[6];

    CHECK_OK(t, wire_listen(&wire));
    wire.listener->door.places = 3;
    for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
        fds[i] = wire_stranger(&wire);
    CHECK_OK(t, wire_dial(&wire, wire.tls));
    while (!wire.accepted && !wire.client.closed && wire_turn(&wire))
        CHECK_INT(t, wire.listener->door.count, <=, 3);
    CHECK_INT(t, wire.accepted, ==, 1);
    CHECK_INT(t, wire_logged(&wire, "crowded by connections that have not proved the job's key"),
              ==, 1);
    CHECK_INT(t, wire_logged(&wire, "most from 127.0.0.1"), ==, 1);
    for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
        close(fds[i]);
}
