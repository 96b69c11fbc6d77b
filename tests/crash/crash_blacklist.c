/*
 * crash_blacklist.c: a process works on a database and dies at the k-th point where a file changes,
 * for every k of its life: killed, and killed by a power failure, after which what was not synced
 * is gone wholly, or in parts and sectors. The next process must open what is left, find all that
 * was acknowledged, and nothing half done.
 *
 *     crash_blacklist [ROUNDS]     with as many random lives; 1 if not given
 */
#include "blacklist/store/store_sqlite.h"
#include "tests/lib/fault_vfs.h"
#include "tests/lib/files.h"
#include "tests/lib/power.h"
#include "tests/lib/records.h"
#include "tests/lib/store_mem.h"
#include "tests/lib/testdb.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define OPS_MAX    256
#define WRITES_MAX 100000 /* a life with more points does not end */

enum death { KILLED, POWER_LOST, POWER_LOST_IN_PARTS, DEATHS };

static const char *const death_names[DEATHS] = { "killed", "power lost",
                                                 "power lost, some of it written" };

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

/* A way to live, and what must be found after `acknowledged` steps of it. */
struct life {
    const char *name;
    int (*run)(const struct life *life, int ack_fd);
    bool (*holds)(const struct life *life, size_t acknowledged);
    const struct file_bytes *start; /* NULL: without a file */
    const struct ops *before;       /* what is in it */
    const struct ops *ops;
    int checkpoint_pages;
};

static char dir[64];
static char path[128];

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

static void acknowledge(int fd)
{
    if (write(fd, "x", 1) != 1)
        abort();
}

static int work(const struct life *life, int ack_fd)
{
    const struct db_options options = { .vfs = FAULT_VFS,
                                        .checkpoint_pages = life->checkpoint_pages };
    struct blacklist_store *store;

    if (store_sqlite_open(path, &options, &store, NULL))
        return 1;
    acknowledge(ack_fd);
    for (size_t i = 0; i < life->ops->count; i++) {
        if (apply(store, &life->ops->op[i]))
            return 1;
        acknowledge(ack_fd);
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
    size_t done = acknowledged > 0 ? acknowledged - 1 : 0;
    struct blacklist_store *store = NULL;
    struct store_mem expected;
    struct hvd_err err;
    bool same = false;

    store_mem_init(&expected);
    if (store_sqlite_open(path, &db_options_usual, &store, &err)) {
        fprintf(stderr, "cannot be opened: %s\n", err.text);
        goto out;
    }
    if (!apply_all(&expected.store, life->before, life->before->count) ||
        !apply_all(&expected.store, life->ops, done))
        abort();
    same = stores_same(store, &expected);
    if (!same && acknowledged > 0 && done < life->ops->count) {
        if (apply(&expected.store, &life->ops->op[done]))
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

    if (db_open(path, &testdb_version_3, &options, &db, NULL))
        return 1;
    acknowledge(ack_fd);
    db_close(db);
    return 0;
}

static bool found_moved_on(const struct life *life, size_t acknowledged)
{
    struct db *db;
    bool same;

    (void)life;
    (void)acknowledged;
    if (db_open(path, &testdb_version_3, &db_options_usual, &db, NULL))
        return false;
    same = testdb_count(db) == 1;
    db_close(db);
    return same;
}

struct plan {
    uint64_t point;
    enum death death;
};

static void die_at(void *arg, uint64_t point, const char *what)
{
    const struct plan *plan = arg;
    struct rng rng;

    (void)what;
    if (point < plan->point)
        return;
    rng_seed(&rng, point);
    fault_vfs_quiet(true); /* what undoes the changes is no change */
    if (plan->death != KILLED)
        power_fail(plan->death == POWER_LOST_IN_PARTS ? &rng : NULL);
    kill(getpid(), SIGKILL);
}

static void remove_all(void)
{
    static const char *const names[] = {
        "",         "-wal",         "-shm",         "-journal",
        ".hvd-new", ".hvd-new-wal", ".hvd-new-shm", ".hvd-new-journal"
    };
    char name[160];

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        snprintf(name, sizeof(name), "%s%s", path, names[i]);
        if (unlink(name) && errno != ENOENT)
            abort();
    }
}

/* Lives once, with the death planned for this point; true when it comes to that. */
static bool dies(const struct life *life, struct plan *plan, size_t *ret_acknowledged)
{
    char acks[OPS_MAX + 1];
    size_t count = 0;
    ssize_t got;
    int fds[2];
    int status;
    pid_t child;

    remove_all();
    if (life->start)
        files_write(path, life->start->bytes, life->start->length);
    if (pipe(fds) || (child = fork()) < 0)
        abort();
    if (child == 0) {
        fault_vfs_use();
        fault_vfs_set_hook(die_at, plan);
        if (plan->death != KILLED)
            power_on();
        _exit(life->run(life, fds[1]));
    }
    close(fds[1]);
    while ((got = read(fds[0], acks, sizeof(acks))) > 0)
        count += (size_t)got;
    close(fds[0]);
    if (waitpid(child, &status, 0) != child || (WIFEXITED(status) && WEXITSTATUS(status) != 0)) {
        fprintf(stderr, "%s: the process failed at point %llu (status %d)\n", life->name,
                (unsigned long long)plan->point, status);
        exit(1);
    }
    *ret_acknowledged = count;
    return WIFSIGNALED(status);
}

/* All deaths of one life; how many were died. Ends the program at the first that loses something.
 */
static unsigned die_everywhere(const struct life *life)
{
    unsigned died = 0;

    for (int death = 0; death < DEATHS; death++) {
        struct plan plan = { 1, (enum death)death };
        size_t acknowledged;

        for (; dies(life, &plan, &acknowledged); plan.point++, died++) {
            if (!life->holds(life, acknowledged) || plan.point > WRITES_MAX) {
                fprintf(stderr, "%s, %s at point %llu: something was lost (%zu acknowledged): %s\n",
                        life->name, death_names[death], (unsigned long long)plan.point,
                        acknowledged, path);
                exit(1);
            }
        }
    }
    printf("%-10s %4u deaths, %zu operations\n", life->name, died,
           life->ops ? life->ops->count : 0);
    return died;
}

static unsigned create_and_die(void)
{
    struct ops none = { .count = 0 };
    struct ops ops = { .count = 0 };
    struct life life = { "creation", work, found_what_was_acknowledged, NULL, &none, &ops, 0 };

    add_op(&ops, false, 1, "a", 0);
    add_op(&ops, false, 77, "a", BLACKLIST_WHOLE_HOST);
    add_op(&ops, true, 0, "a", 0);
    return die_everywhere(&life);
}

/* The history is full when it starts, so that each put drops a row; and the write-ahead log is
 * copied back every few pages. */
static unsigned trim_and_die(void)
{
    static struct file_bytes start;
    static struct ops before;
    struct blacklist_store *store;
    struct ops ops = { .count = 0 };
    struct life life = { "trimming", work, found_what_was_acknowledged, &start, &before, &ops, 6 };

    for (uint32_t i = 0; i < LIMIT_BLACKLIST_HISTORY_ROWS; i++)
        add_op(&before, false, i, "a", 0);
    add_op(&before, false, 5, "b", 1);
    remove_all();
    if (store_sqlite_open(path, &db_options_usual, &store, NULL) ||
        !apply_all(store, &before, before.count))
        abort();
    blacklist_store_close(store);
    files_read(path, &start);
    for (uint32_t i = 0; i < 6; i++)
        add_op(&ops, false, 120 + i, "a", 0);
    add_op(&ops, true, 0, "b", 1);
    return die_everywhere(&life);
}

static unsigned migrate_and_die(void)
{
    static struct file_bytes start;
    struct life life = { .name = "migration", .run = move_on, .holds = found_moved_on };

    remove_all();
    snprintf(testdb_path, sizeof(testdb_path), "%s", path);
    fault_vfs_use();
    if (testdb_make(NULL))
        abort();
    files_read(path, &start);
    life.start = &start;
    life.checkpoint_pages = 2;
    return die_everywhere(&life);
}

static unsigned live_at_random_and_die(uint64_t seed)
{
    static const char *const hosts[] = { "a", "b", "c" };
    static const uint32_t slots[] = { 0, 1, BLACKLIST_WHOLE_HOST };
    struct ops none = { .count = 0 };
    struct ops ops = { .count = 0 };
    struct life life = { "random", work, found_what_was_acknowledged, NULL, &none, &ops, 0 };
    struct rng rng;

    rng_seed(&rng, seed);
    life.checkpoint_pages = 2 + (int)rng_below(&rng, 10);
    for (uint32_t i = 0; i < 12; i++)
        add_op(&ops, rng_below(&rng, 4) == 0, (uint32_t)rng_below(&rng, 1000),
               hosts[rng_below(&rng, 3)], slots[rng_below(&rng, 3)]);
    return die_everywhere(&life);
}

int main(int argc, char **argv)
{
    unsigned long rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : 1;
    unsigned deaths = 0;

    snprintf(dir, sizeof(dir), "%s/hvd-crash-XXXXXX",
             access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
    if (argc > 2 || !mkdtemp(dir)) {
        fprintf(stderr, "usage: %s [ROUNDS]\n", argv[0]);
        return 2;
    }
    snprintf(path, sizeof(path), "%s/x.db", dir);
    deaths += create_and_die();
    deaths += trim_and_die();
    deaths += migrate_and_die();
    for (unsigned long round = 0; round < rounds; round++)
        deaths += live_at_random_and_die(round);
    remove_all();
    rmdir(dir);
    printf("%u deaths, nothing acknowledged was lost\n", deaths);
    return deaths >= 200 ? 0 : 1;
}
