/*
 * job_folder.h: the state directory of a job: found, made, locked, and claimed.
 *
 *     job.db      who the job is, its journal, its blacklist (driver/journal/job_file.h)
 *     lock        held by the driver that lives
 *     command     how the driver was started, for --resume (command.h)
 *     control     where operators ask
 *     agents/     what local agents had to say
 *     events.log  what happened
 *     NAME.db     of a job that ended here before
 */
#ifndef DRIVER_JOB_FOLDER_H
#define DRIVER_JOB_FOLDER_H

#include "driver/journal/job_file.h"

struct job_folder_wish {
    const char *state_dir; /* NULL: a folder of the job's name in the user's state directory */
    const char *job;       /* NULL: made up, or whatever is there */
    const char *resume;    /* NULL, or the job that must be there and not have ended */
    bool takeover;         /* although a driver seems to live */
};

struct job_folder {
    char *path; /* absolute */
    int lock_fd;
    struct job_file *file; /* claimed */
    struct job_facts facts;
    bool resumed; /* a driver has driven this job before */
};

/*
 * What was begun before and has not ended goes on; what has ended is put aside, and a new job
 * begins with a key of its own. HVD_E_BUSY: a driver lives; HVD_E_NOTFOUND, HVD_E_STATE (it has
 * ended): nothing to resume; and as of job_file_open.
 */
int job_folder_open(const struct job_folder_wish *wish, struct job_folder *ret_folder,
                    struct hvd_err *err) MUST_CHECK;
void job_folder_release(struct job_folder *folder);

/* The user's folder for state, with "/hvd-elastic" behind it: where jobs are looked for by name.
 * HVD_E_NOTFOUND without HOME. Given. */
int job_folder_root(char **ret_path, struct hvd_err *err) MUST_CHECK;

/* Where the job's state would be. Given. */
int job_folder_path(const char *state_dir, const char *job, char **ret_path,
                    struct hvd_err *err) MUST_CHECK;

#endif
