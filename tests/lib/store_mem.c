#include "tests/lib/store_mem.h"

#include "base/panic.h"
#include "tests/lib/fault.h"

#include <string.h>

#define EVENTS_MAX 100000

static struct store_mem *mine(struct blacklist_store *store)
{
    return CONTAINER_OF(store, struct store_mem, store);
}

static int write_fails(struct hvd_err *err)
{
    if (!fault_now(FAULT_STORE))
        return 0;
    return fault_count(FAULT_STORE) % 2 ? err_set(err, HVD_E_FULL, "the store in memory is full")
                                        : err_set(err, HVD_E_IO, "the store in memory broke");
}

static bool is_of(const struct blacklist_event *event, const char *host, uint32_t slot)
{
    return event->slot == slot && !strcmp(event->host, host);
}

static size_t place_of(const struct store_mem *mem, const char *host, uint32_t slot)
{
    size_t i = 0;

    while (i < mem->records.count &&
           !(mem->records.items[i].slot == slot && !strcmp(mem->records.items[i].host, host)))
        i++;
    return i;
}

static void remove_event(struct store_mem *mem, size_t at)
{
    mem->events.count--;
    for (size_t i = at; i < mem->events.count; i++)
        mem->events.items[i] = mem->events.items[i + 1];
}

/* Keeps the newest `keep` events of the key. */
static void trim(struct store_mem *mem, const char *host, uint32_t slot, size_t keep)
{
    size_t seen = 0;

    for (size_t i = mem->events.count; i-- > 0;) {
        if (is_of(&mem->events.items[i], host, slot) && ++seen > keep)
            remove_event(mem, i);
    }
}

static int mem_load(struct blacklist_store *store, blacklist_record_fn *each, void *arg,
                    struct hvd_err *err)
{
    struct store_mem *mem = mine(store);

    (void)err;
    for (size_t i = 0; i < mem->records.count; i++) {
        int rc = each(arg, &mem->records.items[i]);

        if (rc)
            return rc;
    }
    return 0;
}

static int mem_put(struct blacklist_store *store, const struct blacklist_record *record,
                   const struct blacklist_event *event, struct hvd_err *err)
{
    struct store_mem *mem = mine(store);
    size_t place = place_of(mem, record->host, record->slot);
    int rc = write_fails(err);

    ASSERT(blacklist_record_check(record, NULL) == 0);
    ASSERT(!event || blacklist_event_check(event, NULL) == 0);
    if (rc)
        return rc;
    if (VEC_RESERVE(&mem->records, 1, EVENTS_MAX) || VEC_RESERVE(&mem->events, 1, EVENTS_MAX))
        return err_set(err, HVD_E_NOMEM, "the store in memory: %s", err_text(HVD_E_NOMEM));
    mem->records.items[place] = *record;
    if (place == mem->records.count)
        mem->records.count++;
    if (event) {
        mem->events.items[mem->events.count++] = *event;
        trim(mem, event->host, event->slot, LIMIT_BLACKLIST_HISTORY_ROWS);
    }
    mem->writes++;
    return 0;
}

static int mem_clear(struct blacklist_store *store, const char *host, uint32_t slot,
                     struct hvd_err *err)
{
    struct store_mem *mem = mine(store);
    size_t place = place_of(mem, host, slot);
    int rc = write_fails(err);

    if (rc)
        return rc;
    if (place < mem->records.count)
        mem->records.items[place] = mem->records.items[--mem->records.count];
    trim(mem, host, slot, 0);
    mem->writes++;
    return 0;
}

static int mem_history(struct blacklist_store *store, const char *host, blacklist_event_fn *each,
                       void *arg, struct hvd_err *err)
{
    struct store_mem *mem = mine(store);

    (void)err;
    for (size_t i = mem->events.count; i-- > 0;) {
        int rc = strcmp(mem->events.items[i].host, host) ? 0 : each(arg, &mem->events.items[i]);

        if (rc)
            return rc;
    }
    return 0;
}

static void mem_close(struct blacklist_store *store)
{
    (void)store;
}

void store_mem_init(struct store_mem *mem)
{
    static const struct blacklist_store_ops ops = { mem_load, mem_put, mem_clear, mem_history,
                                                    mem_close };

    *mem = (struct store_mem){ .store = { &ops } };
}

void store_mem_release(struct store_mem *mem)
{
    VEC_RELEASE(&mem->records);
    VEC_RELEASE(&mem->events);
}
