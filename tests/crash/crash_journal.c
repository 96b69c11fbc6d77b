/*
 * crash_journal.c: a driver works on the file of its job and dies at every point at which a file
 * changes (life.h): the driver writes the file itself, or through its scribe (the thread that
 * writes the file). A life is one run of such a driver up to its death. The next driver must find
 * everything that was reported durable, and each transaction as a whole or not at all.
 *
 *     crash_journal [ROUNDS]     with as many random lives; 1 if not given
 */
#include "base/rng.h"
#include "driver/journal/job_file.h"
#include "driver/journal/scribe.h"
#include "tests/lib/fault_vfs.h"
#include "tests/lib/journal_random.h"
#include "tests/lib/life.h"
#include "tests/lib/records.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STEPS_MAX  16
#define BATCH_MAX  8
#define SELDOM     (3600 * TIME_S)
#define WAIT_MS    60000
#define NEW_TOKEN  2
#define LATE_TOKEN 3

/* One transaction: this many random records (seeds 0, 1, 2, ...), and perhaps more. */
struct step {
    uint32_t records;
    bool change;   /* true: a change of the blacklist, for the slot with the index of the step */
    uint16_t port; /* 0: no port is recorded */
    bool ended;
    bool replace; /* the whole journal is replaced by the records of the seeds 0, 1, 2, ... */
};

struct plan {
    uint32_t before; /* records that an earlier driver has left */
    struct step step[STEPS_MAX];
    size_t count;
};

static const struct job_facts fresh = { .job = "job", .key = { 1 }, .created_wall_us = 1 };

static struct journal_random made[BATCH_MAX];
static struct blacklist_change change;

/* Turns a step into writes of the job file, with random records from the seed on. Returns the
 * number of writes. */
static size_t make_writes(const struct step *step, uint32_t slot, uint64_t seed,
                          struct job_write writes[BATCH_MAX + 2])
{
    size_t count = 0;

    for (; count < step->records; count++) {
        journal_random_make(&made[count], seed + count);
        writes[count] = (struct job_write){ .record = &made[count].record };
    }
    if (step->change) {
        change = (struct blacklist_change){ .none = false };
        records_make(1, "a", slot, &change.record, &change.event);
        writes[count++] = (struct job_write){ .change = &change };
    }
    if (step->port || step->ended)
        writes[count++] = (struct job_write){
            .port = step->port, .ended = step->ended, .code = 3, .text = "the end"
        };
    return count;
}

static int open_and_claim(const struct life *life, int ack_fd, struct store **ret_file)
{
    const struct db_options options = { .vfs = FAULT_VFS,
                                        .checkpoint_pages = life->checkpoint_pages };

    if (job_file_open(temp_db_path, &options, &fresh, ret_file, NULL))
        return 1;
    life_acknowledge(ack_fd);
    if (store_claim(*ret_file, NEW_TOKEN, "pid 2", NULL))
        return 1;
    life_acknowledge(ack_fd);
    return 0;
}

/* Compacts the journal: as many records as there are writes are left. */
static int replace_journal(struct store *file, const struct job_write *writes, size_t count)
{
    struct journal_record records[BATCH_MAX];

    for (size_t i = 0; i < count; i++)
        records[i] = *writes[i].record;
    return store_replace(file, records, count, NULL);
}

/* The life of a driver that writes by itself: opens and claims the file, and writes the steps; 0,
 * or 1 for an error. */
static int work(const struct life *life, int ack_fd)
{
    const struct plan *plan = life->own;
    struct job_write writes[BATCH_MAX + 2];
    uint64_t seed = plan->before;
    struct store *file = NULL;

    if (open_and_claim(life, ack_fd, &file))
        return 1;
    for (size_t i = 0; i < plan->count; i++) {
        bool replace = plan->step[i].replace;
        size_t count = make_writes(&plan->step[i], (uint32_t)i, replace ? 0 : seed, writes);

        if (replace ? replace_journal(file, writes, count) : store_write(file, writes, count, NULL))
            return 1;
        life_acknowledge(ack_fd);
        seed = (replace ? 0 : seed) + plan->step[i].records;
    }
    store_close(file);
    return 0;
}

/* Waits up to wait_ms for the scribe, and acknowledges the writes that have become durable. 1: the
 * scribe has failed, or nothing came in time. */
static int acknowledge_durable_writes(struct scribe *scribe, int wait_ms, uint64_t *reported,
                                      int ack_fd)
{
    struct pollfd fd = { scribe_fd(scribe), POLLIN, 0 };
    uint64_t durable = 0;

    if (poll(&fd, 1, wait_ms) <= 0)
        return wait_ms ? 1 : 0;
    if (scribe_look(scribe, &durable, NULL))
        return 1;
    for (; *reported < durable; (*reported)++)
        life_acknowledge(ack_fd);
    return 0;
}

/* A life that writes through the scribe: each step is a write, and the scribe commits all waiting
 * writes together. */
static int work_by_scribe(const struct life *life, int ack_fd)
{
    const struct plan *plan = life->own;
    struct job_write writes[BATCH_MAX + 2];
    struct scribe *scribe = NULL;
    struct store *file = NULL;
    uint64_t reported = 0;

    if (open_and_claim(life, ack_fd, &file) || scribe_start(file, SELDOM, &scribe, NULL))
        return 1;
    for (uint32_t i = 0; i < plan->count; i++) {
        make_writes(&plan->step[i], i, plan->before + i, writes);
        if (!scribe_put(scribe, &writes[0]) ||
            acknowledge_durable_writes(scribe, i % 4 ? 0 : WAIT_MS, &reported, ack_fd))
            return 1;
    }
    while (reported < plan->count)
        if (acknowledge_durable_writes(scribe, WAIT_MS, &reported, ack_fd))
            return 1;
    return scribe_stop(scribe, NULL) ? 1 : 0;
}

struct found {
    uint64_t records;
    uint64_t changes;
    bool same;
};

static int find_record(void *arg, const struct journal_record *record, struct hvd_err *err)
{
    struct found *found = arg;

    (void)err;
    journal_random_make(&made[0], found->records++);
    found->same = found->same && journal_same(record, &made[0].record);
    return 0;
}

static int find_change(void *arg, const struct blacklist_record *record, struct hvd_err *err)
{
    struct found *found = arg;
    struct blacklist_record expected;
    struct blacklist_event event;

    (void)err;
    records_make(1, "a", record->slot, &expected, &event);
    found->changes++;
    found->same = found->same && records_same(record, &expected);
    return 0;
}

static bool find(struct store *file, struct found *found, struct job_facts *facts)
{
    *found = (struct found){ .same = true };
    return !store_replay(file, find_record, found, NULL) &&
           !store_blacklist(file, find_change, found, NULL) && !store_facts(file, facts, NULL) &&
           found->same;
}

/* true: the file holds exactly the writes of the first `done` steps. */
static bool is_after(const struct plan *plan, size_t done, const struct found *found,
                     const struct job_facts *facts)
{
    uint64_t records = plan->before;
    uint64_t changes = 0;
    bool ended = false;
    uint16_t port = 0;

    for (size_t i = 0; i < done; i++) {
        records = (plan->step[i].replace ? 0 : records) + plan->step[i].records;
        changes += plan->step[i].change;
        port = plan->step[i].port ? plan->step[i].port : port;
        ended = ended || plan->step[i].ended;
    }
    return found->records == records && found->changes == changes && facts->port == port &&
           facts->ended == ended && facts->code == (ended ? 3 : 0) &&
           !strcmp(facts->text, ended ? "the end" : "") && !strcmp(facts->job, fresh.job) &&
           facts->key[0] == 1;
}

/* true: the next driver can take the file over, and can write. */
static bool goes_on(struct store *file, struct found *found)
{
    const struct job_write write = { .record = &made[0].record };
    uint64_t records = found->records;
    struct job_facts facts;

    journal_random_make(&made[0], records);
    return !store_claim(file, LATE_TOKEN, "pid 3", NULL) && !store_write(file, &write, 1, NULL) &&
           find(file, found, &facts) && found->records == records + 1;
}

/* true: the claim that was acknowledged is still in the file. */
static bool is_claimed(void)
{
    static const struct db_schema same = { "job", 'J', NULL, 2 };
    struct db_stmt stmt = { .raw = NULL };
    struct db *db = NULL;
    int64_t token = 0;

    if (!db_open(temp_db_path, &same, &db_options_usual, &db, NULL) &&
        !db_prepare(&stmt, db, "SELECT token FROM owner", NULL) && db_step(&stmt, NULL) == DB_ROW)
        (void)!db_column_int(&stmt, 0, &token, NULL);
    db_stmt_release(&stmt);
    db_close(db);
    return token == NEW_TOKEN;
}

/* true: the file holds all acknowledged steps, and at most `under_way` further steps. The first two
 * acknowledgements are the opening and the claim. */
static bool found_all(const struct life *life, size_t acknowledged, size_t under_way)
{
    const struct plan *plan = life->own;
    size_t done = acknowledged > 2 ? acknowledged - 2 : 0;
    struct store *file = NULL;
    struct job_facts facts;
    struct found found;
    struct hvd_err err;
    bool holds = false;

    if (job_file_open(temp_db_path, &db_options_usual, &fresh, &file, &err)) {
        fprintf(stderr, "cannot be opened: %s\n", err.text);
        return false;
    }
    if ((acknowledged < 2 || is_claimed()) && find(file, &found, &facts))
        for (size_t more = 0; more <= under_way && done + more <= plan->count; more++)
            holds = holds || is_after(plan, done + more, &found, &facts);
    holds = holds && goes_on(file, &found);
    store_close(file);
    return holds;
}

static bool found_what_was_acknowledged(const struct life *life, size_t acknowledged)
{
    return found_all(life, acknowledged, acknowledged > 1 ? 1 : 0);
}

static bool found_what_was_reported(const struct life *life, size_t acknowledged)
{
    return found_all(life, acknowledged, STEPS_MAX);
}

/* Makes the file that an earlier driver with these records has left, closed. */
static void make_start(uint32_t records, struct file_bytes *start)
{
    const struct job_write write = { .record = &made[0].record };
    struct store *file = NULL;

    temp_db_remove();
    if (job_file_open(temp_db_path, &db_options_usual, &fresh, &file, NULL) ||
        store_claim(file, 1, "pid 1", NULL))
        abort();
    for (uint32_t i = 0; i < records; i++) {
        journal_random_make(&made[0], i);
        if (store_write(file, &write, 1, NULL))
            abort();
    }
    store_close(file);
    files_read(temp_db_path, start);
}

/* All deaths of a life that takes a file over; the write-ahead log is copied back every few pages.
 */
static unsigned take_over_and_die(void)
{
    static struct file_bytes start;
    const struct plan plan = {
        .before = 20,
        .step = {{ .records = BATCH_MAX, .change = true, .port = 9 },
                 { .records = 1 },
                 { .records = 5, .replace = true },
                 { .records = 3, .change = true },
                 { .records = 2, .ended = true }},
        .count = 5,
    };
    const struct life life = { .name = "takeover",
                               .run = work,
                               .holds = found_what_was_acknowledged,
                               .start = &start,
                               .own = &plan,
                               .operations = plan.count,
                               .checkpoint_pages = 6 };

    make_start(plan.before, &start);
    return life_die_everywhere(&life);
}

static unsigned scribe_and_die(void)
{
    static struct file_bytes start;
    struct plan plan = { .before = 3, .count = STEPS_MAX };
    const struct life life = { .name = "scribe",
                               .run = work_by_scribe,
                               .holds = found_what_was_reported,
                               .start = &start,
                               .own = &plan,
                               .operations = plan.count,
                               .checkpoint_pages = 8 };

    for (size_t i = 0; i < STEPS_MAX; i++)
        plan.step[i].records = 1;
    make_start(plan.before, &start);
    return life_die_everywhere(&life);
}

static unsigned live_at_random_and_die(uint64_t seed)
{
    static struct file_bytes start;
    struct life life = { .name = "random", .run = work, .holds = found_what_was_acknowledged };
    struct plan plan = { .count = 6 };
    struct rng rng;

    rng_seed(&rng, seed);
    if (rng_below(&rng, 2)) {
        plan.before = (uint32_t)rng_below(&rng, 30);
        make_start(plan.before, &start);
        life.start = &start;
    }
    for (size_t i = 0; i < plan.count; i++)
        plan.step[i] = (struct step){ .records = 1 + (uint32_t)rng_below(&rng, BATCH_MAX),
                                      .change = rng_below(&rng, 3) == 0,
                                      .port = (uint16_t)rng_below(&rng, 3),
                                      .ended = rng_below(&rng, 6) == 0 };
    life.own = &plan;
    life.operations = plan.count;
    life.checkpoint_pages = 2 + (int)rng_below(&rng, 10);
    return life_die_everywhere(&life);
}

int main(int argc, char **argv)
{
    unsigned long rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : 1;
    unsigned deaths = 0;
    struct plan plan;
    struct life life;

    if (argc > 2) {
        fprintf(stderr, "usage: %s [ROUNDS]\n", argv[0]);
        return 2;
    }
    temp_db_begin();
    plan = (struct plan){
        .step = {{ .records = 1 }, { .port = 7 }, { .change = true }, { .ended = true }},
        .count = 4,
    };
    life = (struct life){ .name = "creation",
                          .run = work,
                          .holds = found_what_was_acknowledged,
                          .own = &plan,
                          .operations = plan.count };

    deaths += life_die_everywhere(&life);
    deaths += take_over_and_die();
    deaths += scribe_and_die();
    for (unsigned long round = 0; round < rounds; round++)
        deaths += live_at_random_and_die(round);
    temp_db_end();
    printf("%u deaths, nothing durable was lost\n", deaths);
    return deaths >= 200 ? 0 : 1;
}
