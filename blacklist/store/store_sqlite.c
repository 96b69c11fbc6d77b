#include "blacklist/store/store_sqlite.h"

#include "base/mem.h"
#include "base/panic.h"
#include "sqlite/row.h"

#include <stdio.h>
#include <string.h>

#define TEXT_OF(number)  #number
#define TEXT_OF2(number) TEXT_OF(number)

const char store_sqlite_step_1[] = "CREATE TABLE record("
                                   "  host TEXT NOT NULL,"
                                   "  slot INTEGER NOT NULL," /* -1: the whole host */
                                   "  failures INTEGER NOT NULL,"
                                   "  since_us INTEGER NOT NULL,"
                                   "  until_us INTEGER NOT NULL,"
                                   "  restarts TEXT NOT NULL," /* numbers.h */
                                   "  incarnations TEXT NOT NULL,"
                                   "  reason TEXT NOT NULL,"
                                   "  PRIMARY KEY(host, slot)"
                                   ") STRICT, WITHOUT ROWID;"
                                   "CREATE TABLE event("
                                   "  id INTEGER PRIMARY KEY," /* rises with time */
                                   "  host TEXT NOT NULL,"
                                   "  slot INTEGER NOT NULL,"
                                   "  incarnation INTEGER NOT NULL,"
                                   "  wall_us INTEGER NOT NULL,"
                                   "  counted INTEGER NOT NULL,"
                                   "  reason TEXT NOT NULL"
                                   ") STRICT;"
                                   "CREATE INDEX event_by_key ON event(host, slot, id)";

static const char *const steps[] = { store_sqlite_step_1 };

static const struct db_schema schema = { "blacklist", 'B', steps, ARRAY_SIZE(steps) };

enum statement {
    LOAD,
    PUT_RECORD,
    ADD_EVENT,
    TRIM_EVENTS,
    CLEAR_RECORD,
    CLEAR_EVENTS,
    HISTORY,
    STATEMENT_COUNT
};

static const char *const sql[STATEMENT_COUNT] = {
    [LOAD] = "SELECT host, slot, failures, since_us, until_us, restarts, incarnations, reason"
             " FROM record ORDER BY host, slot",
    [PUT_RECORD] = "INSERT OR REPLACE INTO record(host, slot, failures, since_us, until_us,"
                   " restarts, incarnations, reason) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
    [ADD_EVENT] = "INSERT INTO event(host, slot, incarnation, wall_us, counted, reason)"
                  " VALUES(?1, ?2, ?3, ?4, ?5, ?6)",
    [TRIM_EVENTS] = "DELETE FROM event WHERE host = ?1 AND slot = ?2 AND id <="
                    " (SELECT id FROM event WHERE host = ?1 AND slot = ?2"
                    "  ORDER BY id DESC LIMIT 1 OFFSET " TEXT_OF2(LIMIT_BLACKLIST_HISTORY_ROWS) ")",
    [CLEAR_RECORD] = "DELETE FROM record WHERE host = ?1 AND slot = ?2",
    [CLEAR_EVENTS] = "DELETE FROM event WHERE host = ?1 AND slot = ?2",
    [HISTORY] = "SELECT host, slot, incarnation, wall_us, counted, reason"
                " FROM event WHERE host = ?1 ORDER BY id DESC",
};

struct store_sqlite {
    struct blacklist_store store;
    struct db *db;
    bool attached; /* to a database of somebody else, whose transactions they are */
    struct db_stmt stmt[STATEMENT_COUNT];
};

static struct store_sqlite *mine(struct blacklist_store *store)
{
    return CONTAINER_OF(store, struct store_sqlite, store);
}

static int begin(struct store_sqlite *store, struct hvd_err *err)
{
    return store->attached ? 0 : db_begin(store->db, err);
}

/* Commits when all has gone well, and rolls back otherwise. */
static int end(struct store_sqlite *store, int rc, struct hvd_err *err)
{
    if (store->attached)
        return rc;
    if (!rc)
        rc = db_commit(store->db, err);
    if (rc)
        db_rollback(store->db);
    return rc;
}

static struct span span_of(const char *text)
{
    return (struct span){ text, strlen(text) };
}

/* Every statement has the key as its first parameters. */
static struct db_stmt *bind_key(struct store_sqlite *store, enum statement which, const char *host,
                                uint32_t slot)
{
    struct db_stmt *stmt = &store->stmt[which];

    db_bind_text(stmt, 1, span_of(host));
    db_bind_int(stmt, 2, slot == BLACKLIST_WHOLE_HOST ? -1 : (int64_t)slot);
    return stmt;
}

static int put_record(struct store_sqlite *store, const struct blacklist_record *record,
                      struct hvd_err *err)
{
    struct db_stmt *stmt = bind_key(store, PUT_RECORD, record->host, record->slot);
    char restarts[NUMBERS_TEXT_MAX];
    char incarnations[NUMBERS_TEXT_MAX];

    db_bind_int(stmt, 3, record->failures);
    db_bind_int(stmt, 4, record->since_wall_us);
    db_bind_int(stmt, 5, record->until_wall_us);
    db_bind_text(stmt, 6, span_of(numbers_format(&record->restarts, restarts)));
    db_bind_text(stmt, 7, span_of(numbers_format(&record->incarnations, incarnations)));
    db_bind_text(stmt, 8, span_of(record->reason));
    return db_run(stmt, err);
}

static int put_event(struct store_sqlite *store, const struct blacklist_event *event,
                     struct hvd_err *err)
{
    struct db_stmt *stmt = bind_key(store, ADD_EVENT, event->host, event->slot);
    int rc;

    db_bind_int(stmt, 3, (int64_t)event->incarnation);
    db_bind_int(stmt, 4, event->wall_us);
    db_bind_int(stmt, 5, event->counted);
    db_bind_text(stmt, 6, span_of(event->reason));
    rc = db_run(stmt, err);
    return rc ? rc : db_run(bind_key(store, TRIM_EVENTS, event->host, event->slot), err);
}

static int store_put(struct blacklist_store *base, const struct blacklist_record *record,
                     const struct blacklist_event *event, struct hvd_err *err)
{
    struct store_sqlite *store = mine(base);
    int rc;

    ASSERT(blacklist_record_check(record, NULL) == 0);
    ASSERT(!event || blacklist_event_check(event, NULL) == 0);
    rc = begin(store, err);
    if (!rc)
        rc = put_record(store, record, err);
    if (!rc && event)
        rc = put_event(store, event, err);
    return end(store, rc, err);
}

static int store_clear(struct blacklist_store *base, const char *host, uint32_t slot,
                       struct hvd_err *err)
{
    struct store_sqlite *store = mine(base);
    int rc = begin(store, err);

    if (!rc)
        rc = db_run(bind_key(store, CLEAR_RECORD, host, slot), err);
    if (!rc)
        rc = db_run(bind_key(store, CLEAR_EVENTS, host, slot), err);
    return end(store, rc, err);
}

static uint32_t row_slot(struct row *row, int column)
{
    int64_t slot = row_int(row, column, -1, LIMIT_SLOTS_PER_HOST - 1);

    return slot < 0 ? BLACKLIST_WHOLE_HOST : (uint32_t)slot;
}

static void row_numbers(struct row *row, int column, const char *what, struct numbers *ret_numbers)
{
    struct span text = row_span(row, column, NUMBERS_TEXT_MAX);
    struct hvd_err inner;

    if (!row->rc && numbers_parse(text, what, ret_numbers, &inner))
        row_damaged(row, inner.text);
}

static int read_record(struct row *row, struct blacklist_record *ret_record)
{
    struct blacklist_record *record = ret_record;
    struct hvd_err inner;

    memset(record, 0, sizeof(*record));
    row_text(row, 0, record->host, sizeof(record->host));
    record->slot = row_slot(row, 1);
    record->failures = (uint32_t)row_int(row, 2, 0, UINT32_MAX);
    record->since_wall_us = row_int(row, 3, 0, INT64_MAX);
    record->until_wall_us = row_int(row, 4, 0, INT64_MAX);
    row_numbers(row, 5, "the restarts of a record", &record->restarts);
    row_numbers(row, 6, "the incarnations of a record", &record->incarnations);
    row_text(row, 7, record->reason, sizeof(record->reason));
    if (!row->rc && blacklist_record_check(record, &inner))
        row_damaged(row, inner.text);
    return row->rc;
}

static int read_event(struct row *row, struct blacklist_event *ret_event)
{
    struct blacklist_event *event = ret_event;
    struct hvd_err inner;

    memset(event, 0, sizeof(*event));
    row_text(row, 0, event->host, sizeof(event->host));
    event->slot = row_slot(row, 1);
    event->incarnation = (uint64_t)row_int(row, 2, 0, INT64_MAX);
    event->wall_us = row_int(row, 3, 0, INT64_MAX);
    event->counted = row_int(row, 4, 0, 1) == 1;
    row_text(row, 5, event->reason, sizeof(event->reason));
    if (!row->rc && blacklist_event_check(event, &inner))
        row_damaged(row, inner.text);
    return row->rc;
}

static int store_load(struct blacklist_store *base, blacklist_record_fn *each, void *arg,
                      struct hvd_err *err)
{
    struct store_sqlite *store = mine(base);
    struct row row = { &store->stmt[LOAD], "a record", 0, err };
    struct blacklist_record record;
    int rc;

    while ((rc = db_step(row.stmt, err)) == DB_ROW) {
        rc = read_record(&row, &record);
        if (!rc)
            rc = each(arg, &record);
        if (rc)
            break;
    }
    db_reset(row.stmt);
    return rc;
}

static int store_history(struct blacklist_store *base, const char *host, blacklist_event_fn *each,
                         void *arg, struct hvd_err *err)
{
    struct store_sqlite *store = mine(base);
    struct row row = { &store->stmt[HISTORY], "an event", 0, err };
    struct blacklist_event event;
    int rc;

    db_bind_text(row.stmt, 1, span_of(host));
    while ((rc = db_step(row.stmt, err)) == DB_ROW) {
        rc = read_event(&row, &event);
        if (!rc)
            rc = each(arg, &event);
        if (rc)
            break;
    }
    db_reset(row.stmt);
    return rc;
}

static void store_close(struct blacklist_store *base)
{
    struct store_sqlite *store = mine(base);

    for (size_t i = 0; i < STATEMENT_COUNT; i++)
        db_stmt_release(&store->stmt[i]);
    if (!store->attached)
        db_close(store->db);
    mem_free(store);
}

static const struct blacklist_store_ops ops = {
    .load = store_load,
    .put = store_put,
    .clear = store_clear,
    .history = store_history,
    .close = store_close,
};

static int prepare(struct store_sqlite *store, struct hvd_err *err)
{
    int rc = 0;

    for (size_t i = 0; i < STATEMENT_COUNT && !rc; i++)
        rc = db_prepare(&store->stmt[i], store->db, sql[i], err);
    return rc;
}

int store_sqlite_open(const char *path, const struct db_options *options,
                      struct blacklist_store **ret_store, struct hvd_err *err)
{
    struct store_sqlite *store = mem_zalloc(sizeof(*store));
    int rc;

    if (!store)
        return err_set(err, HVD_E_NOMEM, "blacklist %s: %s", path, err_text(HVD_E_NOMEM));
    store->store.ops = &ops;
    rc = db_open(path, &schema, options, &store->db, err);
    if (!rc)
        rc = prepare(store, err);
    if (rc) {
        store_close(&store->store);
        return rc;
    }
    *ret_store = &store->store;
    return 0;
}

int store_sqlite_attach(struct db *db, struct blacklist_store **ret_store, struct hvd_err *err)
{
    struct store_sqlite *store = mem_zalloc(sizeof(*store));
    int rc;

    if (!store)
        return err_set(err, HVD_E_NOMEM, "blacklist: %s", err_text(HVD_E_NOMEM));
    store->store.ops = &ops;
    store->db = db;
    store->attached = true;
    rc = prepare(store, err);
    if (rc) {
        store_close(&store->store);
        return rc;
    }
    *ret_store = &store->store;
    return 0;
}
