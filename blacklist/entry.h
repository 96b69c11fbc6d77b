/*
 * entry.h: what blacklist.c keeps about one host or slot. Private to this folder.
 *
 * Its times are monotonic; those that an earlier driver wrote down may lie below 0.
 */
#ifndef BLACKLIST_ENTRY_H
#define BLACKLIST_ENTRY_H

#include "base/rng.h"
#include "blacklist/policy.h"
#include "blacklist/record.h"

struct blacklist_entry {
    uint32_t slot;
    uint32_t failures;
    int64_t since_us;
    int64_t until_us;
    int64_t settled_us; /* healthy running up to here has been counted, or a failure undid it */
    int64_t healthy_us; /* counted, and not yet enough to forgive a failure */
    struct numbers restarts;
    struct numbers incarnations;
    char reason[LIMIT_REASON_BYTES + 1];
    char host[];
};

/* One with no failures; NULL when memory is out. Freed with mem_free. */
struct blacklist_entry *entry_create(const char *host, uint32_t slot, int64_t now_us) MUST_CHECK;

/* Back to no failures; the incarnations stay. */
void entry_clear(struct blacklist_entry *entry, int64_t now_us);

/* Counts a failure: a cooldown, or the bar. */
void entry_fail(struct blacklist_entry *entry, const struct policy *policy, const char *reason,
                int64_t now_us, struct rng *rng);

/* Counts healthy running since since_us; true when that forgave a failure. */
bool entry_settle(struct blacklist_entry *entry, const struct policy *policy, int64_t since_us,
                  int64_t now_us);

void entry_export(const struct blacklist_entry *entry, int64_t now_us, int64_t wall_us,
                  struct blacklist_record *ret_record);
void entry_import(struct blacklist_entry *entry, const struct policy *policy,
                  const struct blacklist_record *record, int64_t now_us, int64_t wall_us);

/* A moment as the wall clock has it; never below 0. */
int64_t entry_wall_us(int64_t at_us, int64_t now_us, int64_t wall_us);

#endif
