/*
 * catalog.h: the catalog: a thread of the driver that owns the directory of a job's checkpoints. It
 * finds the checkpoint with which the job begins, completes checkpoints, and removes old ones. So a
 * slow file system never stops the driver's event loop.
 */
#ifndef DRIVER_CHECKPOINT_CATALOG_H
#define DRIVER_CHECKPOINT_CATALOG_H

#include "base/time.h"
#include "state/checkpoint/manifest.h"

struct catalog;

#define CATALOG_PATH_MAX (LIMIT_PATH_BYTES + CHECKPOINT_FOLDER_MAX + 1)

struct catalog_options {
    /* --checkpoint-dir, an absolute path; NULL: the job writes no checkpoints */
    const char *where;
    /* --from-checkpoint: the folder of a checkpoint, or a directory whose newest one is meant;
     * NULL: none. It counts only while `where` has no complete checkpoint. */
    const char *from;
    uint64_t keep;   /* how many complete checkpoints are kept, at least 1 */
    const char *job; /* name of the job, for texts */
    /* a text that all drivers of the job have in common, and no other job has */
    const char *job_id;
    /* The job runs already: a failure that may pass is reported as CATALOG_AWAY, and the directory
     * is opened again later. A directory that is missing is not made, because its file system may
     * not be mounted. */
    bool patient;
};

/* Copies the options, starts the thread and returns without waiting for the disk: CATALOG_READY
 * comes later. HVD_E_NOMEM, HVD_E_LIMIT, HVD_E_INVAL. */
int catalog_start(const struct catalog_options *options, struct catalog **ret_catalog,
                  struct hvd_err *err) MUST_CHECK;

/*
 * All files of the manifest are written: checks that each is visible here, writes manifest.json and
 * COMPLETE, and reports CATALOG_DONE with this number. The manifest is copied. Requests are carried
 * out in their order. Only after a CATALOG_READY; a patient catalog fails the requests before it.
 * HVD_E_NOMEM: nothing will be reported.
 */
int catalog_complete(struct catalog *catalog, uint64_t number,
                     const struct checkpoint_manifest *manifest) MUST_CHECK;

/* The checkpoint of this commit cannot be used: looks for the newest complete one before it, and
 * reports CATALOG_OLDER. HVD_E_NOMEM: nothing will be reported. */
int catalog_reject(struct catalog *catalog, uint64_t commit) MUST_CHECK;

enum catalog_event {
    /* Once, and before it only CATALOG_AWAY and CATALOG_NOTE. code 0: the job begins with the
     * checkpoint `path`. HVD_E_NOTFOUND: there is none, and the job begins anew; the directory is
     * ready for checkpoints. Any other code: the job must not begin; HVD_E_BUSY: another job uses
     * the directory. */
    CATALOG_READY,
    /* The request with this number is done. code 0: the checkpoint is complete and durable, in
     * `path`. HVD_E_LOST: another job or driver owns the directory now, and each later request has
     * the same end. */
    CATALOG_DONE,
    /* The answer to catalog_reject. code 0: the checkpoint in `path` is the newest one that is
     * left. Any other code: there is none. */
    CATALOG_OLDER,
    /* Only a text for the log. code 0: an old checkpoint was removed; any other code: a checkpoint
     * was skipped. */
    CATALOG_NOTE,
    /* Of a patient catalog, before CATALOG_READY: the directory cannot be used now. The thread
     * tries again, after 1 s to 1 min. */
    CATALOG_AWAY
};

struct catalog_result {
    enum catalog_event event;
    uint64_t number;
    int code;
    char text[ERR_TEXT_MAX]; /* the reason for a code other than 0, or a line for the log */
    char path[CATALOG_PATH_MAX];
    uint64_t commit; /* the commit of the checkpoint in `path` */
    uint32_t ranks;
};

/* Returns a descriptor that is readable when catalog_next may have a result. */
int catalog_fd(const struct catalog *catalog);

/* Takes the next result; false: there is none at the moment. */
bool catalog_next(struct catalog *catalog, struct catalog_result *ret_result);

/* Ends the thread after the request that it carries out, gives the directory back, and frees the
 * catalog. A thread that a file system holds for longer than patience_us is left behind, for the
 * end of the process: HVD_E_TIMEOUT. NULL is fine. */
int catalog_stop(struct catalog *catalog, int64_t patience_us);

#endif
