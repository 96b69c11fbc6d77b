/*
 * job_list.h: the jobs of this user on this machine, as their state directories show them.
 */
#ifndef DRIVER_CLI_JOB_LIST_H
#define DRIVER_CLI_JOB_LIST_H

#include "base/vec.h"
#include "driver/store/store.h"

/*
 * LIVING: a driver listens on the job's control socket. ORPHANED: none does, and the job has not
 * ended, so workers may train. ENDED: the job's end is written down. DAMAGED: the job's file cannot
 * be read, so its state is not known.
 */
enum job_life { JOB_LIVING, JOB_ORPHANED, JOB_ENDED, JOB_DAMAGED };

struct job_entry {
    char job[JOB_NAME_MAX + 1];
    enum job_life life;
    int status;            /* ENDED: the exit code of the job's driver (docs/cli.md) */
    int64_t began_wall_us; /* 0: not known */
    int64_t last_wall_us;  /* when a driver last wrote something; of an ended job: when it ended */
    char *folder;          /* the state directory */
    char *file;            /* its job.db, or the NAME.db of a job that was put aside there */
    bool aside;            /* `file` is a NAME.db, in the folder of a later job */
    char *text; /* ENDED: how, as its driver said; DAMAGED: why it cannot be read; or "" */
};

struct job_list VEC(struct job_entry);

const char *job_life_name(enum job_life life);

/* Returns the exit code of the driver that has ended a job; `code` and `text` are those of its
 * journal. */
int job_list_status(int code, const char *text);

/* job_list_root adds all jobs below the folder `root`, in which jobs are found by name
 * (job_path.h); if there is no such folder, there are none. job_list_folder adds the jobs of one
 * state directory. HVD_E_NOMEM; HVD_E_LIMIT: there are more than LIMIT_JOBS_LISTED. job_list_init
 * stands before. */
int job_list_root(struct job_list *list, const char *root, struct hvd_err *err) MUST_CHECK;
int job_list_folder(struct job_list *list, const char *folder, struct hvd_err *err) MUST_CHECK;
void job_list_init(struct job_list *list);
void job_list_release(struct job_list *list);

/* Puts the jobs of which nothing was heard for longest at the beginning. */
void job_list_sort(struct job_list *list);

#endif
