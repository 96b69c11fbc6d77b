#include "driver/hosts/reach.h"

#include "base/log.h"
#include "driver/hosts/route.h"
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
 * The names of this world: what stands between the dots of "x.y.test" are addresses by their names
 * here. "stuck.test" is answered when the test lets it go, "none.test" never was.
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
    char said[2048]; /* "host: local by its own 127.0.0.1; ", or why not */
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

/* What is said of this host alone. */
static const char *ask(const char *host)
{
    unsigned was = heard.calls;

    heard.said[0] = '\0';
    if (reach_ask(heard.reach, host))
        return "no memory";
    return scripts_wait(heard.base, &heard.calls, was) ? heard.said : "nothing";
}

static void loopback_is_here(struct test *t)
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
out:
    end();
}

static void loopback_is_known_by_its_names(struct test *t)
{
    CHECK(t, route_names_loopback("localhost"));
    CHECK(t, route_names_loopback("127.0.1.1"));
    CHECK(t, route_names_loopback("::1"));
    CHECK(t, route_names_loopback("::ffff:127.0.0.1"));
    CHECK(t, !route_names_loopback("128.0.0.1"));
    CHECK(t, !route_names_loopback("own.test"));
    CHECK(t, !route_names_loopback("localhost.test"));
out:
    return;
}

static void a_name_that_is_none_says_so(struct test *t)
{
    CHECK_OK(t, begin(NULL, NULL));
    CHECK_HAS(t, ask("none.test"), "none.test: Name or service not known; check its name");
    CHECK_HAS(t, ask("system.test"), "system.test: Input/output error; check its name");
    CHECK_HAS(t, ask("empty.test"), "empty.test: has no address");
    CHECK_HAS(t, ask("-oh"), "-oh: Name or service not known");
    CHECK_HAS(t, ask("fe80::zz"), "fe80::zz: Name or service not known");
out:
    end();
}

static void an_interface_that_is_none_is_refused(struct test *t)
{
    struct hvd_err err;

    CHECK_CODE(t, begin("nosuch0", &err), HVD_E_NOTFOUND);
    CHECK_HAS(t, err.text, "nosuch0: no such network interface; there are ");
    CHECK_HAS(t, err.text, "lo");
    end();
    CHECK_OK(t, begin("lo", &err));
    CHECK_TEXT(t, ask("127.0.0.9"), "127.0.0.9: local by its own 127.0.0.1; ");
out:
    end();
}

static void a_lookup_that_is_stuck_delays_no_other(struct test *t)
{
    CHECK_OK(t, begin(NULL, NULL));
    CHECK_OK(t, reach_ask(heard.reach, "stuck.test"));
    CHECK_TEXT(t, ask("own.test"), "own.test: local by its own 127.0.0.1; ");
    CHECK_TEXT(t, ask("127.0.0.1"), "127.0.0.1: local by its own 127.0.0.1; ");
    heard.said[0] = '\0';
    sem_post(&stuck);
    CHECK(t, scripts_wait(heard.base, &heard.calls, heard.calls));
    CHECK_TEXT(t, heard.said, "stuck.test: local by its own 127.0.0.1; ");
out:
    sem_post(&stuck);
    end();
}

/* More than there are threads: the rest wait for their turn, and are answered. */
static void many_are_answered_all(struct test *t)
{
    CHECK_OK(t, begin(NULL, NULL));
    for (int i = 0; i < 100; i++)
        CHECK_OK(t, reach_ask(heard.reach, i % 2 ? "own.test" : "127.0.0.1"));
    while (heard.calls < 100)
        CHECK(t, scripts_wait(heard.base, &heard.calls, heard.calls));
out:
    end();
}

/* Six lookups, four of which no thread comes back from: the end does not wait for them. What was
 * left to the threads is freed by the last of them. */
static void its_end_waits_for_no_lookup(struct test *t)
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
out:
    for (int i = 0; i < 8; i++)
        sem_post(&stuck);
    end();
}

static void it_may_be_freed_by_whom_it_tells(struct test *t)
{
    CHECK_OK(t, begin(NULL, NULL));
    CHECK_OK(t, reach_ask(heard.reach, "127.0.0.1"));
    heard.free_at_once = true;
    CHECK_TEXT(t, ask("::1"), "127.0.0.1: local by its own 127.0.0.1; ");
    CHECK_INT(t, heard.calls, ==, 1);
out:
    end();
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

/* A network of our own, where this kernel lets us have one: nothing but a loopback that is down. */
static bool alone(void)
{
    return !unshare(CLONE_NEWNET) ||
           (!unshare(CLONE_NEWUSER | CLONE_NEWNET) && ran("ip link >/dev/null"));
}

/* On "lo", whose neighbours are as good as others: they are not our addresses. */
static bool alone_with_addresses(void)
{
    return alone() &&
           ran("ip link set lo up && ip addr add 10.9.9.1/24 dev lo && "
               "ip addr add fd00::1/64 dev lo nodad") &&
           ran("ip link add other0 type veth peer name other1 2>/dev/null || :");
}

static void what_is_ours_is_here_and_the_rest_is_far(struct test *t)
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
               "203.0.113.1: there is no way to 203.0.113.1: Network is unreachable; see ip "
               "route; ");
out:
    end();
}

static void the_interface_gives_the_source(struct test *t)
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
    CHECK_HAS(t, ask("six.test"),
              "six.test: other0 has no address that could be dialled from "
              "fd00::7; give it one");
out:
    end();
}

static void without_a_network_there_is_a_reason(struct test *t)
{
    if (!alone())
        return;
    CHECK_OK(t, begin(NULL, NULL));
    CHECK_HAS(t, ask("10.9.9.7"), "10.9.9.7: there is no way to 10.9.9.7: Network is unreachable");
    CHECK_HAS(t, ask("fd00::7"), "fd00::7: there is no way to fd00::7: ");
out:
    end();
}

TESTS(CASE(loopback_is_here), CASE(loopback_is_known_by_its_names),
      CASE(a_name_that_is_none_says_so), CASE(an_interface_that_is_none_is_refused),
      CASE_FLAGS(a_lookup_that_is_stuck_delays_no_other, TEST_NO_TORTURE),
      CASE_FLAGS(many_are_answered_all, TEST_NO_TORTURE),
      CASE_FLAGS(its_end_waits_for_no_lookup, TEST_NO_TORTURE),
      CASE(it_may_be_freed_by_whom_it_tells),
      CASE_FLAGS(what_is_ours_is_here_and_the_rest_is_far, TEST_NO_TORTURE),
      CASE_FLAGS(the_interface_gives_the_source, TEST_NO_TORTURE),
      CASE_FLAGS(without_a_network_there_is_a_reason, TEST_NO_TORTURE))
