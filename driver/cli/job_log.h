/*
 * job_log.h: the event log of a job that may have ended, as history.h reads it: the files
 * events.log.1 and events.log in the job's folder, and the time at which the job began.
 */
#ifndef DRIVER_CLI_JOB_LOG_H
#define DRIVER_CLI_JOB_LOG_H

#include "base/time.h"
#include "driver/control/history.h"

struct job_log {
    struct buf files[HISTORY_TEXTS];
    struct span texts[HISTORY_TEXTS];
    /* Lines before it belong to an earlier job in the same folder; "": unknown, as it is for a job
     * whose journal is in etcd. */
    char since[TIME_STAMP_MAX];
};

/* Reads both files. A file that is missing is an empty text; folder NULL: both are. The codes are
 * those of file_read. After a failure the log must be released, too. */
int job_log_read(const char *folder, struct job_log *ret_log, struct hvd_err *err) MUST_CHECK;
void job_log_release(struct job_log *log);

#endif
