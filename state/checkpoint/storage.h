/*
 * storage.h: the place where checkpoints lie, as a flat set of objects: a name is "NAME" or
 * "FOLDER/NAME". An object appears under its name only when it is whole and durable.
 *
 * Each call may block for as long as the disk or network takes, so only threads of their own call
 * them. A handle belongs to one thread; further threads open handles of their own. Each error text
 * names the path first and the remedy last. Common codes: HVD_E_DENIED, HVD_E_FULL (also for a
 * quota), HVD_E_IO, HVD_E_NOMEM, HVD_E_NOTFOUND.
 *
 * An object is written by checkpoint_store_create, then checkpoint_store_write as often as needed,
 * and in the end checkpoint_store_finish or checkpoint_store_abandon.
 */
#ifndef STATE_CHECKPOINT_STORE_H
#define STATE_CHECKPOINT_STORE_H

#include "base/err.h"
#include "base/limits.h"

struct checkpoint_store;
struct checkpoint_object;

/* Directories that a storage makes have mode 0700, its files 0600, less the umask. The name of an
 * object that was never finished ends in this suffix; checkpoint_store_list lists such names,
 * too. */
#define CHECKPOINT_UNFINISHED ".unfinished"

/* A further kind of storage, for addresses that begin with `scheme`, such as "s3://". `test` true:
 * open tries whether the storage can be used, for checkpoint_store_make. Nothing is made in the
 * storage. */
struct checkpoint_store_kind {
    const char *scheme;
    int (*open)(const char *where, bool test, struct checkpoint_store **ret_store,
                struct hvd_err *err);
};

/* A program adds kinds at its start, before a thread opens a storage. libhvd adds no kind, so a
 * worker depends on no library for such stores. The kind is borrowed for ever. */
#define CHECKPOINT_KINDS_MAX 4
void checkpoint_store_add_kind(const struct checkpoint_store_kind *kind);

/* Opens a storage. `where` is the path of a directory, or an address of a kind that was added.
 * HVD_E_NOTFOUND: there is no such directory. HVD_E_UNSUPPORTED: `where` is an address, such as
 * "s3://...", of a kind that this program does not have. */
int checkpoint_store_open(const char *where, struct checkpoint_store **ret_store,
                          struct hvd_err *err) MUST_CHECK;
void checkpoint_store_close(struct checkpoint_store *storage); /* NULL is fine */

/* Makes the directory and those above it that are missing, and opens it. Only the driver calls
 * this: a host on which the directory is missing does not see the same file system as the
 * driver. */
int checkpoint_store_make(const char *where, struct checkpoint_store **ret_store,
                          struct hvd_err *err) MUST_CHECK;

/* Returns the `where` that checkpoint_store_open was given; borrowed. */
const char *checkpoint_store_where(const struct checkpoint_store *storage);

/* Returns an open descriptor of the directory, borrowed; -1: the storage is not a directory. */
int checkpoint_store_directory(const struct checkpoint_store *storage);

/* Begins an object of `bytes` bytes. If the file system can reserve space, the space of the whole
 * object is reserved. */
int checkpoint_store_create(struct checkpoint_store *storage, const char *name, uint64_t bytes,
                            struct checkpoint_object **ret_object, struct hvd_err *err) MUST_CHECK;
int checkpoint_store_write(struct checkpoint_object *object, const void *at, size_t bytes,
                           struct hvd_err *err) MUST_CHECK;

/* After this call checkpoint_store_finish fails with HVD_E_EXISTS if another writer has given the
 * name to other bytes. S3 supports this, unless its server is too old. On other storages the call
 * changes nothing. */
void checkpoint_store_only_new(struct checkpoint_object *object);

/* Ends the object, which is freed in any case. 0: the object is durable under its name, and has
 * replaced an older object of that name. HVD_E_STATE: the number of written bytes is not the number
 * that checkpoint_store_create was given. After a failure the name is as it was before. */
int checkpoint_store_finish(struct checkpoint_object *object, struct hvd_err *err) MUST_CHECK;
void checkpoint_store_abandon(struct checkpoint_object *object); /* NULL is fine */

/* Gives the size of an object. HVD_E_NOTFOUND: there is no such object. */
int checkpoint_store_size(struct checkpoint_store *storage, const char *name, uint64_t *ret_bytes,
                          struct hvd_err *err) MUST_CHECK;

/* Reads exactly `bytes` bytes at this offset. HVD_E_CORRUPT: the object has fewer bytes. */
int checkpoint_store_read(struct checkpoint_store *storage, const char *name, uint64_t offset,
                          void *at, size_t bytes, struct hvd_err *err) MUST_CHECK;

/* Calls visit with each name directly below the folder, of objects and of folders, in no order;
 * folder "" is the top. Ends early with the result of visit when that result is not 0. The storage
 * may not be used by visit. A folder that does not exist has no names. */
typedef int checkpoint_store_visit_fn(void *arg, const char *name);
int checkpoint_store_list(struct checkpoint_store *storage, const char *folder,
                          checkpoint_store_visit_fn *visit, void *arg,
                          struct hvd_err *err) MUST_CHECK;

/* Removes an object, or a folder with all objects in it. A name that does not exist is no error. */
int checkpoint_store_remove(struct checkpoint_store *storage, const char *name,
                            struct hvd_err *err) MUST_CHECK;

#endif
