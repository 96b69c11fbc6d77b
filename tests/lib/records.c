/*
 * records.c: makes blacklist records and events that follow from a number, and compares them.
 */
#include "tests/lib/records.h"

#include <stdio.h>
#include <string.h>

static bool numbers_same(const struct numbers *a, const struct numbers *b)
{
    for (uint32_t i = 0; i < a->count && a->count == b->count; i++) {
        if (a->item[i] != b->item[i])
            return false;
    }
    return a->count == b->count;
}

bool records_same(const struct blacklist_record *a, const struct blacklist_record *b)
{
    return !strcmp(a->host, b->host) && a->slot == b->slot && a->failures == b->failures &&
           a->since_wall_us == b->since_wall_us && a->until_wall_us == b->until_wall_us &&
           numbers_same(&a->restarts, &b->restarts) &&
           numbers_same(&a->incarnations, &b->incarnations) && !strcmp(a->reason, b->reason);
}

void records_make(uint32_t number, const char *host, uint32_t slot,
                  struct blacklist_record *ret_record, struct blacklist_event *ret_event)
{
    int64_t at_us = 1000 * (int64_t)number;
    struct blacklist_record record = {
        .slot = slot,
        .failures = number,
        .since_wall_us = at_us,
        .until_wall_us = at_us + 500,
    };
    struct blacklist_event event = {
        .slot = slot,
        .incarnation = number + 1,
        .wall_us = at_us,
        .counted = number % 2,
    };

    for (uint32_t i = 0; i < number % LIMIT_BLACKLIST_REMEMBERED; i++) {
        numbers_add(&record.restarts, at_us - i);
        numbers_add(&record.incarnations, (int64_t)number + i);
    }
    snprintf(record.host, sizeof(record.host), "%s", host);
    snprintf(event.host, sizeof(event.host), "%s", host);
    snprintf(record.reason, sizeof(record.reason), "reason %u: %.*s", number, (int)(number % 200),
             "a long text, so that records have many sizes and some of them cross the border of a "
             "page of the database, where a torn write would show; it goes on for as long as two "
             "hundred characters");
    snprintf(event.reason, sizeof(event.reason), "%s", record.reason);
    *ret_record = record;
    *ret_event = event;
}
