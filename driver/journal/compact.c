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
    struct arena memory;                       /* the records borrow from it and from the core */
    struct VEC(struct journal_record) records; /* kept until store_replace has written them */
};

static int compact_take(void *arg, const struct journal_record *record)
{
    struct compacting *own = arg;
    int rc = VEC_RESERVE(&own->records, 1, COMPACTED_MAX);

    if (!rc)
        own->records.items[own->records.count++] = *record;
    return rc;
}

int journal_compact(struct store *store, const struct core_config *config, uint64_t *ret_records,
                    struct hvd_err *err)
{
    struct compacting own = { .core = core_create(config, NULL) };
    uint64_t read = 0;
    int rc = own.core ? store_replay_core(store, own.core, &read, err) : HVD_E_NOMEM;

    arena_init(&own.memory, COMPACT_BYTES);
    if (!rc)
        rc = core_compact(own.core, &own.memory, compact_take, &own);
    if (rc && rc != HVD_DONE && !read)
        err_set(err, rc, "the journal cannot be compacted: %s; the driver tries again later",
                err_text(rc));
    if (!rc && own.records.count > read / 2)
        rc = HVD_DONE;
    if (!rc)
        rc = store_replace(store, own.records.items, own.records.count, err);
    if (!rc)
        *ret_records = own.records.count;
    VEC_RELEASE(&own.records);
    arena_release(&own.memory);
    core_free(own.core);
    return rc;
}
