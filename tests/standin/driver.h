/*
 * driver.h: what the stand-in of NCCL uses of the stand-in of the driver, and of what both share.
 */
#ifndef TESTS_STANDIN_DRIVER_H
#define TESTS_STANDIN_DRIVER_H

#include "gpu/cuda.h"

#define STANDIN_EXPORT __attribute__((visibility("default")))

/* Somebody has done what is not allowed: the process ends with a message. */
STANDIN_EXPORT NORETURN void standin_misuse(const char *format, ...) PRINTF_LIKE(1, 2);

STANDIN_EXPORT int standin_number(const char *variable, int otherwise); /* of the environment */

/* ---- faults ---------------------------------------------------------------------------------- */

enum standin_what {
    STANDIN_NOTHING,
    STANDIN_SLOW,
    STANDIN_LATE,
    STANDIN_ERROR,
    STANDIN_DIE,
    STANDIN_HANG,
    STANDIN_FAIL,
    STANDIN_LOST,
};
#define STANDIN_NO_RANK (-1)

/* Counts this call. What is to happen in it, and for how long if it is slow. */
STANDIN_EXPORT enum standin_what standin_fault(const char *call, int rank, int64_t *ret_slow_us);
STANDIN_EXPORT NORETURN void standin_die(void);
STANDIN_EXPORT void standin_stay(void); /* until the faults are taken back */

/* ---- leaks ----------------------------------------------------------------------------------- */

STANDIN_EXPORT void standin_count(const char *what, int difference);

/* ---- devices and streams --------------------------------------------------------------------- */

STANDIN_EXPORT struct CUctx_st *standin_current(void); /* NULL: none */
STANDIN_EXPORT int standin_ordinal(const struct CUctx_st *context);
STANDIN_EXPORT struct cuda_uuid standin_uuid(const struct CUctx_st *context);
STANDIN_EXPORT bool standin_lost(void); /* by device:lost */
/* How often it was: what began at another count is lost, even if the fault is taken back. */
STANDIN_EXPORT unsigned standin_losses(void);

/* The bytes of this range as a kernel sees them. It is of one allocation of this device. */
STANDIN_EXPORT void *standin_range(const struct CUctx_st *context, const void *at, size_t bytes,
                                   const char *who);

/* Work in a stream, of that context: run by the stream's thread when its turn has come, also on a
 * device that is lost; ended when the stream is past it. Between hold and launch nobody else may
 * use the stream. */
typedef void standin_kernel_fn(void *arg);
STANDIN_EXPORT void standin_hold(const struct CUctx_st *context, struct CUstream_st *stream);
STANDIN_EXPORT void standin_release(const struct CUctx_st *context, struct CUstream_st *stream);
STANDIN_EXPORT void standin_launch(struct CUctx_st *context, struct CUstream_st *stream,
                                   standin_kernel_fn *run, standin_kernel_fn *ended, void *arg);

#endif
