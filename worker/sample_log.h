/*
 * sample_log.h: what this worker has used, written down before it is used: DIR/INCARNATION.samples,
 * in which each batch is a line,
 *
 *     batch NAME EPOCH FIRST TOTAL ROUND RANK SIZE SAMPLES: n n n
 *
 * FIRST is the batch's place in its epoch, TOTAL its samples on all ranks, SAMPLES those of an
 * epoch, and the n are those of this rank; there may be none. A blank in NAME is %20, a % is %25.
 *
 * A line is one write at the end of the file. So of a worker that is killed at any moment the last
 * line is there or not; only a disk that is full or a machine that dies can leave a part of it, and
 * then it has no newline. tools/audit_line.h reads it.
 */
#ifndef WORKER_SAMPLE_LOG_H
#define WORKER_SAMPLE_LOG_H

#include "base/buf.h"
#include "base/err.h"

struct sample_log {
    char *path; /* NULL: nothing is written down */
    char *name; /* as it stands in the lines */
    uint64_t samples;
    int fd; /* -1 before the first line */
    struct buf line;
};

/* folder NULL or "": no log. The file is made with the first line; the folder too, but not the one
 * it lies in. HVD_E_NOMEM. */
int sample_log_init(struct sample_log *log, const char *folder, uint64_t incarnation,
                    const char *name, uint64_t samples) MUST_CHECK;
void sample_log_release(struct sample_log *log);

/* HVD_E_IO (the file is as it was), HVD_E_NOMEM, HVD_E_LIMIT: a share that makes a line longer than
 * LIMIT_SAMPLE_LINE_BYTES. */
struct sample_place {
    uint64_t round;
    uint32_t rank, size;
};
int sample_log_write(struct sample_log *log, const struct sample_place *place,
                     const hvd_batch *batch, struct hvd_err *err) MUST_CHECK;

#endif
