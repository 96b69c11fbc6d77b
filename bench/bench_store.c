/*
 * bench_store: what it takes to make a record of the journal durable, beside what the disk takes to
 * sync one page. That is the floor: what is acknowledged has been synced. And what a long job costs
 * the driver that takes it over: a journal of many records, opened and replayed.
 */
#include "bench/bench.h"
#include "driver/journal/job_file.h"
#include "os/clock.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SECONDS    3.0
#define PAGE_BYTES 4096
#define BATCH      100
#define LONG_JOB   1000000 /* records */
#define MEMBERS    8

struct load {
    struct store *job;
    uint64_t records; /* in it */
    int fd;
};

static void sync_page(void *arg)
{
    static const char page[PAGE_BYTES];
    struct load *load = arg;

    if (pwrite(load->fd, page, sizeof(page), 0) != sizeof(page) || fdatasync(load->fd))
        abort();
}

/* A worker that comes, joins a round and goes leaves four records. */
static struct journal_record record_of(uint64_t number)
{
    static const char *const addresses[] = { "10.20.30.40:50123" };
    static uint64_t members[MEMBERS];
    static const struct journal_record kinds[] = {
        {.kind = JOURNAL_LAUNCH, .host = "node-0123.cluster", .text = "",          .slot = 1 },
        { .kind = JOURNAL_READY,
         .host = "",
         .text = "",
         .addresses = { addresses, 1 },
         .manifest = 0x123456789abcdef },
        {                                                       .kind = JOURNAL_ROUND,
         .host = "",
         .text = "",
         .members = { members, MEMBERS },
         .holders = { members, 1 } },
        {                                                           .kind = JOURNAL_ENDED,            .host = "",                  .text = "", .ended = ENDED_EXIT, .value = 1 },
    };
    struct journal_record record = kinds[number % ARRAY_SIZE(kinds)];

    record.incarnation = 1 + number / ARRAY_SIZE(kinds);
    record.round = record.incarnation;
    record.commit = record.round << 32 | 12345;
    for (uint64_t i = 0; i < MEMBERS; i++)
        members[i] = record.incarnation + i;
    return record;
}

static void write_records(struct load *load, size_t count)
{
    struct journal_record records[BATCH];
    struct job_write writes[BATCH];

    for (size_t i = 0; i < count; i++) {
        records[i] = record_of(load->records + i);
        writes[i] = (struct job_write){ .record = &records[i] };
    }
    if (store_write(load->job, writes, count, NULL))
        abort();
    load->records += count;
}

static void write_one(void *arg)
{
    write_records(arg, 1);
}

static void write_batch(void *arg)
{
    write_records(arg, BATCH);
}

static int count_record(void *arg, const struct journal_record *record, struct hvd_err *err)
{
    (void)err;
    bench_keep(record);
    ++*(uint64_t *)arg;
    return 0;
}

static int open_job(const char *folder, struct store **ret_job)
{
    static const struct job_facts fresh = { .job = "bench", .created_wall_us = 1 };
    char path[128];
    int rc;

    snprintf(path, sizeof(path), "%s/job", folder);
    rc = job_file_open(path, &db_options_usual, &fresh, ret_job, NULL);
    return rc ? rc : store_claim(*ret_job, 1, "bench_store", NULL);
}

static double seconds_since(int64_t since_us)
{
    return (double)(clock_now_us() - since_us) / 1e6;
}

/* Writes what is missing to a long job, and takes it over. */
static void live_long(struct load *load, const char *folder)
{
    uint64_t before = load->records;
    int64_t start_us = clock_now_us();
    uint64_t count = 0;
    struct stat st;
    char path[128];
    double wrote_s, opened_s;

    while (load->records < LONG_JOB)
        write_records(load, BATCH);
    wrote_s = seconds_since(start_us);
    store_close(load->job);
    load->job = NULL;
    snprintf(path, sizeof(path), "%s/job", folder);
    start_us = clock_now_us();
    if (stat(path, &st) || open_job(folder, &load->job))
        abort();
    opened_s = seconds_since(start_us);
    start_us = clock_now_us();
    if (store_replay(load->job, count_record, &count, NULL) || count != load->records)
        abort();
    printf("a journal of %d records: %.0f MB; %.1f us to write one in a batch of %d, and to take "
           "it over\n  %.2f s to open and check it, %.2f s to read it\n",
           LONG_JOB, (double)st.st_size / 1e6, wrote_s * 1e6 / (double)(LONG_JOB - before), BATCH,
           opened_s, seconds_since(start_us));
}

static struct load make_load(const char *folder)
{
    struct load load = { .records = 0 };
    char path[128];

    snprintf(path, sizeof(path), "%s/page", folder);
    load.fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (load.fd < 0 || open_job(folder, &load.job)) {
        fprintf(stderr, "bench_store: cannot write in %s\n", folder);
        exit(1);
    }
    return load;
}

static void remove_files(const char *folder)
{
    static const char *const names[] = { "page", "job", "job-wal", "job-shm" };
    char path[128];

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
        unlink(path);
    }
    rmdir(folder);
}

int main(void)
{
    char folder[] = "build/bench-store-XXXXXX"; /* the disk of the checkout, not a memory one */
    struct bench_result syncing;
    struct load load;

    if (!mkdtemp(folder)) {
        perror("bench_store: run it from the top of the tree");
        return 1;
    }
    load = make_load(folder);
    syncing = bench_time(sync_page, &load, SECONDS);
    bench_line("write a page and sync it", syncing, "sync", syncing);
    bench_line("write a record of the journal", bench_time(write_one, &load, SECONDS), "sync",
               syncing);
    bench_line("write a batch of 100", bench_time(write_batch, &load, SECONDS), "sync", syncing);
    live_long(&load, folder);
    store_close(load.job);
    close(load.fd);
    remove_files(folder);
    return 0;
}
