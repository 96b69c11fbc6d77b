/*
 * compact.c: writes the state of a core that has replayed its journal as a shorter journal.
 * driver/journal/compact.c calls it, and the simulated world does. Invariant: a successor that
 * reads the shorter journal knows all that any agent or worker may have been told: numbers that
 * were given out, live workers, the current round and the one that it replaced, keys, drains,
 * failures, and the commit behind which no round may go.
 */
#include "driver/core/compact.h"

#include "driver/core/roster.h"

struct compact {
    const struct core *core;
    compact_record_fn *each;
    void *arg;
    int rc; /* of the first call that failed; after it nothing is written */
};

static void compact_put(struct compact *own, struct journal_record record)
{
    record.term = own->core->term;
    record.host = record.host ? record.host : "";
    record.text = "";
    if (!own->rc)
        own->rc = own->each(own->arg, &record);
}

/* Writes the live workers in the order of their incarnations. A BASE before each gap says that the
 * workers between have ended. */
static void compact_workers(struct compact *own)
{
    const struct core *core = own->core;
    const struct worker *worker;
    uint64_t known = 0;

    for (size_t i = 0; (worker = roster_next(core, &i)); known = worker->incarnation) {
        if (worker->incarnation > known + 1)
            compact_put(own, (struct journal_record){ .kind = JOURNAL_BASE,
                                                      .incarnation = worker->incarnation - 1 });
        compact_put(own, (struct journal_record){ .kind = JOURNAL_LAUNCH,
                                                  .incarnation = worker->incarnation,
                                                  .host = worker->host->name,
                                                  .slot = worker->slot,
                                                  .wall_us = worker->launched_us });
        if (worker->joined)
            compact_put(own, (struct journal_record){ .kind = JOURNAL_READY,
                                                      .incarnation = worker->incarnation,
                                                      .manifest = core->manifest.digest,
                                                      .addresses = worker->addresses });
    }
    if (core->roster.incarnations > known)
        compact_put(own, (struct journal_record){ .kind = JOURNAL_BASE,
                                                  .incarnation = core->roster.incarnations });
}

/* Writes the drains, and the failures since the newest commit that counts; those before it count no
 * more. */
static void compact_slots(struct compact *own)
{
    const struct core_progress *progress = &own->core->progress;
    struct journal_record stuck = { .kind = JOURNAL_STUCK,
                                    .code = (int32_t)progress->failures,
                                    .round = progress->counted_round,
                                    .commit = progress->commit,
                                    .check = progress->checksum,
                                    .incarnation = progress->counted_launched };
    struct journal_record drain = { .kind = JOURNAL_DRAIN };

    compact_put(own, stuck);
    for (size_t i = 0; i < own->core->roster.hosts.count; i++) {
        const struct core_host *host = own->core->roster.hosts.items[i];

        stuck.host = drain.host = host->name;
        drain.slot = EVENT_WHOLE_HOST;
        drain.code = host->noticed;
        drain.wall_us = host->drain_us;
        if (host->draining)
            compact_put(own, drain);
        drain.code = 0;
        for (uint32_t k = 0; k < host->slot_count; k++) {
            const struct core_slot *slot = &host->slots[k];

            stuck.slot = drain.slot = k;
            stuck.value = (int32_t)slot->stuck;
            drain.wall_us = slot->drain_us;
            if (slot->draining)
                compact_put(own, drain);
            if (slot->stuck && slot->stuck_since == progress->commit)
                compact_put(own, stuck);
        }
    }
}

static void compact_round(struct compact *own, const struct round *round, enum msg_cause cause)
{
    compact_put(own, (struct journal_record){
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

int core_compact(const struct core *core, compact_record_fn *each, void *arg)
{
    struct compact own = { .core = core, .each = each, .arg = arg };
    const struct round *first = core->last.number ? &core->last : &core->current;

    /* A moment at which only the whole journal tells what is under way is rare and short in a job
     * that trains. */
    bool due = core->launch.anyone_joined && core->current.number && !core->over.closed &&
               !*core->over.exit_text && !core->progress.pending;

    ASSERT(core->job == JOB_NEW);
    for (size_t i = 0; i < core->roster.hosts.count; i++)
        for (uint32_t k = 0; k < core->roster.hosts.items[i]->slot_count; k++)
            due &= !core->roster.hosts.items[i]->slots[k].failed_as_member &&
                   !core->roster.hosts.items[i]->slots[k].starts.failed;
    if (!due)
        return HVD_DONE;
    compact_put(&own, (struct journal_record){ .kind = JOURNAL_TERM });
    compact_put(&own, (struct journal_record){ .kind = JOURNAL_BASE,
                                               .round = core->rounds.told,
                                               .previous = first->previous,
                                               .manifest = core->manifest.digest,
                                               .code = core->manifest.known });
    compact_workers(&own);
    compact_slots(&own);
    /* The keys in the order of their epochs, as they were given out. */
    for (uint32_t done = 0, epoch = 0; epoch < UINT32_MAX; done = epoch) {
        struct journal_record key = { .kind = JOURNAL_KEY, .code = HOST_KEY_MORE };

        epoch = UINT32_MAX;
        for (size_t i = 0; i < core->roster.hosts.count; i++) {
            const struct core_host *host = core->roster.hosts.items[i];
            uint32_t of_host = host->key.old > done ? host->key.old : host->key.epoch;

            if (of_host > done && of_host < epoch) {
                key.host = host->name;
                key.value = (int32_t)(epoch = of_host);
            }
        }
        if (key.host)
            compact_put(&own, key);
    }
    /* A switch follows on a round, which is not in this journal: of the round before the current
     * one only the members matter, which have to leave. */
    if (first != &core->current)
        compact_round(&own, first, first->cause == CAUSE_SWITCH ? CAUSE_RECOVERY : first->cause);
    compact_round(&own, &core->current, core->current.cause);
    compact_put(&own, (struct journal_record){ .kind = JOURNAL_BASE,
                                               .commit = core->rounds.resume_min_commit,
                                               .check = core->rounds.resets,
                                               .value = (int32_t)core->roster.keys.epochs });
    return own.rc;
}
