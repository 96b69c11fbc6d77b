/*
 * goodput.h: for what the time of the job's workers was used: for training, or for one of the
 * causes for which the training stood still. Each moment of the job's life counts under one use
 * (view_parts.h), also the time without a driver.
 *
 * While the job trains, a second counts for each member. While it does not, a second counts for
 * each member of the last round that trained, and for np workers before the first one: so the time
 * of a worker that has died counts until a round trains without it.
 */
#ifndef DRIVER_CORE_GOODPUT_H
#define DRIVER_CORE_GOODPUT_H

#include "driver/core/core_internal.h"

/* goodput_count: counts the time since the step before; called when the time of a step is set.
 * goodput_look: called at the end of each step; decides for what the time is used from now on, and
 * writes records. */
void goodput_count(struct core *core);
void goodput_look(struct core *core);

/* A worker of this host has failed, by its own fault or by that of its host. */
void goodput_note_failure(struct core *core, const char *host);

/* Restores the counts of a GOODPUT record. False: the record is impossible. */
bool goodput_replay(struct core *core, const struct journal_record *record);

/* goodput_record fills in the record of one use. goodput_host_record fills in that of the host with
 * the index `number`, or, behind the last host, that of all hosts without an entry of their own.
 * False: there is no such record. */
bool goodput_record(const struct core *core, enum goodput_use use, struct journal_record *record);
bool goodput_host_record(const struct core *core, size_t number, struct journal_record *record);

#endif
