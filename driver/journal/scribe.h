/*
 * scribe.h: the thread that writes a job's file, so that a slow disk never stops the driver's loop.
 * What waits is written in one transaction.
 */
#ifndef DRIVER_JOURNAL_SCRIBE_H
#define DRIVER_JOURNAL_SCRIBE_H

#include "base/time.h"
#include "driver/journal/job_file.h"

struct scribe;

/*
 * The file, which is claimed, is given when this returns 0: nobody else uses it until scribe_stop.
 * The thread looks at its owner every check_us, also when it has nothing to write. What fails for a
 * time - a full disk, another process that has locked the file - is tried again for
 * SCRIBE_PATIENCE.
 */
#define SCRIBE_PATIENCE (20 * TIME_S)
int scribe_start(struct job_file *file, int64_t check_us, struct scribe **ret_scribe,
                 struct hvd_err *err) MUST_CHECK;

/* Copied; never waits for the disk. Returns its number, which rises by one from 1; 0 when memory is
 * out, or LIMIT_JOURNAL_WAITING_BYTES are waiting. After a failure what is put is dropped. */
uint64_t scribe_put(struct scribe *scribe, const struct job_write *write);

/* Readable when there is something to look at. */
int scribe_fd(const struct scribe *scribe);

/* Empties the descriptor. 0 and the number up to which all is durable, or the failure after which
 * nothing more is written (HVD_E_LOST: another driver owns the file), again at each look. */
int scribe_look(struct scribe *scribe, uint64_t *ret_durable, struct hvd_err *err) MUST_CHECK;

/* Writes what waits, ends the thread, closes the file. What scribe_look would have said last. */
int scribe_stop(struct scribe *scribe, struct hvd_err *err);

#endif
