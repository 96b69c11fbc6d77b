/*
 * ferry.h: state between the memory of one device and that of the host, and on the device from one
 * place to another. It has two streams there: what stays on the device, or comes to it, goes ahead
 * of other work (near); what goes to the host gives way to it (far).
 *
 * One copy at a time. What goes wrong first is kept, and told by ferry_settle.
 */
#ifndef STATE_SNAPSHOT_FERRY_H
#define STATE_SNAPSHOT_FERRY_H

#include "gpu/device.h"

/* What goes to the host as one, and whose checksums are made while the next is on its way. */
#define FERRY_PIECE_BYTES ((uint64_t)8 << 20)

/* What is pinned by one call, which may keep out all others for as long as it takes. No piece is in
 * two of them. */
#define FERRY_PIN_BYTES ((uint64_t)64 << 20)

struct ferry;

/* HVD_E_IO, HVD_E_NOMEM: the device does not do it. */
int ferry_open(const struct gpu_device *device, struct ferry **ret_ferry,
               struct hvd_err *err) MUST_CHECK;
/* After ferry_settle. What is pinned is still mapped, and no longer pinned then. false: a device
 * that does not answer any more may still write there, so it must stay mapped. NULL is fine. */
bool ferry_close(struct ferry *ferry);
const struct gpu_device *ferry_device(const struct ferry *ferry);

/* ---- order: a stream NULL is the NULL stream ---------------------------------------------------
 */

/* What is copied from here on comes after what is queued in this stream so far. */
int ferry_after(struct ferry *ferry, struct CUstream_st *stream, struct hvd_err *err) MUST_CHECK;

/* What is queued in this stream from here on, and what goes to the host, comes after what was
 * copied on the device so far. */
int ferry_before(struct ferry *ferry, struct CUstream_st *stream, struct hvd_err *err) MUST_CHECK;

/* Until what was waited for by the last of these two is done. */
int ferry_await(struct ferry *ferry, struct hvd_err *err) MUST_CHECK;

/* ---- copies: queued when these return, done after ferry_settle ------------------------------- */

int ferry_move(struct ferry *ferry, cuda_address to, cuda_address from, uint64_t bytes) MUST_CHECK;
int ferry_to_device(struct ferry *ferry, cuda_address to, const void *from, /* any thread */
                    uint64_t bytes) MUST_CHECK;

/* Pieces [first, end), one after the other: queue is called for each, a few of them ahead of what
 * has landed, and calls ferry_to_host. From any thread that waits, one at a time. */
typedef int ferry_queue_fn(void *arg, uint64_t piece);
int ferry_begin(struct ferry *ferry, uint64_t first, uint64_t end, ferry_queue_fn *queue,
                void *arg) MUST_CHECK;
int ferry_to_host(struct ferry *ferry, void *to, cuda_address from, uint64_t bytes) MUST_CHECK;
/* Until this piece is in the memory of the host. Any thread. */
int ferry_landed(struct ferry *ferry, uint64_t piece) MUST_CHECK;

/* Until nothing is under way. 0, or what has gone wrong first since the last time. */
int ferry_settle(struct ferry *ferry, struct hvd_err *err) MUST_CHECK;

/* ---- memory ---------------------------------------------------------------------------------- */

int ferry_alloc(struct ferry *ferry, uint64_t bytes, cuda_address *ret_at,
                struct hvd_err *err) MUST_CHECK;
void ferry_free(struct ferry *ferry, cuda_address at);

/* The first time for this buffer: is it to be pinned? */
bool ferry_meets(struct ferry *ferry, const void *buffer);
/* The device reaches it faster from now on; where that cannot be, all goes the slower way. */
void ferry_pin(struct ferry *ferry, void *at, uint64_t bytes);

#endif
