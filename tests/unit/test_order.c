#include "base/limits.h"
#include "base/rng.h"
#include "discovery/order.h"
#include "tests/lib/hosts_shown.h"
#include "tests/lib/test.h"

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

static void order_available_hosts(struct test *t)
{
    struct hosts order;

    hosts_init(&order);
    CHECK_OK(t, FEED(&order, "a,b,c", "d,c,b"));
    CHECK_TEXT(t, hosts_shown(&order), "b:1 c:1 d:1");
out:
    hosts_release(&order);
}

static void first_order_is_the_given_one(struct test *t)
{
    struct hosts order;

    hosts_init(&order);
    CHECK_OK(t, FEED(&order, "z:2,b:1,m:3,a:4"));
    CHECK_TEXT(t, hosts_shown(&order), "z:2 b:1 m:3 a:4");
out:
    hosts_release(&order);
}

static void new_hosts_append_as_printed(struct test *t)
{
    struct hosts order;

    hosts_init(&order);
    CHECK_OK(t, FEED(&order, "m,k", "z,k,y,m,x"));
    CHECK_TEXT(t, hosts_shown(&order), "m:1 k:1 z:1 y:1 x:1");
out:
    hosts_release(&order);
}

static void who_comes_back_goes_to_the_end(struct test *t)
{
    struct hosts order;

    hosts_init(&order);
    CHECK_OK(t, FEED(&order, "a,b,c", "b,c", "a,b,c"));
    CHECK_TEXT(t, hosts_shown(&order), "b:1 c:1 a:1");
    CHECK_OK(t, FEED(&order, "", "a,b,c"));
    CHECK_TEXT(t, hosts_shown(&order), "a:1 b:1 c:1");
out:
    hosts_release(&order);
}

static void all_hosts_are_replaced_one_by_one(struct test *t)
{
    struct hosts order;

    hosts_init(&order);
    CHECK_OK(t, FEED(&order, "a,b,c", "d,b,c", "d,e,c", "d,e,f"));
    CHECK_TEXT(t, hosts_shown(&order), "d:1 e:1 f:1");
out:
    hosts_release(&order);
}

static void a_host_keeps_its_place_with_other_slots(struct test *t)
{
    struct hosts order;

    hosts_init(&order);
    CHECK_OK(t, FEED(&order, "a:2,b:2,c:2", "c:1,b:0,a:8"));
    CHECK_TEXT(t, hosts_shown(&order), "a:8 b:0 c:1");
out:
    hosts_release(&order);
}

static void leaves_its_inputs_alone(struct test *t)
{
    struct hosts before;
    struct hosts now;
    struct hosts order;
    int rc;

    hosts_init(&before);
    hosts_init(&now);
    hosts_init(&order);
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
out:
    hosts_release(&before);
    hosts_release(&now);
    hosts_release(&order);
}

/* The largest set, handed over backwards: what is quadratic in the hosts does not end here. */
static void the_largest_set_reversed(struct test *t)
{
    struct hosts before;
    struct hosts now;
    char name[16];

    hosts_init(&before);
    hosts_init(&now);
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
out:
    hosts_release(&before);
    hosts_release(&now);
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

/* What order.h promises, said in the slow way: each host of `now` is there once with its slots;
 * after a known host stands a younger known one or a new one, never the other way round. */
static bool is_stable(const struct hosts *before, const struct hosts *now,
                      const struct hosts *order)
{
    const struct host *last = NULL;

    if (order->count != now->count)
        return false;
    for (size_t i = 0; i < order->count; i++) {
        const char *name = order->items[i].name;
        const struct host *known = hosts_find(before, name);
        const struct host *given = hosts_find(now, name);
        const struct hosts *from = known ? before : now;
        const struct host *here = known ? known : given;

        if (!given || given->slots != order->items[i].slots)
            return false;
        if (last && hosts_find(from, last->name) == last && last > here)
            return false;
        if (i && known && !hosts_find(before, order->items[i - 1].name))
            return false;
        last = here;
    }
    return true;
}

static void stays_stable_through_random_changes(struct test *t)
{
    struct hosts before;
    struct hosts now;
    struct hosts order;
    struct rng rng;

    rng_seed(&rng, 16);
    hosts_init(&before);
    hosts_init(&now);
    hosts_init(&order);
    for (int i = 0; i < 1000; i++) {
        CHECK_OK(t, draw(&rng, &now));
        CHECK_OK(t, order_update(&before, &now, &order));
        CHECK(t, is_stable(&before, &now, &order));
        hosts_move(&order, &before);
    }
out:
    hosts_release(&before);
    hosts_release(&now);
    hosts_release(&order);
}

TESTS(CASE(order_available_hosts), CASE(first_order_is_the_given_one),
      CASE(new_hosts_append_as_printed), CASE(who_comes_back_goes_to_the_end),
      CASE(all_hosts_are_replaced_one_by_one), CASE(a_host_keeps_its_place_with_other_slots),
      CASE(leaves_its_inputs_alone), CASE_FLAGS(the_largest_set_reversed, TEST_NO_TORTURE),
      CASE_FLAGS(stays_stable_through_random_changes, TEST_NO_TORTURE))
