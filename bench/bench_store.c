/*
 * bench_store: what it takes to make a record of the journal durable, beside what the disk takes to
 * sync one page. That is the floor: what is acknowledged has been synced. And what a long job costs
 * the driver that takes it over: a journal of many records, opened and replayed.
 */
#include "bench/bench.h"
#include "bench/churn.h"
#include "driver/core/core.h"
#include "driver/journal/compact.h"
#include "driver/journal/job_file.h"
#include "driver/store/store_core.h"
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

struct load {
    struct store *job;
    struct churn churn;
    int fd;
};

static void sync_page(void *arg)
{
    static const char page[PAGE_BYTES];
    struct load *load = arg;

    if (pwrite(load->fd, page, sizeof(page), 0) != sizeof(page) || fdatasync(load->fd))
        abort();
}

static void write_records(struct load *load, size_t count)
{
    static uint64_t members[BATCH][CHURN_WORKERS];
    struct journal_record records[BATCH];
    struct job_write writes[BATCH];

    for (size_t i = 0; i < count; i++) {
        records[i] = churn_next(&load->churn);
        memcpy(members[i], load->churn.list, sizeof(members[i]));
        if (records[i].members.count)
            records[i].members.items = records[i].holders.items = members[i];
        writes[i] = (struct job_write){ .record = &records[i] };
    }
    if (store_write(load->job, writes, count, NULL))
        abort();
}

static void write_one(void *arg)
{
    write_records(arg, 1);
}

static void write_batch(void *arg)
{
    write_records(arg, BATCH);
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

/* Opens the job as a successor does: the file is checked and its journal goes into a core. */
static void take_over(struct load *load, const char *folder, const char *what)
{
    struct core *core = NULL;
    struct core_config config;
    uint64_t records;
    int64_t since_us;
    char path[128];
    struct stat st;
    double opened_s;

    core_config_init(&config);
    config.job = "bench";
    config.np = CHURN_WORKERS;
    config.min_np = 1;
    store_close(load->job);
    snprintf(path, sizeof(path), "%s/job", folder);
    since_us = clock_now_us();
    if (stat(path, &st) || open_job(folder, &load->job))
        abort();
    opened_s = seconds_since(since_us);
    if (core_config_finish(&config, NULL) || !(core = core_create(&config, NULL)) ||
        store_replay_core(load->job, core, &records, NULL))
        abort();
    printf("%s: %.0f MB, %llu records: %.3f s to open and check it, %.3f s with the journal\n",
           what, (double)st.st_size / 1e6, (unsigned long long)records, opened_s,
           seconds_since(since_us));
    core_free(core);
}

/* Lives as a job that loses a worker every few records, is taken over, and is compacted. */
static void live_long(struct load *load, const char *folder)
{
    struct core_config config;
    uint64_t left = 0;
    int64_t since_us;

    while (load->churn.number < LONG_JOB ||
           load->churn.number % CHURN_RECORDS != CHURN_FIRST % CHURN_RECORDS)
        write_records(load, load->churn.number + BATCH < LONG_JOB ? BATCH : 1);
    take_over(load, folder, "a long job");
    core_config_init(&config);
    config.job = "bench";
    config.np = CHURN_WORKERS;
    config.min_np = 1;
    since_us = clock_now_us();
    if (core_config_finish(&config, NULL) || journal_compact(load->job, &config, &left, NULL))
        abort();
    printf("compacted in %.3f s\n", seconds_since(since_us));
    take_over(load, folder, "the same job, compacted");
}

static struct load make_load(const char *folder)
{
    struct load load = { .job = NULL };
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
