/*
 * storage_internal.h: the table that each kind of storage fills. storage.c checks names and counts
 * bytes, and calls the functions of the table.
 */
#ifndef STATE_CHECKPOINT_STORE_INTERNAL_H
#define STATE_CHECKPOINT_STORE_INTERNAL_H

#include "state/checkpoint/storage.h"

/* The first member in the struct of each kind. */
struct checkpoint_store {
    const struct checkpoint_store_ops *ops;
    char *where;   /* the path or address that the storage was opened with */
    int directory; /* a descriptor of the directory, closed by the kind; -1: the storage is not a
                      directory */
};

struct checkpoint_object {
    struct checkpoint_store *storage; /* the storage in which the object will be */
    char name[LIMIT_CHECKPOINT_NAME_BYTES + 1];
    uint64_t bytes;   /* the size that checkpoint_store_create was given */
    uint64_t written; /* bytes that were written so far */
    bool only_new;    /* checkpoint_store_only_new was called */
};

/* The functions as storage.h has them. Names have been checked. `finish` and `abandon` free the
 * object. */
struct checkpoint_store_ops {
    void (*close)(struct checkpoint_store *storage);
    int (*create)(struct checkpoint_store *storage, const char *name, uint64_t bytes,
                  struct checkpoint_object **ret_object, struct hvd_err *err);
    int (*write)(struct checkpoint_object *object, const void *at, size_t bytes,
                 struct hvd_err *err);
    int (*finish)(struct checkpoint_object *object, struct hvd_err *err);
    void (*abandon)(struct checkpoint_object *object);
    int (*size)(struct checkpoint_store *storage, const char *name, uint64_t *ret_bytes,
                struct hvd_err *err);
    int (*read)(struct checkpoint_store *storage, const char *name, uint64_t offset, void *at,
                size_t bytes, struct hvd_err *err);
    int (*list)(struct checkpoint_store *storage, const char *folder,
                checkpoint_store_visit_fn *visit, void *arg, struct hvd_err *err);
    int (*remove)(struct checkpoint_store *storage, const char *name, struct hvd_err *err);
};

/* Opens a directory (storage_dir.c). `make` true: missing directories are made. */
int checkpoint_store_dir_open(const char *where, bool make, struct checkpoint_store **ret_store,
                              struct hvd_err *err) MUST_CHECK;

#endif
