#include "base/limits.h"
#include "discovery/diff.h"
#include "tests/lib/hosts_shown.h"
#include "tests/lib/test.h"

/* Two sets and what changed between them. */
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

static void pair_release(struct pair *pair)
{
    diff_release(&pair->diff);
    hosts_release(&pair->before);
    hosts_release(&pair->now);
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

static void names_every_kind_of_change(struct test *t)
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
    struct pair pair;

    pair_init(&pair);
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        CHECK_OK(t, pair_compare(&pair, rows[i].before, rows[i].now));
        CHECK_INT(t, pair.diff.kinds, ==, rows[i].kinds);
        CHECK_TEXT(t, pair.text, rows[i].text);
    }
out:
    pair_release(&pair);
    diff_release(NULL);
}

static void lists_old_hosts_first_then_new_ones(struct test *t)
{
    static const struct host_change expected[] = {
        {"a",  DIFF_REMOVED, 2, 0},
        { "c", DIFF_SHRUNK,  4, 1},
        { "d", DIFF_GROWN,   1, 2},
        { "z", DIFF_ADDED,   0, 3},
        { "e", DIFF_ADDED,   0, 0},
    };
    struct pair pair;

    pair_init(&pair);
    CHECK_OK(t, pair_compare(&pair, "a:2,b:2,c:4,d:1", "z:3,d:2,c:1,e:0,b:2"));
    CHECK_INT(t, pair.diff.count, ==, ARRAY_SIZE(expected));
    for (size_t i = 0; i < ARRAY_SIZE(expected); i++) {
        CHECK_TEXT(t, pair.diff.items[i].name, expected[i].name);
        CHECK_INT(t, pair.diff.items[i].kind, ==, expected[i].kind);
        CHECK_INT(t, pair.diff.items[i].old_slots, ==, expected[i].old_slots);
        CHECK_INT(t, pair.diff.items[i].new_slots, ==, expected[i].new_slots);
    }
    CHECK_INT(t, pair.diff.kinds, ==, DIFF_GAIN | DIFF_LOSS);
    CHECK_TEXT(t, pair.text, "-a c:4->1 d:1->2 +z:3 +e:0");
out:
    pair_release(&pair);
}

/* What elastic jobs are told: added for more, removed for less, both for mixed. */
static void update_available_hosts(struct test *t)
{
    static const struct {
        const char *now;
        bool gain;
        bool loss;
    } polls[] = {
        {"a:2",      true,  false}, /* added: a host */
        { "a:2,b:2", true,  false}, /* added: another */
        { "a:4,b:2", true,  false}, /* added: more slots */
        { "b:2",     false, true }, /* removed: a host */
        { "b:1",     false, true }, /* removed: fewer slots */
        { "c:4",     true,  true }, /* mixed: one for another */
        { "c:3,d:1", true,  true }, /* mixed: fewer slots here, a host there */
        { "c:3,d:1", false, false}, /* none */
        { "d:1,c:3", false, false}, /* none: the order does not count */
    };
    struct hosts snapshot;
    struct hosts known;
    struct hosts now;
    struct diff diff;

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
out:
    diff_release(&diff);
    hosts_release(&snapshot);
    hosts_release(&known);
    hosts_release(&now);
}

static void failure_keeps_the_last_diff(struct test *t)
{
    struct pair pair;
    int rc;

    pair_init(&pair);
    CHECK_OK(t, pair_compare(&pair, "a:2", ""));
    CHECK_OK(t, hosts_fill(&pair.now, "a:2,b:4"));
    rc = diff_between(&pair.before, &pair.now, &pair.diff);
    CHECK_INT(t, pair.diff.count, ==, 1);
    CHECK_INT(t, pair.diff.kinds, ==, rc ? DIFF_REMOVED : DIFF_ADDED);
    CHECK_OK(t, rc);
out:
    pair_release(&pair);
}

static void a_set_does_not_differ_from_itself(struct test *t)
{
    struct pair pair;

    pair_init(&pair);
    CHECK_OK(t, pair_compare(&pair, "a:2,b:3", "c:1"));
    CHECK_OK(t, diff_between(&pair.before, &pair.before, &pair.diff));
    CHECK_INT(t, pair.diff.count, ==, 0);
    CHECK_INT(t, pair.diff.kinds, ==, 0);
out:
    pair_release(&pair);
}

static void cuts_a_long_description(struct test *t)
{
    char name[32];
    struct pair pair;
    size_t shown;

    pair_init(&pair);
    for (uint32_t i = 0; i < 200; i++) {
        snprintf(name, sizeof(name), "host-%03" PRIu32, i);
        CHECK_OK(t, hosts_add(&pair.now, name, 8));
    }
    CHECK_OK(t, diff_between(&pair.before, &pair.now, &pair.diff));
    diff_describe(&pair.diff, pair.text);
    CHECK_HAS(t, pair.text, "+host-000:8 +host-001:8 ");
    CHECK_HAS(t, pair.text, " ... and ");
    CHECK_INT(t, strlen(pair.text), <, DIFF_TEXT_MAX);
    CHECK_INT(t, strlen(pair.text), >, DIFF_TEXT_MAX - 48); /* the space is used */
    shown = (size_t)(strstr(pair.text, " ... and ") - pair.text + 1) / strlen("+host-000:8 ");
    snprintf(name, sizeof(name), " ... and %zu more", 200 - shown);
    CHECK_HAS(t, pair.text, name);
out:
    pair_release(&pair);
}

/* From one that fits by far to one that does not, through every length at the edge. */
static void cuts_exactly_when_it_must(struct test *t)
{
    char name[LIMIT_HOST_NAME_BYTES + 1];
    struct pair pair;
    bool cut = false;

    pair_init(&pair);
    for (int length = 100; length <= LIMIT_HOST_NAME_BYTES; length++) {
        hosts_release(&pair.now);
        memset(name, 'x', sizeof(name));
        name[length] = '\0';
        CHECK_OK(t, hosts_add(&pair.now, name, 1024));
        name[length - 1] = 'y';
        CHECK_OK(t, hosts_add(&pair.now, name, 1024));
        CHECK_OK(t, diff_between(&pair.before, &pair.now, &pair.diff));
        diff_describe(&pair.diff, pair.text);
        cut = 2 * (length + 6) + 1 >= DIFF_TEXT_MAX;
        CHECK_INT(t, strstr(pair.text, "... and 1 more") != NULL, ==, cut);
        CHECK_INT(t, strstr(pair.text, name) != NULL, ==, !cut);
        CHECK_HAS(t, pair.text, "x:1024 ");
    }
    CHECK(t, cut);
out:
    pair_release(&pair);
}

static void the_largest_sets_have_nothing_in_common(struct test *t)
{
    char name[16];
    struct pair pair;

    pair_init(&pair);
    for (uint32_t i = 0; i < LIMIT_HOSTS; i++) {
        snprintf(name, sizeof(name), "a%" PRIu32, i);
        CHECK_OK(t, hosts_add(&pair.before, name, 1));
        name[0] = 'b';
        CHECK_OK(t, hosts_add(&pair.now, name, 1));
    }
    CHECK_OK(t, diff_between(&pair.before, &pair.now, &pair.diff));
    CHECK_INT(t, pair.diff.count, ==, 2 * LIMIT_HOSTS);
    CHECK_HAS(t, diff_describe(&pair.diff, pair.text), " more");
    CHECK_INT(t, strlen(pair.text), <, DIFF_TEXT_MAX);
out:
    pair_release(&pair);
}

TESTS(CASE(names_every_kind_of_change), CASE(lists_old_hosts_first_then_new_ones),
      CASE(update_available_hosts), CASE(failure_keeps_the_last_diff),
      CASE(a_set_does_not_differ_from_itself), CASE(cuts_a_long_description),
      CASE_FLAGS(cuts_exactly_when_it_must, TEST_NO_TORTURE),
      CASE_FLAGS(the_largest_sets_have_nothing_in_common, TEST_NO_TORTURE))
