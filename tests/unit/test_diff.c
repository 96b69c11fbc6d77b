/*
 * test_diff.c: discovery/diff: the difference of two lists of hosts, its order and its text, and
 * what Horovod's own tests expect of it.
 */
#include "base/limits.h"
#include "discovery/diff.h"
#include "tests/lib/fixture.h"
#include "tests/lib/hosts_shown.h"

/* Two sets of hosts and the difference between them. */
struct pair {
    struct hosts before;
    struct hosts now;
    struct diff diff;
    char text[DIFF_TEXT_MAX];
};

static void pair_init(struct pair *pair)
{
    hosts_init(&pair->before);
    hosts_init(&pair->now);
    diff_init(&pair->diff);
}

static int pair_compare(struct pair *pair, const char *before, const char *now)
{
    int rc = hosts_fill(&pair->before, before);

    if (!rc)
        rc = hosts_fill(&pair->now, now);
    if (!rc)
        rc = diff_between(&pair->before, &pair->now, &pair->diff);
    if (!rc)
        diff_describe(&pair->diff, pair->text);
    return rc;
}

static struct pair own;
static struct hosts snapshot, known, now;
static struct diff diff;

static void end_case(struct test *t)
{
    (void)t;
    diff_release(&own.diff);
    hosts_release(&own.before);
    hosts_release(&own.now);
    diff_release(NULL);
    diff_release(&diff);
    hosts_release(&snapshot);
    hosts_release(&known);
    hosts_release(&now);
}
FIXTURE(NULL, end_case)

TEST(names_every_kind_of_change)
{
    static const struct {
        const char *before;
        const char *now;
        unsigned kinds;
        const char *text;
    } rows[] = {
        {"",         "",        0,                         "no change"      },
        { "a:2",     "a:2",     0,                         "no change"      },
        { "a:2,b:1", "b:1,a:2", 0,                         "no change"      },
        { "",        "a:2",     DIFF_ADDED,                "+a:2"           },
        { "",        "a:0",     DIFF_ADDED,                "+a:0"           },
        { "a:2",     "",        DIFF_REMOVED,              "-a"             },
        { "a:2",     "a:3",     DIFF_GROWN,                "a:2->3"         },
        { "a:0",     "a:1",     DIFF_GROWN,                "a:0->1"         },
        { "a:2",     "a:1",     DIFF_SHRUNK,               "a:2->1"         },
        { "a:2",     "a:0",     DIFF_SHRUNK,               "a:2->0"         },
        { "a:2",     "b:2",     DIFF_ADDED | DIFF_REMOVED, "-a +b:2"        },
        { "[::1]:2", "[::2]:4", DIFF_ADDED | DIFF_REMOVED, "-[::1] +[::2]:4"},
        { "[::1]:2", "[::1]:4", DIFF_GROWN,                "[::1]:2->4"     },
    };

    pair_init(&own);
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        CHECK_OK(t, pair_compare(&own, rows[i].before, rows[i].now));
        CHECK_INT(t, own.diff.kinds, ==, rows[i].kinds);
        CHECK_TEXT(t, own.text, rows[i].text);
    }
}

TEST(lists_old_hosts_first_then_new_ones)
{
    static const struct host_change expected[] = {
        {"a",  DIFF_REMOVED, 2, 0},
        { "c", DIFF_SHRUNK,  4, 1},
        { "d", DIFF_GROWN,   1, 2},
        { "z", DIFF_ADDED,   0, 3},
        { "e", DIFF_ADDED,   0, 0},
    };

    pair_init(&own);
    CHECK_OK(t, pair_compare(&own, "a:2,b:2,c:4,d:1", "z:3,d:2,c:1,e:0,b:2"));
    CHECK_INT(t, own.diff.count, ==, ARRAY_SIZE(expected));
    for (size_t i = 0; i < ARRAY_SIZE(expected); i++) {
        CHECK_TEXT(t, own.diff.items[i].name, expected[i].name);
        CHECK_INT(t, own.diff.items[i].kind, ==, expected[i].kind);
        CHECK_INT(t, own.diff.items[i].old_slots, ==, expected[i].old_slots);
        CHECK_INT(t, own.diff.items[i].new_slots, ==, expected[i].new_slots);
    }
    CHECK_INT(t, own.diff.kinds, ==, DIFF_GAIN | DIFF_LOSS);
    CHECK_TEXT(t, own.text, "-a c:4->1 d:1->2 +z:3 +e:0");
}

/* The flags for elastic jobs: added for more slots, removed for fewer, both for mixed changes. */
TEST(update_available_hosts)
{
    static const struct {
        const char *now;
        bool gain;
        bool loss;
    } polls[] = {
        {"a:2",      true,  false}, /* added: a host */
        { "a:2,b:2", true,  false}, /* added: another host */
        { "a:4,b:2", true,  false}, /* added: more slots */
        { "b:2",     false, true }, /* removed: a host */
        { "b:1",     false, true }, /* removed: fewer slots */
        { "c:4",     true,  true }, /* mixed: one host for another */
        { "c:3,d:1", true,  true }, /* mixed: fewer slots here, a host there */
        { "c:3,d:1", false, false}, /* none */
        { "d:1,c:3", false, false}, /* none: the order does not count */
    };

    hosts_init(&snapshot);
    hosts_init(&known);
    hosts_init(&now);
    diff_init(&diff);
    for (size_t i = 0; i < ARRAY_SIZE(polls); i++) {
        CHECK_OK(t, hosts_fill(&now, polls[i].now));
        CHECK_OK(t, diff_between(&known, &now, &diff));
        CHECK_INT(t, (diff.kinds & DIFF_GAIN) != 0, ==, polls[i].gain);
        CHECK_INT(t, (diff.kinds & DIFF_LOSS) != 0, ==, polls[i].loss);
        if (i == 1)
            CHECK_OK(t, hosts_copy(&now, &snapshot));
        hosts_move(&now, &known);
    }
    CHECK_TEXT(t, hosts_shown(&snapshot), "a:2 b:2");
    CHECK_TEXT(t, hosts_shown(&known), "d:1 c:3");
}

TEST(failure_keeps_the_last_diff)
{
    int rc;

    pair_init(&own);
    CHECK_OK(t, pair_compare(&own, "a:2", ""));
    CHECK_OK(t, hosts_fill(&own.now, "a:2,b:4"));
    rc = diff_between(&own.before, &own.now, &own.diff);
    CHECK_INT(t, own.diff.count, ==, 1);
    CHECK_INT(t, own.diff.kinds, ==, rc ? DIFF_REMOVED : DIFF_ADDED);
    CHECK_OK(t, rc);
}

TEST(a_set_does_not_differ_from_itself)
{
    pair_init(&own);
    CHECK_OK(t, pair_compare(&own, "a:2,b:3", "c:1"));
    CHECK_OK(t, diff_between(&own.before, &own.before, &own.diff));
    CHECK_INT(t, own.diff.count, ==, 0);
    CHECK_INT(t, own.diff.kinds, ==, 0);
}

TEST(cuts_a_long_description)
{
    char name[32];
    size_t shown;

    pair_init(&own);
    for (uint32_t i = 0; i < 200; i++) {
        snprintf(name, sizeof(name), "host-%03" PRIu32, i);
        CHECK_OK(t, hosts_add(&own.now, name, 8));
    }
    CHECK_OK(t, diff_between(&own.before, &own.now, &own.diff));
    diff_describe(&own.diff, own.text);
    CHECK_HAS(t, own.text, "+host-000:8 +host-001:8 ");
    CHECK_HAS(t, own.text, " ... and ");
    CHECK_INT(t, strlen(own.text), <, DIFF_TEXT_MAX);
    CHECK_INT(t, strlen(own.text), >, DIFF_TEXT_MAX - 48); /* the space is used */
    shown = (size_t)(strstr(own.text, " ... and ") - own.text + 1) / strlen("+host-000:8 ");
    snprintf(name, sizeof(name), " ... and %zu more", 200 - shown);
    CHECK_HAS(t, own.text, name);
}

/* The text's length goes from far too short to too long, through each length at the limit. */
TEST_FLAGS(cuts_exactly_when_it_must, TEST_NO_TORTURE)
{
    char name[LIMIT_HOST_NAME_BYTES + 1];
    bool cut = false;

    pair_init(&own);
    for (int length = 100; length <= LIMIT_HOST_NAME_BYTES; length++) {
        hosts_release(&own.now);
        memset(name, 'x', sizeof(name));
        name[length] = '\0';
        CHECK_OK(t, hosts_add(&own.now, name, 1024));
        name[length - 1] = 'y';
        CHECK_OK(t, hosts_add(&own.now, name, 1024));
        CHECK_OK(t, diff_between(&own.before, &own.now, &own.diff));
        diff_describe(&own.diff, own.text);
        cut = 2 * (length + 6) + 1 >= DIFF_TEXT_MAX;
        CHECK_INT(t, strstr(own.text, "... and 1 more") != NULL, ==, cut);
        CHECK_INT(t, strstr(own.text, name) != NULL, ==, !cut);
        CHECK_HAS(t, own.text, "x:1024 ");
    }
    CHECK(t, cut);
}

TEST_FLAGS(the_largest_sets_have_nothing_in_common, TEST_NO_TORTURE)
{
    char name[16];

    pair_init(&own);
    for (uint32_t i = 0; i < LIMIT_HOSTS; i++) {
        snprintf(name, sizeof(name), "a%" PRIu32, i);
        CHECK_OK(t, hosts_add(&own.before, name, 1));
        name[0] = 'b';
        CHECK_OK(t, hosts_add(&own.now, name, 1));
    }
    CHECK_OK(t, diff_between(&own.before, &own.now, &own.diff));
    CHECK_INT(t, own.diff.count, ==, 2 * LIMIT_HOSTS);
    CHECK_HAS(t, diff_describe(&own.diff, own.text), " more");
    CHECK_INT(t, strlen(own.text), <, DIFF_TEXT_MAX);
}
