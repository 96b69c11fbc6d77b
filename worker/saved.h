/*
 * saved.h: the entries of a state on their way to a file or from one, for hvd_state_save and
 * hvd_state_load. Entries in host memory stay where they are. Custom entries and entries on a
 * device get host memory here.
 */
#ifndef WORKER_SAVED_H
#define WORKER_SAVED_H

#include "worker/state_internal.h"

struct saved_entry {
    const struct manifest_entry *entry;
    const struct copy_part *part;
    uint8_t *at;    /* the address of the bytes, in host memory */
    uint64_t bytes; /* the size of the entry; of a custom entry: only the bytes that it uses */
    /* host memory that was mapped for the entry; NULL: the entry is used where it is */
    void *memory;
    size_t memory_bytes;
    bool left_out; /* the file does not have this entry, so the program keeps its value */
};

struct saved {
    hvd_state *state;
    struct VEC(struct saved_entry); /* one for each entry of the state, in its order */
    struct device_copy *device_copy;
    /* the device_copy that saved_init has opened; NULL: the state has one of its own, or no
     * device */
    struct device_copy *opened;
};

/* Checks that the function of hvd.h with the name `call` may be called now: while hvd_elastic_run
 * is not running, or in train. Then waits for a commit that is being copied. */
int saved_begin(hvd_state *state, const char *call, const char *path) MUST_CHECK;

/* Lists the entries of the state, and maps host memory for those that need it. On failure nothing
 * is left to release. */
int saved_init(struct saved *saved, hvd_state *state, struct hvd_err *err) MUST_CHECK;
void saved_release(struct saved *saved);

/* saved_take copies the live state into `saved`: it calls the save callbacks of custom entries, and
 * copies entries from the device. saved_give copies the entries from `saved` back to the live
 * state: it copies to the device, and calls the load callbacks. */
int saved_take(struct saved *saved, struct hvd_err *err) MUST_CHECK;
int saved_give(struct saved *saved, struct hvd_err *err) MUST_CHECK;

/* Ends a call of hvd.h: fail_err() gets the name of the function in front of its text. Codes about
 * a round become HVD_E_IO, because the library would act on them if train returned them. */
int saved_end(const char *call, int code);

#endif
