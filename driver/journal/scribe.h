/*
 * scribe.h: the scribe: a thread that writes a job's store, so that a slow disk or network never
 * stops the driver's event loop. All writes that wait go into one transaction. The writes of one
 * step of the core are durable together or not at all, so a driver that dies loses no half of a
 * step.
 */
#ifndef DRIVER_JOURNAL_SCRIBE_H
#define DRIVER_JOURNAL_SCRIBE_H

#include "base/time.h"
#include "driver/core/config.h"
#include "driver/store/store.h"

struct scribe;

/*
 * Starts the thread. The store must be claimed. When this returns 0, the scribe owns the store
 * until scribe_stop.
 *
 * The thread checks the owner of the store every check_us, also when nothing is written. A write
 * that fails for a temporary reason (a full disk, a lock of another process) is tried again, for at
 * most SCRIBE_PATIENCE.
 */
#define SCRIBE_PATIENCE (20 * TIME_S)
int scribe_start(struct store *store, int64_t check_us, struct scribe **ret_scribe,
                 struct hvd_err *err) MUST_CHECK;

/* From now on the thread compacts the journal (compact.h) when it has LIMIT_JOURNAL_COMPACT records
 * more than after the last time; now it has `records`. `config` is that of the driver's core, and
 * is copied. */
void scribe_compact(struct scribe *scribe, const struct core_config *config, uint64_t records);

/* Copies the write and returns without waiting for the disk. Returns the number of the write: 1, 2,
 * 3 ... Returns 0 when no memory is left, or when more than LIMIT_JOURNAL_WAITING_BYTES are
 * waiting. After a failure of the thread each write is dropped. */
uint64_t scribe_put(struct scribe *scribe, const struct job_write *write);

/* The writes that scribe_put takes between these two calls belong to one step of the core, and go
 * into the same transaction. Only a step of more than LIMIT_JOURNAL_BATCH writes is cut. Each begin
 * needs its end, also after a failure in between. */
void scribe_step_begin(struct scribe *scribe);
void scribe_step_end(struct scribe *scribe);

/* Makes the thread check the owner of the store at once; scribe_look tells if another driver owns
 * it. */
void scribe_check(struct scribe *scribe);

/* Returns a descriptor that becomes readable when scribe_look has a new result. It may also be
 * readable without a new result, because scribe_look first empties the descriptor and then reads
 * the result. */
int scribe_fd(const struct scribe *scribe);

/* Empties the descriptor. Returns 0 and the number up to which all writes are durable. After a
 * failed write each call returns the code of that failure (HVD_E_LOST: another driver owns the
 * store), and no later write is made. */
int scribe_look(struct scribe *scribe, uint64_t *ret_durable, struct hvd_err *err) MUST_CHECK;

/* Returns the time until which no other driver can have claimed the job (store.h). When it has
 * passed, and a later call of the store finds that no driver has, the descriptor becomes readable.
 */
int64_t scribe_held_until(struct scribe *scribe);

/* Returns the standbys of the job, as the store has last seen them. */
void scribe_peers(struct scribe *scribe, struct store_peers *ret_peers);

/* Writes all waiting writes, ends the thread and closes the store. Returns the code that
 * scribe_look would return. */
int scribe_stop(struct scribe *scribe, struct hvd_err *err);

#endif
