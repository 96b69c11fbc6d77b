/*
 * save.c: hvd_state_save: the live state as a checkpoint in a directory, without a driver.
 *
 * Called by the program, in train or while hvd_elastic_run is not running. Invariant: what was
 * saved before is removed only when the new checkpoint is complete, so a process may die on any
 * line.
 */
#include "base/mem.h"
#include "os/clock.h"
#include "proto/commit.h"
#include "state/checkpoint/manifest.h"
#include "state/checkpoint/part.h"
#include "worker/fail.h"
#include "worker/saved.h"

#include <errno.h>
#include <stdio.h>
#include <sys/file.h>

/* The round in the numbers of checkpoints that programs save. Rounds of a job count from 1, so no
 * commit of a job has it. */
#define SAVED_ROUND 0

#define SAVED_FILES 2 /* one file for the replicated entries, one for those per rank */

struct save {
    struct saved entries;
    struct checkpoint_store *store;
    uint64_t commit; /* the number of the new checkpoint; during the search for a free number: the
                        highest number so far */
    bool complete;
    struct checkpoint_file files[SAVED_FILES];
    struct part_written written[SAVED_FILES];
    size_t count; /* the number of files that were written */
};

/* A checkpoint_visit_fn. Before the new checkpoint is written (`complete` is false) it finds the
 * highest number that a save has used in this directory, also of a checkpoint that is not complete.
 * Afterwards it removes the older checkpoints; if one cannot be removed, the next save tries
 * again. */
static int save_visit(void *arg, const char *folder, uint64_t commit)
{
    struct save *save = arg;

    if (COMMIT_ROUND_OF(commit) != SAVED_ROUND)
        return 0;
    if (!save->complete && commit > save->commit)
        save->commit = commit;
    if (save->complete && commit < save->commit)
        (void)!checkpoint_remove(save->store, folder, NULL);
    return 0;
}

/* Writes the entries of one kind to a file, if there are any. */
static int save_file(struct save *save, uint32_t kind, struct hvd_err *err)
{
    const char *name =
        kind == ENTRY_REPLICATED ? "replicated.safetensors" : "rank-00000.safetensors";
    struct part_written *written = &save->written[save->count];
    struct part_source *sources = mem_zalloc_array(save->entries.count, sizeof(*sources));
    struct part_sources list = { save->commit, sources, 0 };
    char folder[CHECKPOINT_FOLDER_MAX];
    char path[CHECKPOINT_FOLDER_MAX + 32];
    const struct saved_entry *one;
    int rc = 0;

    if (!sources)
        return err_set(err, HVD_E_NOMEM,
                       "no memory for a list of entries; free memory on this host");
    VEC_EACH (one, &save->entries) {
        if (one->entry->kind == kind)
            sources[list.count++] =
                (struct part_source){ one->entry->name, one->at, one->bytes, one->entry->type };
    }
    snprintf(path, sizeof(path), "%s/%s", checkpoint_folder(save->commit, folder), name);
    if (list.count)
        rc = part_write(save->store, path, &list, NULL, NULL, written, err);
    if (!rc && list.count)
        save->files[save->count++] = (struct checkpoint_file){
            .name = name,
            .bytes = written->bytes,
            .rank = kind == ENTRY_REPLICATED ? CHECKPOINT_REPLICATED : 0,
            .sums = (const uint8_t *)written->sums.data,
        };
    mem_free(sources);
    return rc;
}

/* Writes a whole checkpoint. A checkpoint that could not be written as a whole is removed, so that
 * its bytes do not fill the disk. */
static int save_state_write(struct save *save, struct hvd_err *err)
{
    const struct manifest *state = &save->entries.state->manifest;
    struct checkpoint_manifest manifest;
    char folder[CHECKPOINT_FOLDER_MAX];
    uint64_t sum;
    int rc;

    /* The lock is released when the store is closed. On a file system without locks no lock is
     * taken. */
    if (flock(checkpoint_store_directory(save->store), LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK)
        return err_set(
            err, HVD_E_BUSY,
            "%s: another process is writing a checkpoint there; let one rank save, or give "
            "each process its own directory",
            checkpoint_store_where(save->store));
    save->commit = COMMIT_FIRST_OF(SAVED_ROUND);
    rc = checkpoint_each(save->store, save_visit, save, err);
    if (!rc && COMMIT_PLACE_OF(save->commit++) == UINT32_MAX)
        rc = err_set(err, HVD_E_LIMIT,
                     "%s: no number is left for a checkpoint; use another directory",
                     checkpoint_store_where(save->store));
    if (rc)
        return rc;
    rc = save_file(save, ENTRY_REPLICATED, err);
    if (!rc)
        rc = save_file(save, ENTRY_PER_RANK, err);
    checkpoint_manifest_init(&manifest);
    manifest.commit = save->commit;
    manifest.ranks = 1;
    manifest.wall_us = clock_wall_us();
    manifest.digest = manifest_digest(state);
    manifest.files = save->files;
    manifest.file_count = save->count;
    if (!rc && manifest_entries(state, &manifest.memory, &manifest.entries))
        rc = err_set(err, HVD_E_NOMEM,
                     "no memory for the manifest of a checkpoint; free memory on this host");
    if (!rc)
        rc = checkpoint_write_manifest(save->store, &manifest, &sum, err);
    if (!rc)
        rc = checkpoint_write_complete(save->store, save->commit, sum, err);
    checkpoint_manifest_release(&manifest);
    for (size_t i = 0; i < save->count; i++)
        buf_release(&save->written[i].sums);
    save->complete = !rc;
    if (rc)
        (void)!checkpoint_remove(save->store, checkpoint_folder(save->commit, folder), NULL);
    else
        (void)!checkpoint_each(save->store, save_visit, save, NULL);
    return rc;
}

/* Saves the live state: lists the entries, copies those of custom entries and of a GPU into host
 * memory, and writes the checkpoint. All memory is freed on the way out. */
int hvd_state_save(hvd_state *state, const char *path)
{
    struct save save = { .store = NULL };
    struct hvd_err *err = fail_err();
    int rc = saved_begin(state, "hvd_state_save", path);

    if (rc)
        return rc;
    rc = saved_init(&save.entries, state, err);
    if (rc)
        return saved_end("hvd_state_save", rc);
    rc = saved_take(&save.entries, err);
    if (!rc)
        rc = checkpoint_store_make(path, &save.store, err);
    if (!rc)
        rc = save_state_write(&save, err);
    checkpoint_store_close(save.store);
    saved_release(&save.entries);
    return saved_end("hvd_state_save", rc);
}
