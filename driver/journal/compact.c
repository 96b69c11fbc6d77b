/*
 * compact.c: replays the journal into a core of its own, and replaces the journal by what that core
 * needs. The scribe calls it on its thread, between two writes. Invariant: the store has the old
 * journal or the new one, never a part of both, because store_replace is one transaction.
 */
#include "driver/journal/compact.h"

#include "base/mem.h"
#include "base/vec.h"
#include "driver/core/compact.h"
#include "driver/store/store_core.h"

#define COMPACTED_MAX (8 * LIMIT_WORKERS) /* records: a few for each worker, slot and host */

struct compacting {
    struct core *core;
    /* texts of the records; the records also point into the core */
    struct arena memory;
    struct VEC(struct journal_record) records; /* kept until store_replace has written them */
};

/* Called by core_compact for each record of the new journal: keeps it for store_replace. */
static int compact_take(void *arg, const struct journal_record *record)
{
    struct compacting *compacting = arg;
    int rc = VEC_RESERVE(&compacting->records, 1, COMPACTED_MAX);

    if (!rc)
        compacting->records.items[compacting->records.count++] = *record;
    return rc;
}

/* Makes the journal in the store shorter: replays it into a core, asks that core for the records
 * that it needs, and writes these instead. HVD_DONE: nothing was changed, because the journal would
 * not become half as long, or because core_compact keeps a journal of this moment as it is. */
int journal_compact(struct store *store, const struct core_config *config, uint64_t *ret_records,
                    struct hvd_err *err)
{
    struct compacting compacting = { .core = core_create(config, NULL) };
    uint64_t read = 0;
    int rc = compacting.core ? 0 : HVD_E_NOMEM;

    arena_init(&compacting.memory, COMPACT_BYTES);
    if (!rc && (rc = store_replay_core(store, compacting.core, &read, err)))
        goto out; /* the store has set the text of the error */
    if (!rc)
        rc = core_compact(compacting.core, &compacting.memory, compact_take, &compacting);
    if (rc && rc != HVD_DONE)
        err_set(err, rc, "the journal cannot be compacted: %s; the driver tries again later",
                err_text(rc));
    if (!rc && compacting.records.count > read / 2)
        rc = HVD_DONE;
    if (!rc)
        rc = store_replace(store, compacting.records.items, compacting.records.count, err);
    if (!rc)
        *ret_records = compacting.records.count;
out:
    VEC_RELEASE(&compacting.records);
    arena_release(&compacting.memory);
    core_free(compacting.core);
    return rc;
}
