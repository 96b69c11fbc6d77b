/*
 * test_journal_compact.c: the journal of a long job is compacted in its file: at every moment of a
 * job that loses workers, what a successor knows is the same, and later records follow on it. The
 * values of the job and its tokens are among what it knows.
 */
#include "bench/churn.h"
#include "driver/core/compact.h"
#include "driver/core/core.h"
#include "driver/journal/compact.h"
#include "driver/store/store_core.h"
#include "tests/lib/fixture.h"
#include "tests/lib/testjob.h"

#include <inttypes.h>
#include <stdio.h>

#define LOSSES 12
#define TEXT   65536

static struct store *file;
static struct core *core;
static struct core_config config;
static struct arena memory; /* of the last core_compact */
static int configured;

static void begin(struct test *t)
{
    file = NULL;
    core = NULL;
    arena_init(&memory, COMPACT_BYTES);
    testjob_start(t);
    core_config_init(&config);
    config.job = "job";
    config.np = CHURN_WORKERS;
    config.min_np = 1;
    configured = core_config_finish(&config, NULL);
}

static void end(struct test *t)
{
    (void)t;
    core_free(core);
    arena_release(&memory);
    testjob_end(&file);
    testjob_stop();
}
FIXTURE(begin, end)

/* The records that a core needs, as text. */
struct known {
    char text[TEXT];
    size_t used;
};
static struct known whole, compacted;

static int know(void *arg, const struct journal_record *record)
{
    struct known *known = arg;
    char line[JOURNAL_LINE_MAX];

    known->used +=
        (size_t)snprintf(known->text + known->used, TEXT - known->used, "%s check=%" PRIu64 "\n",
                         journal_describe(record, line), record->check);
    for (size_t i = 0; i < record->members.count; i++)
        known->used += (size_t)snprintf(known->text + known->used, TEXT - known->used, " %d",
                                        (int)record->members.items[i]);
    for (size_t i = 0; i < record->addresses.count; i++)
        known->used += (size_t)snprintf(known->text + known->used, TEXT - known->used, " %s",
                                        record->addresses.items[i]);
    return known->used < TEXT ? 0 : HVD_E_LIMIT;
}

/* Replays the store into a new core, and asks what that core needs. */
static int look(struct known *known)
{
    struct hvd_err err;
    uint64_t records;
    int rc;

    known->used = 0;
    *known->text = '\0';
    core_free(core);
    arena_release(&memory);
    arena_init(&memory, COMPACT_BYTES);
    core = core_create(&config, NULL);
    rc = core ? store_replay_core(file, core, &records, &err) : HVD_E_NOMEM;
    return rc ? rc : core_compact(core, &memory, know, known);
}

static int write_next(struct churn *churn)
{
    const struct journal_record record = churn_next(churn);
    const struct job_write write = { .record = &record };

    return store_write(file, &write, 1, NULL);
}

TEST(a_journal_is_compacted)
{
    struct churn churn = { .number = 0 };
    struct hvd_err err = { .code = 0 };
    uint64_t left = 0;
    int rc;

    CHECK_OK(t, configured);
    CHECK_OK(t, testjob_begin(t, &file));
    while (churn.number < CHURN_FIRST + 3 * CHURN_RECORDS)
        CHECK_OK(t, write_next(&churn));
    CHECK_OK(t, look(&whole));
    rc = journal_compact(file, &config, &left, &err);
    ASSERT(!rc || err.text[0]); /* under torture, too: the driver logs this text */
    CHECK_OK(t, rc);
    CHECK_INT(t, left, <=, 20);
    CHECK_OK(t, look(&compacted));
    CHECK_TEXT(t, compacted.text, whole.text);
    CHECK_CODE(t, journal_compact(file, &config, &left, NULL), HVD_DONE);
}

TEST_FLAGS(a_compacted_journal_says_the_same_at_every_moment, TEST_NO_TORTURE)
{
    struct churn churn = { .number = 0 };
    uint64_t left = 0, often = 0;
    struct hvd_err err;
    int rc;

    CHECK_OK(t, configured);
    CHECK_OK(t, testjob_begin(t, &file));
    while (churn.number < CHURN_FIRST + LOSSES * CHURN_RECORDS) {
        CHECK_OK(t, write_next(&churn));
        rc = look(&whole);
        if (rc == HVD_DONE && churn.number < CHURN_FIRST)
            continue; /* the job has not trained yet */
        CHECK_OK(t, rc);
        rc = journal_compact(file, &config, &left, &err);
        if (rc != HVD_DONE) {
            CHECK_OK(t, rc);
            CHECK_INT(t, left, <=, 20);
            often++;
        }
        CHECK_OK(t, look(&compacted));
        CHECK_TEXT(t, compacted.text, whole.text);
    }
    CHECK_INT(t, often, >, 3);
}

/* The records of what workers have stored and hosts may use: two values and a number, and two
 * tokens, of which two hosts have used the one (the number of one process is known), and an
 * operator has revoked the other one. */
static int write_values_and_tokens(const struct churn *churn)
{
#define KEY_64 "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
    static const char *const one[] = { "6f6e65" }, *const two[] = { "74776f" },
                             *const sum[] = { "37" };
    struct journal_record records[] = {
        {.kind = JOURNAL_STORE,    .text = "a",                         .code = VALUE_SET,                                 .addresses = { one, 1 } },
        { .kind = JOURNAL_STORE,                       .text = "b",                                     .code = VALUE_SET,                                                     .addresses = { two, 1 } },
        { .kind = JOURNAL_STORE,
         .incarnation = churn->members[0],
         .check = 1,
         .text = "c",
         .code = VALUE_ADDED,
         .addresses = { sum, 1 } },
        { .kind = JOURNAL_TOKEN,
         .code = TOKEN_MADE,
         .text = "01234567 " KEY_64,
         .wall_us = 7000000,
         .value = 3 },
        { .kind = JOURNAL_TOKEN,                       .code = TOKEN_USED,                                     .text = "01234567",                                                                                               .host = "one" },
        { .kind = JOURNAL_TOKEN,
         .code = TOKEN_USED,
         .text = "01234567",
         .host = "two",
         .check = 1234321 },
        { .kind = JOURNAL_TOKEN,.code = TOKEN_MADE,.text = "89abcdef " KEY_64,.value = 1 },
        { .kind = JOURNAL_TOKEN,   .code = TOKEN_REVOKED,                                            .text = "89abcdef"                                                                                              },
    };
    int rc = 0;

    for (size_t i = 0; i < ARRAY_SIZE(records) && !rc; i++) {
        const struct job_write write = { .record = &records[i] };

        records[i].term = 1;
        records[i].host = records[i].host ? records[i].host : "";
        records[i].text = records[i].text ? records[i].text : "";
        rc = store_write(file, &write, 1, NULL);
    }
    return rc;
}

TEST(values_and_tokens_are_in_a_compacted_journal)
{
    struct churn churn = { .number = 0 };
    uint64_t left = 0;

    CHECK_OK(t, configured);
    CHECK_OK(t, testjob_begin(t, &file));
    while (churn.number < CHURN_FIRST + LOSSES * CHURN_RECORDS)
        CHECK_OK(t, write_next(&churn));
    CHECK_OK(t, write_values_and_tokens(&churn));
    CHECK_OK(t, look(&whole));
    CHECK_HAS(t, whole.text, "6f6e65");
    CHECK_HAS(t, whole.text, "74776f");
    CHECK_HAS(t, whole.text, "01234567");
    CHECK_HAS(t, whole.text, "two");
    CHECK_HAS(t, whole.text, "check=1234321");
    CHECK_OK(t, journal_compact(file, &config, &left, NULL));
    CHECK_OK(t, look(&compacted));
    CHECK_TEXT(t, compacted.text, whole.text);
}
