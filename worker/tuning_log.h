/*
 * tuning_log.h: writes down which algorithms of an allreduce were tried in a round, how long each
 * took at least, and which one was chosen (--autotune-log-file). The file begins with the names of
 * the columns:
 *
 *     round,workers,hosts,bytes,algorithm,microseconds,chosen
 *
 * Lines are appended, each by one write, by rank 0 of a round. A size with one algorithm is not
 * tried, so it has no line.
 */
#ifndef WORKER_TUNING_LOG_H
#define WORKER_TUNING_LOG_H

#include "collectives/engine.h"

struct tuning_log {
    char *path; /* path of the log; NULL: there is no log */
    int fd;     /* the open log; -1: no line was written yet */
};

/* Prepares the log. path NULL or "": there is no log. The file is created when the first line is
 * written. Fails with HVD_E_NOMEM. */
int tuning_log_init(struct tuning_log *log, const char *path) MUST_CHECK;
void tuning_log_release(struct tuning_log *log);

/* Writes the line of one algorithm that was tried. HVD_E_IO: the file cannot be written, and no
 * further line is written to it; the err says why. */
int tuning_log_write(struct tuning_log *log, const struct coll_tried *tried,
                     struct hvd_err *err) MUST_CHECK;

#endif
