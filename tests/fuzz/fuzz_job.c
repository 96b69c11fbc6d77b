/*
 * fuzz_job.c: the file of a job in which somebody has changed rows, opened and replayed as a driver
 * does that takes over. What is shown is sound, or the file is refused with its name and a reason.
 *
 * The input is a list of changes: a byte for the column, one for the row, and the value: a byte
 * below TEXT_FROM and eight bytes of a number; or one that says how many bytes of text follow.
 */
#include "base/panic.h"
#include "driver/journal/job_file.h"
#include "driver/journal/record_row.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RECORDS     4
#define TEXT_FROM   64
#define CHANGES_MAX 16
#define FILE_MAX    (256 * 1024)

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

static char dir[64];
static char path[96];
static size_t image_bytes;
static char image[FILE_MAX];

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void remove_files(void)
{
    static const char *const suffixes[] = { "", "-wal", "-shm", "-journal" };
    char name[128];

    for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++) {
        snprintf(name, sizeof(name), "%s%s", path, suffixes[i]);
        (void)unlink(name);
    }
}

static void clean_up(void)
{
    remove_files();
    (void)rmdir(dir);
}

static void fill(struct job_file *file)
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

    ASSERT(job_file_claim(file, 1, "pid 1 on n1", NULL) == 0);
    ASSERT(job_file_write(file, writes, ARRAY_SIZE(writes), NULL) == 0);
}

static void make_image(void)
{
    struct job_file *made;
    FILE *file;

    snprintf(dir, sizeof(dir), "%s/hvd-fuzz-XXXXXX",
             access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
    ASSERT(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/x.db", dir);
    (void)atexit(clean_up);
    ASSERT(job_file_open(path, &options, &fresh, &made, NULL) == 0);
    fill(made);
    job_file_close(made);
    file = fopen(path, "rb");
    ASSERT(file);
    image_bytes = fread(image, 1, sizeof(image), file);
    ASSERT(image_bytes > 0 && image_bytes < sizeof(image));
    fclose(file);
}

static void restore_image(void)
{
    FILE *file;

    remove_files();
    file = fopen(path, "wb");
    ASSERT(file && fwrite(image, 1, image_bytes, file) == image_bytes);
    ASSERT(fclose(file) == 0);
}

/* One change; how many bytes of the input it has used. The tables may refuse it. */
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

static void change_rows(const uint8_t *data, size_t size)
{
    static const struct db_schema same = { "job", 'J', NULL, 2 };
    struct db *db;

    ASSERT(db_open(path, &same, &options, &db, NULL) == 0);
    for (int i = 0; i < CHANGES_MAX && size >= 3; i++) {
        size_t used = change(db, data, size);

        data += used;
        size -= used;
    }
    db_close(db);
}

static int check_record(void *arg, const struct journal_record *record, struct hvd_err *err)
{
    char line[JOURNAL_LINE_MAX];

    (void)err;
    ++*(size_t *)arg;
    ASSERT(!record_row_wrong(record));
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
    ASSERT(rc == 0 || (rc == HVD_E_CORRUPT && strstr(err->text, path)));
}

static void use(struct job_file *file)
{
    const struct job_write port = { .port = 1 };
    struct hvd_err err = { .code = 0 };
    struct job_facts facts;
    size_t count = 0;
    int rc = job_file_facts(file, &facts, &err);

    ASSERT(rc == 0 && job_name_check(facts.job, NULL) == 0);
    rc = job_file_claim(file, 7, "pid 2", &err);
    ASSERT(rc == 0);
    rc = job_file_replay(file, check_record, &count, &err);
    ASSERT(count <= RECORDS);
    check_refused(rc, &err);
    check_refused(job_file_blacklist(file, check_change, NULL, &err), &err);
    ASSERT(job_file_write(file, &port, 1, &err) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hvd_err err = { .code = 0 };
    struct job_file *file = NULL;
    int rc;

    if (!dir[0])
        make_image();
    restore_image();
    change_rows(data, size);
    rc = job_file_open(path, &options, &fresh, &file, &err);
    check_refused(rc, &err);
    if (!rc)
        use(file);
    job_file_close(file);
    return 0;
}
