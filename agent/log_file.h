/*
 * log_file.h: the agent's log, in a file that is created when the first line is written.
 */
#ifndef AGENT_LOG_FILE_H
#define AGENT_LOG_FILE_H

#include "base/limits.h"

#include <pthread.h>

struct log_file {
    char path[LIMIT_PATH_BYTES]; /* "": lines are dropped */
    int fd;                      /* the log file; -1: not open yet */
    pthread_mutex_t opening;     /* held while a thread opens `fd` */
};

/* Makes log_line write to the file. If `path` is NULL, the file is hvd-elastic/JOB/HOST.log in the
 * folder that XDG_STATE_HOME or HOME gives. Lines are dropped if both variables are unset, if the
 * path is /dev/null, and if the file is not a plain file of this user with one name. The struct is
 * borrowed until log_file_close. */
void log_file_open(struct log_file *file, const char *path, const char *job, const char *host);
void log_file_close(struct log_file *file);

#endif
