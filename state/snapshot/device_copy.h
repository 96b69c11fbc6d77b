/*
 * device_copy.h: copies state between the memory of one device and host memory, and within the
 * device. There are two streams: the urgent stream, for copies within or to the device, runs ahead
 * of other work; the background stream, for copies to the host, runs behind other work. Only one
 * commit or restore at a time. The first error is kept, and device_copy_settle returns it.
 */
#ifndef STATE_SNAPSHOT_DEVICE_COPY_H
#define STATE_SNAPSHOT_DEVICE_COPY_H

#include "gpu/device.h"

/* Number of bytes that one request copies to the host. While a piece of this size is being copied,
 * the checksums of the previous piece are computed. */
#define DEVICE_COPY_PIECE_BYTES ((uint64_t)8 << 20)

/* The most bytes that one call pins (locks in memory, so that the device reaches them faster),
 * because the driver may block all other callers during the call. No piece lies in two pinned
 * ranges. */
#define DEVICE_COPY_PIN_BYTES ((uint64_t)64 << 20)

struct device_copy;

/* Opens the streams and events for copies from and to this device. HVD_E_IO, HVD_E_NOMEM: the
 * device cannot be used. */
int device_copy_open(const struct gpu_device *device, struct device_copy **ret_device_copy,
                     struct hvd_err *err) MUST_CHECK;
/* Called after device_copy_settle. Unpins the pinned memory, which stays mapped. false: the device
 * does not answer and may still write to that memory, so it must stay mapped. NULL is allowed. */
bool device_copy_close(struct device_copy *self);

/* ---- order: stream NULL means CUDA's default stream ---- */

/* Makes later copies wait for the work that is in this stream now. */
int device_copy_after(struct device_copy *self, struct CUstream_st *stream,
                      struct hvd_err *err) MUST_CHECK;

/* Makes later work in this stream, and later copies to the host, wait for the copies within the
 * device that are queued now. */
int device_copy_before(struct device_copy *self, struct CUstream_st *stream,
                       struct hvd_err *err) MUST_CHECK;

/* Waits until the work is done for which the last device_copy_after or device_copy_before has made
 * others wait. */
int device_copy_await(struct device_copy *self, struct hvd_err *err) MUST_CHECK;

/* ---- copies: these calls queue them; all are done after device_copy_settle ---- */

/* Queues a copy within the device. */
int device_copy_move(struct device_copy *self, cuda_address to, cuda_address from,
                     uint64_t bytes) MUST_CHECK;
/* Queues a copy from the host to the device. Any thread may call this function. */
int device_copy_to_device(struct device_copy *self, cuda_address to, const void *from,
                          uint64_t bytes) MUST_CHECK;

/* Copies pieces [first, end) to the host, in order. `queue` is called for each piece and calls
 * device_copy_to_host; it is called a few pieces ahead of the pieces that have arrived. Any thread
 * that waits for a piece may call `queue`, but only one thread at a time. */
typedef int device_copy_queue_fn(void *arg, uint64_t piece);
int device_copy_begin(struct device_copy *self, uint64_t first, uint64_t end,
                      device_copy_queue_fn *queue, void *arg) MUST_CHECK;
/* Queues a copy to the host; called only by `queue`, for the piece that it was given. */
int device_copy_to_host(struct device_copy *self, void *to, cuda_address from,
                        uint64_t bytes) MUST_CHECK;
/* Waits until this piece has arrived in host memory. Any thread may call this function. */
int device_copy_landed(struct device_copy *self, uint64_t piece) MUST_CHECK;

/* Waits until no copy is in progress. Returns 0, or the first error since the last call. */
int device_copy_settle(struct device_copy *self, struct hvd_err *err) MUST_CHECK;

/* ---- memory ---------------------------------------------------------------------------------- */

/* Allocates memory of the device. */
int device_copy_alloc(struct device_copy *self, uint64_t bytes, cuda_address *ret_at,
                      struct hvd_err *err) MUST_CHECK;
void device_copy_free(struct device_copy *self, cuda_address at);

/* Notes this buffer. Returns true for a buffer that was not noted before: the caller must then pin
 * it. There are at most three buffers, those of a snapshot. */
bool device_copy_meets(struct device_copy *self, const void *buffer);
/* Pins memory of the host, so that the device reaches it faster. If the memory cannot be pinned,
 * copies are slower. */
void device_copy_pin(struct device_copy *self, void *at, uint64_t bytes);

#endif
