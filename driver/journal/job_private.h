/*
 * job_private.h: the check of a job's state directory. The driver and all verbs run this check
 * before they use anything in the folder.
 */
#ifndef DRIVER_JOURNAL_JOB_PRIVATE_H
#define DRIVER_JOURNAL_JOB_PRIVATE_H

#include "base/err.h"

/*
 * Checks that only this user and root can have made what lies in the folder (os/private.h): the
 * folder, the folders above it, and each of the job's files that is there. `make`: true: a missing
 * folder is made; false: HVD_E_NOTFOUND if there is no such folder. HVD_E_DENIED: the folder is not
 * safe; the text names what is wrong, and the command that mends it.
 */
int job_private_check(const char *path, bool make, struct hvd_err *err) MUST_CHECK;

#endif
