/*
 * test_blacklist.c: the blacklist of hosts and slots that failed: which failures count, cooldowns
 * that double and end, hosts against slots, forgiveness after a healthy time, the limit of restarts
 * in a window (the budget), and the record that is to be stored. The tests give the time as an
 * argument.
 *
 * A failure counts once for each incarnation of a worker.
 */
#include "base/time.h"
#include "blacklist/blacklist.h"
#include "tests/lib/fixture.h"
#include "tests/lib/records.h"

#include <stdio.h>

#define HOST BLACKLIST_WHOLE_HOST
#define S    TIME_S
#define WALL (INT64_C(1700000000) * TIME_S) /* the time of day when the monotonic clock is at 0 */

static struct blacklist blacklist;
static struct blacklist_change change;
static struct rng rng;

static struct blacklist_moment at(int64_t now_us, int64_t wall_us)
{
    return (struct blacklist_moment){ now_us, wall_us };
}

/* Makes an empty blacklist with cooldowns of 10-20 s, 20-30 s, 40-50 s, 80-90 s and then 100 s.
 * adjust, which may be NULL, changes the policy first. */
static void start(void (*adjust)(struct policy *policy))
{
    struct policy policy;

    policy_init(&policy);
    policy.lower_us = 10 * S;
    policy.upper_us = 100 * S;
    if (adjust)
        adjust(&policy);
    rng_seed(&rng, 7);
    blacklist_init(&blacklist, &policy, NULL);
}

static void for_ever(struct policy *policy)
{
    policy->forever = true;
}

static void by_host(struct policy *policy)
{
    policy->scope = SCOPE_HOST;
}

static void three_in_an_hour(struct policy *policy)
{
    policy->restarts_max = 3;
    policy->restarts_window_us = TIME_HOUR;
    policy->upper_us = 10 * S;
}

static void no_cooldown(struct policy *policy)
{
    policy->lower_us = 0;
}

static void no_decay(struct policy *policy)
{
    policy->decay_us = TIME_NEVER;
}

static int fail(const char *host, uint32_t slot, uint64_t incarnation, int64_t now_us)
{
    struct blacklist_failure failure = { host, slot, incarnation, "exit code 1" };

    return blacklist_failure(&blacklist, &failure, at(now_us, WALL + now_us), &rng, &change, NULL);
}

static struct blacklist_verdict verdict(const char *host, uint32_t slot, int64_t now_us)
{
    return blacklist_verdict(&blacklist, host, slot, now_us);
}

static size_t healthy(const char *host, uint32_t slot, int64_t since_us, int64_t now_us)
{
    static struct blacklist_record changed[2];

    return blacklist_healthy(&blacklist, host, slot, since_us, at(now_us, WALL + now_us), changed);
}

static struct trace trace;

static void end_case(struct test *t)
{
    (void)t;
    blacklist_release(&blacklist);
    blacklist_release(NULL);
    trace_release(&trace);
}
FIXTURE(NULL, end_case)

TEST(an_unknown_slot_is_usable)
{
    struct blacklist_verdict v;

    start(NULL);
    v = verdict("a", 0, 0);
    CHECK_INT(t, v.state, ==, BLACKLIST_OK);
    CHECK_INT(t, v.failures, ==, 0);
    CHECK_TEXT(t, v.reason, "");
    CHECK_INT(t, blacklist_deadline(&blacklist, 0), ==, TIME_NEVER);
    CHECK_INT(t, healthy("a", 0, 0, TIME_DAY), ==, 0);
    CHECK_INT(t, blacklist_count(&blacklist), ==, 0);
}

TEST(a_failure_cools_its_slot_only)
{
    struct blacklist_verdict v;

    start(NULL);
    CHECK_OK(t, fail("a", 1, 1, 5 * S));
    v = verdict("a", 1, 5 * S);
    CHECK_INT(t, v.state, ==, BLACKLIST_COOLING);
    CHECK_INT(t, v.failures, ==, 1);
    CHECK_INT(t, v.since_us, ==, 5 * S);
    CHECK_INT(t, v.until_us, >=, 15 * S);
    CHECK_INT(t, v.until_us, <=, 25 * S);
    CHECK_TEXT(t, v.reason, "exit code 1");
    CHECK(t, !v.by_host);
    CHECK_INT(t, blacklist_deadline(&blacklist, 5 * S), ==, v.until_us);
    CHECK_INT(t, verdict("a", 0, 5 * S).state, ==, BLACKLIST_OK);
    CHECK_INT(t, verdict("a", HOST, 5 * S).state, ==, BLACKLIST_OK);
    CHECK_INT(t, verdict("b", 1, 5 * S).state, ==, BLACKLIST_OK);
}

/* A failure gives a record, which replaces that of the slot, and an event for the history. */
TEST(a_change_says_what_to_store)
{
    struct blacklist_verdict v;

    start(NULL);
    CHECK_OK(t, fail("a", 1, 42, 5 * S));
    v = verdict("a", 1, 5 * S);
    CHECK(t, !change.none && !change.evicted);
    CHECK_OK(t, blacklist_record_check(&change.record, NULL));
    CHECK_OK(t, blacklist_event_check(&change.event, NULL));
    CHECK_TEXT(t, change.record.host, "a");
    CHECK_INT(t, change.record.slot, ==, 1);
    CHECK_INT(t, change.record.failures, ==, 1);
    CHECK_INT(t, change.record.since_wall_us, ==, WALL + 5 * S);
    CHECK_INT(t, change.record.until_wall_us, ==, WALL + v.until_us);
    CHECK_INT(t, change.record.restarts.item[0], ==, WALL + 5 * S);
    CHECK_INT(t, change.record.incarnations.item[0], ==, 42);
    CHECK_TEXT(t, change.record.reason, "exit code 1");
    CHECK_TEXT(t, change.event.host, "a");
    CHECK_INT(t, change.event.slot, ==, 1);
    CHECK_INT(t, change.event.incarnation, ==, 42);
    CHECK_INT(t, change.event.wall_us, ==, WALL + 5 * S);
    CHECK(t, change.event.counted);
    CHECK_TEXT(t, change.event.reason, "exit code 1");
}

TEST(a_cooldown_ends_without_any_call)
{
    struct blacklist_verdict v;

    start(NULL);
    CHECK_OK(t, fail("a", 1, 1, 0));
    v = verdict("a", 1, 0);
    CHECK_INT(t, verdict("a", 1, v.until_us - 1).state, ==, BLACKLIST_COOLING);
    CHECK_INT(t, verdict("a", 1, v.until_us).state, ==, BLACKLIST_OK);
    CHECK_INT(t, verdict("a", 1, v.until_us).failures, ==, 1);
    CHECK_INT(t, blacklist_deadline(&blacklist, v.until_us), ==, TIME_NEVER);
}

TEST(each_counted_failure_doubles_the_cooldown)
{
    static const int64_t least[] = { 10, 20, 40, 80, 100, 100 };
    static const int64_t most[] = { 20, 30, 50, 90, 100, 100 };
    int64_t now_us = 0;

    start(NULL);
    for (uint32_t n = 1; n <= ARRAY_SIZE(least); n++) {
        CHECK_OK(t, fail("a", 1, n, now_us));
        CHECK(t, change.event.counted);
        CHECK_INT(t, verdict("a", 1, now_us).failures, ==, n);
        CHECK_INT(t, verdict("a", 1, now_us).until_us - now_us, >=, least[n - 1] * S);
        CHECK_INT(t, verdict("a", 1, now_us).until_us - now_us, <=, most[n - 1] * S);
        now_us = verdict("a", 1, now_us).until_us;
    }
}

TEST(a_failed_host_keeps_all_its_slots_out)
{
    struct blacklist_verdict v;

    start(NULL);
    CHECK_OK(t, fail("a", HOST, 1, 0));
    v = verdict("a", 7, 0);
    CHECK_INT(t, v.state, ==, BLACKLIST_COOLING);
    CHECK(t, v.by_host);
    CHECK(t, !verdict("a", HOST, 0).by_host);
    CHECK_INT(t, verdict("b", 7, 0).state, ==, BLACKLIST_OK);
    CHECK_INT(t, verdict("a", 7, v.until_us).state, ==, BLACKLIST_OK);
}

static int load(const char *host, uint32_t slot, int64_t until_us)
{
    struct blacklist_record record = { .slot = slot, .failures = 1 };

    snprintf(record.host, sizeof(record.host), "%s", host);
    record.until_wall_us = until_us == TIME_NEVER ? TIME_NEVER : WALL + until_us;
    return blacklist_load(&blacklist, &record, at(0, WALL), NULL);
}

TEST(the_later_end_of_host_and_slot_decides)
{
    start(NULL);
    CHECK_OK(t, load("a", 1, 10 * S));
    CHECK_OK(t, load("a", 2, 30 * S));
    CHECK_OK(t, load("a", 3, TIME_NEVER));
    CHECK_OK(t, load("a", HOST, 20 * S));
    CHECK(t, verdict("a", 1, 0).by_host);
    CHECK_INT(t, verdict("a", 1, 0).until_us, ==, 20 * S);
    CHECK(t, !verdict("a", 2, 0).by_host);
    CHECK_INT(t, verdict("a", 2, 0).until_us, ==, 30 * S);
    CHECK_INT(t, verdict("a", 3, 0).state, ==, BLACKLIST_BARRED);
    /* when the cooldown of the host is over, the slot's own entry counts */
    CHECK(t, !verdict("a", 1, 20 * S).by_host);

    CHECK_OK(t, load("b", 1, 10 * S));
    CHECK_OK(t, load("b", HOST, TIME_NEVER));
    CHECK_INT(t, verdict("b", 1, 0).state, ==, BLACKLIST_BARRED);
    CHECK(t, verdict("b", 1, 0).by_host);
}

TEST(a_failure_while_cooling_goes_to_the_history_only)
{
    struct blacklist_verdict before;
    struct blacklist_verdict after;

    start(NULL);
    CHECK_OK(t, fail("a", 1, 1, 0));
    before = verdict("a", 1, 0);
    CHECK_OK(t, fail("a", 1, 2, 5 * S));
    after = verdict("a", 1, 5 * S);
    CHECK(t, !change.none && !change.event.counted);
    CHECK_INT(t, change.event.incarnation, ==, 2);
    CHECK_INT(t, change.record.failures, ==, 1);
    CHECK_INT(t, after.failures, ==, 1);
    CHECK_INT(t, after.until_us, ==, before.until_us);
    CHECK_INT(t, after.since_us, ==, 0);
}

TEST(workers_that_die_with_their_host_are_one_failure)
{
    start(NULL);
    CHECK_OK(t, fail("a", HOST, 100, 0));
    for (uint32_t slot = 0; slot < 8; slot++) {
        CHECK_OK(t, fail("a", slot, slot + 1, 0));
        CHECK(t, !change.event.counted);
        CHECK_INT(t, change.record.failures, ==, 0);
        CHECK_OK(t, blacklist_record_check(&change.record, NULL));
    }
    CHECK_INT(t, verdict("a", 3, 0).failures, ==, 1);
    CHECK_INT(t, verdict("a", 3, TIME_MIN).failures, ==, 0);
}

TEST(a_report_that_comes_again_counts_once)
{
    start(NULL);
    CHECK_OK(t, fail("a", 1, 5, 0));
    CHECK(t, !change.none);
    CHECK_OK(t, fail("a", 1, 5, 1 * S));
    CHECK(t, change.none);
    CHECK_OK(t, fail("a", 1, 5, TIME_HOUR)); /* late: the cooldown is long over */
    CHECK(t, change.none);
    CHECK_INT(t, verdict("a", 1, TIME_HOUR).state, ==, BLACKLIST_OK);
    CHECK_INT(t, verdict("a", 1, TIME_HOUR).failures, ==, 1);
    CHECK_OK(t, fail("a", 2, 5, TIME_HOUR)); /* another slot */
    CHECK(t, !change.none);
    /* another incarnation counts, also one with a lower number */
    CHECK_OK(t, fail("a", 1, 4, TIME_HOUR));
    CHECK(t, change.event.counted);
}

TEST(a_failure_of_no_worker_is_never_a_repetition)
{
    start(NULL);
    CHECK_OK(t, fail("a", 1, 0, 0));
    CHECK_OK(t, fail("a", 1, 0, TIME_HOUR));
    CHECK(t, change.event.counted);
    CHECK_INT(t, change.record.failures, ==, 2);
    CHECK_INT(t, change.record.incarnations.count, ==, 0);
    CHECK_OK(t, fail("a", 1, 1, 2 * TIME_HOUR));
    CHECK(t, change.event.counted);
}

TEST(a_permanent_entry_bars_until_it_is_cleared)
{
    start(for_ever);
    CHECK_OK(t, fail("a", 1, 1, 0));
    CHECK_INT(t, change.record.until_wall_us, ==, TIME_NEVER);
    CHECK_INT(t, verdict("a", 1, 100 * TIME_DAY).state, ==, BLACKLIST_BARRED);
    CHECK_INT(t, verdict("a", 1, 100 * TIME_DAY).until_us, ==, TIME_NEVER);
    CHECK_INT(t, blacklist_deadline(&blacklist, 0), ==, TIME_NEVER);
    CHECK_OK(t, fail("a", 1, 2, TIME_DAY));
    CHECK(t, !change.event.counted);
    CHECK_OK(t, blacklist_clear(&blacklist, "a", 1, at(TIME_DAY, WALL), &change, NULL));
    CHECK_INT(t, verdict("a", 1, TIME_DAY).state, ==, BLACKLIST_OK);
}

TEST(more_restarts_than_the_budget_bar)
{
    start(three_in_an_hour);
    for (uint32_t n = 0; n < 3; n++) {
        CHECK_OK(t, fail("a", 1, n + 1, n * TIME_MIN));
        CHECK_INT(t, verdict("a", 1, n * TIME_MIN).state, ==, BLACKLIST_COOLING);
    }
    CHECK_OK(t, fail("a", 1, 4, TIME_HOUR)); /* the first is still within the hour */
    CHECK_INT(t, verdict("a", 1, TIME_DAY).state, ==, BLACKLIST_BARRED);
    CHECK_OK(t, blacklist_clear(&blacklist, "a", 1, at(TIME_DAY, WALL), &change, NULL));
    CHECK_OK(t, fail("a", 1, 5, TIME_DAY)); /* the window of the first failures is over */
    CHECK_INT(t, verdict("a", 1, TIME_DAY).state, ==, BLACKLIST_COOLING);
}

TEST(restarts_outside_the_window_are_not_counted)
{
    start(three_in_an_hour);
    for (uint32_t n = 0; n < 40; n++) {
        int64_t now_us = n * 21 * TIME_MIN; /* never four failures within one hour */

        CHECK_OK(t, fail("a", 1, n + 1, now_us));
        CHECK_INT(t, verdict("a", 1, now_us).state, ==, BLACKLIST_COOLING);
    }
}

TEST(scope_host_charges_the_host)
{
    start(by_host);
    CHECK_OK(t, fail("a", 3, 1, 0));
    CHECK_INT(t, change.record.slot, ==, HOST);
    CHECK_INT(t, change.event.slot, ==, HOST);
    CHECK_TEXT(t, change.record.reason, "slot 3: exit code 1");
    CHECK_INT(t, verdict("a", 0, 0).state, ==, BLACKLIST_COOLING);
    CHECK(t, verdict("a", 0, 0).by_host);
    CHECK_OK(t, fail("a", 4, 2, 0));
    CHECK(t, !change.event.counted);
    CHECK_OK(t, fail("a", 4, 3, TIME_MIN));
    CHECK_INT(t, verdict("a", 4, TIME_MIN).failures, ==, 2);
    CHECK_OK(t, fail("a", HOST, 4, TIME_HOUR));
    CHECK_TEXT(t, change.record.reason, "exit code 1");
}

TEST(healthy_running_forgives)
{
    start(NULL);
    for (uint32_t n = 0; n < 3; n++)
        CHECK_OK(t, fail("a", 1, n + 1, n * TIME_MIN));
    CHECK_INT(t, verdict("a", 1, TIME_HOUR).failures, ==, 3);
    CHECK_INT(t, healthy("a", 1, TIME_HOUR, TIME_HOUR + 10 * TIME_MIN - 1), ==, 0);
    CHECK_INT(t, healthy("a", 1, TIME_HOUR, TIME_HOUR + 10 * TIME_MIN), ==, 1);
    CHECK_INT(t, verdict("a", 1, 2 * TIME_HOUR).failures, ==, 2);
    /* the healthy time counts only once */
    CHECK_INT(t, healthy("a", 1, TIME_HOUR, TIME_HOUR + 10 * TIME_MIN), ==, 0);
    CHECK_INT(t, healthy("a", 1, TIME_HOUR, TIME_HOUR + 20 * TIME_MIN - 1), ==, 0);
    CHECK_INT(t, healthy("a", 1, TIME_HOUR, TIME_HOUR + 20 * TIME_MIN), ==, 1);
    CHECK_INT(t, verdict("a", 1, 2 * TIME_HOUR).failures, ==, 1);
    CHECK_INT(t, healthy("a", 1, TIME_HOUR, 5 * TIME_HOUR), ==, 1); /* no more than there are */
    CHECK_INT(t, verdict("a", 1, 5 * TIME_HOUR).failures, ==, 0);
    CHECK_INT(t, healthy("a", 1, TIME_HOUR, 9 * TIME_HOUR), ==, 0);
    CHECK_OK(t, fail("a", 1, 9, 9 * TIME_HOUR));
    CHECK_INT(t, change.record.failures, ==, 1);
}

TEST(healthy_pieces_add_up_until_the_next_failure)
{
    start(NULL);
    CHECK_OK(t, fail("a", 1, 1, 0));
    CHECK_INT(t, healthy("a", 1, TIME_HOUR, TIME_HOUR + 6 * TIME_MIN), ==, 0);
    CHECK_INT(t, healthy("a", 1, 2 * TIME_HOUR, 2 * TIME_HOUR + 4 * TIME_MIN), ==, 1);
    CHECK_OK(t, fail("a", 1, 2, 3 * TIME_HOUR));
    /* the healthy time was before the failure */
    CHECK_INT(t, healthy("a", 1, 2 * TIME_HOUR, 3 * TIME_HOUR), ==, 0);
    CHECK_INT(t, healthy("a", 1, 4 * TIME_HOUR, 4 * TIME_HOUR + 9 * TIME_MIN), ==, 0);
    /* a failure ends the healthy time of nine minutes */
    CHECK_OK(t, fail("a", 1, 3, 5 * TIME_HOUR));
    CHECK_INT(t, healthy("a", 1, 6 * TIME_HOUR, 6 * TIME_HOUR + 9 * TIME_MIN), ==, 0);
    CHECK_INT(t, verdict("a", 1, 7 * TIME_HOUR).failures, ==, 2);
}

TEST(a_healthy_worker_forgives_its_host_too)
{
    struct blacklist_record changed[2];

    start(NULL);
    CHECK_OK(t, fail("a", 1, 1, 0));
    CHECK_OK(t, fail("a", HOST, 2, 0));
    CHECK_INT(
        t,
        blacklist_healthy(&blacklist, "a", 1, TIME_MIN, at(TIME_HOUR, WALL + TIME_HOUR), changed),
        ==, 2);
    CHECK_INT(t, changed[0].slot, ==, 1);
    CHECK_INT(t, changed[1].slot, ==, HOST);
    CHECK_INT(t, changed[1].failures, ==, 0);
    CHECK_INT(t, healthy("a", HOST, TIME_MIN, TIME_HOUR), ==, 0);
}

TEST(without_decay_nothing_is_forgiven)
{
    start(no_decay);
    CHECK_OK(t, fail("a", 1, 1, 0));
    CHECK_INT(t, healthy("a", 1, 0, 1000 * TIME_DAY), ==, 0);
    CHECK_INT(t, verdict("a", 1, 1000 * TIME_DAY).failures, ==, 1);
}

TEST(without_a_cooldown_failures_only_count)
{
    start(no_cooldown);
    for (uint32_t n = 1; n <= 5; n++) {
        CHECK_OK(t, fail("a", 1, n, 0));
        CHECK(t, change.event.counted);
        CHECK_INT(t, verdict("a", 1, 0).state, ==, BLACKLIST_OK);
        CHECK_INT(t, verdict("a", 1, 0).failures, ==, n);
    }
    CHECK_INT(t, blacklist_deadline(&blacklist, 0), ==, TIME_NEVER);
}

/* The operator clears a slot: its failures are forgotten, but a failure of an incarnation that has
 * counted already still does not count again. */
TEST(clearing_takes_everything_back_but_the_incarnations)
{
    struct hvd_err err;

    start(NULL);
    CHECK_OK(t, fail("a", 1, 1, 0));
    CHECK_OK(t, fail("a", 1, 2, TIME_MIN));
    CHECK_CODE(t, blacklist_clear(&blacklist, "a", 2, at(TIME_MIN, WALL), &change, &err),
               HVD_E_NOTFOUND);
    CHECK_HAS(t, err.text, "\"a:2\"");
    CHECK_OK(t, blacklist_clear(&blacklist, "a", 1, at(TIME_MIN + S, WALL), &change, NULL));
    CHECK_OK(t, blacklist_record_check(&change.record, NULL));
    CHECK_INT(t, change.record.failures, ==, 0);
    CHECK_INT(t, change.record.restarts.count, ==, 0);
    CHECK_TEXT(t, change.record.reason, "");
    CHECK_TEXT(t, change.event.reason, "cleared by the operator");
    CHECK_INT(t, change.event.incarnation, ==, 0);
    CHECK_INT(t, verdict("a", 1, TIME_MIN + S).state, ==, BLACKLIST_OK);
    CHECK_INT(t, blacklist_deadline(&blacklist, TIME_MIN + S), ==, TIME_NEVER);
    CHECK_OK(t, fail("a", 1, 2, TIME_MIN + S));
    CHECK(t, change.none);
    CHECK_OK(t, fail("a", 1, 3, TIME_MIN + S));
    CHECK_INT(t, change.record.failures, ==, 1);
}

TEST(the_deadline_is_the_earliest_end)
{
    int64_t ends[3];

    start(NULL);
    for (uint32_t slot = 0; slot < 3; slot++) {
        CHECK_OK(t, fail("a", slot, slot + 1, slot * 30 * S));
        ends[slot] = verdict("a", slot, slot * 30 * S).until_us;
    }
    CHECK_INT(t, blacklist_deadline(&blacklist, 0), ==, ends[0]);
    CHECK_INT(t, blacklist_deadline(&blacklist, ends[0] - 1), ==, ends[0]);
    CHECK_INT(t, blacklist_deadline(&blacklist, ends[0]), ==, ends[1]);
    CHECK_OK(t, blacklist_clear(&blacklist, "a", 1, at(ends[0], WALL), &change, NULL));
    CHECK_INT(t, blacklist_deadline(&blacklist, ends[0]), ==, ends[2]);
    CHECK_INT(t, blacklist_deadline(&blacklist, ends[2]), ==, TIME_NEVER);
}

/* Returns the host of the next cooldown that is over, and its slot; NULL: there is none. */
static const char *cooled(int64_t now_us, uint32_t *ret_slot)
{
    size_t index = 0;
    const char *host = blacklist_next_cooled(&blacklist, now_us, &index, ret_slot);

    blacklist_deadline(&blacklist, now_us);
    return host;
}

TEST(the_end_of_a_cooldown_is_told_once)
{
    int64_t ends[2];
    uint32_t slot = 0;

    start(NULL);
    CHECK_OK(t, fail("a", 0, 1, 0));
    CHECK_OK(t, fail("b", HOST, 2, 30 * S));
    ends[0] = verdict("a", 0, 0).until_us;
    ends[1] = verdict("b", HOST, 30 * S).until_us;
    CHECK(t, !cooled(ends[0] - 1, &slot));
    CHECK_TEXT(t, cooled(ends[0], &slot), "a");
    CHECK_INT(t, slot, ==, 0);
    CHECK(t, !cooled(ends[0], &slot));
    CHECK_TEXT(t, cooled(ends[1] + S, &slot), "b");
    CHECK_INT(t, slot, ==, HOST);
    CHECK(t, !cooled(ends[1] + S, &slot));
}

TEST(a_cooldown_that_is_cleared_does_not_end)
{
    uint32_t slot = 0;

    start(NULL);
    CHECK_OK(t, fail("a", 0, 1, 0));
    CHECK_OK(t, blacklist_clear(&blacklist, "a", 0, at(S, WALL), &change, NULL));
    CHECK(t, !cooled(TIME_MIN, &slot));
    CHECK_OK(t, fail("a", 0, 2, TIME_MIN));
    CHECK(t, !cooled(TIME_MIN, &slot));
    CHECK_TEXT(t, cooled(2 * TIME_MIN, &slot), "a");
}

TEST(a_bar_does_not_end)
{
    uint32_t slot = 0;

    start(for_ever);
    CHECK_OK(t, fail("a", 0, 1, 0));
    CHECK(t, !cooled(TIME_HOUR, &slot));
}

TEST(entries_come_by_host_then_slot)
{
    static const struct {
        const char *host;
        uint32_t slot;
    } order[] = {
        {"a",   0   },
        { "a",  7   },
        { "a",  HOST},
        { "ab", 0   },
        { "b",  1   }
    };
    static const size_t told[] = { 3, 1, 4, 0, 2 };
    struct blacklist_record record;

    start(NULL);
    for (size_t i = 0; i < ARRAY_SIZE(told); i++)
        CHECK_OK(t, fail(order[told[i]].host, order[told[i]].slot, i + 1, 0));
    CHECK_INT(t, blacklist_count(&blacklist), ==, ARRAY_SIZE(order));
    for (size_t i = 0; i < ARRAY_SIZE(order); i++) {
        blacklist_record_at(&blacklist, i, at(0, WALL), &record);
        CHECK_TEXT(t, record.host, order[i].host);
        CHECK_INT(t, record.slot, ==, order[i].slot);
    }
}

/* Four entries fill the list. A fifth failure is refused, until healthy times have forgiven two
 * entries; then the oldest forgiven entry makes room. */
TEST(a_full_list_forgets_the_oldest_forgiven)
{
    struct blacklist_failure failure = { "e", 0, 9, "x" };
    struct hvd_err err;

    start(NULL);
    blacklist.max = 4;
    for (uint32_t i = 0; i < 4; i++)
        CHECK_OK(t, fail(&"a\0b\0c\0d"[i * 2], 0, i + 1, i * S));
    CHECK_CODE(t, blacklist_failure(&blacklist, &failure, at(TIME_HOUR, WALL), &rng, &change, &err),
               HVD_E_LIMIT);
    CHECK_TEXT(t, err.text,
               "the blacklist is full with 4 hosts and slots; clear some of them with hvd-elastic "
               "blacklist clear");
    CHECK_INT(t, healthy("c", 0, TIME_MIN, TIME_HOUR), ==, 1);
    CHECK_INT(t, healthy("b", 0, TIME_MIN, TIME_HOUR), ==, 1);
    CHECK_OK(t, fail("e", 0, 9, TIME_HOUR));
    CHECK(t, change.evicted);
    CHECK_TEXT(t, change.evicted_host, "b");
    CHECK_INT(t, change.evicted_slot, ==, 0);
    CHECK_INT(t, blacklist_count(&blacklist), ==, 4);
    CHECK_INT(t, verdict("e", 0, TIME_HOUR).state, ==, BLACKLIST_COOLING);
    CHECK_OK(t, fail("f", 0, 10, TIME_HOUR));
    CHECK_TEXT(t, change.evicted_host, "c");
    CHECK_CODE(t, fail("g", 0, 11, TIME_HOUR), HVD_E_LIMIT);
}

/* A new driver loads a record: the rest of the cooldown, the failures and the incarnations that
 * have counted are as before. */
TEST(a_loaded_blacklist_goes_on_where_it_was)
{
    struct blacklist_record record = {
        .host = "a",
        .slot = 1,
        .failures = 2,
        .since_wall_us = WALL - 30 * S,
        .until_wall_us = WALL + 10 * S,
        .restarts = {2,  { WALL - 60 * S, WALL - 30 * S }},
        .incarnations = { 2, { 3, 4 }                        },
        .reason = "killed by signal 9",
    };
    struct blacklist_verdict v;

    start(NULL);
    CHECK_OK(t, blacklist_load(&blacklist, &record, at(5 * S, WALL), NULL));
    v = verdict("a", 1, 5 * S);
    CHECK_INT(t, v.state, ==, BLACKLIST_COOLING);
    CHECK_INT(t, v.since_us, ==, -25 * S);
    CHECK_INT(t, v.until_us, ==, 15 * S);
    CHECK_INT(t, v.failures, ==, 2);
    CHECK_TEXT(t, v.reason, "killed by signal 9");
    CHECK_INT(t, blacklist_deadline(&blacklist, 5 * S), ==, 15 * S);
    CHECK_OK(t, fail("a", 1, 4, 16 * S));
    CHECK(t, change.none);
    CHECK_OK(t, fail("a", 1, 5, 16 * S));
    CHECK_INT(t, change.record.failures, ==, 3);
    CHECK_CODE(t, blacklist_load(&blacklist, &record, at(16 * S, WALL), NULL), HVD_E_EXISTS);
}

TEST(a_jumped_clock_never_makes_a_cooldown_longer)
{
    struct blacklist_record record = {
        .host = "a", .slot = 1, .failures = 1, .since_wall_us = WALL, .until_wall_us = WALL + 10 * S
    };

    start(NULL);
    /* the wall clock was set back by decades */
    CHECK_OK(t, blacklist_load(&blacklist, &record, at(0, 0), NULL));
    /* never more than the policy's upper end */
    CHECK_INT(t, verdict("a", 1, 0).until_us, ==, 100 * S);
    CHECK_INT(t, verdict("a", 1, 0).since_us, ==, 0);
    record.slot = 2;
    /* the wall clock was set far ahead */
    CHECK_OK(t, blacklist_load(&blacklist, &record, at(0, TIME_NEVER - 1), NULL));
    CHECK_INT(t, verdict("a", 2, 0).state, ==, BLACKLIST_OK);
    CHECK_INT(t, verdict("a", 2, 0).failures, ==, 1);
    record.slot = 3;
    record.until_wall_us = TIME_NEVER;
    CHECK_OK(t, blacklist_load(&blacklist, &record, at(0, WALL), NULL));
    CHECK_INT(t, verdict("a", 3, 0).state, ==, BLACKLIST_BARRED);
    CHECK_INT(t, blacklist_deadline(&blacklist, 0), ==, 100 * S);
}

/* An hour between two failures stays an hour in the record, so the next driver counts the same
 * restarts in its window. */
TEST(the_budget_outlives_the_driver)
{
    struct blacklist_record record;

    start(three_in_an_hour);
    for (uint32_t n = 0; n < 3; n++)
        CHECK_OK(t, fail("a", 1, n + 1, n * TIME_MIN));
    record = change.record;
    blacklist_release(&blacklist);

    start(three_in_an_hour);
    CHECK_OK(t, blacklist_load(&blacklist, &record, at(0, WALL + 30 * TIME_MIN), NULL));
    CHECK_INT(t, verdict("a", 1, 0).state, ==, BLACKLIST_OK);
    CHECK_OK(t, fail("a", 1, 4, 30 * TIME_MIN));
    CHECK_INT(t, verdict("a", 1, TIME_DAY).state, ==, BLACKLIST_BARRED);
}

/* Three records are loaded into an empty blacklist in reverse order, and come out unchanged. */
TEST(records_go_out_and_come_back)
{
    struct blacklist_record before[4];
    struct blacklist_record after;

    start(NULL);
    CHECK_OK(t, fail("a", 1, 1, 0));
    CHECK_OK(t, fail("a", 1, 2, 60 * S));
    CHECK_OK(t, fail("a", HOST, 3, 61 * S));
    CHECK_OK(t, fail("b", 0, 4, 65 * S));
    CHECK_INT(t, blacklist_count(&blacklist), ==, 3);
    for (size_t i = 0; i < 3; i++)
        blacklist_record_at(&blacklist, i, at(66 * S, WALL), &before[i]);
    blacklist_release(&blacklist);

    start(NULL);
    for (size_t i = 0; i < 3; i++)
        CHECK_OK(t, blacklist_load(&blacklist, &before[2 - i], at(3 * S, WALL), NULL));
    for (size_t i = 0; i < 3; i++) {
        blacklist_record_at(&blacklist, i, at(3 * S, WALL), &after);
        CHECK(t, records_same(&after, &before[i]));
    }
}

TEST(damaged_records_are_refused)
{
    struct blacklist_record record = { .host = "a", .slot = 1, .since_wall_us = -1 };
    struct hvd_err err;

    start(NULL);
    CHECK_CODE(t, blacklist_load(&blacklist, &record, at(0, WALL), &err), HVD_E_CORRUPT);
    CHECK_HAS(t, err.text, "a:1");
    CHECK_INT(t, blacklist_count(&blacklist), ==, 0);
    record.since_wall_us = 0;
    record.failures = UINT32_MAX; /* an odd number, which must do no harm */
    CHECK_OK(t, blacklist_load(&blacklist, &record, at(0, WALL), &err));
    CHECK_OK(t, fail("a", 1, 1, 0));
    CHECK_INT(t, change.record.failures, ==, UINT32_MAX);
    blacklist.max = 1;
    record.slot = 2;
    CHECK_CODE(t, blacklist_load(&blacklist, &record, at(0, WALL), &err), HVD_E_LIMIT);
}

TEST(loading_makes_room_too)
{
    struct blacklist_record record = { .host = "a", .slot = 0 };

    start(NULL);
    blacklist.max = 2;
    for (; record.slot < 3; record.slot++)
        CHECK_OK(t, blacklist_load(&blacklist, &record, at(0, WALL), NULL));
    CHECK_INT(t, blacklist_count(&blacklist), ==, 2);
    blacklist_record_at(&blacklist, 0, at(0, WALL), &record);
    CHECK_INT(t, record.slot, ==, 1);
}

TEST(bad_failures_change_nothing)
{
    struct blacklist_failure failure = { "a/b", 1, 1, "x" };
    struct hvd_err err;

    start(NULL);
    CHECK_CODE(t, blacklist_failure(&blacklist, &failure, at(0, WALL), &rng, &change, &err),
               HVD_E_INVAL);
    CHECK_HAS(t, err.text, "\"a/b\"");
    CHECK_CODE(t, fail("a", LIMIT_SLOTS_PER_HOST, 1, 0), HVD_E_LIMIT);
    failure = (struct blacklist_failure){ "a", 1, UINT64_MAX, "x" };
    CHECK_CODE(t, blacklist_failure(&blacklist, &failure, at(0, WALL), &rng, &change, &err),
               HVD_E_INVAL);
    CHECK_HAS(
        t, err.text,
        "a failure of host a: incarnation 18446744073709551615 is too large, and the largest is "
        "9223372036854775807");
    CHECK_INT(t, blacklist_count(&blacklist), ==, 0);
}

TEST(sentences_are_for_people)
{
    char text[BLACKLIST_SENTENCE_MAX];
    struct blacklist_verdict v = { .reason = "" };

    CHECK_TEXT(t, blacklist_sentence(&v, 0, text), "ok");
    v = (struct blacklist_verdict){ BLACKLIST_COOLING, false, 2, 0, 20 * S, "exit code 1" };
    CHECK_TEXT(t, blacklist_sentence(&v, 700001, text),
               "cooling for 19.3s more after 2 failures: exit code 1");
    v.failures = 1;
    CHECK_TEXT(t, blacklist_sentence(&v, 20 * S - 1, text),
               "cooling for 100ms more after 1 failure: exit code 1");
    v.state = BLACKLIST_BARRED;
    v.until_us = TIME_NEVER;
    v.by_host = true;
    CHECK_TEXT(t, blacklist_sentence(&v, 0, text),
               "host barred until cleared after 1 failure: exit code 1");
    v.state = BLACKLIST_OK;
    v.until_us = 0;
    v.by_host = false;
    CHECK_TEXT(t, blacklist_sentence(&v, 0, text), "ok after 1 failure: exit code 1");
}

TEST(each_change_is_a_trace_line)
{
    start(for_ever);
    CHECK_OK(t, trace_init(&trace, "test", 8));
    blacklist.trace = &trace;
    CHECK_OK(t, fail("a", 1, 1, S));
    CHECK_TEXT(t, trace_line(&trace, 0),
               "[     1.000] blacklist: a:1 failed: barred until cleared after 1 failure");
    CHECK_OK(t, fail("a", 1, 2, S));
    CHECK_HAS(t, trace_line(&trace, 0), "a:1 failed too: barred");
    CHECK_OK(t, blacklist_clear(&blacklist, "a", 1, at(2 * S, WALL), &change, NULL));
    CHECK_TEXT(t, trace_line(&trace, 0), "[     2.000] blacklist: a:1 cleared: ok");
    blacklist.max = 1;
    CHECK_OK(t, fail("b", HOST, 3, 3 * S));
    CHECK_HAS(t, trace_line(&trace, 1), "b failed: barred");
    CHECK_HAS(t, trace_line(&trace, 0), "a:1 forgotten to make room");
}

TEST_FLAGS(asks_for_a_checked_policy_and_a_real_index, TEST_NO_TORTURE)
{
    struct policy policy;
    struct blacklist_record record;

    policy_init(&policy);
    policy.lower_us = -1;
    start(NULL);
    CHECK_PANICS(t, "policy_check", blacklist_init(&blacklist, &policy, NULL));
    CHECK_PANICS(t, "index <", blacklist_record_at(&blacklist, 0, at(0, WALL), &record));
}
