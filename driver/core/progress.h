/*
 * progress.h: failures without progress end the job. Progress of a training is a newer commit.
 * Progress of plain commands is a command that ends with 0, or one that has run for
 * LIMIT_COMMAND_RUN_US before it fails.
 *
 *     a slot    more than --progress-restarts failures of its workers
 *     the job   more than --progress-restarts-job failures of rounds and starts
 *
 * Members that fail in the same round are one failure of the job and one of each of their slots. A
 * host that fails with all its workers is one failure of the job and of no slot. The first failure
 * after progress is number 1 again. Neither the blacklist nor --reset-limit takes part in this.
 *
 * A start fails when a worker that has not joined, or a plain command, ends by itself with a
 * failure while no round trains. It is one failure of its slot, and one of the job if the worker
 * was launched after the failure before it: workers that fail together count once. A start counts
 * when its slot is used again, or when its host has lived on for --lease. So a host that goes, and
 * takes its processes with it, is not counted. The job does not end by failed starts while a worker
 * in another slot may still join.
 */
#ifndef DRIVER_CORE_PROGRESS_H
#define DRIVER_CORE_PROGRESS_H

#include "driver/core/core_internal.h"

/* A member has failed. `of_host`: its host has failed, not the worker. Whether there was progress
 * before is judged later, when all survivors have said which commits they hold. */
void progress_note_failure(struct core *core, const struct worker *worker, bool of_host,
                           const char *why);

/* Returns how the failure of a worker that has not joined counts: BLAME_START, BLAME_RUN, or
 * BLAME_NONE while a round trains. */
enum journal_blame progress_start_blame(const struct core *core, const struct worker *worker);

/* A worker has failed before it joined. `blame` is BLAME_START or BLAME_RUN. */
void progress_note_start(struct core *core, const struct worker *worker, enum journal_blame blame,
                         const char *why);

/* A plain command has ended with 0. */
void progress_note_success(struct core *core);

/* A worker is about to be launched in the slot, or was launched by an earlier driver. False: the
 * failures in this slot have ended the job. */
bool progress_on_launch(struct core *core, struct core_host *host, uint32_t slot);

/* A round begins: failed starts that progress_expire has not counted by now are forgotten. */
void progress_on_round(struct core *core);

/* Counts failed starts whose hosts have lived on for a lease. */
void progress_expire(struct core *core);

/* Judges the failures that were noted, and ends the job if there were too many of them. `forming`:
 * the next round begins now, so a commit whose checksum is not known by now counts as a newer one.
 * False: the job has ended. */
bool progress_judge(struct core *core, bool forming);

/* Restores what an earlier driver has written: a JOURNAL_STUCK. Returns 0, HVD_E_NOMEM, or
 * HVD_E_CORRUPT for a record that is impossible. */
int progress_replay(struct core *core, const struct journal_record *record);

#endif
