/*
 * inside.h: the stand-in of the driver, among its own files. One lock is held over everything but
 * the work of a stream itself.
 */
#ifndef TESTS_STANDIN_INSIDE_H
#define TESTS_STANDIN_INSIDE_H

#include "tests/standin/driver.h"

#include <pthread.h>
#include <stdatomic.h>

/* The entry points, under the names that dlsym looks for: what gpu/cuda.h names is what there is.
 */
#define ENTRY(name, symbol, parameters) STANDIN_EXPORT int cu_##name parameters __asm__(symbol);
CUDA_CALLS(ENTRY)
#undef ENTRY

enum {
    CUDA_NOT_INITIALIZED = 3,
    CUDA_INVALID_DEVICE = 101,
    CUDA_INVALID_CONTEXT = 201,
    CUDA_INVALID_HANDLE = 400,
    CUDA_NOT_PINNED = 713,
    CUDA_LAUNCH_FAILED = 719, /* what a lost device answers to everything */
    CUDA_UNKNOWN = 999,       /* what a fault of one call is */
};

/* ---- blocks of memory ------------------------------------------------------------------------ */

struct block {
    struct block *next; /* by address */
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
    int ordinal;  /* as this process counts */
    int physical; /* as the machine does */
    struct cuda_uuid uuid;
    char *device_base; /* nobody may touch it */
    char *shadow_base; /* the same pages */
    size_t bytes, used;
    struct block *blocks;
    struct CUstream_st *null_stream;
    struct CUstream_st *streams; /* all of them */
};

struct standin {
    pthread_mutex_t lock;
    pthread_cond_t news; /* something has ended */
    atomic_int pid;      /* where it was initialized; 0: it was not */
    int device_count;
    struct CUctx_st *devices;
    struct host_range *host;
    uint64_t order; /* of what was queued last, in all streams */
};
extern struct standin standin;

/* Before a call: 0, or what it returns at once. With the lock taken, if 0. */
int standin_enter(void);
void standin_leave(void);
/* The same for a call that needs a current context. */
int standin_enter_context(struct CUctx_st **ret_context);

/* ---- memory ---------------------------------------------------------------------------------- */

void device_map(struct CUctx_st *device, size_t bytes);
struct CUctx_st *memory_device(const void *at); /* NULL: it is none of a device */
/* The shadow of a range of one allocation, or misuse. */
void *memory_range(struct CUctx_st *device, const void *at, size_t bytes, const char *who);
struct host_range *host_range_of(const void *at, size_t bytes); /* NULL: nobody knows it */

#endif
