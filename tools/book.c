#include "tools/book.h"

#include "blacklist/store/store_sqlite.h"
#include "os/clock.h"

#include <string.h>

static int take_record(void *arg, const struct blacklist_record *record)
{
    struct book *book = arg;

    return blacklist_load(&book->list, record, book->now_us, book->wall_us, NULL);
}

int book_open(struct book *book, const char *path, const struct policy *policy, struct hvd_err *err)
{
    int rc;

    *book = (struct book){ .now_us = clock_now_us(), .wall_us = clock_wall_us() };
    rng_seed(&book->rng, (uint64_t)book->wall_us);
    blacklist_init(&book->list, policy, NULL);
    rc = store_sqlite_open(path, &db_options_usual, &book->store, err);
    if (!rc)
        rc = blacklist_store_load(book->store, take_record, book, err);
    if (rc)
        book_close(book);
    return rc;
}

void book_close(struct book *book)
{
    blacklist_store_close(book->store);
    blacklist_release(&book->list);
    book->store = NULL;
}

static int keep(struct book *book, const struct blacklist_change *change, struct hvd_err *err)
{
    int rc;

    if (change->none)
        return 0;
    rc = blacklist_store_put(book->store, &change->record, &change->event, err);
    if (!rc && change->evicted)
        rc = blacklist_store_clear(book->store, change->evicted_host, change->evicted_slot, err);
    return rc;
}

int book_fail(struct book *book, const char *host, uint32_t slot, const char *reason,
              struct hvd_err *err)
{
    struct blacklist_failure failure = { .host = host, .slot = slot, .reason = reason };
    struct blacklist_change change;
    int rc = blacklist_failure(&book->list, &failure, book->now_us, book->wall_us, &book->rng,
                               &change, err);

    return rc ? rc : keep(book, &change, err);
}

static int clear_one(struct book *book, const char *host, uint32_t slot, struct hvd_err *err)
{
    struct blacklist_change change;
    int rc = blacklist_clear(&book->list, host, slot, book->now_us, book->wall_us, &change, err);

    if (rc == HVD_E_NOTFOUND)
        return 0;
    return rc ? rc : keep(book, &change, err);
}

int book_clear(struct book *book, const char *host, uint32_t slot, struct hvd_err *err)
{
    int rc = 0;

    if (slot != BLACKLIST_WHOLE_HOST)
        return clear_one(book, host, slot, err);
    for (size_t i = 0; !rc && i < blacklist_count(&book->list); i++) {
        struct blacklist_record record;

        blacklist_record_at(&book->list, i, book->now_us, book->wall_us, &record);
        if (!strcmp(record.host, host))
            rc = clear_one(book, host, record.slot, err);
    }
    return rc;
}
