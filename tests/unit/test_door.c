/*
 * test_door.c: base/door: which stranger leaves when another one comes, and what is reported of a
 * crowd; os/source: which addresses are one source.
 */
#include "base/door.h"

#include "base/rng.h"
#include "base/time.h"
#include "os/source.h"
#include "tests/lib/fixture.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#define PLACES 8
#define EACH   4

static struct door door;
static struct door_guest guests[64];

static void begin(struct test *t)
{
    (void)t;
    door_init(&door, PLACES, EACH);
    for (size_t i = 0; i < ARRAY_SIZE(guests); i++)
        guests[i] = (struct door_guest){ .link = LIST_INIT(guests[i].link) };
}

static void end(struct test *t)
{
    (void)t;
}
FIXTURE(begin, end)

/* The guest enters. Returns the index of the guest that had to leave; -1: none. */
static int enter(size_t guest, uint64_t source)
{
    struct door_guest *leaves = door_next_leaver(&door, source);
    int index = leaves ? (int)(leaves - guests) : -1;

    if (leaves)
        door_turn_away(&door, leaves, TIME_S);
    if (door_next_leaver(&door, source))
        return -2; /* one that leaves is enough */
    door_enter(&door, &guests[guest], source);
    return index;
}

TEST(the_oldest_silent_guest_of_a_source_leaves)
{
    for (size_t i = 0; i < EACH; i++)
        CHECK_INT(t, enter(i, 1), ==, -1);
    CHECK_INT(t, enter(10, 1), ==, 0);
    CHECK_INT(t, enter(11, 1), ==, 1);
    CHECK_INT(t, door.count, ==, EACH);
}

TEST(a_guest_that_has_spoken_stays_longer)
{
    for (size_t i = 0; i < EACH; i++)
        CHECK_INT(t, enter(i, 1), ==, -1);
    door_spoke(&guests[0]);
    door_spoke(&guests[1]);
    CHECK_INT(t, enter(10, 1), ==, 2);
    CHECK_INT(t, enter(11, 1), ==, 3);
    door_spoke(&guests[10]);
    door_spoke(&guests[11]);
    CHECK_INT(t, enter(12, 1), ==, 0); /* all have spoken */
}

TEST(a_crowd_costs_other_sources_nothing)
{
    CHECK_INT(t, enter(0, 7), ==, -1);
    for (size_t i = 1; i < 40; i++)
        CHECK(t, enter(i, 1) != 0);
    for (size_t i = 40; i < 60; i++)
        CHECK(t, enter(i, 2 + i % 3) != 0); /* four sources together */
    CHECK(t, !list_empty(&guests[0].link));
    CHECK_INT(t, door.count, ==, PLACES);
}

TEST(the_source_with_the_most_guests_makes_room)
{
    for (size_t i = 0; i < EACH; i++)
        CHECK_INT(t, enter(i, 1), ==, -1);
    for (size_t i = EACH; i < PLACES; i++)
        CHECK_INT(t, enter(i, 10 + i), ==, -1);
    CHECK_INT(t, enter(20, 99), ==, 0);
    CHECK_INT(t, enter(21, 98), ==, 1);
}

/* A process without descriptors asks so: the source of the new peer is not known yet. */
TEST(of_all_guests_a_silent_one_of_the_largest_source_leaves)
{
    CHECK(t, !door_any_leaver(&door));
    CHECK_INT(t, enter(0, 7), ==, -1);
    CHECK(t, door_any_leaver(&door) == &guests[0]);
    for (size_t i = 1; i < EACH; i++)
        CHECK_INT(t, enter(i, 1), ==, -1);
    CHECK(t, door_any_leaver(&door) == &guests[1]);
    door_spoke(&guests[1]);
    CHECK(t, door_any_leaver(&door) == &guests[2]);
    door_spoke(&guests[2]);
    door_spoke(&guests[3]);
    CHECK(t, door_any_leaver(&door) == &guests[1]); /* all of them have spoken */
}

/* A crowd in which no source has more guests than another one: the guest that came first leaves, so
 * a new one has the time of as many further guests as there are places. */
TEST(of_equal_sources_the_first_makes_room)
{
    for (size_t i = 0; i < ARRAY_SIZE(guests); i++)
        CHECK_INT(t, enter(i, 100 + i), ==, i < PLACES ? -1 : (int)i - PLACES);
}

TEST(a_guest_leaves_once)
{
    CHECK_INT(t, enter(0, 1), ==, -1);
    door_leave(&door, &guests[0]);
    door_leave(&door, &guests[0]);
    CHECK_INT(t, door.count, ==, 0);
    CHECK_INT(t, door.source_count, ==, 0);
}

TEST(a_crowd_is_reported_once_in_a_while)
{
    struct door_report report;

    CHECK(t, !door_report(&door, TIME_S, TIME_S, &report));
    for (size_t i = 0; i < EACH; i++)
        CHECK_INT(t, enter(i, 1), ==, -1);
    CHECK_INT(t, enter(10, 1), ==, 0);
    CHECK(t, door_report(&door, TIME_S, 10 * TIME_S, &report));
    CHECK_INT(t, report.turned_away, ==, 1);
    CHECK_INT(t, report.source, ==, 1);
    CHECK_INT(t, report.guests, ==, EACH);
    CHECK_INT(t, enter(11, 1), ==, 1);
    CHECK_INT(t, enter(12, 1), ==, 2);
    CHECK(t, !door_report(&door, 5 * TIME_S, 10 * TIME_S, &report));
    CHECK(t, door_report(&door, 11 * TIME_S, 10 * TIME_S, &report));
    CHECK_INT(t, report.turned_away, ==, 2);
    CHECK(t, !door_report(&door, 60 * TIME_S, 10 * TIME_S, &report));
}

/* In any order of guests no source has more than its places, and the counts are right. */
TEST(counts_hold_for_any_order)
{
    struct rng rng;

    rng_seed(&rng, 18);
    for (int i = 0; i < 20000; i++) {
        size_t guest = (size_t)rng_below(&rng, ARRAY_SIZE(guests));
        size_t counted = 0;

        if (!list_empty(&guests[guest].link))
            door_leave(&door, &guests[guest]);
        else
            CHECK_INT(t, enter(guest, rng_below(&rng, 12)), >=, -1);
        if (rng_below(&rng, 2))
            door_spoke(&guests[rng_below(&rng, ARRAY_SIZE(guests))]);
        for (size_t k = 0; k < door.source_count; k++) {
            CHECK_INT(t, door.sources[k].guests, >, 0);
            CHECK_INT(t, door.sources[k].guests, <=, EACH);
            counted += door.sources[k].guests;
        }
        CHECK_INT(t, counted, ==, door.count);
        CHECK_INT(t, list_length(&door.guests), ==, door.count);
        CHECK_INT(t, door.count, <=, PLACES);
    }
}

/* ---- sources ---- */

static uint64_t of(const char *text)
{
    struct sockaddr_storage at = { .ss_family = AF_INET };

    if (inet_pton(AF_INET, text, &((struct sockaddr_in *)(void *)&at)->sin_addr) == 1)
        return source_of(&at);
    at.ss_family = AF_INET6;
    (void)inet_pton(AF_INET6, text, &((struct sockaddr_in6 *)(void *)&at)->sin6_addr);
    return source_of(&at);
}

TEST(a_source_is_an_address_or_a_network)
{
    struct sockaddr_storage local = { .ss_family = AF_UNIX };
    char shown[SOURCE_TEXT_MAX];

    CHECK(t, of("10.0.0.7") != of("10.0.0.8"));
    CHECK(t, of("10.0.0.7") == of("::ffff:10.0.0.7"));
    CHECK(t, of("2001:db8:1:2::7") == of("2001:db8:1:2:ffff::8"));
    CHECK(t, of("2001:db8:1:2::7") != of("2001:db8:1:3::7"));
    CHECK(t, of("::1") != of("127.0.0.1"));
    CHECK_INT(t, source_of(&local), ==, 0);
    CHECK_TEXT(t, source_show(of("10.0.0.7"), shown), "10.0.0.7");
    CHECK_TEXT(t, source_show(of("255.255.255.255"), shown), "255.255.255.255");
    CHECK_TEXT(t, source_show(of("2001:db8:1:2::7"), shown), "2001:db8:1:2::/64");
}
