/*
 * log_file.h: the agent's log, in a file that is made when there is a line to write.
 */
#ifndef AGENT_LOG_FILE_H
#define AGENT_LOG_FILE_H

#include "base/limits.h"

#include <pthread.h>

struct log_file {
    char path[LIMIT_PATH_BYTES];
    int fd; /* -1: not open */
    pthread_mutex_t opening;
};

/* From here on log_line writes there. Without a path: hvd-elastic/JOB/HOST.log where XDG_STATE_HOME
 * or HOME say that such things are kept, or nowhere. The struct is borrowed until log_file_close.
 */
void log_file_open(struct log_file *file, const char *path, const char *job, const char *host);
void log_file_close(struct log_file *file);

#endif
