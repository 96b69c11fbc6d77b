/*
 * test_record.c: the fields of blacklist records and events: every one is checked, and a reason
 * becomes one clean line.
 */
#include "base/time.h"
#include "blacklist/record.h"
#include "tests/lib/fixture.h"

#include <string.h>

static const struct blacklist_record good = {
    .host = "node-1.example",
    .slot = 3,
    .failures = 2,
    .since_wall_us = 1000,
    .until_wall_us = 2000,
    .restarts = {2,  { 500, 1000 }},
    .incarnations = { 1, { 7 }        },
    .reason = "exit code 1",
};

TEST(names_and_slots_are_held_to_the_rule)
{
    char longest[LIMIT_HOST_NAME_BYTES + 2];
    struct hvd_err err;

    CHECK_OK(t, blacklist_key_check("a", 0, &err));
    CHECK_OK(t, blacklist_key_check("fe80::1%eth0", LIMIT_SLOTS_PER_HOST - 1, &err));
    CHECK_OK(t, blacklist_key_check("Node_7.rack-2", BLACKLIST_WHOLE_HOST, &err));
    CHECK_CODE(t, blacklist_key_check("", 0, &err), HVD_E_INVAL);
    CHECK_CODE(t, blacklist_key_check("a b", 0, &err), HVD_E_INVAL);
    CHECK_TEXT(t, err.text, "\"a b\": a host name has only letters, digits and . _ - : %");
    CHECK_CODE(t, blacklist_key_check("a\n", 0, &err), HVD_E_INVAL);
    CHECK_CODE(t, blacklist_key_check("a", LIMIT_SLOTS_PER_HOST, &err), HVD_E_LIMIT);
    CHECK_TEXT(t, err.text, "host a: slot 1024: a host has at most 1024 slots");
    memset(longest, 'x', sizeof(longest));
    longest[LIMIT_HOST_NAME_BYTES + 1] = '\0';
    CHECK_CODE(t, blacklist_key_check(longest, 0, &err), HVD_E_LIMIT);
    longest[LIMIT_HOST_NAME_BYTES] = '\0';
    CHECK_OK(t, blacklist_key_check(longest, 0, &err));
}

TEST(a_good_record_passes)
{
    struct blacklist_record record = good;

    CHECK_OK(t, blacklist_record_check(&record, NULL));
    record.slot = BLACKLIST_WHOLE_HOST;
    record.until_wall_us = TIME_NEVER;
    record.reason[0] = '\0';
    CHECK_OK(t, blacklist_record_check(&record, NULL));
    memset(record.reason, 'r', LIMIT_REASON_BYTES);
    CHECK_OK(t, blacklist_record_check(&record, NULL));
}

TEST(each_field_of_a_record_is_checked)
{
    struct blacklist_record record = good;
    struct hvd_err err;

    memset(record.host, 'x', sizeof(record.host));
    CHECK_CODE(t, blacklist_record_check(&record, &err), HVD_E_CORRUPT);
    CHECK_HAS(t, err.text, "a record of the blacklist is damaged: \"xxx");
    record = good;
    record.slot = 1024;
    CHECK_CODE(t, blacklist_record_check(&record, &err), HVD_E_CORRUPT);
    record = good;
    record.since_wall_us = -1;
    CHECK_CODE(t, blacklist_record_check(&record, &err), HVD_E_CORRUPT);
    CHECK_TEXT(t, err.text,
               "the blacklist's record of node-1.example:3 is damaged: the time is negative");
    record = good;
    record.until_wall_us = 999;
    CHECK_CODE(t, blacklist_record_check(&record, &err), HVD_E_CORRUPT);
    CHECK_HAS(t, err.text, "ends before it begins");
    record = good;
    record.restarts.count = UINT32_MAX;
    CHECK_CODE(t, blacklist_record_check(&record, &err), HVD_E_CORRUPT);
    CHECK_HAS(t, err.text, "restarts");
    record = good;
    record.incarnations.item[0] = -1;
    CHECK_CODE(t, blacklist_record_check(&record, &err), HVD_E_CORRUPT);
    CHECK_HAS(t, err.text, "incarnations");
    record = good;
    record.reason[0] = '\x1b';
    CHECK_CODE(t, blacklist_record_check(&record, &err), HVD_E_CORRUPT);
    CHECK_HAS(t, err.text, "reason");
    memset(record.reason, 'r', sizeof(record.reason));
    CHECK_CODE(t, blacklist_record_check(&record, &err), HVD_E_CORRUPT);
}

TEST(each_field_of_an_event_is_checked)
{
    static const struct blacklist_event fine = { .host = "a", .slot = 1, .reason = "x" };
    struct blacklist_event event = fine;
    struct hvd_err err;

    CHECK_OK(t, blacklist_event_check(&event, &err));
    event.host[0] = '\0';
    CHECK_CODE(t, blacklist_event_check(&event, &err), HVD_E_CORRUPT);
    event = fine;
    event.wall_us = -1;
    CHECK_CODE(t, blacklist_event_check(&event, &err), HVD_E_CORRUPT);
    CHECK_HAS(t, err.text, "a:1");
    event = fine;
    event.incarnation = (uint64_t)INT64_MAX + 1;
    CHECK_CODE(t, blacklist_event_check(&event, &err), HVD_E_CORRUPT);
    event = fine;
    event.slot = BLACKLIST_WHOLE_HOST;
    event.reason[0] = '\n';
    CHECK_CODE(t, blacklist_event_check(&event, NULL), HVD_E_CORRUPT);
    event.reason[0] = '\t';
    CHECK_CODE(t, blacklist_event_check(&event, NULL), HVD_E_CORRUPT);
    event.reason[0] = '\x7f';
    CHECK_CODE(t, blacklist_event_check(&event, &err), HVD_E_CORRUPT);
    CHECK_TEXT(t, err.text, "the blacklist's record of a is damaged: the reason is not clean text");
}

TEST(a_key_can_be_typed_again)
{
    char text[BLACKLIST_KEY_TEXT_MAX];

    CHECK_TEXT(t, blacklist_key_format("a", BLACKLIST_WHOLE_HOST, text), "a");
    CHECK_TEXT(t, blacklist_key_format("a", 3, text), "a:3");
    CHECK_TEXT(t, blacklist_key_format("::1", BLACKLIST_WHOLE_HOST, text), "[::1]");
    CHECK_TEXT(t, blacklist_key_format("::1", 3, text), "[::1]:3");
}

TEST(a_reason_becomes_one_clean_line)
{
    char reason[LIMIT_REASON_BYTES + 1];
    char text[LIMIT_REASON_BYTES + 10];

    blacklist_reason_set(reason, "exit\tcode\n1");
    CHECK_TEXT(t, reason, "exit code 1");
    blacklist_reason_set(reason, "\xff\x1b");
    CHECK_TEXT(t, reason, "\"\\xff\\x1b\"");
    memset(text, 'e', sizeof(text));
    text[sizeof(text) - 1] = '\0';
    blacklist_reason_set(reason, text);
    CHECK_INT(t, strlen(reason), ==, LIMIT_REASON_BYTES);
    memcpy(text + LIMIT_REASON_BYTES - 1, "\xc3\xa9", 2); /* an accented letter across the limit */
    blacklist_reason_set(reason, text);
    CHECK_INT(t, strlen(reason), ==, LIMIT_REASON_BYTES - 1);
    blacklist_reason_set(reason, "");
    CHECK_TEXT(t, reason, "");
}
