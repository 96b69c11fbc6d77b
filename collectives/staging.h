/*
 * staging.h: memory of the host through which numbers of a device pass, chunk by chunk, and a
 * stream that moves them. What is queued is done in order.
 *
 *     begin ──► load (device ──► in) ──► await ──► [in ──► out] ──► store (out ──► device) ──► end
 *
 * Two slots take turns: while one is computed with, the other is filled or emptied.
 */
#ifndef COLLECTIVES_STAGING_H
#define COLLECTIVES_STAGING_H

#include "gpu/device.h"

#define STAGING_SLOTS 2
#define STAGING_BYTES ((size_t)4 * 1024 * 1024) /* of each area of a slot */

struct staging;

/* The memory is pinned, once: that takes milliseconds. */
int staging_open(const struct gpu_device *device, struct staging **ret_staging,
                 struct hvd_err *err) MUST_CHECK;
void staging_close(struct staging *staging); /* nothing, if it still moves something */

uint8_t *staging_in(const struct staging *staging, size_t slot);
uint8_t *staging_out(const struct staging *staging, size_t slot);

/* For one thread at a time, which has entered the device (gpu/device.h). Codes as of cuda_judge. */

/* What is queued from here on comes after all that is queued in this stream by now. */
int staging_after(struct staging *staging, struct CUstream_st *stream,
                  struct hvd_err *err) MUST_CHECK;
/* What is queued in that one from here on comes after all that is queued here by now. */
int staging_before(struct staging *staging, struct CUstream_st *stream,
                   struct hvd_err *err) MUST_CHECK;

int staging_load(struct staging *staging, cuda_address from, uint8_t *to, size_t bytes,
                 struct hvd_err *err) MUST_CHECK;
int staging_store(struct staging *staging, const uint8_t *from, cuda_address to, size_t bytes,
                  struct hvd_err *err) MUST_CHECK;
int staging_copy(struct staging *staging, cuda_address from, cuda_address to, size_t bytes,
                 struct hvd_err *err) MUST_CHECK; /* on the device */

/* All that is queued by now is what this slot waits for. */
int staging_mark(struct staging *staging, size_t slot, struct hvd_err *err) MUST_CHECK;
/* Has it come? 0, HVD_E_BUSY: not yet. */
int staging_look(struct staging *staging, size_t slot, struct hvd_err *err) MUST_CHECK;
/* Has all? Any thread. */
int staging_idle(struct staging *staging, struct hvd_err *err) MUST_CHECK;

#endif
