/*
 * orphans.h: the job that a verb is for, and the user's jobs that have no driver (orphans).
 */
#ifndef DRIVER_CLI_ORPHANS_H
#define DRIVER_CLI_ORPHANS_H

#include "driver/cli/verbs.h"

/*
 * Finds the folder of the job that the request is for, as cli_find_job does. A request that names
 * no job is never carried out on an orphan. The orphans are named with the command that is needed:
 * in `err`, if no driver lives; else in a line on standard error, unless the verb has no answer for
 * an orphan, or the answer is JSON.
 */
int orphans_find_job(const struct cli_request *request, char **ret_folder,
                     struct hvd_err *err) MUST_CHECK;

#endif
