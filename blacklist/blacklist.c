#include "blacklist/blacklist.h"

#include "base/mem.h"
#include "base/panic.h"
#include "base/time.h"
#include "blacklist/entry.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void blacklist_init(struct blacklist *blacklist, const struct policy *policy, struct trace *trace)
{
    ASSERT(policy_check(policy, NULL) == 0);
    *blacklist = (struct blacklist){
        .policy = *policy,
        .trace = trace,
        .max = LIMIT_BLACKLIST_ENTRIES,
        .earliest_us = TIME_NEVER,
    };
}

void blacklist_release(struct blacklist *blacklist)
{
    if (!blacklist)
        return;
    for (size_t i = 0; i < blacklist->entries.count; i++)
        mem_free(blacklist->entries.items[i]);
    VEC_RELEASE(&blacklist->entries);
}

/* The index of the key, or of where it belongs. */
static size_t place_of(const struct blacklist *blacklist, const char *host, uint32_t slot)
{
    size_t low = 0;
    size_t high = blacklist->entries.count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct blacklist_entry *entry = blacklist->entries.items[middle];
        int order = strcmp(entry->host, host);

        if (order < 0 || (order == 0 && entry->slot < slot))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct blacklist_entry *find(const struct blacklist *blacklist, const char *host,
                                    uint32_t slot)
{
    size_t place = place_of(blacklist, host, slot);
    struct blacklist_entry *entry;

    if (place == blacklist->entries.count)
        return NULL;
    entry = blacklist->entries.items[place];
    return entry->slot == slot && !strcmp(entry->host, host) ? entry : NULL;
}

static bool is_forgotten(const struct blacklist_entry *entry, int64_t now_us)
{
    return entry->failures == 0 && entry->until_us <= now_us;
}

/* Removes the oldest entry that says nothing any more; NULL when there is none. The caller frees.
 */
static struct blacklist_entry *evict(struct blacklist *blacklist, int64_t now_us)
{
    struct blacklist_entry **items = blacklist->entries.items;
    size_t oldest = blacklist->entries.count;
    struct blacklist_entry *evicted;

    for (size_t i = 0; i < blacklist->entries.count; i++) {
        if (is_forgotten(items[i], now_us) &&
            (oldest == blacklist->entries.count || items[i]->since_us < items[oldest]->since_us))
            oldest = i;
    }
    if (oldest == blacklist->entries.count)
        return NULL;
    evicted = items[oldest];
    blacklist->entries.count--;
    for (size_t i = oldest; i < blacklist->entries.count; i++)
        items[i] = items[i + 1];
    return evicted;
}

/* Room for one more entry; *ret_evicted is NULL, or the entry that gave way, which the caller
 * frees. */
static int make_room(struct blacklist *blacklist, int64_t now_us,
                     struct blacklist_entry **ret_evicted, struct hvd_err *err)
{
    struct blacklist_entry *evicted = NULL;

    if (blacklist->entries.count >= blacklist->max) {
        evicted = evict(blacklist, now_us);
        if (!evicted)
            return err_set(err, HVD_E_LIMIT,
                           "the blacklist is full with %zu hosts and slots; clear some of them",
                           blacklist->entries.count);
    } else if (vec_reserve(&blacklist->entries.items, &blacklist->entries.capacity,
                           blacklist->entries.count, 1, blacklist->max, sizeof(void *))) {
        return err_set(err, HVD_E_NOMEM, "the blacklist: %s", err_text(HVD_E_NOMEM));
    }
    *ret_evicted = evicted;
    return 0;
}

/* A new entry in its place, with no failures. *ret_evicted as in make_room. */
static int add(struct blacklist *blacklist, const char *host, uint32_t slot, int64_t now_us,
               struct blacklist_entry **ret_entry, struct blacklist_entry **ret_evicted,
               struct hvd_err *err)
{
    struct blacklist_entry *entry = entry_create(host, slot, now_us);
    struct blacklist_entry **items;
    size_t place;
    int rc;

    if (!entry) {
        err_set(err, HVD_E_NOMEM, "the blacklist: %s", err_text(HVD_E_NOMEM));
        return HVD_E_NOMEM;
    }
    rc = make_room(blacklist, now_us, ret_evicted, err);
    if (rc) {
        mem_free(entry);
        return rc;
    }
    place = place_of(blacklist, host, slot);
    items = blacklist->entries.items;
    for (size_t i = blacklist->entries.count; i > place; i--)
        items[i] = items[i - 1];
    items[place] = entry;
    blacklist->entries.count++;
    *ret_entry = entry;
    return 0;
}

static void trace_entry(const struct blacklist *blacklist, const struct blacklist_entry *entry,
                        const char *what, int64_t now_us)
{
    char key[BLACKLIST_KEY_TEXT_MAX];
    char text[BLACKLIST_SENTENCE_MAX];
    struct blacklist_verdict verdict;

    if (!blacklist->trace)
        return;
    verdict = blacklist_verdict(blacklist, entry->host, entry->slot, now_us);
    trace_add(blacklist->trace, now_us, "blacklist: %s %s: %s",
              blacklist_key_format(entry->host, entry->slot, key), what,
              blacklist_sentence(&verdict, now_us, text));
}

static void note_cooldown(struct blacklist *blacklist, const struct blacklist_entry *entry)
{
    if (entry->until_us < blacklist->earliest_us)
        blacklist->earliest_us = entry->until_us;
}

static void note_evicted(struct blacklist *blacklist, struct blacklist_entry *evicted,
                         int64_t now_us, struct blacklist_change *change)
{
    change->evicted = true;
    change->evicted_slot = evicted->slot;
    memcpy(change->evicted_host, evicted->host, strlen(evicted->host) + 1);
    trace_entry(blacklist, evicted, "forgotten to make room", now_us);
    mem_free(evicted);
}

static int check_failure(const struct blacklist_failure *failure, struct hvd_err *err)
{
    int rc = blacklist_key_check(failure->host, failure->slot, err);

    if (rc)
        return rc;
    if (failure->incarnation > INT64_MAX)
        return err_set(err, HVD_E_INVAL, "a failure of host %s: no such incarnation: %" PRIu64,
                       failure->host, failure->incarnation);
    return 0;
}

/* The operator must see the slot, also where its failure is charged to the host. */
static void set_reason(char reason[LIMIT_REASON_BYTES + 1], const struct blacklist_failure *failure,
                       uint32_t charged)
{
    char text[LIMIT_REASON_BYTES + 32];

    blacklist_reason_set(reason, failure->reason);
    if (charged != failure->slot) {
        snprintf(text, sizeof(text), "slot %u: %s", failure->slot, reason);
        blacklist_reason_set(reason, text);
    }
}

/* Charges the failure to its entry, and says what that changed. */
static void charge(struct blacklist *blacklist, struct blacklist_entry *entry,
                   const struct blacklist_failure *failure, int64_t now_us, int64_t wall_us,
                   struct rng *rng, struct blacklist_change *ret_change)
{
    struct blacklist_event *event = &ret_change->event;
    struct blacklist_verdict verdict =
        blacklist_verdict(blacklist, entry->host, entry->slot, now_us);

    *ret_change = (struct blacklist_change){
        .event = {.slot = entry->slot,
                  .incarnation = failure->incarnation,
                  .wall_us = entry_wall_us(now_us, now_us, wall_us),
                  .counted = verdict.state == BLACKLIST_OK},
    };
    memcpy(event->host, entry->host, strlen(entry->host) + 1);
    set_reason(event->reason, failure, entry->slot);
    if (failure->incarnation)
        numbers_add(&entry->incarnations, (int64_t)failure->incarnation);
    if (event->counted)
        entry_fail(entry, &blacklist->policy, event->reason, now_us, rng);
    note_cooldown(blacklist, entry);
    entry_export(entry, now_us, wall_us, &ret_change->record);
    trace_entry(blacklist, entry, event->counted ? "failed" : "failed too", now_us);
}

int blacklist_failure(struct blacklist *blacklist, const struct blacklist_failure *failure,
                      int64_t now_us, int64_t wall_us, struct rng *rng,
                      struct blacklist_change *ret_change, struct hvd_err *err)
{
    uint32_t charged = blacklist->policy.scope == SCOPE_HOST ? BLACKLIST_WHOLE_HOST : failure->slot;
    struct blacklist_entry *evicted = NULL;
    struct blacklist_entry *entry;
    int rc = check_failure(failure, err);

    if (rc)
        return rc;
    entry = find(blacklist, failure->host, charged);
    if (entry && failure->incarnation &&
        numbers_had(&entry->incarnations, (int64_t)failure->incarnation)) {
        *ret_change = (struct blacklist_change){ .none = true };
        return 0;
    }
    if (!entry) {
        rc = add(blacklist, failure->host, charged, now_us, &entry, &evicted, err);
        if (rc)
            return rc;
    }
    charge(blacklist, entry, failure, now_us, wall_us, rng, ret_change);
    if (evicted)
        note_evicted(blacklist, evicted, now_us, ret_change);
    return 0;
}

size_t blacklist_healthy(struct blacklist *blacklist, const char *host, uint32_t slot,
                         int64_t since_us, int64_t now_us, int64_t wall_us,
                         struct blacklist_record ret_changed[2])
{
    struct blacklist_entry *entries[2] = { find(blacklist, host, slot), NULL };
    size_t changed = 0;

    if (slot != BLACKLIST_WHOLE_HOST)
        entries[1] = find(blacklist, host, BLACKLIST_WHOLE_HOST);
    for (size_t i = 0; i < ARRAY_SIZE(entries); i++) {
        if (entries[i] && entry_settle(entries[i], &blacklist->policy, since_us, now_us)) {
            entry_export(entries[i], now_us, wall_us, &ret_changed[changed++]);
            trace_entry(blacklist, entries[i], "healthy", now_us);
        }
    }
    return changed;
}

int blacklist_clear(struct blacklist *blacklist, const char *host, uint32_t slot, int64_t now_us,
                    int64_t wall_us, struct blacklist_change *ret_change, struct hvd_err *err)
{
    struct blacklist_entry *entry = find(blacklist, host, slot);
    char quoted[TEXT_QUOTE_MAX];

    if (!entry)
        return err_set(err, HVD_E_NOTFOUND, "%s: there is no such host or slot on the blacklist",
                       text_quote(host, strlen(host), quoted));
    if (entry->until_us == blacklist->earliest_us)
        blacklist->earliest_us = now_us;
    entry_clear(entry, now_us);
    *ret_change = (struct blacklist_change){
        .event = {.slot = slot, .wall_us = entry_wall_us(now_us, now_us, wall_us)},
    };
    memcpy(ret_change->event.host, entry->host, strlen(entry->host) + 1);
    blacklist_reason_set(ret_change->event.reason, "cleared by the operator");
    entry_export(entry, now_us, wall_us, &ret_change->record);
    trace_entry(blacklist, entry, "cleared", now_us);
    return 0;
}

int blacklist_load(struct blacklist *blacklist, const struct blacklist_record *record,
                   int64_t now_us, int64_t wall_us, struct hvd_err *err)
{
    char key[BLACKLIST_KEY_TEXT_MAX];
    struct blacklist_entry *evicted = NULL;
    struct blacklist_entry *entry = NULL;
    int rc = blacklist_record_check(record, err);

    if (rc)
        return rc;
    if (find(blacklist, record->host, record->slot))
        return err_set(err, HVD_E_EXISTS, "%s: there are two records of it",
                       blacklist_key_format(record->host, record->slot, key));
    rc = add(blacklist, record->host, record->slot, now_us, &entry, &evicted, err);
    if (rc)
        return rc;
    mem_free(evicted);
    entry_import(entry, &blacklist->policy, record, now_us, wall_us);
    note_cooldown(blacklist, entry);
    trace_entry(blacklist, entry, "loaded", now_us);
    return 0;
}

size_t blacklist_count(const struct blacklist *blacklist)
{
    return blacklist->entries.count;
}

void blacklist_record_at(const struct blacklist *blacklist, size_t index, int64_t now_us,
                         int64_t wall_us, struct blacklist_record *ret_record)
{
    ASSERT(index < blacklist->entries.count);
    entry_export(blacklist->entries.items[index], now_us, wall_us, ret_record);
}

/* The one that keeps out longer. */
static const struct blacklist_entry *decisive(const struct blacklist_entry *slot,
                                              const struct blacklist_entry *host, int64_t now_us)
{
    if (!slot || !host)
        return slot ? slot : host;
    return host->until_us > now_us && host->until_us >= slot->until_us ? host : slot;
}

struct blacklist_verdict blacklist_verdict(const struct blacklist *blacklist, const char *host,
                                           uint32_t slot, int64_t now_us)
{
    const struct blacklist_entry *entry =
        decisive(find(blacklist, host, slot), find(blacklist, host, BLACKLIST_WHOLE_HOST), now_us);
    struct blacklist_verdict verdict = { .state = BLACKLIST_OK, .reason = "" };

    if (!entry)
        return verdict;
    if (entry->until_us > now_us)
        verdict.state = entry->until_us == TIME_NEVER ? BLACKLIST_BARRED : BLACKLIST_COOLING;
    verdict.by_host = entry->slot != slot;
    verdict.failures = entry->failures;
    verdict.since_us = entry->since_us;
    verdict.until_us = entry->until_us;
    verdict.reason = entry->reason;
    return verdict;
}

int64_t blacklist_deadline(struct blacklist *blacklist, int64_t now_us)
{
    if (blacklist->earliest_us > now_us)
        return blacklist->earliest_us;
    blacklist->earliest_us = TIME_NEVER;
    for (size_t i = 0; i < blacklist->entries.count; i++) {
        if (blacklist->entries.items[i]->until_us > now_us)
            note_cooldown(blacklist, blacklist->entries.items[i]);
    }
    return blacklist->earliest_us;
}

const char *blacklist_sentence(const struct blacklist_verdict *verdict, int64_t now_us,
                               char text[BLACKLIST_SENTENCE_MAX])
{
    static const char *const states[] = { "ok", "cooling for ", "barred until cleared" };
    char left[TIME_TEXT_MAX] = "";
    char failures[32] = "";
    int64_t left_us = verdict->until_us - now_us;
    bool forgiven = verdict->state == BLACKLIST_OK && !verdict->failures;
    const char *reason = forgiven ? "" : verdict->reason;

    if (verdict->state == BLACKLIST_COOLING) /* in tenths of a second, rounded up */
        time_format((left_us + TIME_S / 10 - 1) / (TIME_S / 10) * (TIME_S / 10), left);
    if (verdict->failures > 0)
        snprintf(failures, sizeof(failures), " after %u failure%s", verdict->failures,
                 verdict->failures > 1 ? "s" : "");
    snprintf(text, BLACKLIST_SENTENCE_MAX, "%s%s%s%s%s%s%s", verdict->by_host ? "host " : "",
             states[verdict->state], left, left[0] ? " more" : "", failures, reason[0] ? ": " : "",
             reason);
    return text;
}
