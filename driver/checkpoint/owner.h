/*
 * owner.h: the ownership of a directory of checkpoints. DIR/LOCK is locked while its owner lives,
 * and DIR/OWNER says which job, host and process that is. OWNER is looked at again before anything
 * counts, because not every file system has locks between machines.
 */
#ifndef DRIVER_CHECKPOINT_OWNER_H
#define DRIVER_CHECKPOINT_OWNER_H

#include "state/checkpoint/storage.h"

#define OWNER_FILE     "OWNER"
#define OWNER_LOCK     "LOCK"
#define OWNER_TEXT_MAX 1024

struct owner {
    int lock; /* descriptor; -1: the file system has no locks */
    /* the contents of the file OWNER: job, id, host, pid and a token of this owner */
    char text[OWNER_TEXT_MAX];
};

/*
 * Takes the directory. HVD_E_BUSY: a living process of another job has it; the text names job, host
 * and pid. The directory of an older driver of the same job is taken over.
 */
int owner_take(struct checkpoint_store *store, const char *job, const char *job_id,
               struct owner *ret_owner, struct hvd_err *err) MUST_CHECK;

/* Checks that the file OWNER still names this owner. HVD_E_LOST: the file names another owner, and
 * so does the text of err. */
int owner_check(struct checkpoint_store *store, const struct owner *owner,
                struct hvd_err *err) MUST_CHECK;

/* Gives the lock back. The file OWNER stays, and tells which job had the directory last. */
void owner_release(struct owner *owner);

#endif
