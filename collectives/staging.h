/*
 * staging.h: host memory through which numbers of a device pass, slice by slice, and a stream that
 * copies them. Copies are done in the order in which they are queued.
 *
 *     load (device ──► in) ──► mark ──► await ──► [in ──► out] ──► store (out ──► device)
 *
 * There are two slots, each with an area `in` and an area `out`: while the numbers of one slot are
 * reduced, the other slot is filled or emptied.
 */
#ifndef COLLECTIVES_STAGING_H
#define COLLECTIVES_STAGING_H

#include "gpu/device.h"

#define STAGING_SLOTS 2
/* bytes of each of the areas `in` and `out` of a slot */
#define STAGING_BYTES ((size_t)4 * 1024 * 1024)

struct staging;

/* Opens the staging of a device. Its host memory is pinned once, which takes milliseconds. */
int staging_open(const struct gpu_device *device, struct staging **ret_staging,
                 struct hvd_err *err) MUST_CHECK;
void staging_close(struct staging *staging); /* frees nothing while a copy is running */

uint8_t *staging_in(const struct staging *staging, size_t slot);
uint8_t *staging_out(const struct staging *staging, size_t slot);

/* The functions from here to staging_look are for one thread at a time, which has entered the
 * device (gpu/device.h). They return the codes of cuda_judge. */

/* Copies that are queued from now on run after all work that is in `stream` now. */
int staging_after(struct staging *staging, struct CUstream_st *stream,
                  struct hvd_err *err) MUST_CHECK;
/* Work that is put into `stream` from now on runs after all copies that are queued now. */
int staging_before(struct staging *staging, struct CUstream_st *stream,
                   struct hvd_err *err) MUST_CHECK;

/* Queue a copy of `bytes` bytes: staging_load from the device to host memory, staging_store from
 * host memory to the device, staging_copy within the device. */
int staging_load(struct staging *staging, cuda_address from, uint8_t *to, size_t bytes,
                 struct hvd_err *err) MUST_CHECK;
int staging_store(struct staging *staging, const uint8_t *from, cuda_address to, size_t bytes,
                  struct hvd_err *err) MUST_CHECK;
int staging_copy(struct staging *staging, cuda_address from, cuda_address to, size_t bytes,
                 struct hvd_err *err) MUST_CHECK;

/* Sets the mark of the slot: an event in the stream after all copies that are queued now. */
int staging_mark(struct staging *staging, size_t slot, struct hvd_err *err) MUST_CHECK;
/* Asks whether all copies before the slot's mark are done. 0: yes; HVD_E_BUSY: not yet. */
int staging_look(struct staging *staging, size_t slot, struct hvd_err *err) MUST_CHECK;
/* Asks whether all queued copies are done. 0: yes; HVD_E_BUSY: not yet. Any thread may call this
 * function. */
int staging_idle(struct staging *staging, struct hvd_err *err) MUST_CHECK;

#endif
