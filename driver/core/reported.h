/*
 * reported.h: the values that the program reports (hvd_report), as the heartbeats of its agents
 * say: the newest value of each name, and a few older ones over time. All of it is shown to
 * operators, and nothing is decided by it: an agent may lie. The journal gets the newest values now
 * and then, for the next driver and for a job that has ended; a driver that takes over hears newer
 * ones with the first heartbeats.
 *
 * A record JOURNAL_REPORTED says that `incarnation` has reported a value under the name `text`, in
 * `round`, after `commit`, at wall_us. `manifest`: how often it had reported this name; `check`:
 * the bits of the value. After a compaction `addresses` are the values over time up to this one, as
 * texts, and `previous` is the least time between two of them.
 */
#ifndef DRIVER_CORE_REPORTED_H
#define DRIVER_CORE_REPORTED_H

#include "driver/core/core_internal.h"

/* Takes the reported values in a heartbeat of this host's agent, as far as authority.c believes
 * them. */
void reported_on_beat(struct core *core, struct core_host *host, const struct msg_beat *beat);

/* Copies the names with their values into the view, in the order in which the names came first. */
void reported_view(const struct core *core, struct core_view *view);

/* Writes values that have changed to the journal, if this step writes other records. Called by
 * goodput.c at the end of each step. */
void reported_look(struct core *core);

/* Fills in the record of a shorter journal, whose texts go into `memory`. False: no memory is left.
 */
bool reported_whole_record(const struct core_report *report, struct arena *memory,
                           struct journal_record *record);

/* Restores a REPORTED record. False: no driver can have written it. */
bool reported_replay(struct core *core, const struct journal_record *record);

/* Ends the replay: from now on times are those of this machine's clock. */
void reported_start(struct core *core);

void reported_release(struct core *core);

#endif
