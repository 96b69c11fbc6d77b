/*
 * compact.c: writes the state of a core that has replayed its journal as a shorter journal.
 * driver/journal/compact.c calls it, and the simulated world does. Invariant: a successor that
 * reads the shorter journal knows all that any agent or worker may have been told: numbers that
 * were given out, live workers, the current round and the one that it replaced, keys, drains,
 * failures, and the commit behind which no round may go.
 */
#include "driver/core/compact.h"

#include "driver/core/goodput.h"
#include "driver/core/notice.h"
#include "driver/core/reported.h"
#include "driver/core/roster.h"
#include "driver/core/values.h"

#include <string.h>

struct compact {
    const struct core *core;
    struct arena *memory; /* for texts of records; it lives until the caller has used the records */
    compact_record_fn *each;
    void *arg;
    /* the first error of `each`, or HVD_E_NOMEM; 0: none yet. After an error no record is
     * written */
    int rc;
};

/* Gives one record to the caller of core_compact, with the term of the job. After an error nothing
 * is given any more. */
static void compact_put(struct compact *out, struct journal_record record)
{
    record.term = out->core->term;
    record.host = record.host ? record.host : "";
    record.text = record.text ? record.text : "";
    if (!out->rc)
        out->rc = out->each(out->arg, &record);
}

/* Writes the live workers in the order of their incarnations. A BASE before each gap says that the
 * workers between have ended. */
static void compact_workers(struct compact *out)
{
    const struct core *core = out->core;
    const struct worker *worker;
    uint64_t known = 0;

    for (size_t i = 0; (worker = roster_next(core, &i)); known = worker->incarnation) {
        if (worker->incarnation > known + 1)
            compact_put(out, (struct journal_record){ .kind = JOURNAL_BASE,
                                                      .incarnation = worker->incarnation - 1 });
        compact_put(out, (struct journal_record){ .kind = JOURNAL_LAUNCH,
                                                  .incarnation = worker->incarnation,
                                                  .host = worker->host->name,
                                                  .slot = worker->slot,
                                                  .wall_us = worker->launched_us });
        if (worker->joined)
            compact_put(out, (struct journal_record){ .kind = JOURNAL_READY,
                                                      .incarnation = worker->incarnation,
                                                      .manifest = core->manifest.digest,
                                                      .addresses = worker->addresses });
    }
    if (core->roster.incarnations > known)
        compact_put(out, (struct journal_record){ .kind = JOURNAL_BASE,
                                                  .incarnation = core->roster.incarnations });
}

/* Returns a STUCK record (failures without progress) with the counts of the whole job; compact_host
 * adds the count of a slot. */
static struct journal_record compact_stuck(const struct core_progress *progress)
{
    return (struct journal_record){ .kind = JOURNAL_STUCK,
                                    .code = (int32_t)progress->failures,
                                    .round = progress->counted_round,
                                    .commit = progress->commit,
                                    .check = progress->checksum,
                                    .incarnation = progress->counted_launched };
}

/* Writes the drain of this host, and the drains and failures of its slots. Failures of a
 * slot are left out if they are older than those that the job counts now (since
 * progress->commit). */
static void compact_host(struct compact *out, const struct core_host *host)
{
    const struct core_progress *progress = &out->core->progress;

    if (host->draining)
        compact_put(out, (struct journal_record){ .kind = JOURNAL_DRAIN,
                                                  .host = host->name,
                                                  .slot = EVENT_WHOLE_HOST,
                                                  .code = !host->notice.given ? DRAIN_BY_OPERATOR
                                                          : host->notice.open ? DRAIN_BY_MACHINE
                                                                              : DRAIN_COUNTED,
                                                  .wall_us = host->drain_us });
    for (uint32_t k = 0; k < host->slot_count; k++)
        if (host->slots[k].draining)
            compact_put(out, (struct journal_record){ .kind = JOURNAL_DRAIN,
                                                      .host = host->name,
                                                      .slot = k,
                                                      .wall_us = host->slots[k].drain_us });
    for (uint32_t k = 0; k < host->slot_count; k++) {
        const struct core_slot *slot = &host->slots[k];
        struct journal_record stuck = compact_stuck(progress);

        stuck.host = host->name;
        stuck.slot = k;
        stuck.value = (int32_t)slot->stuck;
        if (slot->stuck && slot->stuck_since == progress->commit)
            compact_put(out, stuck);
    }
}

/* Writes the ROUND record of this round. `cause` is that of the round, but for a round whose
 * predecessor is left out: see core_compact. */
static void compact_round(struct compact *out, const struct round *round, enum msg_cause cause)
{
    compact_put(out, (struct journal_record){
                         .kind = JOURNAL_ROUND,
                         .round = round->number,
                         .previous = round->previous,
                         .commit = round->commit,
                         .check = round->check,
                         .cause = (uint32_t)cause,
                         .members = {round->members.items,  round->members.count},
                         .holders = { round->holders.items, round->holders.count},
    });
}

/* Writes a STORE record: `record` with `value` in hexadecimal digits, which lie in out->memory. */
static void compact_value(struct compact *out, struct journal_record record, const void *value,
                          size_t length)
{
    char *digits = arena_alloc(out->memory, 2 * length + LIMIT_ADDRESSES);
    const char **items = arena_alloc_array(out->memory, LIMIT_ADDRESSES, sizeof(*items));

    if (digits && items) {
        record.kind = JOURNAL_STORE;
        record.addresses = values_digits((struct msg_bytes){ value, length }, digits, items);
        compact_put(out, record);
    } else if (!out->rc) {
        out->rc = HVD_E_NOMEM;
    }
}

/* Writes the values that workers have stored and that can still be read, and for each live worker
 * the number and the answer of its last change: a repeated call is known by them. */
static void compact_values(struct compact *out)
{
    const struct core *core = out->core;
    const struct value_entry *entry;
    const struct worker *worker;

    VEC_EACH (entry, &core->roster.values.table.entries)
        if (values_stand(core, entry->round))
            compact_value(out,
                          (struct journal_record){
                              .round = entry->round, .text = entry->key, .code = VALUE_SET },
                          entry->value, entry->length);
    for (size_t i = 0; (worker = roster_next(core, &i));)
        if (worker->values.number)
            compact_value(out,
                          (struct journal_record){ .incarnation = worker->incarnation,
                                                   .check = worker->values.number,
                                                   .code = VALUE_NUMBER },
                          worker->values.sum, strlen(worker->values.sum));
}

/* Completes and writes `record`: a host has used the token, or the token is revoked. The record
 * names the token by its id, the first word of token->text, without its key. */
static void compact_token_use(struct compact *out, const struct core_token *token,
                              struct journal_record record)
{
    size_t length = strcspn(token->text, " ");
    char *id = arena_alloc(out->memory, length + 1);

    if (id) {
        memcpy(id, token->text, length);
        record.kind = JOURNAL_TOKEN;
        record.text = id;
        compact_put(out, record);
    } else if (!out->rc) {
        out->rc = HVD_E_NOMEM;
    }
}

/* Writes the tokens with which hosts may join, and which hosts have used them. */
static void compact_tokens(struct compact *out)
{
    const struct core_token *token;

    VEC_EACH (token, &out->core->listing.joins.tokens) {
        compact_put(out, (struct journal_record){ .kind = JOURNAL_TOKEN,
                                                  .code = TOKEN_MADE,
                                                  .text = token->text,
                                                  .host = token->host,
                                                  .value = (int32_t)token->uses,
                                                  .wall_us = token->until_wall_us });
        for (size_t i = 0; i < token->used.count; i++)
            compact_token_use(out, token,
                              (struct journal_record){ .code = TOKEN_USED,
                                                       .host = token->used.items[i].host,
                                                       .check = token->used.items[i].number });
        if (token->revoked)
            compact_token_use(out, token, (struct journal_record){ .code = TOKEN_REVOKED });
    }
}

/* Writes what is only shown. The GOODPUT records: for what the time of the job was used, and how
 * often the workers of each host have failed. The REPORTED records: the values over time of each
 * name that the program has reported. */
static void compact_shown(struct compact *out)
{
    const struct core_reported *reported = &out->core->rounds.reported;

    for (enum goodput_use use = 0; use < GOODPUT_COUNT; use++) {
        struct journal_record record = { .kind = JOURNAL_GOODPUT };

        if (goodput_record(out->core, use, &record))
            compact_put(out, record);
    }
    for (size_t i = 0;; i++) {
        struct journal_record record = { .kind = JOURNAL_GOODPUT };

        if (!goodput_host_record(out->core, i, &record))
            break;
        compact_put(out, record);
    }
    for (size_t i = 0; i < reported->count; i++) {
        struct journal_record record = { .kind = JOURNAL_REPORTED };

        if (reported_whole_record(reported->items[i], out->memory, &record))
            compact_put(out, record);
        else if (!out->rc)
            out->rc = HVD_E_NOMEM;
    }
}

/* Calls `each` for the records of a shorter journal, in an order in which core_replay takes them.
 * HVD_DONE: nothing was written, because at this moment only the whole journal tells what is under
 * way. */
int core_compact(const struct core *core, struct arena *memory, compact_record_fn *each, void *arg)
{
    struct compact out = { .core = core, .memory = memory, .each = each, .arg = arg };
    const struct round *first = core->last.number ? &core->last : &core->current;

    /* `due`: the records of core_compact can tell everything: the job has trained, does not end,
     * and all failures were judged. In a job that trains this is false rarely and briefly. */
    bool due = core->launch.anyone_joined && core->current.number && !core->over.closed &&
               !*core->over.exit_text && !core->progress.pending;

    ASSERT(core->job == JOB_NEW);
    for (size_t i = 0; i < core->roster.hosts.count; i++)
        for (uint32_t k = 0; k < core->roster.hosts.items[i]->slot_count; k++)
            due &= !core->roster.hosts.items[i]->slots[k].failed_as_member &&
                   !core->roster.hosts.items[i]->slots[k].starts.failed;
    if (!due)
        return HVD_DONE;
    compact_put(&out, (struct journal_record){ .kind = JOURNAL_TERM });
    compact_put(&out, (struct journal_record){ .kind = JOURNAL_BASE,
                                               .round = core->rounds.told,
                                               .previous = first->previous,
                                               .manifest = core->manifest.digest,
                                               .code = core->manifest.known });
    compact_workers(&out);
    /* One STUCK for the whole job, then for each host the drains and the failures of its slots. */
    compact_put(&out, compact_stuck(&core->progress));
    for (size_t i = 0; i < core->roster.hosts.count; i++) {
        compact_host(&out, core->roster.hosts.items[i]);
    }
    if (core->costs.notices.ended) {
        struct journal_record notices = { .kind = JOURNAL_NOTICE };

        notice_record(core, &notices);
        compact_put(&out, notices);
    }
    /* Writes the keys of hosts in the order of their versions, as they were given out. `done`: the
     * last version that was written. */
    for (uint32_t done = 0, version = 0; version < UINT32_MAX; done = version) {
        struct journal_record key = { .kind = JOURNAL_KEY, .code = HOST_KEY_MORE };

        version = UINT32_MAX;
        for (size_t i = 0; i < core->roster.hosts.count; i++) {
            const struct core_host *host = core->roster.hosts.items[i];
            uint32_t of_host = host->key.old > done ? host->key.old : host->key.version;

            if (of_host > done && of_host < version) {
                key.host = host->name;
                key.value = (int32_t)(version = of_host);
            }
        }
        if (key.host)
            compact_put(&out, key);
    }
    /* The record of a switch needs the round before it, and that round's predecessor is not in this
     * journal. So the round before the current one is written as a recovery: only its members
     * matter, as workers that have to leave. */
    if (first != &core->current)
        compact_round(&out, first, first->cause == CAUSE_SWITCH ? CAUSE_RECOVERY : first->cause);
    compact_round(&out, &core->current, core->current.cause);
    compact_values(&out);
    compact_tokens(&out);
    compact_shown(&out);
    compact_put(&out, (struct journal_record){ .kind = JOURNAL_BASE,
                                               .commit = core->rounds.resume_min_commit,
                                               .check = core->rounds.resets,
                                               .value = (int32_t)core->roster.keys.versions });
    return out.rc;
}
