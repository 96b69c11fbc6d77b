/*
 * fuzz_job.c: opens and replays a job file in which rows were changed, as a driver does that takes
 * over. The view must be consistent, or the file refused with its name and a reason.
 *
 * The input is a list of changes: a byte for the column, a byte for the row, and the value. A byte
 * below TEXT_FROM begins a number of eight bytes; another byte is the length of a text.
 */
#include "base/panic.h"
#include "driver/journal/job_file.h"
#include "driver/store/record_check.h"
#include "tests/lib/files.h"
#include "tests/lib/temp_db.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RECORDS     4
#define TEXT_FROM   64
#define CHANGES_MAX 16

static const char *const updates[] = {
    "UPDATE journal SET id = ?1 WHERE id = ?2",
    "UPDATE journal SET kind = ?1 WHERE id = ?2",
    "UPDATE journal SET term = ?1 WHERE id = ?2",
    "UPDATE journal SET incarnation = ?1 WHERE id = ?2",
    "UPDATE journal SET round = ?1 WHERE id = ?2",
    "UPDATE journal SET previous = ?1 WHERE id = ?2",
    "UPDATE journal SET commit_number = ?1 WHERE id = ?2",
    "UPDATE journal SET check_number = ?1 WHERE id = ?2",
    "UPDATE journal SET manifest = ?1 WHERE id = ?2",
    "UPDATE journal SET cause = ?1 WHERE id = ?2",
    "UPDATE journal SET slot = ?1 WHERE id = ?2",
    "UPDATE journal SET ended = ?1 WHERE id = ?2",
    "UPDATE journal SET value = ?1 WHERE id = ?2",
    "UPDATE journal SET code = ?1 WHERE id = ?2",
    "UPDATE journal SET wall_us = ?1 WHERE id = ?2",
    "UPDATE journal SET host = ?1 WHERE id = ?2",
    "UPDATE journal SET text = ?1 WHERE id = ?2",
    "UPDATE journal SET addresses = ?1 WHERE id = ?2",
    "UPDATE journal SET members = ?1 WHERE id = ?2",
    "UPDATE journal SET holders = ?1 WHERE id = ?2",
    "DELETE FROM journal WHERE id = ?2 AND ?1 = ?1",
    "UPDATE fact SET job = ?1 WHERE ?2 = ?2",
    "UPDATE fact SET key = ?1 WHERE ?2 = ?2",
    "UPDATE fact SET created_us = ?1 WHERE ?2 = ?2",
    "UPDATE fact SET port = ?1 WHERE ?2 = ?2",
    "UPDATE fact SET ended = ?1 WHERE ?2 = ?2",
    "UPDATE fact SET code = ?1 WHERE ?2 = ?2",
    "UPDATE fact SET text = ?1 WHERE ?2 = ?2",
    "UPDATE owner SET token = ?1 WHERE ?2 = ?2",
    "UPDATE owner SET who = ?1 WHERE ?2 = ?2",
    "DELETE FROM owner WHERE ?1 = ?1 AND ?2 = ?2",
    "UPDATE record SET host = ?1 WHERE slot = ?2",
    "UPDATE record SET restarts = ?1 WHERE slot = ?2",
};

static const struct job_facts fresh = { .job = "job", .created_wall_us = 1 };
static const struct db_options options = { .busy_ms = 0 };

static struct file_bytes image;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fill(struct store *file)
{
    static const char *const addresses[] = { "10.0.0.1:5000", "[fe80::1]:5000" };
    static const uint64_t members[] = { 1, 2, 3 };
    static struct blacklist_change change = {
        .record = {.failures = 1, .host = "n1" },
          .event = { .host = "n1"           }
    };
    const struct journal_record term = { .kind = JOURNAL_TERM, .term = 1, .host = "", .text = "" };
    const struct journal_record launch = {
        .kind = JOURNAL_LAUNCH, .incarnation = 1, .slot = 3, .host = "n1", .text = ""
    };
    const struct journal_record ready = {
        .kind = JOURNAL_READY,
        .incarnation = 1,
        .host = "",
        .text = "",
        .addresses = {addresses, 2}
    };
    const struct journal_record round = {
        .kind = JOURNAL_ROUND,
        .round = 1,
        .host = "",
        .text = "a text",
        .members = {members,  3},
        .holders = { members, 1}
    };
    const struct job_write writes[] = { { .record = &term },
                                        { .record = &launch },
                                        { .record = &ready },
                                        { .record = &round },
                                        { .change = &change } };

    ASSERT(store_claim(file, 1, "pid 1 on n1", NULL) == 0);
    ASSERT(store_write(file, writes, ARRAY_SIZE(writes), NULL) == 0);
}

/* Makes one change, which the tables may refuse. Returns how many bytes of the input were used. */
static size_t change(struct db *db, const uint8_t *data, size_t size)
{
    struct db_stmt stmt;
    size_t used = 3;

    ASSERT(db_prepare(&stmt, db, updates[data[0] % ARRAY_SIZE(updates)], NULL) == 0);
    db_bind_int(&stmt, 2, data[1]);
    if (data[2] < TEXT_FROM) {
        uint64_t number = 0;

        for (int i = 0; i < 8 && used < size; i++)
            number = number << 8 | data[used++];
        db_bind_int(&stmt, 1, (int64_t)number);
    } else {
        size_t length = (size_t)data[2] - TEXT_FROM;

        length = length < size - used ? length : size - used;
        db_bind_text(&stmt, 1, (struct span){ (const char *)data + used, length });
        used += length;
    }
    (void)!db_run(&stmt, NULL);
    db_stmt_release(&stmt);
    return used;
}

static int check_record(void *arg, const struct journal_record *record, struct hvd_err *err)
{
    char line[JOURNAL_LINE_MAX];

    (void)err;
    ++*(size_t *)arg;
    ASSERT(!record_wrong(record));
    ASSERT(*journal_describe(record, line));
    return 0;
}

static int check_change(void *arg, const struct blacklist_record *record, struct hvd_err *err)
{
    (void)arg;
    (void)err;
    ASSERT(blacklist_record_check(record, NULL) == 0);
    return 0;
}

static void check_refused(int rc, const struct hvd_err *err)
{
    ASSERT(rc == 0 || (rc == HVD_E_CORRUPT && strstr(err->text, temp_db_path)));
}

/* Uses the file as a driver that takes over: facts, claim, replay, blacklist, a write. */
static void use(struct store *file)
{
    const struct job_write port = { .port = 1 };
    struct hvd_err err = { .code = 0 };
    struct job_facts facts;
    size_t count = 0;
    int rc = store_facts(file, &facts, &err);

    ASSERT(rc == 0 && job_name_check(facts.job, NULL) == 0);
    rc = store_claim(file, 7, "pid 2", &err);
    ASSERT(rc == 0);
    rc = store_replay(file, check_record, &count, &err);
    ASSERT(count <= RECORDS);
    check_refused(rc, &err);
    check_refused(store_blacklist(file, check_change, NULL, &err), &err);
    ASSERT(store_write(file, &port, 1, &err) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hvd_err err = { .code = 0 };
    struct store *file = NULL;
    int rc;
    static const struct db_schema same = { "job", 'J', NULL, 2 };
    struct db *db;

    if (!image.length) {
        struct store *made;

        temp_db_begin();
        (void)atexit(temp_db_end);
        ASSERT(job_file_open(temp_db_path, &options, &fresh, &made, NULL) == 0);
        fill(made);
        store_close(made);
        files_read(temp_db_path, &image);
    }
    temp_db_remove();
    files_write(temp_db_path, image.bytes, image.length);
    ASSERT(db_open(temp_db_path, &same, &options, &db, NULL) == 0);
    for (int i = 0; i < CHANGES_MAX && size >= 3; i++) {
        size_t used = change(db, data, size);

        data += used;
        size -= used;
    }
    db_close(db);
    rc = job_file_open(temp_db_path, &options, &fresh, &file, &err);
    check_refused(rc, &err);
    if (!rc)
        use(file);
    store_close(file);
    return 0;
}
