/*
 * job_path.h: the path of a job's state directory: the folder that the user names, or a folder with
 * the job's name in the user's state directory. The caller frees each returned path with mem_free.
 */
#ifndef DRIVER_JOURNAL_JOB_PATH_H
#define DRIVER_JOURNAL_JOB_PATH_H

#include "base/err.h"

/* Sets *ret_path to the folder in which jobs are found by name: "hvd-elastic" in the user's state
 * directory. HVD_E_NOTFOUND: HOME is not set, and the user database has no home folder. */
int job_path_root(char **ret_path, struct hvd_err *err) MUST_CHECK;

/* Sets *ret_path to the absolute path of the job's state directory: `state_dir` if the user named
 * one, otherwise (NULL) the folder with the name `job` below job_path_root. */
int job_path_folder(const char *state_dir, const char *job, char **ret_path,
                    struct hvd_err *err) MUST_CHECK;

/* Returns "folder/name". NULL: no memory is left, or the path is too long. */
char *job_path_join(const char *folder, const char *name);

#endif
