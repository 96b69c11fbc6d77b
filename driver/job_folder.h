/*
 * job_folder.h: finds, makes, locks and claims the state directory of a job:
 *
 *     job.db      the job's facts, journal and blacklist (driver/journal/job_file.h)
 *     lock        held by the driver as long as it lives
 *     command     how the driver was started, for --resume (driver/invocation.h)
 *     control     the socket on which operators ask (driver/control/control.h)
 *     claim       the number with which the last driver of this folder has claimed the job in
 *                 etcd. If the owner of the job in etcd has this number, the driver that holds the
 *                 lock knows that the owner is dead, and does not wait for its lease to end
 *     agents/     the logs of agents of this machine
 *     events.log  what has happened (driver/control/events.h)
 *     NAME.db     the job.db of a job that has ended here
 */
#ifndef DRIVER_JOB_FOLDER_H
#define DRIVER_JOB_FOLDER_H

#include "driver/store/etcd_store.h"

#include <sys/types.h>

struct job_folder_wish {
    const char *state_dir; /* NULL: the folder with the job's name in the user's state directory */
    const char *job;       /* NULL: the job that is in the folder already, or a new name */
    /* The job that must be in the folder and must not have ended; NULL: none is required. */
    const char *resume;
    bool takeover; /* take the job over even from a driver that holds the lock */
    /* the store in etcd; NULL: job.db. Its takeover says whether a driver that lives is replaced.
     */
    const struct etcd_store_config *store;
};

struct job_folder {
    char *path; /* an absolute path */
    int lock_fd;
    struct store *store; /* job.db or etcd, which this driver has claimed */
    struct job_facts facts;
    bool resumed; /* an earlier driver has already run this job */
    pid_t former; /* the driver that had the lock before; 0: none, or not known */
};

/*
 * Opens the folder. A job in the folder that has not ended goes on. The file of a job that has
 * ended is renamed to NAME.db, and a new job begins with a key of its own.
 *
 * HVD_E_BUSY: a driver holds the lock. HVD_E_TIMEOUT: etcd does not answer. HVD_E_NOTFOUND: there
 * is nothing to resume. HVD_E_STATE: the job to resume has ended, and only the facts in *ret_folder
 * say how, without the key. HVD_E_EXISTS: another job is in the folder, or a driver keeps its lease
 * in etcd. Other codes are those of job_file_open.
 */
int job_folder_open(const struct job_folder_wish *wish, struct job_folder *ret_folder,
                    struct hvd_err *err) MUST_CHECK;
void job_folder_release(struct job_folder *folder);

/* Logs that the job begins, or goes on. `told`: the user knows already that the former driver has
 * ended; otherwise its end is a warning. */
void job_folder_say_begin(const struct job_folder *folder, bool told);

/* Returns the number of the last claim in etcd of a driver that had this folder. 0: none is known.
 */
uint64_t job_folder_claim(const char *folder);

#endif
