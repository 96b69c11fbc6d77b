/*
 * sample_log.h: logs the samples that this worker uses, before it uses them. The file
 * DIR/INCARNATION.samples has one line for each batch:
 *
 *     batch NAME EPOCH FIRST TOTAL ROUND RANK SIZE SAMPLES: n n n
 *
 * FIRST is the index of the batch's first sample in its epoch, TOTAL the number of samples of the
 * batch on all ranks, SAMPLES the number of samples of an epoch. The numbers n are the samples of
 * this rank; there may be none. In NAME a blank is written %20, and a % is written %25.
 *
 * A line is one write at the end of the file. So when a worker is killed, its last line is complete
 * or missing. Only a full disk or a crash of the machine can leave a part of a line, which then has
 * no newline. tools/audit_line.c reads the lines.
 */
#ifndef WORKER_SAMPLE_LOG_H
#define WORKER_SAMPLE_LOG_H

#include "base/buf.h"
#include "base/err.h"

struct sample_log {
    char *path; /* path of the log; NULL: there is no log */
    char *name; /* the name of the sampler as the lines show it: with %20 and %25 */
    uint64_t samples;
    int fd; /* -1: no line was written yet */
    struct buf line;
};

/* Prepares the log. folder NULL or "": there is no log. When the first line is written, the file is
 * created, and also the folder if the folder's parent exists. Fails with HVD_E_NOMEM. */
int sample_log_init(struct sample_log *log, const char *folder, uint64_t incarnation,
                    const char *name, uint64_t samples) MUST_CHECK;
void sample_log_release(struct sample_log *log);

/* Writes the line of one batch. HVD_E_IO: the line could not be written (a part of it stays only if
 * the file cannot be cut); HVD_E_LIMIT: the line is longer than LIMIT_SAMPLE_LINE_BYTES;
 * HVD_E_NOMEM. */
struct sample_place {
    uint64_t round;
    uint32_t rank, size;
};
int sample_log_write(struct sample_log *log, const struct sample_place *place,
                     const hvd_batch *batch, struct hvd_err *err) MUST_CHECK;

#endif
