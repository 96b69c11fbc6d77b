/*
 * fuzz_blacklist.c: the bytes are a policy and a sequence of failures, healthy times, clears, jumps
 * of both clocks, and records of an earlier driver, valid or not. After each step the blacklist
 * must be consistent.
 */
#include "base/panic.h"
#include "base/time.h"
#include "blacklist/blacklist.h"

#include <string.h>

struct input {
    const uint8_t *at;
    size_t left;
};

struct world {
    struct blacklist blacklist;
    struct input input;
    struct rng rng;
    int64_t now_us;
    int64_t wall_us;
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint8_t take(struct input *input)
{
    if (input->left == 0)
        return 0;
    input->left--;
    return *input->at++;
}

/* A time: usually small, sometimes huge. */
static int64_t take_time(struct input *input)
{
    static const int64_t units[] = { 1, TIME_MS, TIME_S, TIME_MIN, TIME_HOUR, 30 * TIME_DAY };

    return take(input) * units[take(input) % ARRAY_SIZE(units)];
}

static struct blacklist_moment at(int64_t now_us, int64_t wall_us)
{
    return (struct blacklist_moment){ now_us, wall_us };
}

static void take_text(struct input *input, char *out, size_t size)
{
    size_t length = take(input) % size;

    for (size_t i = 0; i < length; i++)
        out[i] = (char)take(input);
    out[length] = '\0';
}

static const char *take_host(struct input *input)
{
    static const char *const hosts[] = { "a", "b", "fe80::1%eth0" };
    static char other[8];
    uint8_t choice = take(input);

    if (choice % 8 != 7)
        return hosts[choice % ARRAY_SIZE(hosts)];
    take_text(input, other, sizeof(other));
    return other;
}

static uint32_t take_slot(struct input *input)
{
    uint8_t choice = take(input);

    return choice % 4 == 3 ? BLACKLIST_WHOLE_HOST : choice * 5U;
}

static struct policy take_policy(struct input *input)
{
    struct policy policy;

    policy_init(&policy);
    policy.lower_us = take_time(input);
    policy.upper_us = policy.lower_us + take_time(input);
    policy.decay_us = take_time(input) + 1;
    policy.restarts_max = take(input) % 5;
    policy.restarts_window_us = take_time(input) + 1;
    policy.scope = take(input) % 2 ? SCOPE_HOST : SCOPE_SLOT;
    policy.forever = take(input) % 8 == 7;
    if (policy_check(&policy, NULL))
        policy_init(&policy);
    return policy;
}

/* Checks the blacklist: sorted, within its limit, each entry valid as a record, and the deadline
 * the earliest end of all bars. */
static void check_world(struct world *world)
{
    struct blacklist *blacklist = &world->blacklist;
    static struct blacklist_record record;
    static struct blacklist_record before;
    int64_t earliest_us = TIME_NEVER;

    ASSERT(blacklist_count(blacklist) <= blacklist->max);
    for (size_t i = 0; i < blacklist_count(blacklist); i++) {
        int64_t left_us;
        struct blacklist_verdict verdict;
        char text[BLACKLIST_SENTENCE_MAX];

        blacklist_record_at(blacklist, i, at(world->now_us, world->wall_us), &record);
        ASSERT(blacklist_record_check(&record, NULL) == 0);
        if (i > 0) {
            int order = strcmp(before.host, record.host);

            ASSERT(order < 0 || (order == 0 && before.slot < record.slot));
        }
        left_us = record.until_wall_us - world->wall_us;
        verdict = blacklist_verdict(&world->blacklist, record.host, record.slot, world->now_us);
        ASSERT(verdict.by_host || (verdict.state == BLACKLIST_OK) == (left_us <= 0));
        ASSERT(verdict.state != BLACKLIST_OK || left_us <= 0);
        ASSERT((verdict.state == BLACKLIST_OK) == (verdict.until_us <= world->now_us));
        ASSERT((verdict.state == BLACKLIST_BARRED) == (verdict.until_us == TIME_NEVER));
        if (verdict.state == BLACKLIST_COOLING)
            ASSERT(verdict.until_us - world->now_us <= world->blacklist.policy.upper_us);
        blacklist_sentence(&verdict, world->now_us, text);
        ASSERT(text_is_clean(text, strlen(text)));
        if (record.until_wall_us > world->wall_us && record.until_wall_us != TIME_NEVER &&
            world->now_us + (record.until_wall_us - world->wall_us) < earliest_us)
            earliest_us = world->now_us + (record.until_wall_us - world->wall_us);
        before = record;
    }
    ASSERT(blacklist_deadline(blacklist, world->now_us) == earliest_us);
    ASSERT(earliest_us > world->now_us);
}

/* Reports a failure from the input to the blacklist, and checks the verdict and the change. */
static void fail(struct world *world)
{
    static struct blacklist_change change;
    char reason[2 * LIMIT_REASON_BYTES];
    struct blacklist_failure failure = { .reason = reason };
    struct blacklist_verdict verdict;
    uint32_t charged;
    struct hvd_err err;

    failure.host = take_host(&world->input);
    failure.slot = take_slot(&world->input);
    failure.incarnation = take(&world->input);
    take_text(&world->input, reason, sizeof(reason));
    charged = world->blacklist.policy.scope == SCOPE_HOST ? BLACKLIST_WHOLE_HOST : failure.slot;
    verdict = blacklist_verdict(&world->blacklist, failure.host, charged, world->now_us);
    if (blacklist_failure(&world->blacklist, &failure, at(world->now_us, world->wall_us),
                          &world->rng, &change, &err)) {
        ASSERT(err.text[0]);
        return;
    }
    if (!change.none) {
        ASSERT(blacklist_record_check(&change.record, NULL) == 0);
        ASSERT(blacklist_event_check(&change.event, NULL) == 0);
        ASSERT(change.event.counted == (verdict.state == BLACKLIST_OK));
    }
    ASSERT(blacklist_failure(&world->blacklist, &failure, at(world->now_us, world->wall_us),
                             &world->rng, &change, NULL) == 0);
    ASSERT(change.none == (failure.incarnation != 0));
}

static void run_healthy(struct world *world)
{
    static struct blacklist_record changed[2];
    const char *host = take_host(&world->input);
    uint32_t slot = take_slot(&world->input);
    int64_t since_us = world->now_us - take_time(&world->input);

    (void)blacklist_healthy(&world->blacklist, host, slot, since_us,
                            at(world->now_us, world->wall_us), changed);
    ASSERT(blacklist_healthy(&world->blacklist, host, slot, since_us,
                             at(world->now_us, world->wall_us), changed) == 0);
}

static void clear(struct world *world)
{
    static struct blacklist_change change;
    const char *host = take_host(&world->input);
    uint32_t slot = take_slot(&world->input);

    if (blacklist_clear(&world->blacklist, host, slot, at(world->now_us, world->wall_us), &change,
                        NULL))
        return;
    ASSERT(blacklist_record_check(&change.record, NULL) == 0);
    ASSERT(blacklist_event_check(&change.event, NULL) == 0);
    ASSERT(change.record.failures == 0 && change.record.until_wall_us <= world->wall_us);
}

/* Loads records: valid ones first, in which bytes are then overwritten by the input. */
static void load(struct world *world)
{
    static struct blacklist_record record;
    struct hvd_err err = { .code = 0 };
    size_t patches = take(&world->input) % 8;

    memset(&record, 0, sizeof(record));
    memcpy(record.host, "a", 2);
    record.slot = take_slot(&world->input);
    record.failures = take(&world->input);
    record.since_wall_us = take_time(&world->input);
    record.until_wall_us = record.since_wall_us + take_time(&world->input);
    for (size_t i = 0; i < patches; i++) {
        size_t at = take(&world->input);

        at = at << 8 | take(&world->input);
        ((uint8_t *)&record)[at % sizeof(record)] = take(&world->input);
    }
    if (blacklist_load(&world->blacklist, &record, at(world->now_us, world->wall_us), &err))
        ASSERT(err.text[0]);
    else
        ASSERT(blacklist_record_check(&record, NULL) == 0);
}

/* Moves all records to a new blacklist, as for the next driver; nothing that matters may change. */
static void restart(struct world *world)
{
    struct blacklist *before = &world->blacklist;
    static struct blacklist_record record;
    struct blacklist after;

    blacklist_init(&after, &before->policy, NULL);
    after.max = before->max;
    for (size_t i = 0; i < blacklist_count(before); i++) {
        blacklist_record_at(before, i, at(world->now_us, world->wall_us), &record);
        ASSERT(blacklist_load(&after, &record, at(world->now_us, world->wall_us), NULL) == 0);
    }
    ASSERT(blacklist_count(&after) == blacklist_count(before));
    for (size_t i = 0; i < blacklist_count(before); i++) {
        struct blacklist_verdict was;
        struct blacklist_verdict is;

        blacklist_record_at(before, i, at(world->now_us, world->wall_us), &record);
        was = blacklist_verdict(before, record.host, record.slot, world->now_us);
        is = blacklist_verdict(&after, record.host, record.slot, world->now_us);
        ASSERT(was.state == is.state && was.failures == is.failures);
        ASSERT(was.state == BLACKLIST_OK || was.until_us == is.until_us);
        ASSERT(!strcmp(was.reason, is.reason));
    }
    blacklist_release(before);
    *before = after;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct world world = {
        .input = {data, size},
          .wall_us = 1000 * TIME_DAY
    };
    struct policy policy = take_policy(&world.input);

    rng_seed(&world.rng, 1);
    blacklist_init(&world.blacklist, &policy, NULL);
    world.blacklist.max = 1 + take(&world.input) % 8;
    while (world.input.left > 0 && world.now_us < LIMIT_DURATION_US) {
        switch (take(&world.input) % 8) {
        case 0: run_healthy(&world); break;
        case 1: clear(&world); break;
        case 2: load(&world); break;
        case 3: restart(&world); break;
        case 4: world.now_us += take_time(&world.input); break;
        case 5: world.wall_us = take_time(&world.input); break;
        default: fail(&world); break;
        }
        check_world(&world);
    }
    blacklist_release(&world.blacklist);
    return 0;
}
