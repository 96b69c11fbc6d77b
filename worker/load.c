/*
 * load.c: hvd_state_load: the live state out of a checkpoint, which hvd_state_save or a job has
 * written.
 *
 * Called by the program, in train or while hvd_elastic_run is not running. Invariant: no entry is
 * changed before all entries were found with the right size, kind and type.
 */
#include "proto/commit.h"
#include "proto/entry_type.h"
#include "state/checkpoint/read.h"
#include "worker/fail.h"
#include "worker/saved.h"

#include <inttypes.h>
#include <string.h>

/* LOAD_ATTEMPTS: how often a load is tried, if each attempt finds a newer checkpoint than the one
 * before (another process saves meanwhile). LOAD_ATTEMPTS_NONE: how often it is tried if no
 * checkpoint is found: a save may have completed a new checkpoint and removed the old one during
 * the search. */
#define LOAD_ATTEMPTS      100
#define LOAD_ATTEMPTS_NONE 4

struct load {
    struct saved entries;
    struct checkpoint_store *store;
    struct checkpoint_manifest manifest;
    struct checkpoint_reader *reader;
    /* the commit of the checkpoint that the last attempt has found; 0: it has found none */
    uint64_t commit;
};

/* Opens the checkpoint at `path`: the folder of one checkpoint ("commit-12.5"), or a directory,
 * whose newest complete checkpoint is opened. */
static int load_open(struct load *load, const char *path, struct hvd_err *err)
{
    size_t length = strlen(path);
    char above[LIMIT_PATH_BYTES];
    const char *folder = above;
    uint64_t commit;
    char *slash;
    int rc;

    while (length > 1 && path[length - 1] == '/')
        length--;
    if (length >= sizeof(above))
        return err_set(
            err, HVD_E_LIMIT,
            "the path has %zu bytes, more than %d (LIMIT_PATH_BYTES); give a shorter path", length,
            LIMIT_PATH_BYTES - 1);
    memcpy(above, path, length);
    above[length] = '\0';
    slash = strrchr(above, '/');
    if (slash)
        folder = slash + 1;
    if (!checkpoint_folder_commit(folder, &commit)) {
        rc = checkpoint_store_open(above, &load->store, err);
        return rc ? rc : checkpoint_find_newest(load->store, NULL, NULL, &load->manifest, err);
    }
    if (slash)
        *slash = '\0';
    rc = checkpoint_store_open(!slash ? "." : slash == above ? "/" : above, &load->store, err);
    return rc ? rc : checkpoint_load(load->store, folder, &load->manifest, err);
}

/* Checks that the checkpoint has this entry of the state, with the same kind, type and size. */
static int load_check(const struct load *load, const struct manifest_entry *ours,
                      struct hvd_err *err)
{
    int64_t index = checkpoint_entry_find(load->reader, ours->name);
    const struct msg_entry *stored;

    if (index < 0)
        return err_set(err, HVD_E_NOTFOUND,
                       "the checkpoint has no entry \"%s\"; load a checkpoint of this program",
                       ours->name);
    stored = &load->manifest.entries.items[index];
    if (stored->kind != ours->kind || stored->custom != ours->custom)
        return err_set(err, HVD_E_INVAL,
                       "entry \"%s\" is of another kind in the checkpoint; register the entry as "
                       "the program that wrote the checkpoint did",
                       ours->name);
    if (ours->type && stored->type && ours->type != stored->type)
        return err_set(
            err, HVD_E_INVAL,
            "entry \"%s\" consists of %s, and of %s in the checkpoint; register the entry as "
            "the program that wrote the checkpoint did",
            ours->name, entry_type_text(ours->type), entry_type_text(stored->type));
    if (!ours->custom && ours->bytes != stored->bytes)
        return err_set(err, HVD_E_INVAL,
                       "entry \"%s\" has %" PRIu64 " bytes, and %" PRIu64
                       " in the checkpoint; register the entry as the program that wrote the "
                       "checkpoint did",
                       ours->name, ours->bytes, stored->bytes);
    return 0;
}

/* Reads the entries from the checkpoint at `path` into host memory; saved_give then writes them to
 * the live state. load->commit says which checkpoint it was; 0: none was found. */
static int load_attempt(struct load *load, const char *path, struct hvd_err *err)
{
    struct saved_entry *one;
    uint32_t size = 1;
    uint32_t rank = 0;
    bool has_per_rank; /* the checkpoint has the per-rank entries of this worker */
    int rc;

    checkpoint_manifest_init(&load->manifest);
    load->store = NULL;
    load->reader = NULL;
    rc = load_open(load, path, err);
    load->commit = load->manifest.commit;
    if (!rc)
        rc = checkpoint_reader_open(load->store, &load->manifest, &load->reader, err);
    VEC_EACH (one, &load->entries) {
        if (!rc)
            rc = load_check(load, one->entry, err);
    }
    if (!rc) /* from now on the live state may be of no commit */
        load->entries.state->live = 0;
    /* A state that a program has saved is that of one worker (round 0). The checkpoint of a job has
     * per-rank entries by rank, which are this worker's only if the job has as many ranks now. */
    if (COMMIT_ROUND_OF(load->commit) > 0 && hvd_is_initialized()) {
        size = (uint32_t)hvd_size();
        rank = (uint32_t)hvd_rank();
    }
    has_per_rank = load->manifest.ranks == size;
    VEC_EACH (one, &load->entries) {
        one->left_out = one->entry->kind == ENTRY_PER_RANK && !has_per_rank;
        if (!rc && !one->left_out)
            rc = checkpoint_entry_read(load->reader, one->entry->name, rank, one->at,
                                       one->entry->bytes, &one->bytes, err);
    }
    checkpoint_reader_close(load->reader);
    checkpoint_manifest_release(&load->manifest);
    checkpoint_store_close(load->store);
    return rc;
}

/* A save of another process may complete a newer checkpoint, and remove the one that is being read.
 * So a failure is returned only if the next attempt finds no other checkpoint. */
int hvd_state_load(hvd_state *state, const char *path)
{
    struct load load = { .commit = 0 };
    struct hvd_err *err = fail_err();
    uint64_t before = 0;
    int rc = saved_begin(state, "hvd_state_load", path);

    if (rc)
        return rc;
    rc = saved_init(&load.entries, state, err);
    if (rc)
        return saved_end("hvd_state_load", rc);
    for (int i = 0, none = 0; i < LOAD_ATTEMPTS && none < LOAD_ATTEMPTS_NONE; i++) {
        rc = load_attempt(&load, path, err);
        if ((rc != HVD_E_NOTFOUND && rc != HVD_E_CORRUPT) || (load.commit && load.commit == before))
            break;
        before = load.commit;
        none = load.commit ? 0 : none + 1;
    }
    if (!rc)
        rc = saved_give(&load.entries, err);
    saved_release(&load.entries);
    return saved_end("hvd_state_load", rc);
}
