/*
 * test_order.c: discovery/order: hosts that stay keep their place, and new hosts come last, as
 * Horovod's own tests expect.
 */
#include "base/limits.h"
#include "base/rng.h"
#include "discovery/order.h"
#include "tests/lib/fixture.h"
#include "tests/lib/hosts_shown.h"

/* Feeds the lists one after the other and leaves the last order in `order`. */
static int feed(struct hosts *order, const char *const *lists, size_t count)
{
    struct hosts now;
    int rc = 0;

    hosts_init(&now);
    for (size_t i = 0; i < count && !rc; i++) {
        rc = hosts_fill(&now, lists[i]);
        if (!rc)
            rc = order_update(order, &now, order);
    }
    hosts_release(&now);
    return rc;
}

#define FEED(order, ...)                                \
    feed((order), (const char *const[]){ __VA_ARGS__ }, \
         sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(const char *))

static struct hosts before, now, order;

static void begin(struct test *t)
{
    (void)t;
    hosts_init(&before);
    hosts_init(&now);
    hosts_init(&order);
}

static void end(struct test *t)
{
    (void)t;
    hosts_release(&before);
    hosts_release(&now);
    hosts_release(&order);
}
FIXTURE(begin, end)

TEST(order_available_hosts)
{
    CHECK_OK(t, FEED(&order, "a,b,c", "d,c,b"));
    CHECK_TEXT(t, hosts_shown(&order), "b:1 c:1 d:1");
}

TEST(first_order_is_the_given_one)
{
    CHECK_OK(t, FEED(&order, "z:2,b:1,m:3,a:4"));
    CHECK_TEXT(t, hosts_shown(&order), "z:2 b:1 m:3 a:4");
}

TEST(new_hosts_append_as_printed)
{
    CHECK_OK(t, FEED(&order, "m,k", "z,k,y,m,x"));
    CHECK_TEXT(t, hosts_shown(&order), "m:1 k:1 z:1 y:1 x:1");
}

TEST(a_host_that_comes_back_goes_to_the_end)
{
    CHECK_OK(t, FEED(&order, "a,b,c", "b,c", "a,b,c"));
    CHECK_TEXT(t, hosts_shown(&order), "b:1 c:1 a:1");
    CHECK_OK(t, FEED(&order, "", "a,b,c"));
    CHECK_TEXT(t, hosts_shown(&order), "a:1 b:1 c:1");
}

TEST(all_hosts_are_replaced_one_by_one)
{
    CHECK_OK(t, FEED(&order, "a,b,c", "d,b,c", "d,e,c", "d,e,f"));
    CHECK_TEXT(t, hosts_shown(&order), "d:1 e:1 f:1");
}

TEST(a_host_keeps_its_place_with_other_slots)
{
    CHECK_OK(t, FEED(&order, "a:2,b:2,c:2", "c:1,b:0,a:8"));
    CHECK_TEXT(t, hosts_shown(&order), "a:8 b:0 c:1");
}

TEST(leaves_its_inputs_alone)
{
    int rc;

    CHECK_OK(t, hosts_fill(&before, "a:1,b:2"));
    CHECK_OK(t, hosts_fill(&now, "c:3,b:4"));
    CHECK_OK(t, hosts_fill(&order, "old"));
    rc = order_update(&before, &now, &order);
    CHECK_TEXT(t, hosts_shown(&before), "a:1 b:2");
    CHECK_TEXT(t, hosts_shown(&now), "c:3 b:4");
    CHECK_TEXT(t, hosts_shown(&order), rc ? "old:1" : "b:4 c:3");
    CHECK_OK(t, rc);
    CHECK_OK(t, order_update(&before, &now, &now));
    CHECK_TEXT(t, hosts_shown(&now), "b:4 c:3");
}

/* The largest set in reverse order: an algorithm that is quadratic would not end. */
TEST_FLAGS(the_largest_set_reversed, TEST_NO_TORTURE)
{
    char name[16];

    for (uint32_t i = 0; i < LIMIT_HOSTS; i++) {
        snprintf(name, sizeof(name), "h%" PRIu32, i);
        CHECK_OK(t, hosts_add(&before, name, 1));
        snprintf(name, sizeof(name), "h%" PRIu32, LIMIT_HOSTS - i);
        CHECK_OK(t, hosts_add(&now, name, 2));
    }
    CHECK_OK(t, order_update(&before, &now, &before));
    CHECK_INT(t, before.count, ==, LIMIT_HOSTS);
    for (uint32_t i = 0; i < LIMIT_HOSTS; i++) {
        snprintf(name, sizeof(name), "h%" PRIu32, i + 1);
        CHECK_TEXT(t, before.items[i].name, name);
        CHECK_INT(t, before.items[i].slots, ==, 2);
    }
}

/* A random part of sixteen hosts, in random order. */
static int draw(struct rng *rng, struct hosts *ret_hosts)
{
    char name[2] = "?";
    struct hosts hosts;
    int rc = 0;

    hosts_init(&hosts);
    for (int i = 0; i < 16 && (rc == 0 || rc == HVD_E_EXISTS); i++) {
        name[0] = (char)('a' + rng_below(rng, 16));
        rc = hosts_add(&hosts, name, (uint32_t)rng_below(rng, 4));
    }
    if (rc == 0 || rc == HVD_E_EXISTS) {
        hosts_move(&hosts, ret_hosts);
        rc = 0;
    }
    hosts_release(&hosts);
    return rc;
}

/* The promise of order.h, checked in the slow way: each host of `now` is there once with its slots;
 * after a known host stands a younger known host or a new host, never an older host. */
static bool is_stable(void)
{
    const struct host *last = NULL;

    if (order.count != now.count)
        return false;
    for (size_t i = 0; i < order.count; i++) {
        const char *name = order.items[i].name;
        const struct host *known = hosts_find(&before, name);
        const struct host *given = hosts_find(&now, name);
        const struct hosts *from = known ? &before : &now;
        const struct host *here = known ? known : given;

        if (!given || given->slots != order.items[i].slots)
            return false;
        if (last && hosts_find(from, last->name) == last && last > here)
            return false;
        if (i && known && !hosts_find(&before, order.items[i - 1].name))
            return false;
        last = here;
    }
    return true;
}

TEST_FLAGS(stays_stable_through_random_changes, TEST_NO_TORTURE)
{
    struct rng rng;

    rng_seed(&rng, 16);
    for (int i = 0; i < 1000; i++) {
        CHECK_OK(t, draw(&rng, &now));
        CHECK_OK(t, order_update(&before, &now, &order));
        CHECK(t, is_stable());
        hosts_move(&order, &before);
    }
}
