/*
 * job_list.h: the jobs of this user on this machine, as their state directories show them.
 */
#ifndef DRIVER_CLI_JOB_LIST_H
#define DRIVER_CLI_JOB_LIST_H

#include "base/vec.h"
#include "driver/store/store.h"

/*
 * JOB_LIVING: a driver listens on the job's control socket. JOB_ORPHANED: no driver listens, and
 * the job has not ended, so workers may train. JOB_ENDED: the end of the job is recorded in its
 * file. JOB_DAMAGED: the job's file cannot be read, so its state is not known.
 */
enum job_life { JOB_LIVING, JOB_ORPHANED, JOB_ENDED, JOB_DAMAGED };

struct job_entry {
    char job[JOB_NAME_MAX + 1];
    enum job_life life;
    int status;            /* JOB_ENDED: the exit code of the job's driver (docs/cli.md) */
    int64_t began_wall_us; /* 0: not known */
    int64_t last_wall_us;  /* when a driver last wrote something; of an ended job: when it ended */
    char *folder;          /* the state directory */
    char *file; /* the path of its job.db, or of the NAME.db to which the file of an ended job was
                   renamed */
    bool aside; /* true: `file` is a NAME.db; a later job has used the folder */
    char *text; /* JOB_ENDED: how the job has ended; JOB_DAMAGED: why it cannot be read; else "" */
};

struct job_list VEC(struct job_entry);

const char *job_life_name(enum job_life life);

/* Returns the exit code of the driver that has ended a job; `code` and `text` are what the job's
 * file says about the end. */
int job_list_status(int code, const char *text);

/* job_list_root adds all jobs below `root`, the folder in which jobs are found by name
 * (job_path.h); without such a folder it adds none. job_list_folder adds the jobs of one state
 * directory. HVD_E_NOMEM; HVD_E_LIMIT: there are more than LIMIT_JOBS_LISTED jobs. job_list_init is
 * called before. */
int job_list_root(struct job_list *list, const char *root, struct hvd_err *err) MUST_CHECK;
int job_list_folder(struct job_list *list, const char *folder, struct hvd_err *err) MUST_CHECK;
void job_list_init(struct job_list *list);
void job_list_release(struct job_list *list);

/* Sorts the jobs by last_wall_us: those that have written nothing for longest come first. */
void job_list_sort(struct job_list *list);

#endif
