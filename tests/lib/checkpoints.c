/*
 * checkpoints.c: writes checkpoints through the code of the product, and reads them back.
 */
#include "tests/lib/checkpoints.h"

#include "base/mem.h"
#include "base/panic.h"
#include "state/checkpoint/part.h"
#include "state/checkpoint/read.h"
#include "state/sum.h"
#include "tests/lib/files.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define SAMPLER_ROOM 64
#define SAMPLER_USED 11
#define MINE_COUNT   3
#define FILES        (2 + CHECKPOINTS_RANKS)

size_t checkpoints_weights = CHECKPOINTS_WEIGHTS;

/* the entries of the manifest; checkpoints_write_parts sets the bytes of the weights */
static struct msg_entry state[] = {
    {.name = "weights",           .kind = ENTRY_REPLICATED, .type = 1 + HVD_FLOAT32},
    {                 .name = "step",                 .bytes = 8, .kind = ENTRY_REPLICATED,   .type = 1 + HVD_INT64 },
    {                .name = "notes", .bytes = CHECKPOINTS_NOTES, .kind = ENTRY_REPLICATED                      },
    { .name = "sampler",   .bytes = SAMPLER_ROOM,             .kind = ENTRY_REPLICATED,                       .custom = true },
    {   .name = "mine",
     .bytes = MINE_COUNT * sizeof(int32_t),
     .kind = ENTRY_PER_RANK,
     .type = 1 + HVD_INT32 },
};

static size_t weights_bytes(void)
{
    return checkpoints_weights * sizeof(float);
}

/* The values of one commit, as one rank has them. */
struct values {
    int64_t step;
    char notes[CHECKPOINTS_NOTES];
    char sampler[SAMPLER_ROOM];
    int32_t mine[MINE_COUNT];
    float weights[]; /* checkpoints_weights numbers */
};

static size_t values_bytes(void)
{
    return sizeof(struct values) + weights_bytes();
}

static void values_make_mine(struct values *values, uint64_t commit, uint32_t rank)
{
    for (int32_t i = 0; i < MINE_COUNT; i++)
        values->mine[i] = (int32_t)rank * 1000 + (int32_t)(commit % 100) + i;
}

static void values_make(struct values *values, uint64_t commit)
{
    memset(values, 0, sizeof(*values));
    for (size_t i = 0; i < checkpoints_weights; i++)
        values->weights[i] = (float)(i % 1000) + (float)(commit % 97) / 128;
    values->step = (int64_t)commit;
    memset(values->notes, (int)('a' + commit % 26), sizeof(values->notes));
    snprintf(values->sampler, sizeof(values->sampler), "epoch %05u", (unsigned)(commit % 99999));
}

/* Writes one file, and fills its row of the manifest. */
static int write_file(struct checkpoint_store *storage, struct checkpoint_manifest *manifest,
                      struct checkpoint_file *file, const char *name,
                      const struct part_source *sources, size_t count, struct hvd_err *err)
{
    char path[LIMIT_CHECKPOINT_NAME_BYTES + 1];
    char folder[CHECKPOINT_FOLDER_MAX];
    struct part_written written;
    char *copy = arena_alloc(&manifest->memory, strlen(name) + 1);
    uint8_t *sums;
    int rc;

    if (!copy)
        return HVD_E_NOMEM;
    memcpy(copy, name, strlen(name) + 1);
    snprintf(path, sizeof(path), "%s/%s", checkpoint_folder(manifest->commit, folder), name);
    rc = part_write(storage, path, &(struct part_sources){ manifest->commit, sources, count }, NULL,
                    NULL, &written, err);
    if (rc)
        return rc;
    sums = arena_alloc(&manifest->memory, written.sums.length);
    if (sums) {
        memcpy(sums, written.sums.data, written.sums.length);
        *file = (struct checkpoint_file){ copy, written.bytes, CHECKPOINT_REPLICATED, sums };
    }
    buf_release(&written.sums);
    return sums ? 0 : HVD_E_NOMEM;
}

static int write_files(struct checkpoint_store *storage, struct checkpoint_manifest *manifest,
                       struct checkpoint_file *files, struct values *values, unsigned attempt,
                       struct hvd_err *err)
{
    const struct part_source replicated[] = {
        {"weights",  values->weights, weights_bytes(),       1 + HVD_FLOAT32},
        { "step",    &values->step,   sizeof(values->step),  1 + HVD_INT64  },
        { "notes",   values->notes,   sizeof(values->notes), 0              },
        { "sampler", values->sampler, SAMPLER_USED,          0              },
    };
    const struct part_source mine = { "mine", values->mine, sizeof(values->mine), 1 + HVD_INT32 };
    char name[64];
    int rc;

    values_make(values, manifest->commit);
    snprintf(name, sizeof(name), "replicated-0001-of-0002.t1a%u.safetensors", attempt);
    rc = write_file(storage, manifest, &files[0], name, replicated, 1, err);
    snprintf(name, sizeof(name), "replicated-0002-of-0002.t1a%u.safetensors", attempt);
    if (!rc)
        rc = write_file(storage, manifest, &files[1], name, replicated + 1, 3, err);
    for (uint32_t rank = 0; !rc && rank < CHECKPOINTS_RANKS; rank++) {
        values_make_mine(values, manifest->commit, rank);
        snprintf(name, sizeof(name), "rank-%05u.t1a%u.safetensors", (unsigned)rank, attempt);
        rc = write_file(storage, manifest, &files[2 + rank], name, &mine, 1, err);
        if (!rc)
            files[2 + rank].rank = (int32_t)rank;
    }
    return rc;
}

int checkpoints_write_parts(struct checkpoint_store *storage, uint64_t commit, unsigned attempt,
                            struct checkpoint_manifest *ret, struct hvd_err *err)
{
    struct checkpoint_manifest manifest;
    struct checkpoint_file *files;
    struct values *values = mem_zalloc(values_bytes());
    int rc = HVD_E_NOMEM;

    state[0].bytes = weights_bytes();
    checkpoint_manifest_init(&manifest);
    files = arena_alloc_array(&manifest.memory, FILES, sizeof(*files));
    manifest.job = "job \"1\"";
    manifest.commit = commit;
    manifest.ranks = CHECKPOINTS_RANKS;
    manifest.wall_us = INT64_C(1790000000250000) + (int64_t)(commit % 1000) * 1000000;
    manifest.digest = 0xfedcba9876543210;
    manifest.entries = (struct msg_entry_list){ state, ARRAY_SIZE(state) };
    manifest.files = files;
    manifest.file_count = FILES;
    if (files && values)
        rc = write_files(storage, &manifest, files, values, attempt, err);
    mem_free(values);
    if (rc)
        checkpoint_manifest_release(&manifest);
    else
        *ret = manifest;
    return rc;
}

int checkpoints_write(struct checkpoint_store *storage, uint64_t commit, struct hvd_err *err)
{
    struct checkpoint_manifest manifest;
    uint64_t sum;
    int rc = checkpoints_write_parts(storage, commit, 1, &manifest, err);

    if (rc)
        return rc;
    rc = checkpoint_write_manifest(storage, &manifest, &sum, err);
    if (!rc)
        rc = checkpoint_write_complete(storage, commit, sum, err);
    checkpoint_manifest_release(&manifest);
    return rc;
}

void checkpoints_change(const char *folder, const char *old, const char *new_text)
{
    static struct file_bytes before;
    static char after[FILES_MAX_BYTES];
    char path[600], complete[32];
    const char *at;
    int length;

    snprintf(path, sizeof(path), "%s/manifest.json", folder);
    files_read(path, &before);
    before.bytes[before.length] = '\0';
    at = strstr(before.bytes, old);
    if (!at)
        PANIC("%s has no %s", path, old);
    length = snprintf(after, sizeof(after), "%.*s%s%s", (int)(at - before.bytes), before.bytes,
                      new_text, at + strlen(old));
    files_write(path, after, (size_t)length);
    snprintf(path, sizeof(path), "%s/COMPLETE", folder);
    snprintf(complete, sizeof(complete), "%016" PRIx64 "\n", sum_of(after, (size_t)length));
    files_write(path, complete, strlen(complete));
}

/* Reads one entry, and compares it. */
static int check_entry(struct checkpoint_reader *reader, const char *name, uint32_t rank,
                       const void *expected, uint64_t expected_bytes, void *at, struct hvd_err *err)
{
    uint64_t bytes = 0;
    int rc = checkpoint_entry_read(reader, name, rank, at, values_bytes(), &bytes, err);

    if (!rc && (bytes != expected_bytes || memcmp(at, expected, bytes) != 0))
        rc = err_set(err, HVD_E_MISMATCH, "entry %s has other values", name);
    return rc;
}

static int check_values(struct checkpoint_reader *reader, struct values *values, uint64_t commit,
                        void *at, struct hvd_err *err)
{
    int rc;

    values_make(values, commit);
    rc = check_entry(reader, "weights", 0, values->weights, weights_bytes(), at, err);
    if (!rc)
        rc = check_entry(reader, "step", 0, &values->step, 8, at, err);
    if (!rc)
        rc = check_entry(reader, "notes", 0, values->notes, sizeof(values->notes), at, err);
    if (!rc)
        rc = check_entry(reader, "sampler", 0, values->sampler, SAMPLER_USED, at, err);
    for (uint32_t rank = 0; !rc && rank < CHECKPOINTS_RANKS; rank++) {
        values_make_mine(values, commit, rank);
        rc = check_entry(reader, "mine", rank, values->mine, sizeof(values->mine), at, err);
    }
    return rc;
}

int checkpoints_check(struct checkpoint_store *storage, const struct checkpoint_manifest *manifest,
                      struct hvd_err *err)
{
    struct values *values = mem_zalloc(values_bytes());
    void *at = mem_alloc(values_bytes());
    struct checkpoint_reader *reader;
    int rc;

    if (!values || !at) {
        mem_free(values);
        mem_free(at);
        return HVD_E_NOMEM;
    }
    rc = checkpoint_reader_open(storage, manifest, &reader, err);
    if (!rc) {
        rc = check_values(reader, values, manifest->commit, at, err);
        checkpoint_reader_close(reader);
    }
    mem_free(at);
    mem_free(values);
    return rc;
}
