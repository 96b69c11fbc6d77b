/*
 * manifest.c: checkpoints as folders of a storage: written, loaded, found. Called by the driver's
 * catalog, by agents that read a checkpoint for a worker, and by the operator's verbs. Invariant: a
 * checkpoint without a COMPLETE that fits its manifest is never taken, and COMPLETE is written
 * last and removed first.
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

void checkpoint_manifest_init(struct checkpoint_manifest *manifest)
{
    *manifest = (struct checkpoint_manifest){ .job = "" };
    arena_init(&manifest->memory, (size_t)2 * LIMIT_CHECKPOINT_MANIFEST_BYTES);
}

void checkpoint_manifest_release(struct checkpoint_manifest *manifest)
{
    if (!manifest)
        return;
    arena_release(&manifest->memory);
    checkpoint_manifest_init(manifest);
}

uint64_t checkpoint_chunks(uint64_t bytes)
{
    return bytes / STATE_CHUNK_BYTES + (bytes % STATE_CHUNK_BYTES > 0);
}

uint64_t checkpoint_sum(const struct checkpoint_file *file, uint64_t chunk)
{
    const uint8_t *at = file->sums + chunk * 8;
    uint64_t sum = 0;

    for (size_t i = 0; i < 8; i++)
        sum |= (uint64_t)at[i] << 8 * i;
    return sum;
}

/* Copies bytes into the arena; NULL: no memory. */
static void *copy_bytes(struct arena *arena, const void *from, size_t bytes)
{
    void *copy = arena_alloc(arena, bytes);

    if (copy && bytes > 0)
        memcpy(copy, from, bytes);
    return copy;
}

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

const char *checkpoint_folder(uint64_t commit, char folder[CHECKPOINT_FOLDER_MAX])
{
    char text[PART_COMMIT_MAX];

    snprintf(folder, CHECKPOINT_FOLDER_MAX, FOLDER_PREFIX "%s", part_commit_text(commit, text));
    return folder;
}

bool checkpoint_folder_commit(const char *folder, uint64_t *ret_commit)
{
    size_t length = strlen(FOLDER_PREFIX);

    return !strncmp(folder, FOLDER_PREFIX, length) && part_commit_read(folder + length, ret_commit);
}

/* Writes a small object with these bytes. */
static int write_object(struct checkpoint_store *storage, const char *name, const void *at,
                        size_t bytes, struct hvd_err *err)
{
    struct checkpoint_object *object;
    int rc = checkpoint_store_create(storage, name, bytes, &object, err);

    if (rc)
        return rc;
    rc = checkpoint_store_write(object, at, bytes, err);
    if (!rc)
        return checkpoint_store_finish(object, err);
    checkpoint_store_abandon(object);
    return rc;
}

/* The name of an object in the folder of a commit. */
struct object_name {
    char text[LIMIT_CHECKPOINT_NAME_BYTES + 1];
};

static const char *name_object(struct object_name *name, const char *folder, const char *file)
{
    snprintf(name->text, sizeof(name->text), "%s/%s", folder, file);
    return name->text;
}

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
        err_set(err, rc, "%s/%s: cannot be written: %s%s", checkpoint_store_where(storage),
                name.text, err_text(rc),
                rc == HVD_E_LIMIT ? " (LIMIT_CHECKPOINT_MANIFEST_BYTES)" : "");
    } else {
        rc = write_object(storage, name.text, text.data, text.length, err);
        if (!rc)
            *ret_sum = sum_of(text.data, text.length);
    }
    buf_release(&text);
    return rc;
}

int checkpoint_write_complete(struct checkpoint_store *storage, uint64_t commit, uint64_t sum,
                              struct hvd_err *err)
{
    char folder[CHECKPOINT_FOLDER_MAX];
    char text[COMPLETE_BYTES + 1];
    struct object_name name;

    name_object(&name, checkpoint_folder(commit, folder), CHECKPOINT_COMPLETE);
    snprintf(text, sizeof(text), "%016" PRIx64 "\n", sum);
    return write_object(storage, name.text, text, COMPLETE_BYTES, err);
}

int checkpoint_remove(struct checkpoint_store *storage, const char *folder, struct hvd_err *err)
{
    struct object_name name;
    int rc = checkpoint_store_remove(storage, name_object(&name, folder, CHECKPOINT_COMPLETE), err);

    return rc ? rc : checkpoint_store_remove(storage, folder, err);
}

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
            rc = err_set(err, HVD_E_CORRUPT, "%s/%s: is missing; use another checkpoint",
                         checkpoint_store_where(storage), name.text);
        if (!rc && bytes != file->bytes)
            rc = err_set(err, HVD_E_CORRUPT,
                         "%s/%s: has %" PRIu64 " bytes instead of %" PRIu64
                         "; use another checkpoint",
                         checkpoint_store_where(storage), name.text, bytes, file->bytes);
    }
    return rc;
}

/* Reads COMPLETE: the checksum of the manifest that counts. */
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
                       "%s/%s: is not complete: it has no file " CHECKPOINT_COMPLETE
                       "; use another checkpoint",
                       checkpoint_store_where(storage), folder);
    if (!rc && bytes == COMPLETE_BYTES)
        rc = checkpoint_store_read(storage, name.text, 0, text, sizeof(text), err);
    if (rc)
        return rc;
    if (bytes == COMPLETE_BYTES && text[COMPLETE_BYTES - 1] == '\n' &&
        checkpoint_sum_read(text, COMPLETE_BYTES - 1, ret_sum))
        return 0;
    return err_set(err, HVD_E_CORRUPT,
                   "%s/%s: has no checksum of 16 digits; use another checkpoint",
                   checkpoint_store_where(storage), name.text);
}

/* Reads the text of the manifest into a new block of memory, and compares its checksum. */
static int read_manifest(struct checkpoint_store *storage, const char *name, uint64_t sum,
                         char **ret_text, size_t *ret_length, struct hvd_err *err)
{
    uint64_t bytes;
    char *text;
    int rc = checkpoint_store_size(storage, name, &bytes, err);

    if (rc == HVD_E_NOTFOUND)
        return err_set(err, HVD_E_CORRUPT, "%s/%s: is missing; use another checkpoint",
                       checkpoint_store_where(storage), name);
    if (rc)
        return rc;
    if (bytes > LIMIT_CHECKPOINT_MANIFEST_BYTES)
        return err_set(err, HVD_E_LIMIT,
                       "%s/%s: has more bytes than LIMIT_CHECKPOINT_MANIFEST_BYTES, %d; use "
                       "another checkpoint",
                       checkpoint_store_where(storage), name, LIMIT_CHECKPOINT_MANIFEST_BYTES);
    text = mem_alloc((size_t)bytes);
    if (!text)
        return err_set(err, HVD_E_NOMEM, "%s/%s: %s", checkpoint_store_where(storage), name,
                       err_text(HVD_E_NOMEM));
    rc = checkpoint_store_read(storage, name, 0, text, (size_t)bytes, err);
    if (!rc && sum_of(text, (size_t)bytes) != sum)
        rc = err_set(err, HVD_E_CORRUPT,
                     "%s/%s: its checksum is not the one in " CHECKPOINT_COMPLETE
                     "; use another checkpoint",
                     checkpoint_store_where(storage), name);
    if (rc) {
        mem_free(text);
        return rc;
    }
    *ret_text = text;
    *ret_length = (size_t)bytes;
    return 0;
}

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
        rc = err_set(err, HVD_E_CORRUPT, "%s: is the manifest of %s; give the folder its name back",
                     path, expected);
    else
        rc = checkpoint_check_files(storage, &manifest, err);
    if (rc)
        checkpoint_manifest_release(&manifest);
    else
        *ret = manifest;
    return rc;
}

struct commit_list VEC(uint64_t);

static int take_folder(void *arg, const char *name)
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

static int newest_first(const void *left, const void *right)
{
    const uint64_t a = *(const uint64_t *)left;
    const uint64_t b = *(const uint64_t *)right;

    return (a < b) - (a > b);
}

int checkpoint_each(struct checkpoint_store *storage, checkpoint_visit_fn *visit, void *arg,
                    struct hvd_err *err)
{
    struct commit_list commits = { .count = 0 };
    char folder[CHECKPOINT_FOLDER_MAX];
    int rc = checkpoint_store_list(storage, "", take_folder, &commits, err);

    if (rc == HVD_E_LIMIT || rc == HVD_E_NOMEM)
        err_set(err, rc, "%s: has too many checkpoints (LIMIT_CHECKPOINTS, %d): %s; remove some",
                checkpoint_store_where(storage), LIMIT_CHECKPOINTS, err_text(rc));
    if (commits.count > 1)
        qsort(commits.items, commits.count, sizeof(*commits.items), newest_first);
    for (size_t i = 0; !rc && i < commits.count; i++)
        rc = visit(arg, checkpoint_folder(commits.items[i], folder), commits.items[i]);
    VEC_RELEASE(&commits);
    return rc;
}

/* The search for the newest complete checkpoint. */
struct search {
    struct checkpoint_store *storage;
    checkpoint_skip_fn *skip;
    void *arg;
    struct checkpoint_manifest *ret;
    bool found;
    /* of the newest checkpoint that was completed and cannot be used; code 0: there is none */
    struct hvd_err broken;
};

/* Takes this checkpoint if it is complete. HVD_E_EXISTS ends the search. */
static int try_folder(void *arg, const char *folder, uint64_t commit)
{
    struct search *search = arg;
    struct hvd_err why = { .code = 0 };
    int rc = checkpoint_load(search->storage, folder, search->ret, &why);

    (void)commit;
    search->found = rc == 0;
    if (!rc)
        return HVD_E_EXISTS;
    if (rc != HVD_E_NOTFOUND && !search->broken.code)
        search->broken = why;
    if (rc == HVD_E_NOMEM) /* no fault of the checkpoint */
        return rc;
    if (search->skip)
        search->skip(search->arg, folder, rc, why.text);
    return 0;
}

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
              : err_set(err, HVD_E_NOTFOUND, "%s: has no complete checkpoint",
                        checkpoint_store_where(storage));
}
