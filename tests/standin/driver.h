/*
 * driver.h: what the stand-in of NCCL uses of the stand-in of the CUDA driver, and what both share.
 */
#ifndef TESTS_STANDIN_DRIVER_H
#define TESTS_STANDIN_DRIVER_H

#include "gpu/cuda.h"

#define STANDIN_EXPORT __attribute__((visibility("default")))

/* The caller broke a rule of the library: ends the process with a message. */
STANDIN_EXPORT NORETURN void standin_misuse(const char *format, ...) PRINTF_LIKE(1, 2);

/* the number in an environment variable */
STANDIN_EXPORT int standin_number(const char *variable, int otherwise);

/* ---- faults ---------------------------------------------------------------------------------- */

enum standin_what {
    STANDIN_NOTHING,
    STANDIN_SLOW,
    STANDIN_LATE,
    STANDIN_HELD,
    STANDIN_ERROR,
    STANDIN_DIE,
    STANDIN_HANG,
    STANDIN_FAIL,
    STANDIN_LOST,
};
#define STANDIN_NO_RANK (-1)

/* Counts this call. Returns the fault that happens in it, and its delay if the fault is SLOW. */
STANDIN_EXPORT enum standin_what standin_fault(const char *call, int rank, int64_t *ret_slow_us);
STANDIN_EXPORT NORETURN void standin_die(void);
STANDIN_EXPORT void standin_stay(void);  /* waits until the faults are cleared */
STANDIN_EXPORT bool standin_holds(void); /* true: a fault collective:held is set */

/* ---- leaks ----------------------------------------------------------------------------------- */

STANDIN_EXPORT void standin_count(const char *what, int difference);

/* ---- devices and streams --------------------------------------------------------------------- */

STANDIN_EXPORT struct CUctx_st *standin_current(void); /* NULL: none */
STANDIN_EXPORT int standin_ordinal(const struct CUctx_st *context);
STANDIN_EXPORT struct cuda_uuid standin_uuid(const struct CUctx_st *context);
STANDIN_EXPORT bool standin_lost(void); /* true: after the fault device:lost */
/* How often the device was lost. An object that was made at another count is lost, even if the
 * fault is cleared. */
STANDIN_EXPORT unsigned standin_losses(void);

/* The bytes of this range at the address that a kernel uses. The range must be inside one
 * allocation of this device. */
STANDIN_EXPORT void *standin_range(const struct CUctx_st *context, const void *at, size_t bytes,
                                   const char *who);

/* Queues work in a stream of this context. The stream's thread calls run() when the work before it
 * is done, also on a lost device, and ended() when the stream is past it. Between hold and launch
 * no other thread may use the stream. */
typedef void standin_kernel_fn(void *arg);
STANDIN_EXPORT void standin_hold(const struct CUctx_st *context, struct CUstream_st *stream);
STANDIN_EXPORT void standin_release(const struct CUctx_st *context, struct CUstream_st *stream);
STANDIN_EXPORT void standin_launch(struct CUctx_st *context, struct CUstream_st *stream,
                                   standin_kernel_fn *run, standin_kernel_fn *ended, void *arg);

#endif
