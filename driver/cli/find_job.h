/*
 * find_job.h: finds out which job the operator means, and whether the driver of a job is alive.
 */
#ifndef DRIVER_CLI_FIND_JOB_H
#define DRIVER_CLI_FIND_JOB_H

#include "base/err.h"

/*
 * Finds the folder of the job. The folder is `state_dir`, or else the folder of the job with the
 * name `job`. If both are NULL, it is the folder of the user's only job whose driver is alive. The
 * caller frees *ret_folder with mem_free. If this process is root's and the folder belongs to
 * another user, the process is that user's from then on. HVD_E_NOTFOUND: no such job, or no job at
 * all. HVD_E_EXISTS: several jobs; the error names them. Other codes: HVD_E_DENIED, HVD_E_INVAL,
 * HVD_E_NOMEM.
 */
int cli_find_job(const char *state_dir, const char *job, char **ret_folder,
                 struct hvd_err *err) MUST_CHECK;

/* Makes a name of the control socket in the folder, for conn_dial_unix. The path of the folder may
 * have any length. The caller frees *ret_name with mem_free. *ret_fd is a descriptor that the name
 * needs; the caller closes it after the dial. -1: there is none. */
int cli_socket_name(const char *folder, char **ret_name, int *ret_fd,
                    struct hvd_err *err) MUST_CHECK;

/* True: a driver listens on the control socket in the folder. A driver that was stopped (SIGSTOP)
 * also listens, and never answers. */
bool cli_driver_is_alive(const char *folder);

/* Sets the error for a job without a driver. The text says how to resume the job in this folder.
 * Returns HVD_E_NOTFOUND. */
int cli_no_driver(const char *folder, struct hvd_err *err);

#endif
