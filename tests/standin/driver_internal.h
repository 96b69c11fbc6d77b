/*
 * driver_internal.h: the stand-in of the CUDA driver, for its own files only. One lock is held over
 * everything except the work of a stream.
 */
#ifndef TESTS_STANDIN_DRIVER_INTERNAL_H
#define TESTS_STANDIN_DRIVER_INTERNAL_H

#include "tests/standin/driver.h"

#include <pthread.h>
#include <stdatomic.h>

/* The entry points, under the names that dlsym looks for: the calls that gpu/cuda.h lists. */
#define ENTRY(name, symbol, parameters) STANDIN_EXPORT int cu_##name parameters __asm__(symbol);
CUDA_CALLS(ENTRY)
#undef ENTRY

enum {
    CUDA_NOT_INITIALIZED = 3,
    CUDA_INVALID_DEVICE = 101,
    CUDA_INVALID_CONTEXT = 201,
    CUDA_INVALID_HANDLE = 400,
    CUDA_NOT_PINNED = 713,
    CUDA_LAUNCH_FAILED = 719, /* the answer of a lost device to every call */
    CUDA_UNKNOWN = 999,       /* the answer of a call with a fault */
};

/* ---- blocks of memory ------------------------------------------------------------------------ */

struct block {
    struct block *next; /* ordered by address */
    size_t offset, bytes;
};

enum host_kind { HOST_ALLOCATED, HOST_PINNED, HOST_MANAGED };

struct host_range {
    struct host_range *next;
    enum host_kind kind;
    char *at;
    size_t bytes;
    int ordinal;
};

/* ---- devices --------------------------------------------------------------------------------- */

struct CUctx_st {
    int ordinal;  /* number of the device in this process */
    int physical; /* number of the device in the machine */
    struct cuda_uuid uuid;
    char *device_base; /* addresses that the host must not touch */
    char *shadow_base; /* the same pages, at addresses that the host can use */
    size_t bytes, used;
    struct block *blocks;
    struct CUstream_st *null_stream;
    struct CUstream_st *streams; /* a list of all its streams */
};

struct standin {
    pthread_mutex_t lock;
    pthread_cond_t news; /* signalled when something has ended */
    atomic_int pid;      /* the process that initialized the stand-in; 0: none has */
    int device_count;
    struct CUctx_st *devices;
    struct host_range *host;
    uint64_t order; /* number of the command that was queued last, in all streams */
};
extern struct standin standin;

/* Every call begins with it: 0 with the lock taken, or the code that the call returns at once. */
int standin_enter(void);
void standin_leave(void);
/* The same for a call that destroys an object, which a lost device does too. true: the lock is
 * taken, and the call returns *ret_code after its work. false: the call returns *ret_code at once.
 */
bool standin_enter_to_destroy(int *ret_code);
/* The same for a call that needs a current context. */
int standin_enter_context(struct CUctx_st **ret_context);

/* ---- memory ---------------------------------------------------------------------------------- */

void device_map(struct CUctx_st *device, size_t bytes);
/* NULL: the address is not in the memory of a device */
struct CUctx_st *memory_device(const void *at);
/* The address for the host of a range inside one allocation; anything else is misuse. */
void *memory_range(struct CUctx_st *device, const void *at, size_t bytes, const char *who);
struct host_range *host_range_of(const void *at, size_t bytes); /* NULL: the range is not known */

#endif
