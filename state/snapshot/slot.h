/*
 * slot.h: a copy of a whole state beside the live one: of entries in device memory on the device,
 * of all others in memory of the host. It is made at the speed of the device's memory, and goes to
 * the snapshot, or back, from there.
 */
#ifndef STATE_SNAPSHOT_SLOT_H
#define STATE_SNAPSHOT_SLOT_H

#include "state/snapshot/copy.h"

struct slot;

/* For the state that this is a copy of; the ferry lives longer. HVD_E_NOMEM: the device, or this
 * machine, has no room for it. */
int slot_create(const struct copy *live, struct slot **ret_slot, struct hvd_err *err) MUST_CHECK;
void slot_free(struct slot *slot); /* nothing of it is under way; NULL is fine */

/* The live state as it is now; what is queued in that stream so far comes before, what is queued
 * after it waits. On the device it is done after ferry_await: then it may be named. What the slot
 * held is gone, in any case. A code of save's, HVD_E_LIMIT, HVD_E_IO. */
int slot_take(struct slot *slot, const struct copy *live, struct CUstream_st *stream,
              struct hvd_err *err) MUST_CHECK;
void slot_name(struct slot *slot, uint64_t commit); /* 0: there is nothing in it any more */
uint64_t slot_commit(const struct slot *slot);      /* 0 before it is named */

/* What it holds, as a state that copy_commit can put into a snapshot; as long as it lives. */
struct copy slot_copy(const struct slot *slot);

/* These entries back into the live state: after what is queued in that stream, and done when it
 * returns. HVD_E_IO, or a code of load's: the live memory is rubbish. */
int slot_restore(const struct slot *slot, const struct copy *live, struct CUstream_st *stream,
                 struct hvd_err *err) MUST_CHECK;

#endif
