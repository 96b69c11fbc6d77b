/*
 * slot.h: a slot holds a copy of the whole state beside the live state: entries in device memory on
 * the device, all other entries in host memory. The copy is made at the speed of device memory.
 * Later it goes to the snapshot, or back to live memory.
 */
#ifndef STATE_SNAPSHOT_SLOT_H
#define STATE_SNAPSHOT_SLOT_H

#include "state/snapshot/copy.h"

struct slot;

/* Creates a slot for this state. The device_copy of `live` must outlive the slot. HVD_E_NOMEM: the
 * device or the host has no memory for the slot. */
int slot_create(const struct copy *live, struct slot **ret_slot, struct hvd_err *err) MUST_CHECK;
void slot_free(struct slot *slot); /* no copy from or to the slot may be running; NULL is allowed */

/* Copies the live state after the work that is in this stream now; later work in the stream waits
 * for the copy. After device_copy_await the copy within the device is done, and slot_name may be
 * called. The previous commit of the slot is lost, also on failure. Errors: a code of a save
 * callback, HVD_E_LIMIT, HVD_E_IO. */
int slot_take(struct slot *slot, const struct copy *live, struct CUstream_st *stream,
              struct hvd_err *err) MUST_CHECK;
/* sets the number of the slot's commit; 0: the slot holds no commit */
void slot_name(struct slot *slot, uint64_t commit);
/* returns the number of the slot's commit; 0: the slot holds no commit */
uint64_t slot_commit(const struct slot *slot);

/* Describes the slot as a state, so that copy_commit can copy it to a snapshot. The description is
 * valid as long as the slot. */
struct copy slot_copy(const struct slot *slot);

/* Copies the entries of the kinds live->which from the slot back to the live state, after the work
 * that is in this stream now. The copy is done when the function returns. HVD_E_IO, or a code of a
 * load callback: live memory is undefined. */
int slot_restore(const struct slot *slot, const struct copy *live, struct CUstream_st *stream,
                 struct hvd_err *err) MUST_CHECK;

#endif
