/*
 * complaint_log.h: what programs say on their standard error, for the log: once per change, however
 * often they are run, and not without end when each run says something else.
 */
#ifndef DRIVER_HOSTS_COMPLAINT_LOG_H
#define DRIVER_HOSTS_COMPLAINT_LOG_H

#include "base/log.h"
#include "driver/hosts/complaint.h"

struct complaint_log {
    const char *name; /* of the program; borrowed */
    char shown[LIMIT_COMPLAINT_BYTES];
    size_t shown_length;
    struct log_limit limit;
};

void complaint_log_init(struct complaint_log *log, const char *name);

/* A run has ended: its last lines, unless the run before said the same. */
void complaint_log_run(struct complaint_log *log, const struct complaint *complaint);

/* A program goes on and has said more: the newest whole line, unless it is the one before again. */
void complaint_log_line(struct complaint_log *log, const struct complaint *complaint);

#endif
