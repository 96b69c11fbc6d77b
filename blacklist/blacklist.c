/*
 * blacklist.c: the entries of the blacklist, sorted by host and slot, and the verdict on a slot
 * (may a worker be launched?) that follows from the entries. The driver's core reports failures and
 * healthy running to this file, and asks for a verdict before each launch. The caller gets each
 * change (struct blacklist_change) and stores it. Invariant: no host or slot has two entries, and
 * there are never more than `max` entries. Inside a driver all times are monotonic; only records
 * carry the wall clock.
 */
#include "blacklist/blacklist.h"

#include "base/mem.h"
#include "base/panic.h"
#include "base/time.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* The entry of one host or slot. Its times are monotonic; a time that an earlier driver recorded
 * may be below 0. */
struct blacklist_entry {
    uint32_t slot;
    uint32_t failures;
    int64_t since_us;
    int64_t until_us;
    /* running time before this moment does not count any more: it was counted already, or a failure
     * came after it */
    int64_t settled_us;
    /* running time without a failure that was counted and has not forgiven a failure yet; less than
     * policy.decay_us */
    int64_t healthy_us;
    bool cooling; /* a cooldown has begun, and blacklist_next_cooled has not told of its end */
    struct numbers restarts;
    struct numbers incarnations;
    char reason[LIMIT_REASON_BYTES + 1];
    char host[];
};

/* Removes all failures of the entry. The entry still remembers the incarnations that failed. */
static void entry_clear(struct blacklist_entry *entry, int64_t now_us)
{
    entry->failures = 0;
    entry->since_us = now_us;
    entry->until_us = now_us;
    entry->settled_us = now_us;
    entry->healthy_us = 0;
    entry->cooling = false;
    entry->restarts.count = 0;
    entry->reason[0] = '\0';
}

/* Returns the value, or the bound that it exceeds. */
static int64_t entry_clamp(int64_t value, int64_t least, int64_t most)
{
    return value < least ? least : value > most ? most : value;
}

/* Converts a time of the monotonic clock to a time of day, for a record. Never below 0. */
static int64_t entry_wall_us(int64_t at_us, struct blacklist_moment moment)
{
    return entry_clamp(moment.wall_us - (moment.now_us - at_us), 0, TIME_NEVER - 1);
}

/* Converts a time of day from a record to the monotonic clock. If the clock was set back, the
 * time may lie in the future: then it counts as now. */
static int64_t entry_from_wall_us(int64_t at_wall_us, struct blacklist_moment moment)
{
    return moment.now_us - entry_clamp(moment.wall_us - at_wall_us, 0, LIMIT_DURATION_US);
}

/* Fills in the record of the entry that is stored. A record outlives the driver, so its times are
 * wall-clock times. */
static void entry_export(const struct blacklist_entry *entry, struct blacklist_moment moment,
                         struct blacklist_record *ret_record)
{
    *ret_record = (struct blacklist_record){
        .slot = entry->slot,
        .failures = entry->failures,
        .since_wall_us = entry_wall_us(entry->since_us, moment),
        .until_wall_us =
            entry->until_us == TIME_NEVER ? TIME_NEVER : entry_wall_us(entry->until_us, moment),
        .restarts = entry->restarts,
        .incarnations = entry->incarnations,
    };
    for (uint32_t i = 0; i < entry->restarts.count; i++)
        ret_record->restarts.item[i] = entry_wall_us(entry->restarts.item[i], moment);
    memcpy(ret_record->host, entry->host, strlen(entry->host) + 1);
    memcpy(ret_record->reason, entry->reason, sizeof(entry->reason));
}

/* Begins an empty blacklist. `trace` gets a line for each change; NULL: no line is written. */
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

/* Returns the index of the entry of this host or slot, or the index at which such an entry is to be
 * inserted. The entries are sorted by host, then by slot. */
static size_t blacklist_place(const struct blacklist *blacklist, const char *host, uint32_t slot)
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

/* Returns the entry of this host (slot BLACKLIST_WHOLE_HOST) or slot; NULL: there is none. */
static struct blacklist_entry *blacklist_find(const struct blacklist *blacklist, const char *host,
                                              uint32_t slot)
{
    size_t place = blacklist_place(blacklist, host, slot);
    struct blacklist_entry *entry;

    if (place == blacklist->entries.count)
        return NULL;
    entry = blacklist->entries.items[place];
    return entry->slot == slot && !strcmp(entry->host, host) ? entry : NULL;
}

/* Inserts an entry without failures. *ret_evicted: the entry that was removed to make room, which
 * the caller frees; NULL: none. HVD_E_LIMIT: the blacklist is full, and each entry has
 * failures that count, or a cooldown that is not over. */
static int blacklist_add(struct blacklist *blacklist, const char *host, uint32_t slot,
                         int64_t now_us, struct blacklist_entry **ret_entry,
                         struct blacklist_entry **ret_evicted, struct hvd_err *err)
{
    size_t host_bytes = strlen(host) + 1;
    struct blacklist_entry *entry = mem_zalloc(sizeof(*entry) + host_bytes);
    struct blacklist_entry **items = blacklist->entries.items;
    size_t place;
    int rc = 0;

    *ret_evicted = NULL;
    if (!entry) {
        rc = HVD_E_NOMEM;
    } else if (blacklist->entries.count >= blacklist->max) {
        /* Removes the oldest entry that is OK and has no unforgiven failure. */
        place = blacklist->entries.count;
        for (size_t i = 0; i < blacklist->entries.count; i++) {
            if (items[i]->failures == 0 && items[i]->until_us <= now_us &&
                (place == blacklist->entries.count || items[i]->since_us < items[place]->since_us))
                place = i;
        }
        if (place == blacklist->entries.count) {
            rc = HVD_E_LIMIT;
        } else {
            *ret_evicted = items[place];
            blacklist->entries.count--;
            for (size_t i = place; i < blacklist->entries.count; i++)
                items[i] = items[i + 1];
        }
    } else {
        rc = VEC_RESERVE(&blacklist->entries, 1, blacklist->max);
    }
    if (rc) {
        if (rc == HVD_E_LIMIT)
            err_set(err, rc,
                    "the blacklist is full with %zu hosts and slots; clear some of them with "
                    "hvd-elastic blacklist clear",
                    blacklist->entries.count);
        else
            err_set(err, rc, "no memory for an entry of the blacklist; free memory on this host");
        mem_free(entry);
        return rc;
    }
    memcpy(entry->host, host, host_bytes);
    entry->slot = slot;
    entry_clear(entry, now_us);
    place = blacklist_place(blacklist, host, slot);
    items = blacklist->entries.items;
    for (size_t i = blacklist->entries.count; i > place; i--)
        items[i] = items[i - 1];
    items[place] = entry;
    blacklist->entries.count++;
    *ret_entry = entry;
    return 0;
}

/* Writes a line about a change to the trace. The line shows the state after the change. */
static void blacklist_trace(const struct blacklist *blacklist, const struct blacklist_entry *entry,
                            enum trace_level level, enum facts_kind kind, const char *what,
                            int64_t now_us)
{
    char key[BLACKLIST_KEY_TEXT_MAX];
    char text[BLACKLIST_SENTENCE_MAX];
    struct blacklist_verdict verdict;
    struct facts facts = { .kind = kind,
                           .host = entry->host,
                           .has_slot = entry->slot != BLACKLIST_WHOLE_HOST,
                           .slot = entry->slot };

    if (!blacklist->trace)
        return;
    verdict = blacklist_verdict(blacklist, entry->host, entry->slot, now_us);
    facts.cause = verdict.reason;
    if (verdict.state == BLACKLIST_COOLING)
        facts.left_us = verdict.until_us - now_us;
    /* The line that was logged before this one says why the worker failed. */
    if (level == TRACE_WARNING)
        verdict.reason = "";
    trace_say(blacklist->trace, now_us, level, &facts, "blacklist: %s %s: %s",
              blacklist_key_format(entry->host, entry->slot, key), what,
              blacklist_sentence(&verdict, now_us, text));
}

/* A cooldown of this entry may have begun: earliest_us becomes its end, if that is earlier. Until
 * earliest_us no cooldown ends, so blacklist_deadline need not search the entries before. */
static void blacklist_note_cooldown(struct blacklist *blacklist, struct blacklist_entry *entry,
                                    int64_t now_us)
{
    entry->cooling = entry->until_us > now_us && entry->until_us != TIME_NEVER;
    if (entry->until_us < blacklist->earliest_us)
        blacklist->earliest_us = entry->until_us;
}

/* Charges the failure to the entry, and fills in the record and the line of the history that are to
 * be stored. During a cooldown the failure does not count: it goes to the history only. */
static void blacklist_charge(struct blacklist *blacklist, struct blacklist_entry *entry,
                             const struct blacklist_failure *failure,
                             struct blacklist_moment moment, struct rng *rng,
                             struct blacklist_change *ret_change)
{
    const struct policy *policy = &blacklist->policy;
    struct blacklist_event *event = &ret_change->event;
    int64_t now_us = moment.now_us;
    struct blacklist_verdict verdict =
        blacklist_verdict(blacklist, entry->host, entry->slot, now_us);
    uint32_t before;
    char text[LIMIT_REASON_BYTES + 32];

    /* A worker that fails during a cooldown has probably failed for the same cause. Its failure
     * goes to the history only, and does not count. */
    *ret_change = (struct blacklist_change){
        .event = {.slot = entry->slot,
                  .incarnation = failure->incarnation,
                  .wall_us = entry_wall_us(now_us, moment),
                  .counted = verdict.state == BLACKLIST_OK},
    };
    memcpy(event->host, entry->host, strlen(entry->host) + 1);
    blacklist_reason_set(event->reason, failure->reason);
    /* The failure is charged to the host, so the reason names the slot for the operator. */
    if (entry->slot != failure->slot) {
        snprintf(text, sizeof(text), "slot %u: %s", failure->slot, event->reason);
        blacklist_reason_set(event->reason, text);
    }
    if (failure->incarnation)
        numbers_add(&entry->incarnations, (int64_t)failure->incarnation);
    if (event->counted) {
        ASSERT(entry->until_us <= now_us);
        if (entry->failures < UINT32_MAX)
            entry->failures++;
        entry->since_us = now_us;
        entry->settled_us = now_us;
        entry->healthy_us = 0;
        /* `before`: how many failures are in the time window of --slot-restarts without this one,
         * also those that are forgiven. */
        before = numbers_count_from(&entry->restarts, now_us - policy->restarts_window_us);
        numbers_add(&entry->restarts, now_us);
        memcpy(entry->reason, event->reason, strlen(event->reason) + 1);
        /* The entry is barred because of --blacklist-forever, or because of more failures in its
         * time window than --slot-restarts allows. Only an operator's clear ends the bar:
         * docs/stories.md, `banned_for_ever_is_over`. */
        if (policy->forever || (policy->restarts_max > 0 && before >= policy->restarts_max))
            entry->until_us = TIME_NEVER;
        else
            entry->until_us =
                now_us + policy_cooldown_us(policy, entry->failures, policy_jitter_us(policy, rng));
    }
    blacklist_note_cooldown(blacklist, entry, now_us);
    entry_export(entry, moment, &ret_change->record);
    blacklist_trace(blacklist, entry, TRACE_WARNING, KIND_FAILURE_COUNTED,
                    event->counted ? "failed" : "failed too", now_us);
}

/* Records a failure. A repeated report of an incarnation changes nothing (ret_change->none).
 * `evicted` in the change: another entry was dropped to make room; its record may be removed. */
int blacklist_failure(struct blacklist *blacklist, const struct blacklist_failure *failure,
                      struct blacklist_moment moment, struct rng *rng,
                      struct blacklist_change *ret_change, struct hvd_err *err)
{
    /* With SCOPE_HOST the failure of a slot is charged to its whole host (stories
     * one_worker_fails_host_scope, host_scope_ends_the_others_on_the_host). */
    uint32_t charged = blacklist->policy.scope == SCOPE_HOST ? BLACKLIST_WHOLE_HOST : failure->slot;
    struct blacklist_entry *evicted = NULL;
    struct blacklist_entry *entry;
    int rc = blacklist_key_check(failure->host, failure->slot, err);

    if (rc)
        return rc;
    if (failure->incarnation > INT64_MAX)
        return err_set(err, HVD_E_INVAL,
                       "a failure of host %s: incarnation %" PRIu64
                       " is too large, and the largest is %" PRId64
                       "; this is a bug of hvd-elastic, so please report it",
                       failure->host, failure->incarnation, INT64_MAX);
    entry = blacklist_find(blacklist, failure->host, charged);
    /* A repeated report of the same incarnation counts once. */
    if (entry && failure->incarnation &&
        numbers_had(&entry->incarnations, (int64_t)failure->incarnation)) {
        *ret_change = (struct blacklist_change){ .none = true };
        return 0;
    }
    if (!entry)
        rc = blacklist_add(blacklist, failure->host, charged, moment.now_us, &entry, &evicted, err);
    if (rc)
        return rc;
    blacklist_charge(blacklist, entry, failure, moment, rng, ret_change);
    if (evicted) {
        ret_change->evicted = true;
        ret_change->evicted_slot = evicted->slot;
        memcpy(ret_change->evicted_host, evicted->host, strlen(evicted->host) + 1);
        blacklist_trace(blacklist, evicted, TRACE_INFO, KIND_FAILURE_FORGOTTEN,
                        "forgotten to make room", moment.now_us);
        mem_free(evicted);
    }
    return 0;
}

/* A worker has run in this slot from since_us until now. For each decay_us of such time the slot
 * and its host are each forgiven one failure. Returns how many records of ret_changed were filled
 * in. */
size_t blacklist_healthy(struct blacklist *blacklist, const char *host, uint32_t slot,
                         int64_t since_us, struct blacklist_moment moment,
                         struct blacklist_record ret_changed[2])
{
    struct blacklist_entry *entries[2] = { blacklist_find(blacklist, host, slot), NULL };
    int64_t decay_us = blacklist->policy.decay_us;
    size_t changed = 0;

    if (slot != BLACKLIST_WHOLE_HOST)
        entries[1] = blacklist_find(blacklist, host, BLACKLIST_WHOLE_HOST);
    /* Running without a failure forgives failures of the slot and of its host (story
     * failures_are_forgiven). */
    for (size_t i = 0; i < ARRAY_SIZE(entries) && decay_us != TIME_NEVER; i++) {
        struct blacklist_entry *entry = entries[i];
        int64_t from_us, forgiven;

        /* Time before settled_us is left out: it was counted already, or a failure has made it
         * worthless. */
        if (!entry || since_us >= moment.now_us || entry->settled_us >= moment.now_us)
            continue;
        from_us = since_us > entry->settled_us ? since_us : entry->settled_us;
        entry->healthy_us += moment.now_us - from_us;
        entry->settled_us = moment.now_us;
        forgiven = entry->healthy_us / decay_us;
        entry->healthy_us %= decay_us;
        if (forgiven > entry->failures)
            forgiven = entry->failures;
        entry->failures -= (uint32_t)forgiven;
        if (!forgiven)
            continue;
        entry_export(entry, moment, &ret_changed[changed++]);
        blacklist_trace(blacklist, entry, TRACE_DETAIL, KIND_FAILURE_FORGOTTEN, "healthy",
                        moment.now_us);
    }
    return changed;
}

/* An operator clears the entry of this host or slot: its failures are forgotten, and the slot may
 * be used at once. HVD_E_NOTFOUND: there is no such entry. */
int blacklist_clear(struct blacklist *blacklist, const char *host, uint32_t slot,
                    struct blacklist_moment moment, struct blacklist_change *ret_change,
                    struct hvd_err *err)
{
    struct blacklist_entry *entry = blacklist_find(blacklist, host, slot);
    char key[BLACKLIST_KEY_TEXT_MAX], quoted[TEXT_QUOTE_MAX];

    if (!entry) {
        blacklist_key_format(host, slot, key);
        return err_set(err, HVD_E_NOTFOUND,
                       "%s: this %s is not on the blacklist; run 'hvd-elastic blacklist' to list "
                       "those that are",
                       text_quote(key, strlen(key), quoted),
                       slot == BLACKLIST_WHOLE_HOST ? "host" : "slot");
    }
    /* If this entry's cooldown was the first to end, the next blacklist_deadline must search all
     * entries. */
    if (entry->until_us == blacklist->earliest_us)
        blacklist->earliest_us = moment.now_us;
    /* A clear is also a line of the history, so that the file says when the failures were
     * forgiven. */
    entry_clear(entry, moment.now_us);
    *ret_change = (struct blacklist_change){
        .event = {.slot = slot, .wall_us = entry_wall_us(moment.now_us, moment)},
    };
    memcpy(ret_change->event.host, entry->host, strlen(entry->host) + 1);
    blacklist_reason_set(ret_change->event.reason, "cleared by the operator");
    entry_export(entry, moment, &ret_change->record);
    blacklist_trace(blacklist, entry, TRACE_INFO, KIND_FAILURE_FORGOTTEN, "cleared", moment.now_us);
    return 0;
}

/* Adds the entry of a stored record when the driver starts; its times become monotonic. An evicted
 * entry is freed without a trace: more records than fit were stored. */
int blacklist_load(struct blacklist *blacklist, const struct blacklist_record *record,
                   struct blacklist_moment moment, struct hvd_err *err)
{
    char key[BLACKLIST_KEY_TEXT_MAX];
    struct blacklist_entry *evicted = NULL;
    struct blacklist_entry *entry = NULL;
    int64_t left_us;
    int rc = blacklist_record_check(record, err);

    if (rc)
        return rc;
    if (blacklist_find(blacklist, record->host, record->slot))
        return err_set(err, HVD_E_EXISTS,
                       "%s: the blacklist has two records of this host or slot; remove one "
                       "of them from the store of the job",
                       blacklist_key_format(record->host, record->slot, key));
    rc = blacklist_add(blacklist, record->host, record->slot, moment.now_us, &entry, &evicted, err);
    if (rc)
        return rc;
    mem_free(evicted);
    entry->failures = record->failures;
    entry->since_us = entry_from_wall_us(record->since_wall_us, moment);
    /* The cooldown lasts at most upper_us from now, even if the wall clock was changed. */
    left_us = entry_clamp(record->until_wall_us - moment.wall_us, 0, blacklist->policy.upper_us);
    entry->until_us = record->until_wall_us == TIME_NEVER ? TIME_NEVER : moment.now_us + left_us;
    entry->restarts = record->restarts;
    for (uint32_t i = 0; i < entry->restarts.count; i++)
        entry->restarts.item[i] = entry_from_wall_us(record->restarts.item[i], moment);
    entry->incarnations = record->incarnations;
    memcpy(entry->reason, record->reason, sizeof(entry->reason));
    blacklist_note_cooldown(blacklist, entry, moment.now_us);
    blacklist_trace(blacklist, entry, TRACE_DETAIL, KIND_FAILURE_REMEMBERED, "loaded",
                    moment.now_us);
    return 0;
}

/* Returns the number of entries; blacklist_record_at takes the indices below it. */
size_t blacklist_count(const struct blacklist *blacklist)
{
    return blacklist->entries.count;
}

/* Fills in the record of the entry with this index, as it would be stored now. */
void blacklist_record_at(const struct blacklist *blacklist, size_t index,
                         struct blacklist_moment moment, struct blacklist_record *ret_record)
{
    ASSERT(index < blacklist->entries.count);
    entry_export(blacklist->entries.items[index], moment, ret_record);
}

/* Says whether a worker may be launched in the slot now: OK, COOLING until until_us, or BARRED
 * until an operator clears it. `by_host`: the entry of the whole host decides. */
struct blacklist_verdict blacklist_verdict(const struct blacklist *blacklist, const char *host,
                                           uint32_t slot, int64_t now_us)
{
    const struct blacklist_entry *entry = blacklist_find(blacklist, host, slot);
    const struct blacklist_entry *of_host = blacklist_find(blacklist, host, BLACKLIST_WHOLE_HOST);
    struct blacklist_verdict verdict = { .state = BLACKLIST_OK, .reason = "" };

    /* The slot's own entry decides, unless the entry of its host blocks the slot for longer. */
    if (of_host && (!entry || (of_host->until_us > now_us && of_host->until_us >= entry->until_us)))
        entry = of_host;
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

/* Returns when the next cooldown ends; TIME_NEVER: no entry cools. `earliest_us` keeps the
 * answer. */
int64_t blacklist_deadline(struct blacklist *blacklist, int64_t now_us)
{
    /* The kept answer is right until its time has passed: a new failure replaces it if the new
     * cooldown ends earlier. */
    if (blacklist->earliest_us > now_us)
        return blacklist->earliest_us;
    blacklist->earliest_us = TIME_NEVER;
    for (size_t i = 0; i < blacklist->entries.count; i++) {
        int64_t until_us = blacklist->entries.items[i]->until_us;

        if (until_us > now_us && until_us < blacklist->earliest_us)
            blacklist->earliest_us = until_us;
    }
    return blacklist->earliest_us;
}

/* Returns the host of the next entry whose cooldown has ended, and of which no call has told
 * before. NULL: there is none. */
const char *blacklist_next_cooled(struct blacklist *blacklist, int64_t now_us, size_t *index,
                                  uint32_t *ret_slot)
{
    /* No cooldown has ended since blacklist_deadline has searched the entries. */
    if (blacklist->earliest_us > now_us)
        return NULL;
    while (*index < blacklist->entries.count) {
        struct blacklist_entry *entry = blacklist->entries.items[(*index)++];

        if (!entry->cooling || entry->until_us > now_us)
            continue;
        entry->cooling = false;
        *ret_slot = entry->slot;
        return entry->host;
    }
    return NULL;
}

/* Writes the verdict as text for an operator, such as "cooling for 8.5s more after 2 failures: exit
 * code 1". Returns `text`. */
const char *blacklist_sentence(const struct blacklist_verdict *verdict, int64_t now_us,
                               char text[BLACKLIST_SENTENCE_MAX])
{
    /* the index is an enum blacklist_state */
    static const char *const states[] = { "ok", "cooling for ", "barred until cleared" };
    char left[TIME_TEXT_MAX] = "";
    char failures[32] = "";
    int64_t left_us = verdict->until_us - now_us;
    /* The reason of a failure that is forgiven is not shown. */
    bool forgiven = verdict->state == BLACKLIST_OK && !verdict->failures;
    const char *reason = forgiven ? "" : verdict->reason;

    /* The remaining time is rounded up to tenths of a second. */
    if (verdict->state == BLACKLIST_COOLING)
        time_format((left_us + TIME_S / 10 - 1) / (TIME_S / 10) * (TIME_S / 10), left);
    if (verdict->failures > 0)
        snprintf(failures, sizeof(failures), " after %u failure%s", verdict->failures,
                 verdict->failures > 1 ? "s" : "");
    snprintf(text, BLACKLIST_SENTENCE_MAX, "%s%s%s%s%s%s%s", verdict->by_host ? "host " : "",
             states[verdict->state], left, left[0] ? " more" : "", failures, reason[0] ? ": " : "",
             reason);
    return text;
}
