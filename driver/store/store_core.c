/*
 * store_core.c: replays a store into a core, for the driver at its start (driver/io/loop.c), for
 * the compaction of the journal, and for the view of a job without a driver (driver/orphan.c). It
 * is apart from store.c, because other programs read a store and have no core.
 */
#include "driver/store/store_core.h"

#include "os/clock.h"

struct replaying {
    struct core *core;
    uint64_t *records; /* the caller's count of records that were read */
};

/* The core sets no text for a lack of memory. */
static int store_say_memory(int rc, struct hvd_err *err)
{
    if (rc == HVD_E_NOMEM)
        err_set(err, rc, "no memory for the state of the job; free memory on this host");
    return rc;
}

/* Called for each record of the journal: counts it and gives it to the core. */
static int store_give_record(void *arg, const struct journal_record *record, struct hvd_err *err)
{
    struct replaying *replaying = arg;

    ++*replaying->records;
    return store_say_memory(core_replay(replaying->core, record, err), err);
}

/* Gives each record of the journal to the core, before its start. *ret_records counts the records,
 * also if a record fails. */
int store_replay_core(struct store *store, struct core *core, uint64_t *ret_records,
                      struct hvd_err *err)
{
    struct replaying replaying = { core, ret_records };

    *ret_records = 0;
    return store_replay(store, store_give_record, &replaying, err);
}

/* Called for each record of the blacklist: gives it to the core (`arg`), with the present time for
 * its cooldown. */
static int store_give_entry(void *arg, const struct blacklist_record *record, struct hvd_err *err)
{
    return store_say_memory(
        core_replay_blacklist(arg, record, clock_now_us(), clock_wall_us(), err), err);
}

/* Gives each record of the blacklist to the core, before its start. */
int store_blacklist_core(struct store *store, struct core *core, struct hvd_err *err)
{
    return store_blacklist(store, store_give_entry, core, err);
}
