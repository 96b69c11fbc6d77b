/*
 * test_etcd_text.c: the values of a job's keys in etcd: each comes back as it was written, and a
 * value that breaks a rule is refused.
 */
#include "driver/store/etcd_text.h"

#include "tests/lib/journal_random.h"
#include "tests/lib/records.h"
#include "tests/lib/test.h"

#include <string.h>

static struct journal_random made;
static struct etcd_record own;
static struct buf text;

static struct span whole(void)
{
    return (struct span){ buf_text(&text), text.length };
}

static void begin(void)
{
    etcd_text_start();
    etcd_record_init(&own);
    buf_init(&text, 4 * 1024 * 1024);
}

static void end(void)
{
    etcd_record_release(&own);
    buf_release(&text);
}

/* Whether the records of so many seeds come back as they were written. */
static void records_come_back(struct test *t, uint64_t seeds)
{
    struct journal_record record;

    begin();
    for (uint64_t seed = 0; seed < seeds; seed++) {
        journal_random_make(&made, seed);
        buf_clear(&text);
        CHECK_OK(t, etcd_write_record(&text, seed + 1, &made.record));
        CHECK(t, !memchr(text.data, '\n', text.length - 1));
        CHECK_OK(t, etcd_read_record(&own, whole(), seed + 1, &record, NULL));
        CHECK(t, journal_same(&record, &made.record));
    }
out:
    end();
}

/* Not tortured: each of the thousands of allocations would repeat all records. */
TEST_FLAGS(any_record_comes_back, TEST_NO_TORTURE)
{
    records_come_back(t, 40);
}

/* A record that does not fit is told from a lack of memory: the driver tries only the latter again.
 */
TEST(a_record_that_is_too_long_is_no_lack_of_memory)
{
    begin();
    journal_random_make(&made, 1);
    for (size_t room = 1; room < 64; room++) {
        buf_release(&text);
        buf_init(&text, room);
        CHECK_CODE(t, etcd_write_record(&text, 1, &made.record), HVD_E_LIMIT);
    }
out:
    end();
}

/* A text for which there is no memory as UTF-8 may be written in base64. */
TEST_FLAGS(a_record_for_which_memory_is_short_comes_back, TEST_SURVIVES_ALLOC)
{
    records_come_back(t, 3);
}

TEST(base64_is_that_of_rfc_4648)
{
    static const char *const pairs[][2] = {
        {"",              ""        },
        { "f",            "Zg=="    },
        { "fo",           "Zm8="    },
        { "foo",          "Zm9v"    },
        { "foob",         "Zm9vYg=="},
        { "\xff\xfe\xfd", "//79"    }
    };
    static const char *const wrong[] = {
        "Z", "Zg", "Zg=", "Zg=a", "====", "Zm9v=", "Zm 9", "Z==="
    };
    struct buf back;

    begin();
    buf_init(&back, 64);
    for (size_t i = 0; i < ARRAY_SIZE(pairs); i++) {
        buf_clear(&text);
        buf_clear(&back);
        CHECK_OK(t, etcd_base64(&text, pairs[i][0], strlen(pairs[i][0])));
        CHECK_TEXT(t, buf_text(&text), pairs[i][1]);
        CHECK_OK(t, etcd_unbase64(&back, pairs[i][1], strlen(pairs[i][1])));
        CHECK_TEXT(t, buf_text(&back), pairs[i][0]);
    }
    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
        CHECK(t, etcd_unbase64(&back, wrong[i], strlen(wrong[i])) < 0);
out:
    buf_release(&back);
    end();
}

TEST(facts_owner_and_blacklist_come_back)
{
    const struct job_facts facts = {
        .job = "a",
        .key = {1, 0xab, 0},
        .created_wall_us = 7,
        .port = 65535,
        .ended = true,
        .code = -3,
        .text = "\xff \xc3"
    };
    const struct etcd_owner owner = {
        .token = UINT64_MAX, .since_wall_us = 5, .lease_s = 3, .who = "pid 1"
    };
    struct blacklist_record record, record_back;
    struct blacklist_event event;
    struct etcd_owner owner_back;
    struct job_facts facts_back;

    begin();
    CHECK_OK(t, etcd_write_facts(&text, &facts));
    CHECK_OK(t, etcd_read_facts(whole(), &facts_back, NULL));
    CHECK(t, !memcmp(&facts, &facts_back, sizeof(facts.job)) && facts_back.port == 65535);
    CHECK(t, !memcmp(facts.key, facts_back.key, sizeof(facts.key)) && facts_back.ended);
    CHECK_INT(t, facts_back.code, ==, -3);
    CHECK_TEXT(t, facts_back.text, facts.text);
    buf_clear(&text);
    CHECK_OK(t, etcd_write_owner(&text, &owner));
    CHECK_OK(t, etcd_read_owner(whole(), &owner_back, NULL));
    CHECK(t, owner_back.token == owner.token && owner_back.lease_s == 3);
    CHECK_TEXT(t, owner_back.who, owner.who);
    records_make(9, "h", BLACKLIST_WHOLE_HOST, &record, &event);
    buf_clear(&text);
    CHECK_OK(t, etcd_write_blacklist(&text, &record));
    CHECK_OK(t, etcd_read_blacklist(whole(), &record_back, NULL));
    CHECK(t, records_same(&record, &record_back));
out:
    end();
}

/* The JSON library may take a lack of memory for damage: the line is refused in both cases. */
TEST_FLAGS(a_line_that_breaks_a_rule_is_damaged, TEST_SURVIVES_ALLOC)
{
    static const char *const wrong[] = {
        "",
        "null",
        "[]",
        "{\"n\":1",
        "{\"n\":2,\"kind\":1}",
        "{\"n\":1}",
        "{\"n\":1,\"kind\":99}",
        "{\"n\":1,\"kind\":\"1\"}",
        "{\"n\":1,\"kind\":1,\"slot\":-1}",
        "{\"n\":1,\"kind\":1,\"value\":9999999999}",
        "{\"n\":1,\"kind\":1,\"host\":\"a b\"}",
        "{\"n\":1,\"kind\":1,\"host\":{\"base64\":\"Z\"}}",
        "{\"n\":1,\"kind\":1,\"host\":{\"base64\":\"AAAA\"}}",
        "{\"n\":1,\"kind\":1,\"members\":[]}",
        "{\"n\":1,\"kind\":1,\"members\":[0]}",
        "{\"n\":1,\"kind\":1,\"members\":[99999999]}",
        "{\"n\":1,\"kind\":1,\"members\":{}}",
        "{\"n\":1,\"kind\":1,\"addresses\":[1]}",
        "{\"n\":1,\"kind\":1,\"kind\":1}",
    };
    struct journal_record record;
    struct blacklist_record row;
    struct etcd_owner owner;
    struct job_facts facts;
    struct hvd_err err;

    begin();
    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
        struct span line = { wrong[i], strlen(wrong[i]) };

        CHECK_CODE(t, etcd_read_record(&own, line, 1, &record, &err), HVD_E_CORRUPT);
        CHECK_HAS(t, err.text, "record 1 of the journal in etcd is damaged");
        CHECK_CODE(t, etcd_read_facts(line, &facts, &err), HVD_E_CORRUPT);
        CHECK_CODE(t, etcd_read_blacklist(line, &row, &err), HVD_E_CORRUPT);
    }
    CHECK_CODE(t, etcd_read_facts((struct span){ "{\"format\":2}", 12 }, &facts, &err),
               HVD_E_VERSION);
    CHECK_CODE(t, etcd_read_owner((struct span){ "{\"lease_s\":-1}", 14 }, &owner, &err),
               HVD_E_CORRUPT);
out:
    end();
}
