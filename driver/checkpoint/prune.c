/*
 * prune.c: removes old checkpoints, and leftovers of attempts that were never completed. Called by
 * the thread of the catalog after each checkpoint, and by the verb `checkpoints ... prune`.
 * Invariant: a folder is removed only when a newer one was loaded as complete before, or when it
 * has no COMPLETE.
 */
#include "driver/checkpoint/prune.h"

#include "base/mem.h"
#include "base/panic.h"
#include "base/vec.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct prune {
    struct checkpoint_store *store;
    uint64_t keep;
    bool all_incomplete;
    prune_note_fn *note;
    void *arg;
    size_t complete; /* number of complete checkpoints that were visited, the newest first */
    size_t removed;
    struct hvd_err failed; /* the first folder that could not be removed; code 0: none */
};

/* Files that attempts have left over. In a checkpoint's folder: files that its manifest does not
 * name. In the directory itself, which has no manifest: objects that were never finished. */
struct leftovers {
    const struct checkpoint_manifest *manifest; /* NULL: the directory itself */
    struct VEC(char *);
};

/* Gives a text for the log to the caller's function `note`, if there is one. */
PRINTF_LIKE(2, 3) static void prune_say(const struct prune *prune, const char *format, ...)
{
    char text[ERR_TEXT_MAX];
    va_list args;

    if (!prune->note)
        return;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    prune->note(prune->arg, text);
}

/* Called for each file of a folder: adds its name to the list if it is a leftover. Returns 0 or
 * HVD_E_NOMEM. */
static int note_leftover(void *arg, const char *name)
{
    const size_t end = strlen(CHECKPOINT_UNFINISHED);
    struct leftovers *found = arg;
    size_t length = strlen(name);
    int rc;

    if (!found->manifest &&
        (length < end || strcmp(name + length - end, CHECKPOINT_UNFINISHED) != 0))
        return 0;
    if (!strcmp(name, CHECKPOINT_MANIFEST) || !strcmp(name, CHECKPOINT_COMPLETE))
        return 0;
    for (size_t i = 0; found->manifest && i < found->manifest->file_count; i++)
        if (!strcmp(name, found->manifest->files[i].name))
            return 0;
    rc = VEC_RESERVE(found, 1, LIMIT_CHECKPOINT_FILES);
    if (!rc && !(found->items[found->count] = mem_strdup(name)))
        rc = HVD_E_NOMEM;
    if (!rc)
        found->count++;
    return rc;
}

/* Removes leftovers of attempts. `manifest` not NULL: from the folder of a complete checkpoint the
 * files that its manifest does not name. NULL: from the directory itself (`folder` "") unfinished
 * objects. A failure is ignored, because the next call tries again. */
static void remove_leftovers(struct prune *prune, const char *folder,
                             const struct checkpoint_manifest *manifest)
{
    struct leftovers found = { .manifest = manifest };
    char name[LIMIT_CHECKPOINT_NAME_BYTES + 1];

    (void)!checkpoint_store_list(prune->store, folder, note_leftover, &found, NULL);
    for (size_t i = 0; i < found.count; i++) {
        if (snprintf(name, sizeof(name), "%s%s%s", folder, *folder ? "/" : "", found.items[i]) <
            (int)sizeof(name))
            (void)!checkpoint_store_remove(prune->store, name, NULL);
        mem_free(found.items[i]);
    }
    VEC_RELEASE(&found);
}

/* Called for each folder of a checkpoint, the newest first: removes it if enough newer complete
 * ones are kept, or if it was never completed and no attempt can be under way in it. Always returns
 * 0, so that a failure does not end the visit. */
static int prune_checkpoint(void *arg, const char *folder, uint64_t commit)
{
    struct prune *prune = arg;
    struct checkpoint_manifest manifest;
    struct hvd_err err = { .code = 0 };
    int rc = checkpoint_load(prune->store, folder, &manifest, &err);
    const char *why = NULL;

    (void)commit;
    /* The newest complete folder keeps its leftovers: an attempt may be under way in it. */
    if (!rc && prune->complete > 0 && prune->complete < prune->keep)
        remove_leftovers(prune, folder, &manifest);
    if (!rc)
        checkpoint_manifest_release(&manifest);
    if (!rc && ++prune->complete > prune->keep)
        why = "newer checkpoints are kept";
    else if (rc == HVD_E_NOTFOUND && (prune->all_incomplete || prune->complete > 0))
        why = "the checkpoint was never completed";
    else if (rc == HVD_E_CORRUPT && prune->complete >= prune->keep)
        why = "the checkpoint is damaged, and newer ones are kept";
    if (!why)
        return 0;
    rc = checkpoint_remove(prune->store, folder, &err);
    prune->removed += rc == 0;
    if (rc && !prune->failed.code)
        err_set(&prune->failed, rc, "%s", err.text);
    if (rc)
        prune_say(prune, "%s", err.text);
    else
        prune_say(prune, "%s/%s: removed, because %s", checkpoint_store_where(prune->store), folder,
                  why);
    return 0;
}

/* Removes old checkpoints and leftovers, as prune.h says, and counts what was removed and kept.
 * Returns the first failure after all folders were visited. */
int prune_checkpoints(struct checkpoint_store *store, uint64_t keep, bool all_incomplete,
                      prune_note_fn *note, void *arg, size_t *ret_removed, size_t *ret_kept,
                      struct hvd_err *err)
{
    struct prune prune = {
        .store = store, .keep = keep, .all_incomplete = all_incomplete, .note = note, .arg = arg
    };
    int rc;

    ASSERT(keep > 0);
    rc = checkpoint_each(store, prune_checkpoint, &prune, err);
    if (!rc && prune.failed.code)
        rc = err_set(err, prune.failed.code, "%s", prune.failed.text);
    if (all_incomplete)
        remove_leftovers(&prune, "", NULL);
    if (ret_removed)
        *ret_removed = prune.removed;
    if (ret_kept)
        *ret_kept = prune.complete < keep ? prune.complete : (size_t)keep;
    return rc;
}
