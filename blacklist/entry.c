#include "blacklist/entry.h"

#include "base/mem.h"
#include "base/panic.h"
#include "base/time.h"

#include <string.h>

struct blacklist_entry *entry_create(const char *host, uint32_t slot, int64_t now_us)
{
    size_t host_bytes = strlen(host) + 1;
    struct blacklist_entry *entry = mem_zalloc(sizeof(*entry) + host_bytes);

    if (!entry)
        return NULL;
    memcpy(entry->host, host, host_bytes);
    entry->slot = slot;
    entry_clear(entry, now_us);
    return entry;
}

void entry_clear(struct blacklist_entry *entry, int64_t now_us)
{
    entry->failures = 0;
    entry->since_us = now_us;
    entry->until_us = now_us;
    entry->settled_us = now_us;
    entry->healthy_us = 0;
    entry->restarts.count = 0;
    entry->reason[0] = '\0';
}

void entry_fail(struct blacklist_entry *entry, const struct policy *policy, const char *reason,
                int64_t now_us, struct rng *rng)
{
    uint32_t before = numbers_count_from(&entry->restarts, now_us - policy->restarts_window_us);
    bool over_budget = policy->restarts_max > 0 && before >= policy->restarts_max;

    ASSERT(entry->until_us <= now_us);
    if (entry->failures < UINT32_MAX)
        entry->failures++;
    entry->since_us = now_us;
    entry->settled_us = now_us;
    entry->healthy_us = 0;
    numbers_add(&entry->restarts, now_us);
    memcpy(entry->reason, reason, strlen(reason) + 1);
    if (policy->forever || over_budget)
        entry->until_us = TIME_NEVER;
    else
        entry->until_us =
            now_us + policy_cooldown_us(policy, entry->failures, policy_jitter_us(policy, rng));
}

bool entry_settle(struct blacklist_entry *entry, const struct policy *policy, int64_t since_us,
                  int64_t now_us)
{
    int64_t from_us = since_us > entry->settled_us ? since_us : entry->settled_us;
    int64_t forgiven;

    if (from_us >= now_us || policy->decay_us == TIME_NEVER)
        return false;
    entry->healthy_us += now_us - from_us;
    entry->settled_us = now_us;
    forgiven = entry->healthy_us / policy->decay_us;
    entry->healthy_us %= policy->decay_us;
    if (forgiven > entry->failures)
        forgiven = entry->failures;
    entry->failures -= (uint32_t)forgiven;
    return forgiven > 0;
}

static int64_t clamp(int64_t value, int64_t least, int64_t most)
{
    return value < least ? least : value > most ? most : value;
}

int64_t entry_wall_us(int64_t at_us, int64_t now_us, int64_t wall_us)
{
    return clamp(wall_us - (now_us - at_us), 0, TIME_NEVER - 1);
}

/* The way back; a time that lies ahead, by a clock that was set back, is taken for now. */
static int64_t from_wall_us(int64_t at_wall_us, int64_t now_us, int64_t wall_us)
{
    return now_us - clamp(wall_us - at_wall_us, 0, LIMIT_DURATION_US);
}

void entry_export(const struct blacklist_entry *entry, int64_t now_us, int64_t wall_us,
                  struct blacklist_record *ret_record)
{
    *ret_record = (struct blacklist_record){
        .slot = entry->slot,
        .failures = entry->failures,
        .since_wall_us = entry_wall_us(entry->since_us, now_us, wall_us),
        .until_wall_us = entry->until_us == TIME_NEVER
                             ? TIME_NEVER
                             : entry_wall_us(entry->until_us, now_us, wall_us),
        .restarts = entry->restarts,
        .incarnations = entry->incarnations,
    };
    for (uint32_t i = 0; i < entry->restarts.count; i++)
        ret_record->restarts.item[i] = entry_wall_us(entry->restarts.item[i], now_us, wall_us);
    memcpy(ret_record->host, entry->host, strlen(entry->host) + 1);
    memcpy(ret_record->reason, entry->reason, sizeof(entry->reason));
}

void entry_import(struct blacklist_entry *entry, const struct policy *policy,
                  const struct blacklist_record *record, int64_t now_us, int64_t wall_us)
{
    int64_t left_us = clamp(record->until_wall_us - wall_us, 0, policy->upper_us);

    ASSERT(entry->slot == record->slot);
    entry->failures = record->failures;
    entry->since_us = from_wall_us(record->since_wall_us, now_us, wall_us);
    entry->until_us = record->until_wall_us == TIME_NEVER ? TIME_NEVER : now_us + left_us;
    entry->restarts = record->restarts;
    for (uint32_t i = 0; i < entry->restarts.count; i++)
        entry->restarts.item[i] = from_wall_us(record->restarts.item[i], now_us, wall_us);
    entry->incarnations = record->incarnations;
    memcpy(entry->reason, record->reason, sizeof(entry->reason));
}
