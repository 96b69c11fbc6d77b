/*
 * bench_commit: what a commit and a restore cost beside memcpy of the same bytes, by one thread and
 * by as many as there are. A commit makes checksums, a restore verifies them.
 * State in device memory is bench/gpu/job_commit.c's: the last line says how to have it measured,
 * or why it cannot be here.
 */
#include "base/mem.h"
#include "bench/bench.h"
#include "gpu/cuda.h"
#include "state/snapshot/copy.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECONDS 2.0
#define ENTRIES 7 /* of unequal sizes, so that chunks hold the ends of some */

struct load {
    struct manifest manifest;
    struct copy_part parts[ENTRIES];
    struct copy copy;
    struct snapshot *snapshot;
    uint8_t *live;
    uint8_t *other; /* where memcpy goes */
    uint64_t bytes;
    uint64_t commit;
};

static void copy_plainly(void *arg)
{
    struct load *load = arg;

    memcpy(load->other, load->live, load->bytes);
    bench_keep(load->other);
}

static void commit(void *arg)
{
    struct load *load = arg;

    if (copy_commit(load->snapshot, &load->copy, NULL))
        abort();
    snapshot_end(load->snapshot, ++load->commit);
}

static void restore(void *arg)
{
    struct load *load = arg;

    if (copy_restore(load->snapshot, load->commit, &load->copy, NULL))
        abort();
}

static void add_entries(struct load *load)
{
    uint64_t done = 0;

    for (int i = 0; i < ENTRIES; i++) {
        uint64_t bytes = i < ENTRIES - 1 ? (load->bytes >> (i + 1)) + 68 : load->bytes - done;
        char name[16];

        snprintf(name, sizeof(name), "entry %d", i);
        if (manifest_add(&load->manifest, name, bytes, ENTRY_REPLICATED, false, NULL))
            abort();
        load->parts[i].at = load->live + done;
        done += bytes;
    }
    manifest_seal(&load->manifest);
}

static void load_init(struct load *load, uint64_t bytes)
{
    struct snapshot_shape shape;

    *load = (struct load){ .bytes = bytes - ENTRIES * MANIFEST_ALIGN };
    load->live = mem_alloc(load->bytes);
    load->other = mem_alloc(load->bytes);
    if (!load->live || !load->other)
        abort();
    memset(load->live, 1, load->bytes);
    memset(load->other, 2, load->bytes);
    manifest_init(&load->manifest);
    add_entries(load);
    load->copy = (struct copy){
        .manifest = &load->manifest, .parts = load->parts, .which = COPY_ALL, .threads = 1
    };
    shape = (struct snapshot_shape){ load->manifest.digest, load->manifest.replicated_bytes,
                                     load->manifest.bytes };
    if (snapshot_create(&shape, &load->snapshot, NULL))
        abort();
    commit(load); /* the memory behind both buffers */
    commit(load);
}

static void load_release(struct load *load)
{
    snapshot_free(load->snapshot);
    manifest_release(&load->manifest);
    mem_free(load->live);
    mem_free(load->other);
}

static void show(const struct load *load, const char *name, struct bench_result result,
                 struct bench_result reference)
{
    char line[64];

    snprintf(line, sizeof(line), "%5" PRIu64 " MiB  %-14s %5.1f GB/s", (load->bytes >> 20) + 1,
             name, (double)load->bytes / result.median_ns);
    bench_line(line, result, "memcpy", reference);
}

static void measure(uint64_t bytes)
{
    struct bench_result reference;
    struct load load;

    load_init(&load, bytes);
    reference = bench_time(copy_plainly, &load, SECONDS);
    show(&load, "memcpy", reference, reference);
    load.copy.threads = 1;
    show(&load, "commit by one", bench_time(commit, &load, SECONDS), reference);
    show(&load, "restore by one", bench_time(restore, &load, SECONDS), reference);
    load.copy.threads = 0;
    show(&load, "commit", bench_time(commit, &load, SECONDS), reference);
    show(&load, "restore", bench_time(restore, &load, SECONDS), reference);
    load_release(&load);
}

static void say_devices(void)
{
    const struct cuda *cuda = NULL;
    struct hvd_err err = { .text = "" };

    if (cuda_open(&cuda, &err))
        printf("state in device memory: left out, no GPU: %s\n", err.text);
    else
        printf("state in device memory: by ./dev bench gpu commit\n");
}

int main(void)
{
    static const uint64_t sizes[] = { 1 << 20, 64 << 20, 1 << 30 };

    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
        measure(sizes[i]);
    say_devices();
    return 0;
}
