/*
 * storage.c: the part that all kinds of stores share. Called by the threads that write and read
 * checkpoints, in driver, agent and worker, and by the operator's verbs. Invariant: a kind of
 * storage gets only names of objects inside the storage, and a finished object has exactly the
 * bytes that were announced.
 */
#include "state/checkpoint/storage_internal.h"

#include "base/mem.h"
#include "base/panic.h"
#include "base/text.h"

#include <inttypes.h>
#include <string.h>

/* Returns 0 if the name is "NAME" or "FOLDER/NAME". `empty` true: the name "", which is the top of
 * the storage, is fine, too. */
static int check_object_name(const struct checkpoint_store *storage, const char *name, bool empty,
                             struct hvd_err *err)
{
    struct span rest = { name, strlen(name) };
    char quoted[TEXT_QUOTE_MAX];
    struct span part;
    size_t parts = 0;
    bool fine = rest.length <= LIMIT_CHECKPOINT_NAME_BYTES && text_is_clean(name, rest.length);

    if (empty && !rest.length)
        return 0;
    while (span_next(&rest, '/', &part) && ++parts)
        fine = fine && part.length > 0 && !span_is(part, ".") && !span_is(part, "..");
    if (fine && parts > 0 && parts <= 2)
        return 0;
    return err_set(err, HVD_E_INVAL,
                   "%s: %s is not a valid name of an object; use NAME or FOLDER/NAME",
                   storage->where, text_quote(name, strlen(name), quoted));
}

/* The kinds of storages besides directories, such as S3, which the program has added. */
static const struct checkpoint_store_kind *kinds[CHECKPOINT_KINDS_MAX];
static size_t kind_count;

/* Adds a kind of storage for the addresses that begin with its scheme. Called before a thread opens
 * a storage. */
void checkpoint_store_add_kind(const struct checkpoint_store_kind *kind)
{
    ASSERT(kind_count < CHECKPOINT_KINDS_MAX);
    kinds[kind_count++] = kind;
}

/* Opens the storage at `where`: of the kind whose scheme the address has, or else a directory.
 * `make`: a missing directory is made; another kind only tries whether the storage can be used. */
static int open_or_make(const char *where, bool make, struct checkpoint_store **ret_store,
                        struct hvd_err *err)
{
    for (size_t i = 0; i < kind_count; i++)
        if (!strncmp(where, kinds[i]->scheme, strlen(kinds[i]->scheme)) &&
            strlen(where) < LIMIT_PATH_BYTES)
            return kinds[i]->open(where, make, ret_store, err);
    if (strstr(where, "://"))
        return err_set(err, HVD_E_UNSUPPORTED,
                       "%.200s: this program reads and writes checkpoints in directories only; "
                       "give the path of a directory%s",
                       where,
                       kind_count ? ""
                                  : " (hvd-elastic checkpoints ADDRESS export DIR copies "
                                    "checkpoints into a directory)");
    if (!*where || strlen(where) >= LIMIT_PATH_BYTES)
        return err_set(
            err, HVD_E_INVAL,
            "\"%.64s\": this text is not the path of a directory; give a path of 1 to %d bytes",
            where, LIMIT_PATH_BYTES - 1);
    return checkpoint_store_dir_open(where, make, ret_store, err);
}

/* Opens a storage; a missing directory is an error. */
int checkpoint_store_open(const char *where, struct checkpoint_store **ret_store,
                          struct hvd_err *err)
{
    return open_or_make(where, false /* make no directory */, ret_store, err);
}

/* Opens a storage; a missing directory is made. */
int checkpoint_store_make(const char *where, struct checkpoint_store **ret_store,
                          struct hvd_err *err)
{
    return open_or_make(where, true /* make the directory */, ret_store, err);
}

void checkpoint_store_close(struct checkpoint_store *storage)
{
    if (storage)
        storage->ops->close(storage);
}

const char *checkpoint_store_where(const struct checkpoint_store *storage)
{
    return storage->where;
}

/* Returns a descriptor of the directory, or -1 for a storage of another kind. */
int checkpoint_store_directory(const struct checkpoint_store *storage)
{
    return storage->directory;
}

/* Begins an object of exactly `bytes` bytes; the kind of storage makes it, the rest is set here. */
int checkpoint_store_create(struct checkpoint_store *storage, const char *name, uint64_t bytes,
                            struct checkpoint_object **ret_object, struct hvd_err *err)
{
    int rc = check_object_name(storage, name, false /* not "" */, err);

    if (!rc)
        rc = storage->ops->create(storage, name, bytes, ret_object, err);
    if (rc)
        return rc;
    (*ret_object)->storage = storage;
    (*ret_object)->bytes = bytes;
    (*ret_object)->written = 0;
    (*ret_object)->only_new = false;
    memcpy((*ret_object)->name, name, strlen(name) + 1);
    return 0;
}

/* Writes the next bytes of an object. If the caller writes more bytes than it has announced,
 * checkpoint_store_finish reports that. */
int checkpoint_store_write(struct checkpoint_object *object, const void *at, size_t bytes,
                           struct hvd_err *err)
{
    int rc = object->storage->ops->write(object, at, bytes, err);

    if (!rc)
        object->written += bytes;
    return rc;
}

/* From now on checkpoint_store_finish does not replace an object of another writer, where the kind
 * of storage can prevent it. */
void checkpoint_store_only_new(struct checkpoint_object *object)
{
    object->only_new = true;
}

/* Gives the object its name, and frees it in any case. HVD_E_STATE: the caller has not written as
 * many bytes as it has announced. */
int checkpoint_store_finish(struct checkpoint_object *object, struct hvd_err *err)
{
    int rc;

    if (object->written == object->bytes)
        return object->storage->ops->finish(object, err);
    rc = err_set(err, HVD_E_STATE,
                 "%s/%s: %" PRIu64 " bytes were written, and %" PRIu64
                 " announced; this is a bug of hvd-elastic, please report it",
                 object->storage->where, object->name, object->written, object->bytes);
    checkpoint_store_abandon(object);
    return rc;
}

/* Frees an object that is not to get its name. */
void checkpoint_store_abandon(struct checkpoint_object *object)
{
    if (object)
        object->storage->ops->abandon(object);
}

/* Gives the size of an object. */
int checkpoint_store_size(struct checkpoint_store *storage, const char *name, uint64_t *ret_bytes,
                          struct hvd_err *err)
{
    int rc = check_object_name(storage, name, false /* not "" */, err);

    return rc ? rc : storage->ops->size(storage, name, ret_bytes, err);
}

/* Reads bytes of an object, which must have all of them. */
int checkpoint_store_read(struct checkpoint_store *storage, const char *name, uint64_t offset,
                          void *at, size_t bytes, struct hvd_err *err)
{
    int rc = check_object_name(storage, name, false /* not "" */, err);

    return rc ? rc : storage->ops->read(storage, name, offset, at, bytes, err);
}

/* Visits the names directly in a folder; "" is the top of the storage. */
int checkpoint_store_list(struct checkpoint_store *storage, const char *folder,
                          checkpoint_store_visit_fn *visit, void *arg, struct hvd_err *err)
{
    int rc = check_object_name(storage, folder, true /* "" is fine */, err);

    return rc ? rc : storage->ops->list(storage, folder, visit, arg, err);
}

/* Removes an object, or a folder with its objects. */
int checkpoint_store_remove(struct checkpoint_store *storage, const char *name, struct hvd_err *err)
{
    int rc = check_object_name(storage, name, false /* not "" */, err);

    return rc ? rc : storage->ops->remove(storage, name, err);
}
