/*
 * state_device.h: the part of a training state that lies in the memory of a GPU, and the copies of
 * it: slots on the device, and ranges in the timeline. For a state without a device these functions
 * do nothing and return 0, unless they say otherwise.
 */
#ifndef WORKER_STATE_DEVICE_H
#define WORKER_STATE_DEVICE_H

#include "worker/state_internal.h"

/* Describes the live state (the program's memory) for copy_commit and copy_restore. `which` says
 * which entries are meant (COPY_ALL, COPY_REPLICATED or COPY_PER_RANK). */
struct copy state_copy(const hvd_state *state, unsigned which);

/* These two show a copy of the whole state in the timeline, under the name `what`.
 * state_note_copy_begin is called when the copy begins; its result is for timeline_events_end_copy.
 * state_show_copy is called when the copy is over. */
struct timeline_events_copy state_note_copy_begin(hvd_state *state, const char *what,
                                                  uint64_t commit);
void state_show_copy(hvd_state *state, enum timeline_lane lane, const char *what, uint64_t commit,
                     int code, int64_t begun_us, int64_t ended_us);

/* Finds the device on which the memory `at` lies; *ret_device NULL: the memory is host memory.
 * HVD_E_INVAL: an earlier entry lies on another device. call and name are for the error text. */
int state_find_device(const hvd_state *state, const char *call, const char *name, const void *at,
                      const struct gpu_device **ret_device) MUST_CHECK;

int state_open_device(hvd_state *state, struct hvd_err *err) MUST_CHECK;
void state_close_device(hvd_state *state); /* called before the snapshot is freed */

/* Makes later copies wait for the work that the program has queued on the device so far. */
int state_follow(hvd_state *state, struct hvd_err *err) MUST_CHECK;

/* Makes later copies wait for the work that the program has queued so far. If commits go to a
 * slot, the function also copies the state into a slot, and notes the slot in *task. beside
 * true: the program promises not to change the state before it has called hvd_state_fence. */
int state_take(hvd_state *state, struct copier_task *task, bool beside,
               struct hvd_err *err) MUST_CHECK;

/* Return the slot with the newest commit, or with this commit; NULL: there is no such slot. */
struct slot *state_newest_slot(const hvd_state *state);
struct slot *state_slot_of(const hvd_state *state, uint64_t commit);
/* Forgets a commit in a slot if it has the number `commit` or a higher one. */
void state_drop_slots(hvd_state *state, uint64_t commit);
int state_restore_slot(hvd_state *state, const struct slot *slot, const struct copy *copy,
                       struct hvd_err *err) MUST_CHECK;

#endif
