/*
 * store.h: where the blacklist outlives the driver. An interface: SQLite is behind it in a program
 * (store/store_sqlite.h), memory in a test.
 */
#ifndef BLACKLIST_STORE_H
#define BLACKLIST_STORE_H

#include "blacklist/record.h"

/* Borrows what it is shown. Anything but 0 ends the visit, and is what the visit returns. */
typedef int blacklist_record_fn(void *arg, const struct blacklist_record *record);
typedef int blacklist_event_fn(void *arg, const struct blacklist_event *event);

struct blacklist_store {
    const struct blacklist_store_ops *ops;
};

struct blacklist_store_ops {
    int (*load)(struct blacklist_store *store, blacklist_record_fn *each, void *arg,
                struct hvd_err *err);
    int (*put)(struct blacklist_store *store, const struct blacklist_record *record,
               const struct blacklist_event *event, struct hvd_err *err);
    int (*clear)(struct blacklist_store *store, const char *host, uint32_t slot,
                 struct hvd_err *err);
    int (*history)(struct blacklist_store *store, const char *host, blacklist_event_fn *each,
                   void *arg, struct hvd_err *err);
    void (*close)(struct blacklist_store *store);
};

/* Shows every record, in no particular order. HVD_E_CORRUPT for one that cannot be: then none of
 * what was shown is to be used. */
static inline int blacklist_store_load(struct blacklist_store *store, blacklist_record_fn *each,
                                       void *arg, struct hvd_err *err)
{
    return store->ops->load(store, each, arg, err);
}

/*
 * Replaces the record of its host or slot and adds the event (may be NULL) to its history, both or
 * none. Durable when it returns 0; after a failure the store holds what it held before. The history
 * keeps the newest LIMIT_BLACKLIST_HISTORY_ROWS of each host or slot.
 */
static inline int blacklist_store_put(struct blacklist_store *store,
                                      const struct blacklist_record *record,
                                      const struct blacklist_event *event, struct hvd_err *err)
{
    return store->ops->put(store, record, event, err);
}

/* Forgets a host or slot with its history, durably; 0 also when it was not there. */
static inline int blacklist_store_clear(struct blacklist_store *store, const char *host,
                                        uint32_t slot, struct hvd_err *err)
{
    return store->ops->clear(store, host, slot, err);
}

/* Shows what has happened on the host and its slots, newest first. */
static inline int blacklist_store_history(struct blacklist_store *store, const char *host,
                                          blacklist_event_fn *each, void *arg, struct hvd_err *err)
{
    return store->ops->history(store, host, each, arg, err);
}

static inline void blacklist_store_close(struct blacklist_store *store)
{
    if (store)
        store->ops->close(store);
}

#endif
