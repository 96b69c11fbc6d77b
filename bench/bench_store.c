/*
 * bench_store: what it takes to make a failure durable, beside what the disk takes to sync one
 * page. That is the floor: a record that is acknowledged has been synced.
 */
#include "bench/bench.h"
#include "blacklist/store/store_sqlite.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SECONDS    3.0
#define PAGE_BYTES 4096

struct load {
    struct blacklist_store *store;
    struct blacklist_record record;
    struct blacklist_event event;
    int fd;
};

static void sync_page(void *arg)
{
    static const char page[PAGE_BYTES];
    struct load *load = arg;

    if (pwrite(load->fd, page, sizeof(page), 0) != sizeof(page) || fdatasync(load->fd))
        abort();
}

static void put(void *arg)
{
    struct load *load = arg;

    load->event.wall_us++;
    load->record.failures = load->record.failures % 1000 + 1;
    if (blacklist_store_put(load->store, &load->record, &load->event, NULL))
        abort();
}

static struct load make_load(const char *folder)
{
    struct load load = {
        .record = {.slot = 1, .since_wall_us = 1, .until_wall_us = 2 },
        .event = { .slot = 1,        .counted = true                }
    };
    struct hvd_err err;
    char path[128];

    snprintf(load.record.host, sizeof(load.record.host), "node-0123.cluster");
    snprintf(load.event.host, sizeof(load.event.host), "node-0123.cluster");
    snprintf(load.record.reason, sizeof(load.record.reason), "killed by signal 9");
    snprintf(load.event.reason, sizeof(load.event.reason), "killed by signal 9");
    snprintf(path, sizeof(path), "%s/page", folder);
    load.fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    snprintf(path, sizeof(path), "%s/blacklist", folder);
    if (load.fd < 0 || store_sqlite_open(path, &db_options_usual, &load.store, &err)) {
        fprintf(stderr, "bench_store: cannot write in %s\n", folder);
        exit(1);
    }
    return load;
}

static void remove_files(const char *folder)
{
    static const char *const names[] = { "page", "blacklist", "blacklist-wal", "blacklist-shm" };
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
    bench_line("put a record and its history row", bench_time(put, &load, SECONDS), "sync",
               syncing);
    blacklist_store_close(load.store);
    close(load.fd);
    remove_files(folder);
    return 0;
}
