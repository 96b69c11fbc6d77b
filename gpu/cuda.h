/*
 * cuda.h: the part of the CUDA driver that this library uses. The library is not linked against the
 * driver: the first call looks for a driver that the process has loaded already, and loads one only
 * where the caller wants that. The declarations follow the driver's binary interface (libcuda.so.1,
 * CUDA 12 and later); tests/unit/test_gpu_abi.c compares them with the toolkit's header where one
 * is installed.
 */
#ifndef GPU_CUDA_H
#define GPU_CUDA_H

#include "base/err.h"

struct CUctx_st;
struct CUstream_st;
struct CUevent_st;

typedef uint64_t cuda_address; /* an address in device memory */

enum cuda_result {
    CUDA_OK = 0,
    CUDA_INVALID = 1,
    CUDA_OUT_OF_MEMORY = 2,
    CUDA_DEINITIALIZED = 4, /* the driver is closed: the process is ending */
    CUDA_NO_DEVICE = 100,
    CUDA_NOT_READY = 600,
    CUDA_ALREADY_PINNED = 712,
};

enum cuda_flag {
    CUDA_STREAM_NON_BLOCKING = 1,
    CUDA_EVENT_BLOCKING = 1, /* a thread that waits for this event sleeps, and does not spin */
    CUDA_EVENT_UNTIMED = 2,
    CUDA_PIN_PORTABLE = 1,
};

enum cuda_pointer_attribute {
    CUDA_POINTER_TYPE = 2,
    CUDA_POINTER_MANAGED = 8,
    CUDA_POINTER_DEVICE = 9,
};
#define CUDA_TYPE_DEVICE 2U

struct cuda_uuid {
    uint8_t bytes[16];
};

/* The driver's functions: CALL(field of struct cuda, symbol in libcuda.so.1, parameters) */
/* clang-format off */
#define CUDA_CALLS(CALL)                                                                           \
    CALL(init, "cuInit", (unsigned flags))                                                         \
    CALL(get_version, "cuDriverGetVersion", (int *ret_version))                                    \
    CALL(error_name, "cuGetErrorName", (int code, const char **ret_name))                          \
    CALL(error_text, "cuGetErrorString", (int code, const char **ret_text))                        \
    CALL(device_count, "cuDeviceGetCount", (int *ret_count))                                       \
    CALL(device_get, "cuDeviceGet", (int *ret_device, int ordinal))                                \
    CALL(device_name, "cuDeviceGetName", (char *name, int room, int device))                       \
    CALL(device_uuid, "cuDeviceGetUuid_v2", (struct cuda_uuid *ret_uuid, int device))              \
    CALL(context_retain, "cuDevicePrimaryCtxRetain", (struct CUctx_st **ret_context, int device))  \
    CALL(context_push, "cuCtxPushCurrent_v2", (struct CUctx_st *context))                          \
    CALL(context_pop, "cuCtxPopCurrent_v2", (struct CUctx_st **ret_context))                       \
    CALL(context_current, "cuCtxGetCurrent", (struct CUctx_st **ret_context))                      \
    CALL(context_device, "cuCtxGetDevice", (int *ret_device))                                      \
    CALL(stream_priorities, "cuCtxGetStreamPriorityRange", (int *ret_least, int *ret_greatest))    \
    CALL(stream_create, "cuStreamCreateWithPriority",                                              \
         (struct CUstream_st **ret_stream, unsigned flags, int priority))                          \
    CALL(stream_destroy, "cuStreamDestroy_v2", (struct CUstream_st *stream))                       \
    CALL(stream_sync, "cuStreamSynchronize", (struct CUstream_st *stream))                         \
    CALL(stream_query, "cuStreamQuery", (struct CUstream_st *stream))                              \
    CALL(stream_wait, "cuStreamWaitEvent",                                                         \
         (struct CUstream_st *stream, struct CUevent_st *event, unsigned flags))                   \
    CALL(stream_context, "cuStreamGetCtx",                                                         \
         (struct CUstream_st *stream, struct CUctx_st **ret_context))                              \
    CALL(event_create, "cuEventCreate", (struct CUevent_st **ret_event, unsigned flags))           \
    CALL(event_destroy, "cuEventDestroy_v2", (struct CUevent_st *event))                           \
    CALL(event_record, "cuEventRecord", (struct CUevent_st *event, struct CUstream_st *stream))    \
    CALL(event_query, "cuEventQuery", (struct CUevent_st *event))                                  \
    CALL(event_sync, "cuEventSynchronize", (struct CUevent_st *event))                             \
    CALL(memory_info, "cuMemGetInfo_v2", (size_t *ret_free, size_t *ret_total))                    \
    CALL(memory_alloc, "cuMemAlloc_v2", (cuda_address *ret_at, size_t bytes))                      \
    CALL(memory_free, "cuMemFree_v2", (cuda_address at))                                           \
    CALL(host_alloc, "cuMemHostAlloc", (void **ret_at, size_t bytes, unsigned flags))              \
    CALL(host_free, "cuMemFreeHost", (void *at))                                                   \
    CALL(pin, "cuMemHostRegister_v2", (void *at, size_t bytes, unsigned flags))                    \
    CALL(unpin, "cuMemHostUnregister", (void *at))                                                 \
    CALL(to_host, "cuMemcpyDtoHAsync_v2",                                                          \
         (void *to, cuda_address from, size_t bytes, struct CUstream_st *stream))                  \
    CALL(to_device, "cuMemcpyHtoDAsync_v2",                                                        \
         (cuda_address to, const void *from, size_t bytes, struct CUstream_st *stream))            \
    CALL(on_device, "cuMemcpyDtoDAsync_v2",                                                        \
         (cuda_address to, cuda_address from, size_t bytes, struct CUstream_st *stream))           \
    CALL(fill, "cuMemsetD8Async",                                                                  \
         (cuda_address at, unsigned char byte, size_t bytes, struct CUstream_st *stream))          \
    CALL(pointer_attributes, "cuPointerGetAttributes",                                             \
         (unsigned count, const int *attributes, void **ret_values, cuda_address at))
/* clang-format on */

#define CUDA_MEMBER(name, symbol, parameters) int(*name) parameters;
struct cuda {
    int driver_version; /* as cuDriverGetVersion gives it: 13000 is 13.0 */
    CUDA_CALLS(CUDA_MEMBER)
};
#undef CUDA_MEMBER

/* Finds and initializes the driver; loads the driver if the process has not loaded it yet.
 * HVD_CUDA_LIBRARY names another file. HVD_E_UNSUPPORTED: there is no driver, no usable driver, or
 * no device; `err` says why. A driver that was found is kept until the process ends; until one is
 * found each call looks again. Any thread may call this function. */
int cuda_open(const struct cuda **ret_cuda, struct hvd_err *err) MUST_CHECK;

/* cuda_if_used finds the driver without loading it; NULL: this process does not use CUDA so far.
 * The call takes some microseconds, so it is made where a state is registered or a round begins.
 * cuda_known returns a driver that was found before, or NULL, at the cost of one memory load. */
const struct cuda *cuda_if_used(void);
const struct cuda *cuda_known(void);

/* Translates a code of the driver into 0, HVD_E_NOMEM or HVD_E_IO, with a text that begins with
 * `what`, the name of the call. */
int cuda_judge(const struct cuda *cuda, int code, const char *what, struct hvd_err *err) MUST_CHECK;

#endif
