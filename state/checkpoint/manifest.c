/*
 * manifest.c: checkpoints as folders of a storage: written, loaded, found; manifest_json.c has the
 * manifest itself. Called by the driver's catalog, by agents that read a checkpoint for a worker,
 * and by the operator's verbs. Invariant: a checkpoint without a COMPLETE that fits its manifest is
 * never used, and COMPLETE is written last and removed first.
 */
#include "state/checkpoint/manifest.h"

#include "base/mem.h"
#include "base/text.h"
#include "proto/commit.h"
#include "state/checkpoint/part_internal.h"
#include "state/sum.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FOLDER_PREFIX  "commit-"
#define COMPLETE_BYTES 17 /* 16 digits and a newline */

/* Copies bytes into the arena. NULL: no memory is left. */
static void *copy_bytes(struct arena *arena, const void *from, size_t bytes)
{
    void *copy = arena_alloc(arena, bytes);

    if (copy && bytes > 0)
        memcpy(copy, from, bytes);
    return copy;
}

/* Copies a manifest with its texts, lists and checksums into memory of the copy's own. */
int checkpoint_manifest_copy(const struct checkpoint_manifest *from,
                             struct checkpoint_manifest *ret)
{
    struct checkpoint_manifest copy = *from;
    struct checkpoint_file *files;
    struct msg_entry *entries;
    bool made;

    arena_init(&copy.memory, (size_t)2 * LIMIT_CHECKPOINT_MANIFEST_BYTES);
    entries = copy_bytes(&copy.memory, from->entries.items,
                         from->entries.count * sizeof(*from->entries.items));
    files = copy_bytes(&copy.memory, from->files, from->file_count * sizeof(*from->files));
    copy.job = copy_bytes(&copy.memory, from->job, strlen(from->job) + 1);
    made = entries && files && copy.job;
    for (size_t i = 0; made && i < from->entries.count; i++) {
        const char *name = from->entries.items[i].name;

        made = (entries[i].name = copy_bytes(&copy.memory, name, strlen(name) + 1)) != NULL;
    }
    for (size_t i = 0; made && i < from->file_count; i++) {
        const struct checkpoint_file *file = &from->files[i];

        files[i].name = copy_bytes(&copy.memory, file->name, strlen(file->name) + 1);
        files[i].sums =
            copy_bytes(&copy.memory, file->sums, (size_t)checkpoint_chunks(file->bytes) * 8);
        made = files[i].name && files[i].sums;
    }
    if (!made) {
        arena_release(&copy.memory);
        return HVD_E_NOMEM;
    }
    copy.entries.items = entries;
    copy.files = files;
    *ret = copy;
    return 0;
}

/* Writes the name of the folder of a commit: "commit-12.5". */
const char *checkpoint_folder(uint64_t commit, char folder[CHECKPOINT_FOLDER_MAX])
{
    char text[PART_COMMIT_MAX];

    snprintf(folder, CHECKPOINT_FOLDER_MAX, FOLDER_PREFIX "%s", part_commit_text(commit, text));
    return folder;
}

/* Reads the commit from the name of its folder; false: the text is no such name. */
bool checkpoint_folder_commit(const char *folder, uint64_t *ret_commit)
{
    size_t length = strlen(FOLDER_PREFIX);

    return !strncmp(folder, FOLDER_PREFIX, length) && part_commit_read(folder + length, ret_commit);
}

/* Splits "STORAGE/FOLDER" at its last slash. The driver sends such a path to an agent that is
 * to read or write a part of the checkpoint. */
int checkpoint_folder_split(const char *path, char ret_where[LIMIT_PATH_BYTES + 1],
                            const char **ret_folder, struct hvd_err *err)
{
    const char *slash = strrchr(path, '/');

    if (!slash || !slash[1] || slash == path || slash - path > LIMIT_PATH_BYTES)
        return err_set(
            err, HVD_E_INVAL,
            "%s: this path is not the folder of a checkpoint; the driver and the agent must be of "
            "the same release",
            path);
    snprintf(ret_where, LIMIT_PATH_BYTES + 1, "%.*s", (int)(slash - path), path);
    *ret_folder = slash + 1;
    return 0;
}

/* Writes a small object with these bytes. `only_new` true: if another writer has made an object of
 * this name meanwhile, the call fails and leaves that object (checkpoint_store_only_new). */
static int write_object(struct checkpoint_store *storage, const char *name, const void *at,
                        size_t bytes, bool only_new, struct hvd_err *err)
{
    struct checkpoint_object *object;
    int rc = checkpoint_store_create(storage, name, bytes, &object, err);

    if (rc)
        return rc;
    if (only_new)
        checkpoint_store_only_new(object);
    rc = checkpoint_store_write(object, at, bytes, err);
    if (!rc)
        return checkpoint_store_finish(object, err);
    checkpoint_store_abandon(object);
    return rc;
}

/* Memory for the name of an object in the folder of a commit: "FOLDER/FILE". */
struct object_name {
    char text[LIMIT_CHECKPOINT_NAME_BYTES + 1];
};

/* Writes the name of an object in a folder of the storage. */
static const char *name_object(struct object_name *name, const char *folder, const char *file)
{
    snprintf(name->text, sizeof(name->text), "%s/%s", folder, file);
    return name->text;
}

/* Writes manifest.json of the commit. *ret_sum is its checksum, for checkpoint_write_complete. */
int checkpoint_write_manifest(struct checkpoint_store *storage,
                              const struct checkpoint_manifest *manifest, uint64_t *ret_sum,
                              struct hvd_err *err)
{
    char folder[CHECKPOINT_FOLDER_MAX];
    struct object_name name;
    struct buf text;
    int rc;

    name_object(&name, checkpoint_folder(manifest->commit, folder), CHECKPOINT_MANIFEST);
    buf_init(&text, LIMIT_CHECKPOINT_MANIFEST_BYTES);
    rc = checkpoint_print(manifest, &text);
    if (rc) {
        err_set(err, rc, "%s/%s: the manifest of this checkpoint cannot be made: %s",
                checkpoint_store_where(storage), name.text,
                rc == HVD_E_LIMIT ? "it would be larger than 300 MiB "
                                    "(LIMIT_CHECKPOINT_MANIFEST_BYTES); register fewer entries"
                                  : "no memory is left; free memory on this host");
    } else {
        rc = write_object(storage, name.text, text.data, text.length,
                          false /* may replace an object */, err);
        if (!rc)
            *ret_sum = sum_of(text.data, text.length);
    }
    buf_release(&text);
    return rc;
}

/* Writes COMPLETE, with the checksum of the manifest: from now on the checkpoint counts. */
int checkpoint_write_complete(struct checkpoint_store *storage, uint64_t commit, uint64_t sum,
                              struct hvd_err *err)
{
    char folder[CHECKPOINT_FOLDER_MAX];
    char text[COMPLETE_BYTES + 1];
    struct object_name name;

    name_object(&name, checkpoint_folder(commit, folder), CHECKPOINT_COMPLETE);
    snprintf(text, sizeof(text), "%016" PRIx64 "\n", sum);
    return write_object(storage, name.text, text, COMPLETE_BYTES, true /* replaces none */, err);
}

/* Removes a checkpoint: first COMPLETE, so that a removal that fails in the middle leaves no
 * checkpoint that counts, then its folder. */
int checkpoint_remove(struct checkpoint_store *storage, const char *folder, struct hvd_err *err)
{
    struct object_name name;
    int rc = checkpoint_store_remove(storage, name_object(&name, folder, CHECKPOINT_COMPLETE), err);

    return rc ? rc : checkpoint_store_remove(storage, folder, err);
}

/* Checks that each file of the manifest is in the storage, and has the size that the manifest
 * says. */
int checkpoint_check_files(struct checkpoint_store *storage,
                           const struct checkpoint_manifest *manifest, struct hvd_err *err)
{
    char folder[CHECKPOINT_FOLDER_MAX];
    struct object_name name;
    uint64_t bytes = 0;
    int rc = 0;

    checkpoint_folder(manifest->commit, folder);
    for (size_t i = 0; !rc && i < manifest->file_count; i++) {
        const struct checkpoint_file *file = &manifest->files[i];

        rc = checkpoint_store_size(storage, name_object(&name, folder, file->name), &bytes, err);
        if (rc == HVD_E_NOTFOUND)
            rc =
                err_set(err, HVD_E_CORRUPT,
                        "%s/%s: the file is missing; choose another checkpoint (--from-checkpoint)",
                        checkpoint_store_where(storage), name.text);
        if (!rc && bytes != file->bytes)
            rc = err_set(err, HVD_E_CORRUPT,
                         "%s/%s: the file has %" PRIu64 " bytes instead of %" PRIu64
                         "; choose another checkpoint (--from-checkpoint)",
                         checkpoint_store_where(storage), name.text, bytes, file->bytes);
    }
    return rc;
}

/* Reads COMPLETE, which has the checksum of the manifest. HVD_E_NOTFOUND: there is no COMPLETE, so
 * the checkpoint does not count. */
static int read_complete(struct checkpoint_store *storage, const char *folder, uint64_t *ret_sum,
                         struct hvd_err *err)
{
    struct object_name name;
    char text[COMPLETE_BYTES];
    uint64_t bytes;
    int rc = checkpoint_store_size(storage, name_object(&name, folder, CHECKPOINT_COMPLETE), &bytes,
                                   err);

    if (rc == HVD_E_NOTFOUND)
        return err_set(err, rc,
                       "%s/%s: the checkpoint is not complete: the file " CHECKPOINT_COMPLETE
                       " is missing; choose another checkpoint (--from-checkpoint)",
                       checkpoint_store_where(storage), folder);
    if (!rc && bytes == COMPLETE_BYTES)
        rc = checkpoint_store_read(storage, name.text, 0, text, sizeof(text), err);
    if (rc)
        return rc;
    if (bytes == COMPLETE_BYTES && text[COMPLETE_BYTES - 1] == '\n' &&
        checkpoint_sum_read(text, COMPLETE_BYTES - 1, ret_sum))
        return 0;
    return err_set(err, HVD_E_CORRUPT,
                   "%s/%s: the file has no checksum of 16 digits; choose another checkpoint "
                   "(--from-checkpoint)",
                   checkpoint_store_where(storage), name.text);
}

/* Reads the text of the manifest into a new block of memory, and compares the text with the
 * checksum `sum` of COMPLETE. */
static int read_manifest(struct checkpoint_store *storage, const char *name, uint64_t sum,
                         char **ret_text, size_t *ret_length, struct hvd_err *err)
{
    uint64_t bytes;
    char *text;
    int rc = checkpoint_store_size(storage, name, &bytes, err);

    if (rc == HVD_E_NOTFOUND)
        return err_set(err, HVD_E_CORRUPT,
                       "%s/%s: the file is missing; choose another checkpoint (--from-checkpoint)",
                       checkpoint_store_where(storage), name);
    if (rc)
        return rc;
    if (bytes > LIMIT_CHECKPOINT_MANIFEST_BYTES)
        return err_set(err, HVD_E_LIMIT,
                       "%s/%s: the file has more than %d bytes (LIMIT_CHECKPOINT_MANIFEST_BYTES); "
                       "choose another checkpoint (--from-checkpoint)",
                       checkpoint_store_where(storage), name, LIMIT_CHECKPOINT_MANIFEST_BYTES);
    text = mem_alloc((size_t)bytes);
    if (!text)
        return err_set(err, HVD_E_NOMEM,
                       "%s/%s: no memory to read this file; free memory on this host",
                       checkpoint_store_where(storage), name);
    rc = checkpoint_store_read(storage, name, 0, text, (size_t)bytes, err);
    if (rc == HVD_E_NOTFOUND) /* manifest.json was removed after COMPLETE was read */
        rc = err_set(err, HVD_E_CORRUPT,
                     "%s/%s: the file is missing; choose another checkpoint (--from-checkpoint)",
                     checkpoint_store_where(storage), name);
    if (!rc && sum_of(text, (size_t)bytes) != sum)
        rc = err_set(err, HVD_E_CORRUPT,
                     "%s/%s: the checksum of this file is not the one in " CHECKPOINT_COMPLETE
                     "; choose another checkpoint (--from-checkpoint)",
                     checkpoint_store_where(storage), name);
    if (rc) {
        mem_free(text);
        return rc;
    }
    *ret_text = text;
    *ret_length = (size_t)bytes;
    return 0;
}

/* Loads the manifest of a folder, if the checkpoint is complete: COMPLETE fits the manifest, the
 * manifest fits the folder, and each file has its size. */
int checkpoint_load(struct checkpoint_store *storage, const char *folder,
                    struct checkpoint_manifest *ret, struct hvd_err *err)
{
    char path[LIMIT_PATH_BYTES + LIMIT_CHECKPOINT_NAME_BYTES + 2];
    char expected[CHECKPOINT_FOLDER_MAX];
    struct checkpoint_manifest manifest;
    struct object_name name;
    char *text = NULL;
    size_t length = 0;
    uint64_t sum = 0;
    int rc = read_complete(storage, folder, &sum, err);

    if (rc)
        return rc;
    name_object(&name, folder, CHECKPOINT_MANIFEST);
    snprintf(path, sizeof(path), "%s/%s", checkpoint_store_where(storage), name.text);
    rc = read_manifest(storage, name.text, sum, &text, &length, err);
    if (rc)
        return rc;
    rc = checkpoint_parse(path, text, length, &manifest, err);
    mem_free(text);
    if (rc)
        return rc;
    if (strcmp(checkpoint_folder(manifest.commit, expected), folder) != 0)
        rc = err_set(err, HVD_E_CORRUPT,
                     "%s: this manifest belongs to the folder %s; rename the folder", path,
                     expected);
    else
        rc = checkpoint_check_files(storage, &manifest, err);
    if (rc)
        checkpoint_manifest_release(&manifest);
    else
        *ret = manifest;
    return rc;
}

struct commit_list VEC(uint64_t);

/* Visits a name of the storage: keeps its commit if it is the folder of a checkpoint. */
static int manifest_take_folder(void *arg, const char *name)
{
    struct commit_list *commits = arg;
    uint64_t commit;
    int rc;

    if (!checkpoint_folder_commit(name, &commit))
        return 0;
    rc = VEC_RESERVE(commits, 1, LIMIT_CHECKPOINTS);
    if (!rc)
        commits->items[commits->count++] = commit;
    return rc;
}

/* For qsort: the newest commit first. */
static int newest_first(const void *left, const void *right)
{
    const uint64_t a = *(const uint64_t *)left;
    const uint64_t b = *(const uint64_t *)right;

    return (a < b) - (a > b);
}

/* Visits the folders of all checkpoints, complete or not, the newest first. The list is read first,
 * because `visit` may use the storage. */
int checkpoint_each(struct checkpoint_store *storage, checkpoint_visit_fn *visit, void *arg,
                    struct hvd_err *err)
{
    struct commit_list commits = { .count = 0 };
    char folder[CHECKPOINT_FOLDER_MAX];
    int rc = checkpoint_store_list(storage, "", manifest_take_folder, &commits, err);

    if (rc == HVD_E_LIMIT || rc == HVD_E_NOMEM)
        err_set(
            err, rc,
            "%s: the list of checkpoints (at most %d, LIMIT_CHECKPOINTS) cannot be read: %s; %s",
            checkpoint_store_where(storage), LIMIT_CHECKPOINTS, err_text(rc),
            rc == HVD_E_NOMEM ? "free memory on this host"
                              : "remove some checkpoints with hvd-elastic checkpoints");
    if (commits.count > 1)
        qsort(commits.items, commits.count, sizeof(*commits.items), newest_first);
    for (size_t i = 0; !rc && i < commits.count; i++)
        rc = visit(arg, checkpoint_folder(commits.items[i], folder), commits.items[i]);
    VEC_RELEASE(&commits);
    return rc;
}

/* The search for the newest complete checkpoint, which try_folder sees. */
struct search {
    struct checkpoint_store *storage;
    checkpoint_skip_fn *skip; /* is told of each folder that is passed over */
    void *arg;
    struct checkpoint_manifest *ret; /* gets the manifest of the checkpoint that is found */
    bool found;                      /* true: *ret has that manifest */
    /* why the newest completed checkpoint cannot be used; code 0: each one can be used */
    struct hvd_err broken;
};

/* Visits one folder: if its checkpoint is complete, it is the result. HVD_E_EXISTS then only ends
 * the visits. */
static int try_folder(void *arg, const char *folder, uint64_t commit)
{
    struct search *search = arg;
    struct hvd_err why = { .code = 0 };
    int rc = checkpoint_load(search->storage, folder, search->ret, &why);

    (void)commit;
    search->found = rc == 0;
    if (!rc)
        return HVD_E_EXISTS;
    if (rc == HVD_E_VERSION || (rc != HVD_E_NOTFOUND && !search->broken.code))
        search->broken = why;
    /* A lack of memory says nothing about the checkpoint. A checkpoint of a newer version may be
     * whole, so an older one must not take its place. */
    if (rc == HVD_E_NOMEM || rc == HVD_E_VERSION)
        return rc;
    if (search->skip)
        search->skip(search->arg, folder, rc, why.text);
    return 0;
}

/* Finds the newest checkpoint that can be used. Folders without COMPLETE are passed over; if only
 * damaged checkpoints are there, the error is that of the newest one. */
int checkpoint_find_newest(struct checkpoint_store *storage, checkpoint_skip_fn *skip, void *arg,
                           struct checkpoint_manifest *ret, struct hvd_err *err)
{
    struct search search = { .storage = storage, .skip = skip, .arg = arg, .ret = ret };
    int rc = checkpoint_each(storage, try_folder, &search, err);

    if (search.found)
        return 0;
    if (search.broken.code)
        return err_set(err, search.broken.code, "%s", search.broken.text);
    return rc ? rc
              : err_set(err, HVD_E_NOTFOUND,
                        "%s: this directory has no complete checkpoint; name another directory, or "
                        "start without a checkpoint",
                        checkpoint_store_where(storage));
}
