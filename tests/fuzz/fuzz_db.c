/*
 * fuzz_db.c: a real database whose bytes are changed where the input says, opened as the driver
 * opens it. It is used or refused with a reason; it is never crashed over, and never replaced by
 * a new one.
 *
 * The input is a list of changes: two bytes for where, one for how many, and the new bytes. The
 * first byte of the input says whether the write-ahead log lies beside the file, and whether the
 * file is cut short where the first change is.
 */
#include "base/panic.h"
#include "base/time.h"
#include "blacklist/store/store_sqlite.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define WITH_LOG  0x1
#define CUT_SHORT 0x2
#define FILE_MAX  (256 * 1024)

struct image {
    size_t length;
    uint8_t bytes[FILE_MAX];
};

static char dir[64];
static char path[96];
static char log_path[104];
static struct image whole; /* with everything in the file */
static struct image part;  /* with half of it in the log */
static struct image part_log;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_image(const char *name, struct image *image)
{
    FILE *file = fopen(name, "rb");

    ASSERT(file);
    image->length = fread(image->bytes, 1, sizeof(image->bytes), file);
    ASSERT(image->length > 0 && image->length < sizeof(image->bytes));
    fclose(file);
}

static void write_image(const char *name, const struct image *image)
{
    FILE *file = fopen(name, "wb");

    ASSERT(file && fwrite(image->bytes, 1, image->length, file) == image->length);
    ASSERT(fclose(file) == 0);
}

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

static int put(struct blacklist_store *store, uint32_t slot, const char *reason)
{
    struct blacklist_record record = { .slot = slot, .failures = 1, .host = "host" };
    struct blacklist_event event = { .slot = slot, .host = "host" };

    record.until_wall_us = TIME_DAY;
    numbers_add(&record.restarts, 5);
    numbers_add(&record.incarnations, 7);
    blacklist_reason_set(record.reason, reason);
    blacklist_reason_set(event.reason, reason);
    return blacklist_store_put(store, &record, &event, NULL);
}

static void make_images(void)
{
    struct blacklist_store *store;

    snprintf(dir, sizeof(dir), "%s/hvd-fuzz-XXXXXX",
             access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
    ASSERT(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/x.db", dir);
    snprintf(log_path, sizeof(log_path), "%s-wal", path);
    ASSERT(store_sqlite_open(path, &db_options_usual, &store, NULL) == 0);
    for (uint32_t slot = 0; slot < 8; slot++)
        ASSERT(put(store, slot, "exit code 1") == 0);
    blacklist_store_close(store);
    read_image(path, &whole);
    ASSERT(store_sqlite_open(path, &db_options_usual, &store, NULL) == 0);
    ASSERT(put(store, BLACKLIST_WHOLE_HOST, "killed by signal 9") == 0);
    read_image(path, &part);
    read_image(log_path, &part_log);
    blacklist_store_close(store);
    (void)atexit(clean_up);
}

static int check_record(void *arg, const struct blacklist_record *record)
{
    (void)arg;
    ASSERT(blacklist_record_check(record, NULL) == 0);
    return 0;
}

static int check_event(void *arg, const struct blacklist_event *event)
{
    (void)arg;
    ASSERT(blacklist_event_check(event, NULL) == 0);
    return 0;
}

static void use(struct blacklist_store *store)
{
    struct hvd_err err = { .code = 0 };

    if (blacklist_store_load(store, check_record, NULL, &err))
        ASSERT(err.text[0]);
    if (blacklist_store_history(store, "host", check_event, NULL, &err))
        ASSERT(err.text[0]);
    if (put(store, 3, "one more"))
        return;
    (void)blacklist_store_clear(store, "host", 3, NULL);
    (void)put(store, 9, "and another");
}

/* Somebody else's, or a later version's: not a byte of it is ours to change. */
static void check_untouched(const struct image *file)
{
    static struct image now;

    read_image(path, &now);
    ASSERT(now.length == file->length && !memcmp(now.bytes, file->bytes, now.length));
}

/* The file as the input wants it; the log follows behind it in the numbering of the bytes. */
static void change(struct image *file, struct image *log, const uint8_t *data, size_t size)
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
                file->bytes[at] = data[i];
            else if (at - file->length < log->length)
                log->bytes[at - file->length] = data[i];
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct db_options options = { .busy_ms = 0 };
    static struct image file;
    static struct image log;
    struct blacklist_store *store;
    struct hvd_err err = { .code = 0 };
    struct stat before;
    struct stat after;

    if (!dir[0])
        make_images();
    remove_files();
    file = whole;
    log.length = 0;
    if (size > 0 && (data[0] & WITH_LOG)) {
        file = part;
        log = part_log;
    }
    change(&file, &log, data, size);
    write_image(path, &file);
    if (log.length > 0)
        write_image(log_path, &log);
    ASSERT(stat(path, &before) == 0);
    if (store_sqlite_open(path, &options, &store, &err)) {
        ASSERT(err.code < 0 && strstr(err.text, path));
        if (err.code == HVD_E_INVAL || err.code == HVD_E_VERSION)
            check_untouched(&file);
    } else {
        use(store);
        blacklist_store_close(store);
    }
    ASSERT(stat(path, &after) == 0 && after.st_ino == before.st_ino && after.st_size > 0);
    return 0;
}
