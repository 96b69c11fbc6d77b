/*
 * crash_blacklist.c: a process works on a database and dies at the k-th point where a file changes,
 * for every k of its life: killed, and killed by a power failure, after which what was not synced
 * is gone wholly, or in parts and sectors. The next process must open what is left, find all that
 * was acknowledged, and nothing half done.
 *
 *     crash_blacklist [ROUNDS]     with as many random lives; 1 if not given
 */
#include "base/rng.h"
#include "blacklist/store/store_sqlite.h"
#include "tests/lib/fault_vfs.h"
#include "tests/lib/life.h"
#include "tests/lib/records.h"
#include "tests/lib/store_mem.h"
#include "tests/lib/testdb.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OPS_MAX 256
struct op {
    bool clears;
    uint32_t number;
    const char *host;
    uint32_t slot;
};

struct ops {
    struct op op[OPS_MAX];
    size_t count;
};

/* What a life does, and what is in its file when it starts. */
struct plan {
    const struct ops *before;
    const struct ops *ops;
};

static void add_op(struct ops *ops, bool clears, uint32_t number, const char *host, uint32_t slot)
{
    if (ops->count == OPS_MAX)
        abort();
    ops->op[ops->count++] = (struct op){ clears, number, host, slot };
}

static int apply(struct blacklist_store *store, const struct op *op)
{
    struct blacklist_record record;
    struct blacklist_event event;

    if (op->clears)
        return blacklist_store_clear(store, op->host, op->slot, NULL);
    records_make(op->number, op->host, op->slot, &record, &event);
    return blacklist_store_put(store, &record, &event, NULL);
}

static int work(const struct life *life, int ack_fd)
{
    const struct db_options options = { .vfs = FAULT_VFS,
                                        .checkpoint_pages = life->checkpoint_pages };
    const struct plan *plan = life->own;
    struct blacklist_store *store;

    if (store_sqlite_open(life_path, &options, &store, NULL))
        return 1;
    life_acknowledge(ack_fd);
    for (size_t i = 0; i < plan->ops->count; i++) {
        if (apply(store, &plan->ops->op[i]))
            return 1;
        life_acknowledge(ack_fd);
    }
    blacklist_store_close(store);
    return 0;
}

/* Walks over one store and looks each thing up in the other, which shows the newest first. */
struct comparison {
    const struct store_mem *expected;
    size_t seen;
    size_t place;
    bool same;
};

static int compare_record(void *arg, const struct blacklist_record *record)
{
    struct comparison *c = arg;
    bool found = false;

    for (size_t i = 0; i < c->expected->records.count; i++)
        found = found || records_same(&c->expected->records.items[i], record);
    c->same = c->same && found;
    c->seen++;
    return 0;
}

static int compare_event(void *arg, const struct blacklist_event *event)
{
    struct comparison *c = arg;
    const struct blacklist_event *expected = NULL;

    while (c->place > 0 && !expected) {
        expected = &c->expected->events.items[--c->place];
        if (strcmp(expected->host, event->host) != 0)
            expected = NULL;
    }
    c->same = c->same && expected && events_same(expected, event);
    c->seen++;
    return 0;
}

static bool stores_same(struct blacklist_store *store, const struct store_mem *expected)
{
    static const char *const hosts[] = { "a", "b", "c" };
    struct comparison c = { .expected = expected, .same = true };

    if (blacklist_store_load(store, compare_record, &c, NULL))
        return false;
    c.same = c.same && c.seen == expected->records.count;
    c.seen = 0;
    for (size_t i = 0; i < ARRAY_SIZE(hosts); i++) {
        c.place = expected->events.count;
        if (blacklist_store_history(store, hosts[i], compare_event, &c, NULL))
            return false;
    }
    return c.same && c.seen == expected->events.count;
}

static bool apply_all(struct blacklist_store *store, const struct ops *ops, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (apply(store, &ops->op[i]))
            return false;
    }
    return true;
}

/* Exactly the acknowledged, or that and the one operation that was under way; and it still works.
 */
static bool found_what_was_acknowledged(const struct life *life, size_t acknowledged)
{
    static const struct op another = { false, 9, "b", 1 };
    const struct plan *plan = life->own;
    size_t done = acknowledged > 0 ? acknowledged - 1 : 0;
    struct blacklist_store *store = NULL;
    struct store_mem expected;
    struct hvd_err err;
    bool same = false;

    store_mem_init(&expected);
    if (store_sqlite_open(life_path, &db_options_usual, &store, &err)) {
        fprintf(stderr, "cannot be opened: %s\n", err.text);
        goto out;
    }
    if (!apply_all(&expected.store, plan->before, plan->before->count) ||
        !apply_all(&expected.store, plan->ops, done))
        abort();
    same = stores_same(store, &expected);
    if (!same && acknowledged > 0 && done < plan->ops->count) {
        if (apply(&expected.store, &plan->ops->op[done]))
            abort();
        same = stores_same(store, &expected);
    }
    if (same && (apply(store, &another) || apply(&expected.store, &another)))
        same = false;
    same = same && stores_same(store, &expected);
out:
    blacklist_store_close(store);
    store_mem_release(&expected);
    return same;
}

static int move_on(const struct life *life, int ack_fd)
{
    const struct db_options options = { .vfs = FAULT_VFS,
                                        .checkpoint_pages = life->checkpoint_pages };
    struct db *db;

    if (db_open(life_path, &testdb_version_3, &options, &db, NULL))
        return 1;
    life_acknowledge(ack_fd);
    db_close(db);
    return 0;
}

static bool found_moved_on(const struct life *life, size_t acknowledged)
{
    struct db *db;
    bool same;

    (void)life;
    (void)acknowledged;
    if (db_open(life_path, &testdb_version_3, &db_options_usual, &db, NULL))
        return false;
    same = testdb_count(db) == 1;
    db_close(db);
    return same;
}

static unsigned create_and_die(void)
{
    struct ops none = { .count = 0 };
    struct ops ops = { .count = 0 };
    const struct plan plan = { &none, &ops };
    struct life life = { .name = "creation",
                         .run = work,
                         .holds = found_what_was_acknowledged,
                         .start = NULL,
                         .own = &plan,
                         .checkpoint_pages = 0 };

    add_op(&ops, false, 1, "a", 0);
    add_op(&ops, false, 77, "a", BLACKLIST_WHOLE_HOST);
    add_op(&ops, true, 0, "a", 0);
    life.operations = ops.count;
    return life_die_everywhere(&life);
}

/* The history is full when it starts, so that each put drops a row; and the write-ahead log is
 * copied back every few pages. */
static unsigned trim_and_die(void)
{
    static struct file_bytes start;
    static struct ops before;
    struct blacklist_store *store;
    struct ops ops = { .count = 0 };
    const struct plan plan = { &before, &ops };
    struct life life = { .name = "trimming",
                         .run = work,
                         .holds = found_what_was_acknowledged,
                         .start = &start,
                         .own = &plan,
                         .checkpoint_pages = 6 };

    for (uint32_t i = 0; i < LIMIT_BLACKLIST_HISTORY_ROWS; i++)
        add_op(&before, false, i, "a", 0);
    add_op(&before, false, 5, "b", 1);
    life_remove_files();
    if (store_sqlite_open(life_path, &db_options_usual, &store, NULL) ||
        !apply_all(store, &before, before.count))
        abort();
    blacklist_store_close(store);
    files_read(life_path, &start);
    for (uint32_t i = 0; i < 6; i++)
        add_op(&ops, false, 120 + i, "a", 0);
    add_op(&ops, true, 0, "b", 1);
    life.operations = ops.count;
    return life_die_everywhere(&life);
}

static unsigned migrate_and_die(void)
{
    static struct file_bytes start;
    struct life life = { .name = "migration", .run = move_on, .holds = found_moved_on };

    life_remove_files();
    snprintf(testdb_path, sizeof(testdb_path), "%s", life_path);
    fault_vfs_use();
    if (testdb_make(NULL))
        abort();
    files_read(life_path, &start);
    life.start = &start;
    life.checkpoint_pages = 2;
    return life_die_everywhere(&life);
}

static unsigned live_at_random_and_die(uint64_t seed)
{
    static const char *const hosts[] = { "a", "b", "c" };
    static const uint32_t slots[] = { 0, 1, BLACKLIST_WHOLE_HOST };
    struct ops none = { .count = 0 };
    struct ops ops = { .count = 0 };
    const struct plan plan = { &none, &ops };
    struct life life = { .name = "random",
                         .run = work,
                         .holds = found_what_was_acknowledged,
                         .start = NULL,
                         .own = &plan,
                         .checkpoint_pages = 0 };
    struct rng rng;

    rng_seed(&rng, seed);
    life.checkpoint_pages = 2 + (int)rng_below(&rng, 10);
    for (uint32_t i = 0; i < 12; i++)
        add_op(&ops, rng_below(&rng, 4) == 0, (uint32_t)rng_below(&rng, 1000),
               hosts[rng_below(&rng, 3)], slots[rng_below(&rng, 3)]);
    life.operations = ops.count;
    return life_die_everywhere(&life);
}

int main(int argc, char **argv)
{
    unsigned long rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : 1;
    unsigned deaths = 0;

    if (argc > 2) {
        fprintf(stderr, "usage: %s [ROUNDS]\n", argv[0]);
        return 2;
    }
    life_begin();
    deaths += create_and_die();
    deaths += trim_and_die();
    deaths += migrate_and_die();
    for (unsigned long round = 0; round < rounds; round++)
        deaths += live_at_random_and_die(round);
    life_end();
    printf("%u deaths, nothing acknowledged was lost\n", deaths);
    return deaths >= 200 ? 0 : 1;
}
