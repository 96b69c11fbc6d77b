/*
 * ask_find.h: which job is meant, and whether its driver lives.
 */
#ifndef DRIVER_ASK_FIND_H
#define DRIVER_ASK_FIND_H

#include "base/err.h"

/*
 * The folder of the job: state_dir, or that of the job's name, or of the only job of this user
 * whose driver lives. Given. HVD_E_NOTFOUND (there is no such job, or none at all), HVD_E_EXISTS
 * (several; the err names them), HVD_E_INVAL, HVD_E_NOMEM.
 */
int ask_find(const char *state_dir, const char *job, char **ret_folder,
             struct hvd_err *err) MUST_CHECK;

/* What conn_dial_unix takes for the folder's socket, however long its path is. *ret_fd is to be
 * closed after the dialling; -1: there is nothing to close. Given. */
int ask_socket(const char *folder, char **ret_name, int *ret_fd, struct hvd_err *err) MUST_CHECK;

/* Says that nobody listens there, and how to go on. Returns HVD_E_NOTFOUND. */
int ask_no_driver(const char *folder, struct hvd_err *err);

#endif
