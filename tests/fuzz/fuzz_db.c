/*
 * fuzz_db.c: opens a real database, some of whose bytes the input has changed, as the driver does.
 * The database must be used, or refused with a reason: no crash, and no new database in its place.
 *
 * The input is a list of changes: two bytes for the offset, one for the length, and the new bytes.
 * The first byte says whether there is a write-ahead log beside the file, and whether the file is
 * cut short at the offset of the first change.
 */
#include "base/panic.h"
#include "base/time.h"
#include "driver/journal/blacklist_rows.h"
#include "tests/lib/files.h"
#include "tests/lib/temp_db.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define WITH_LOG  0x1
#define CUT_SHORT 0x2

static char log_path[sizeof(temp_db_path) + 4];
static struct file_bytes whole; /* everything is in the file */
static struct file_bytes part;  /* half of the database is in the log */
static struct file_bytes part_log;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const steps[] = { blacklist_rows_step };
static const struct db_schema schema = { "blacklist", 'B', steps, 1 };

/* A database, and the tables that a program uses in it. */
struct store {
    struct db *db;
    struct blacklist_rows rows;
};

static int open_store(struct store *store, const struct db_options *options, struct hvd_err *err)
{
    int rc = db_open(temp_db_path, &schema, options, &store->db, err);

    if (rc)
        return rc;
    rc = blacklist_rows_open(&store->rows, store->db, err);
    if (rc) {
        blacklist_rows_close(&store->rows);
        db_close(store->db);
    }
    return rc;
}

static void close_store(struct store *store)
{
    blacklist_rows_close(&store->rows);
    db_close(store->db);
}

static int put(struct store *store, uint32_t slot, const char *reason)
{
    struct blacklist_record record = { .slot = slot, .failures = 1, .host = "host" };
    struct blacklist_event event = { .slot = slot, .host = "host" };
    int rc;

    record.until_wall_us = TIME_DAY;
    numbers_add(&record.restarts, 5);
    numbers_add(&record.incarnations, 7);
    blacklist_reason_set(record.reason, reason);
    blacklist_reason_set(event.reason, reason);
    rc = db_begin(store->db, NULL);
    if (!rc)
        rc = blacklist_rows_put(&store->rows, &record, &event, NULL);
    if (!rc)
        rc = db_commit(store->db, NULL);
    if (rc)
        db_rollback(store->db);
    return rc;
}

/* Makes the two files that inputs change: one without a write-ahead log, one with half of its rows
 * in the log. */
static void make_images(void)
{
    struct store store;

    temp_db_begin();
    snprintf(log_path, sizeof(log_path), "%s-wal", temp_db_path);
    ASSERT(open_store(&store, &db_options_usual, NULL) == 0);
    for (uint32_t slot = 0; slot < 8; slot++)
        ASSERT(put(&store, slot, "exit code 1") == 0);
    close_store(&store);
    files_read(temp_db_path, &whole);
    ASSERT(open_store(&store, &db_options_usual, NULL) == 0);
    ASSERT(put(&store, BLACKLIST_WHOLE_HOST, "killed by signal 9") == 0);
    files_read(temp_db_path, &part);
    files_read(log_path, &part_log);
    close_store(&store);
    (void)atexit(temp_db_end);
}

static int check_record(void *arg, const struct blacklist_record *record, struct hvd_err *err)
{
    (void)arg;
    (void)err;
    ASSERT(blacklist_record_check(record, NULL) == 0);
    return 0;
}

static void use(struct store *store)
{
    struct hvd_err err = { .code = 0 };

    if (blacklist_rows_load(&store->rows, check_record, NULL, &err))
        ASSERT(err.text[0]);
    if (put(store, 3, "one more"))
        return;
    if (blacklist_rows_remove(&store->rows, "host", 3, NULL))
        return;
    (void)put(store, 9, "and another");
}

/* Changes the file as the input says. In offsets the log follows the file. */
static void change(struct file_bytes *file, struct file_bytes *log, const uint8_t *data,
                   size_t size)
{
    bool cut = size > 0 && (data[0] & CUT_SHORT);

    for (size_t i = 1; i + 3 <= size;) {
        size_t at = (size_t)(data[i] << 8 | data[i + 1]) % (file->length + log->length);
        size_t count = data[i + 2] % 16;

        i += 3;
        if (cut && at < file->length)
            file->length = at + 1;
        cut = false;
        for (; count > 0 && i < size; count--, i++, at++) {
            if (at < file->length)
                file->bytes[at] = (char)data[i];
            else if (at - file->length < log->length)
                log->bytes[at - file->length] = (char)data[i];
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct db_options options = { .busy_ms = 0 };
    static struct file_bytes file;
    static struct file_bytes log;
    struct store store;
    struct hvd_err err = { .code = 0 };
    struct stat before;
    struct stat after;

    if (!whole.length)
        make_images();
    temp_db_remove();
    file = whole;
    log.length = 0;
    if (size > 0 && (data[0] & WITH_LOG)) {
        file = part;
        log = part_log;
    }
    change(&file, &log, data, size);
    files_write(temp_db_path, file.bytes, file.length);
    if (log.length > 0)
        files_write(log_path, log.bytes, log.length);
    ASSERT(stat(temp_db_path, &before) == 0);
    if (open_store(&store, &options, &err)) {
        ASSERT(err.code < 0 && strstr(err.text, temp_db_path));
        if (err.code == HVD_E_INVAL || err.code == HVD_E_VERSION) {
            /* A file of another program, or of a later version, must be left unchanged. */
            ASSERT(files_hold(temp_db_path, &file));
        }
    } else {
        use(&store);
        close_store(&store);
    }
    ASSERT(stat(temp_db_path, &after) == 0 && after.st_ino == before.st_ino && after.st_size > 0);
    return 0;
}
