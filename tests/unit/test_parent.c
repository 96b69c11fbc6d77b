/*
 * test_parent.c: how the driver counts what asks for the end of its job: its own signals, those of
 * which its parent tells, and SIGTERMs in quick succession. The clock is the test's.
 */
#include "driver/io/parent.h"

#include "base/limits.h"
#include "driver/front/front_link.h"
#include "tests/lib/fixture.h"

#include <event2/event.h>
#include <signal.h>
#include <unistd.h>

static struct event_base *base;
static struct parent *parent;
static int fds[2];
static unsigned stops, hangups, looks, losses;
static int last;
static int64_t now_us;

int64_t __wrap_clock_now_us(void);
int64_t __wrap_clock_now_us(void)
{
    return now_us;
}

static void on_stop(void *arg, int signal)
{
    (void)arg;
    stops++;
    last = signal;
}

static void on_hangup(void *arg)
{
    (void)arg;
    hangups++;
}

static void on_look(void *arg)
{
    (void)arg;
    looks++;
}

static void on_lost(void *arg)
{
    (void)arg;
    losses++;
}

static const struct parent_ops ops = { on_stop, on_hangup, on_look, on_lost };

static void begin(struct test *t)
{
    stops = hangups = looks = losses = 0;
    now_us = 1000000;
    base = event_base_new();
    CHECK(t, base);
    CHECK_OK(t, front_link_open(fds, NULL));
    CHECK_OK(t, parent_create(base, fds[1], &ops, NULL, &parent, NULL));
}

static void end(struct test *t)
{
    (void)t;
    parent_free(parent);
    event_base_free(base);
    if (fds[0] >= 0)
        close(fds[0]);
    close(fds[1]);
}
FIXTURE(begin, end)

/* The parent tells of a signal, or of a look for hosts. */
static void tell(enum front_kind kind, int signal, uint32_t count)
{
    const struct front_msg msg = { .kind = kind, .signal = signal, .count = count };

    front_link_send(fds[0], &msg);
    (void)event_base_loop(base, EVLOOP_ONCE);
}

TEST_FLAGS(a_signal_that_reaches_both_counts_once, TEST_NO_TORTURE)
{
    parent_own_signal(parent, SIGINT);
    tell(FRONT_STOP, SIGINT, 1);
    CHECK_INT(t, stops, ==, 1);
    tell(FRONT_STOP, SIGTERM, 2);
    CHECK(t, stops == 2 && last == SIGTERM);
    parent_own_signal(parent, SIGTERM);
    CHECK_INT(t, stops, ==, 2);
    parent_own_signal(parent, SIGHUP);
    tell(FRONT_HANGUP, 0, 0);
    tell(FRONT_LOOK, 0, 0);
    CHECK(t, hangups == 1 && looks == 1 && stops == 2);
}

TEST_FLAGS(sigterms_in_quick_succession_count_once, TEST_NO_TORTURE)
{
    parent_own_signal(parent, SIGTERM);
    now_us += LIMIT_SAME_SIGNAL_US - 1;
    parent_own_signal(parent, SIGTERM);
    CHECK_INT(t, stops, ==, 1);
    now_us += 1; /* the time counts from the first one */
    parent_own_signal(parent, SIGTERM);
    CHECK_INT(t, stops, ==, 2);
    parent_own_signal(parent, SIGINT); /* haste */
    parent_own_signal(parent, SIGINT);
    CHECK(t, stops == 4 && last == SIGINT);
}

TEST_FLAGS(a_driver_without_its_parent_counts_its_own_signals, TEST_NO_TORTURE)
{
    close(fds[0]);
    fds[0] = -1;
    (void)event_base_loop(base, EVLOOP_ONCE);
    CHECK_INT(t, losses, ==, 1);
    parent_own_signal(parent, SIGTERM);
    CHECK_INT(t, stops, ==, 1);
}
