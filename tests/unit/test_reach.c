/*
 * test_reach.c: the address of the driver that a host is told: a lookup of a name that hangs delays
 * no other lookup, and each one is ended. The tests replace getaddrinfo.
 */
#include "driver/launch/reach.h"

#include "driver/launch/route.h"
#include "tests/lib/fixture.h"
#include "tests/lib/heap.h"
#include "tests/lib/scripts.h"

#include <errno.h>
#include <event2/event.h>
#include <netdb.h>
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/*
 * The names of the tests: the address of "x.y.test" stands between its dots. The lookup of
 * "stuck.test" ends when the test lets it go; there is no "none.test".
 */
int __real_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
                       struct addrinfo **info);
int __wrap_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
                       struct addrinfo **info);

static sem_t stuck;
static sem_t got_stuck;

static const struct {
    const char *name;
    const char *addresses[3];
} names[] = {
    {"stuck.test",   { "127.0.0.1" }             },
    { "own.test",    { "127.0.1.1" }             },
    { "both.test",   { "fd00::7", "10.9.9.7" }   },
    { "mine.test",   { "10.9.9.7", "10.9.9.1" }  },
    { "mapped.test", { "::ffff:10.9.9.7" }       },
    { "six.test",    { "fd00::7" }               },
    { "mixed.test",  { "203.0.113.1", "fd00::7" }},
    { "empty.test",  { NULL }                    },
};

int __wrap_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
                       struct addrinfo **info)
{
    size_t i = 0;

    if (hints->ai_flags & AI_NUMERICHOST)
        return __real_getaddrinfo(node, service, hints, info);
    if (!strcmp(node, "system.test")) {
        errno = EIO;
        return EAI_SYSTEM;
    }
    if (!strcmp(node, "stuck.test")) {
        sem_post(&got_stuck);
        while (sem_wait(&stuck) && errno == EINTR)
            ;
    }
    while (i < ARRAY_SIZE(names) && strcmp(names[i].name, node) != 0)
        i++;
    if (i == ARRAY_SIZE(names))
        return EAI_NONAME;
    *info = NULL;
    for (const char *const *address = names[i].addresses; *address; address++) {
        while (*info)
            info = &(*info)->ai_next;
        if (__real_getaddrinfo(*address, service, hints, info))
            abort();
    }
    return 0;
}

static struct {
    struct event_base *base;
    struct reach *reach;
    bool free_at_once;
    unsigned calls;
    char said[2048]; /* "host: local by its own 127.0.0.1; ", or the reason of a failure */
} heard;

static void answered(void *arg, const char *host, const struct reach_answer *answer,
                     const char *why)
{
    size_t used = strlen(heard.said);

    (void)arg;
    if (heard.free_at_once) {
        reach_free(heard.reach);
        heard.reach = NULL;
    }
    if (answer)
        snprintf(heard.said + used, sizeof(heard.said) - used, "%s: %s by %s%s; ", host,
                 answer->local ? "local" : "far", answer->inside ? "its own " : "", answer->source);
    else
        snprintf(heard.said + used, sizeof(heard.said) - used, "%s; ", why);
    heard.calls++;
}

static int begin(const char *interface, struct hvd_err *err)
{
    memset(&heard, 0, sizeof(heard));
    if (sem_init(&stuck, 0, 0) || sem_init(&got_stuck, 0, 0))
        abort();
    heard.base = event_base_new();
    if (!heard.base)
        abort();
    return reach_create(heard.base, interface, answered, NULL, &heard.reach, err);
}

static void end(void)
{
    reach_free(heard.reach);
    heard.reach = NULL;
    if (heard.base)
        event_base_free(heard.base);
    heard.base = NULL;
}

/* Returns the answer for this host. */
static const char *ask(const char *host)
{
    unsigned was = heard.calls;

    heard.said[0] = '\0';
    if (reach_ask(heard.reach, host))
        return "no memory";
    return scripts_wait(heard.base, &heard.calls, was) ? heard.said : "nothing";
}

static void end_case(struct test *t)
{
    (void)t;
    end();
}
FIXTURE(NULL, end_case)

TEST(loopback_is_here)
{
    CHECK_OK(t, begin(NULL, NULL));
    CHECK_OK(t, reach_ask(heard.reach, "127.0.0.2"));
    CHECK_OK(t, reach_ask(heard.reach, "localhost"));
    CHECK_INT(t, heard.calls, ==, 0);
    CHECK(t, scripts_wait(heard.base, &heard.calls, 0));
    CHECK(t, heard.calls == 2 || scripts_wait(heard.base, &heard.calls, 1));
    CHECK_TEXT(t, heard.said,
               "127.0.0.2: local by its own 127.0.0.1; localhost: local by its own 127.0.0.1; ");
    CHECK_TEXT(t, ask("::1"), "::1: local by its own ::1; ");
    CHECK_TEXT(t, ask("own.test"), "own.test: local by its own 127.0.0.1; ");
}

TEST(loopback_is_known_by_its_names)
{
    CHECK(t, route_names_loopback("localhost"));
    CHECK(t, route_names_loopback("127.0.1.1"));
    CHECK(t, route_names_loopback("::1"));
    CHECK(t, route_names_loopback("::ffff:127.0.0.1"));
    CHECK(t, !route_names_loopback("128.0.0.1"));
    CHECK(t, !route_names_loopback("own.test"));
    CHECK(t, !route_names_loopback("localhost.test"));
}

TEST(a_name_without_an_address_is_reported)
{
    CHECK_OK(t, begin(NULL, NULL));
    CHECK_HAS(t, ask("none.test"),
              "none.test: the host's name cannot be looked up: Name or service not known; check "
              "the name");
    CHECK_HAS(
        t, ask("system.test"),
        "system.test: the host's name cannot be looked up: Input/output error; check the name");
    CHECK_HAS(t, ask("empty.test"), "empty.test: the host has no address");
    CHECK_HAS(t, ask("-oh"), "-oh: the host's name cannot be looked up: Name or service not known");
    CHECK_HAS(t, ask("fe80::zz"),
              "fe80::zz: the host's name cannot be looked up: Name or service not known");
}

TEST(an_interface_that_is_none_is_refused)
{
    struct hvd_err err;

    CHECK_CODE(t, begin("nosuch0", &err), HVD_E_NOTFOUND);
    CHECK_HAS(t, err.text, "\"nosuch0\": no such network interface; there are ");
    CHECK_HAS(t, err.text, "lo");
    end();
    CHECK_OK(t, begin("lo", &err));
    CHECK_TEXT(t, ask("127.0.0.9"), "127.0.0.9: local by its own 127.0.0.1; ");
}

TEST_FLAGS(a_lookup_that_is_stuck_delays_no_other, TEST_NO_TORTURE)
{
    CHECK_OK(t, begin(NULL, NULL));
    CHECK_OK(t, reach_ask(heard.reach, "stuck.test"));
    CHECK_TEXT(t, ask("own.test"), "own.test: local by its own 127.0.0.1; ");
    CHECK_TEXT(t, ask("127.0.0.1"), "127.0.0.1: local by its own 127.0.0.1; ");
    heard.said[0] = '\0';
    sem_post(&stuck);
    CHECK(t, scripts_wait(heard.base, &heard.calls, heard.calls));
    CHECK_TEXT(t, heard.said, "stuck.test: local by its own 127.0.0.1; ");
    sem_post(&stuck);
}

/* More lookups than threads: the rest wait, and all get an answer. */
TEST_FLAGS(many_are_answered_all, TEST_NO_TORTURE)
{
    CHECK_OK(t, begin(NULL, NULL));
    for (int i = 0; i < 100; i++)
        CHECK_OK(t, reach_ask(heard.reach, i % 2 ? "own.test" : "127.0.0.1"));
    while (heard.calls < 100)
        CHECK(t, scripts_wait(heard.base, &heard.calls, heard.calls));
}

/* Six lookups, of which four never return: the end does not wait for them. The last thread frees
 * the rest. */
TEST_FLAGS(the_end_waits_for_no_lookup, TEST_NO_TORTURE)
{
    size_t before = heap_blocks();

    CHECK_OK(t, begin(NULL, NULL));
    for (int i = 0; i < 6; i++)
        CHECK_OK(t, reach_ask(heard.reach, "stuck.test"));
    for (int i = 0; i < 4; i++)
        while (sem_wait(&got_stuck) && errno == EINTR)
            ;
    reach_free(heard.reach);
    heard.reach = NULL;
    CHECK_INT(t, heap_blocks(), >, before);
    CHECK_INT(t, heard.calls, ==, 0);
    for (int i = 0; i < 4; i++)
        sem_post(&stuck);
    while (heap_blocks() != before) /* the case's own time limit ends this */
        sched_yield();
    for (int i = 0; i < 8; i++)
        sem_post(&stuck);
}

TEST(a_callback_may_free_the_lookup)
{
    CHECK_OK(t, begin(NULL, NULL));
    CHECK_OK(t, reach_ask(heard.reach, "127.0.0.1"));
    heard.free_at_once = true;
    CHECK_TEXT(t, ask("::1"), "127.0.0.1: local by its own 127.0.0.1; ");
    CHECK_INT(t, heard.calls, ==, 1);
}

static bool ran(const char *command)
{
    const char *const argv[] = { "sh", "-c", command, NULL };
    pid_t child = fork();
    int status;

    if (child == 0) {
        execvp("sh", (char *const *)(uintptr_t)argv);
        _exit(127);
    }
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

/* Gives the process its own network, if this kernel allows: only a loopback that is down. false:
 * not allowed. */
static bool alone(void)
{
    return !unshare(CLONE_NEWNET) ||
           (!unshare(CLONE_NEWUSER | CLONE_NEWNET) && ran("ip link >/dev/null"));
}

/* alone, with addresses on "lo". Hosts in the same subnet are far: only the own addresses are
 * local. */
static bool alone_with_addresses(void)
{
    return alone() &&
           ran("ip link set lo up && ip addr add 10.9.9.1/24 dev lo && "
               "ip addr add fd00::1/64 dev lo nodad") &&
           ran("ip link add other0 type veth peer name other1 2>/dev/null || :");
}

TEST_FLAGS(own_addresses_are_local_and_others_are_not, TEST_NO_TORTURE)
{
    if (!alone_with_addresses())
        return;
    CHECK_OK(t, begin(NULL, NULL));
    CHECK_TEXT(t, ask("10.9.9.1"), "10.9.9.1: local by 10.9.9.1; ");
    CHECK_TEXT(t, ask("10.9.9.7"), "10.9.9.7: far by 10.9.9.1; ");
    CHECK_TEXT(t, ask("fd00::7"), "fd00::7: far by fd00::1; ");
    CHECK_TEXT(t, ask("fd00::1"), "fd00::1: local by fd00::1; ");
    CHECK_TEXT(t, ask("both.test"), "both.test: far by 10.9.9.1; ");
    CHECK_TEXT(t, ask("mine.test"), "mine.test: local by 10.9.9.1; ");
    CHECK_TEXT(t, ask("mapped.test"), "mapped.test: far by 10.9.9.1; ");
    CHECK_TEXT(t, ask("six.test"), "six.test: far by fd00::1; ");
    CHECK_TEXT(t, ask("mixed.test"), "mixed.test: far by fd00::1; ");
    CHECK_TEXT(t, ask("203.0.113.1"),
               "203.0.113.1: there is no route to 203.0.113.1: Network is unreachable; see ip "
               "route; ");
}

TEST_FLAGS(the_interface_gives_the_source, TEST_NO_TORTURE)
{
    if (!alone_with_addresses())
        return;
    CHECK_OK(t, begin("lo", NULL));
    CHECK_TEXT(t, ask("127.0.0.2"), "127.0.0.2: local by its own 127.0.0.1; ");
    CHECK_TEXT(t, ask("six.test"), "six.test: far by fd00::1; ");
    end();
    if (!ran("ip link show other0 >/dev/null 2>&1"))
        return;
    CHECK(t, ran("ip addr add 10.8.8.1/24 dev other0 && ip link set other0 up"));
    CHECK_OK(t, begin("other0", NULL));
    CHECK_TEXT(t, ask("10.9.9.7"), "10.9.9.7: far by 10.8.8.1; ");
    CHECK_TEXT(t, ask("localhost"), "localhost: local by 10.8.8.1; ");
    CHECK_TEXT(t, ask("127.0.0.2"), "127.0.0.2: local by 10.8.8.1; ");
    CHECK_TEXT(t, ask("10.9.9.1"), "10.9.9.1: local by 10.8.8.1; ");
    CHECK_TEXT(t, ask("both.test"), "both.test: far by 10.8.8.1; ");
    CHECK_HAS(
        t, ask("six.test"),
        "six.test: other0 has no address that fd00::7 can reach; give this interface an address");
}

TEST_FLAGS(interfaces_can_be_several_or_excluded, TEST_NO_TORTURE)
{
    struct hvd_err err;

    if (!alone_with_addresses() || !ran("ip link show other0 >/dev/null 2>&1"))
        return;
    CHECK(t, ran("ip addr add 10.8.8.1/24 dev other0 && ip link set other0 up"));
    /* the address from which the kernel reaches the host, else that of the first named interface */
    CHECK_OK(t, begin("other0,lo", NULL));
    CHECK_TEXT(t, ask("127.0.0.2"), "127.0.0.2: local by its own 127.0.0.1; ");
    CHECK_TEXT(t, ask("10.8.8.7"), "10.8.8.7: far by 10.8.8.1; ");
    CHECK_TEXT(t, ask("203.0.113.1"), "203.0.113.1: far by 10.8.8.1; ");
    end();
    CHECK_OK(t, begin("^other0,nosuch0", NULL));
    CHECK_TEXT(t, ask("127.0.0.2"), "127.0.0.2: local by its own 127.0.0.1; ");
    CHECK_TEXT(t, ask("10.9.9.7"), "10.9.9.7: far by 10.9.9.1; ");
    end();
    CHECK_OK(t, begin("^lo", NULL));
    CHECK_TEXT(t, ask("localhost"), "localhost: local by 10.8.8.1; ");
    end();
    CHECK_CODE(t, begin("other0,nosuch0", &err), HVD_E_NOTFOUND);
    CHECK_HAS(t, err.text, "\"nosuch0\": no such network interface; there are ");
}

TEST_FLAGS(without_a_network_there_is_a_reason, TEST_NO_TORTURE)
{
    if (!alone())
        return;
    CHECK_OK(t, begin(NULL, NULL));
    CHECK_HAS(t, ask("10.9.9.7"),
              "10.9.9.7: there is no route to 10.9.9.7: Network is unreachable");
    CHECK_HAS(t, ask("fd00::7"), "fd00::7: there is no route to fd00::7: ");
}
