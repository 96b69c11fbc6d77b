/*
 * device.c: devices and contexts of the stand-in for the CUDA driver: how many there are, which
 * one a thread works with, and what happens to a call on a device that is lost.
 */
#include "tests/standin/stream.h"

#include "base/limits.h"
#include "base/mem.h"
#include "os/thread.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CONTEXTS_NESTED 16
#define DRIVER_VERSION  13000

struct standin standin = { .lock = PTHREAD_MUTEX_INITIALIZER };

static _Thread_local struct {
    struct CUctx_st *stack[CONTEXTS_NESTED];
    int depth;
} mine;

/* ---- at the beginning of every call, and at its end -------------------------------------------
 */

static atomic_bool ending; /* true: the process is exiting, see below */

/* Like the real CUDA driver, the stand-in is closed while the process exits: calls that exit
 * handlers and destructors make after this one get CUDA_DEINITIALIZED. */
__attribute__((destructor)) static void end(void)
{
    atomic_store(&ending, true);
}

int standin_enter(void)
{
    enum standin_what what;

    if (atomic_load(&ending))
        return CUDA_DEINITIALIZED;
    /* also in a child after fork, where the locks are in the state of the parent */
    if (atomic_load(&standin.pid) != getpid())
        return CUDA_NOT_INITIALIZED;
    what = standin_fault("device", STANDIN_NO_RANK, NULL);
    if (what == STANDIN_HANG)
        standin_stay();
    if (what == STANDIN_LOST) {
        streams_wake();
        return CUDA_LAUNCH_FAILED;
    }
    pthread_mutex_lock(&standin.lock);
    /* A device that is lost while this call waits for the lock has ended its kernels without a
     * result, so the call must not take their marks for an end. */
    if (!standin_lost())
        return 0;
    pthread_mutex_unlock(&standin.lock);
    return CUDA_LAUNCH_FAILED;
}

bool standin_enter_to_destroy(int *ret_code)
{
    *ret_code = standin_enter();
    if (*ret_code == CUDA_LAUNCH_FAILED)
        pthread_mutex_lock(&standin.lock);
    return *ret_code == 0 || *ret_code == CUDA_LAUNCH_FAILED;
}

void standin_leave(void)
{
    pthread_mutex_unlock(&standin.lock);
}

struct CUctx_st *standin_current(void)
{
    return mine.depth ? mine.stack[mine.depth - 1] : NULL;
}

int standin_enter_context(struct CUctx_st **ret_context)
{
    int code = standin_enter();

    if (code)
        return code;
    *ret_context = standin_current();
    if (*ret_context)
        return 0;
    standin_leave();
    return CUDA_INVALID_CONTEXT;
}

/* ---- devices --------------------------------------------------------------------------------- */

/* Parses CUDA_VISIBLE_DEVICES, a list of numbers; the list ends at the first number without a
 * device. */
static int visible(int physical_count, int *physical)
{
    const char *list = getenv("CUDA_VISIBLE_DEVICES");
    int count = 0;
    char *end;

    if (!list) {
        for (; count < physical_count; count++)
            physical[count] = count;
        return count;
    }
    while (*list && count < LIMIT_GPUS) {
        long number = strtol(list, &end, 10);

        if (end == list || number < 0 || number >= physical_count)
            break;
        physical[count++] = (int)number;
        list = *end == ',' ? end + 1 : end;
    }
    return count;
}

static void make_devices(void)
{
    int physical[LIMIT_GPUS] = { 0 };
    int count = standin_number("HVD_STANDIN_DEVICES", 1);
    size_t bytes = (size_t)standin_number("HVD_STANDIN_MEMORY_MB", 256) << 20;

    standin.device_count = visible(count < LIMIT_GPUS ? count : LIMIT_GPUS, physical);
    standin.devices = mem_zalloc_array((size_t)standin.device_count, sizeof(*standin.devices));
    if (!standin.devices || thread_cond_init(&standin.news))
        standin_misuse("no memory for %d devices", standin.device_count);
    for (int i = 0; i < standin.device_count; i++) {
        struct CUctx_st *device = &standin.devices[i];
        const char *host;
        struct cuda_uuid uuid;
        uint64_t sum;

        device->ordinal = i;
        device->physical = physical[i];
        /* The UUID of a device: equal in every process of this machine. */
        host = getenv("HVD_STANDIN_HOST");
        uuid = (struct cuda_uuid){
            .bytes = {0x57, 0xa2, 0xd1}
        };
        sum = 0xcbf29ce484222325U;
        for (const char *at = host ? host : ""; *at; at++)
            sum = (sum ^ (uint8_t)*at) * 0x100000001b3U;
        memcpy(&uuid.bytes[4], &sum, sizeof(sum));
        uuid.bytes[15] = (uint8_t)physical[i];
        device->uuid = uuid;
        device_map(device, bytes);
    }
}

int cu_init(unsigned flags)
{
    if (flags)
        return CUDA_INVALID;
    if (atomic_load(&standin.pid) && atomic_load(&standin.pid) != getpid())
        return CUDA_NOT_INITIALIZED;
    if (standin_fault("device", STANDIN_NO_RANK, NULL) == STANDIN_LOST)
        return CUDA_LAUNCH_FAILED;
    pthread_mutex_lock(&standin.lock);
    if (!atomic_load(&standin.pid)) {
        make_devices();
        atomic_store(&standin.pid, getpid());
    }
    pthread_mutex_unlock(&standin.lock);
    return standin.device_count ? CUDA_OK : CUDA_NO_DEVICE;
}

int cu_get_version(int *ret_version)
{
    *ret_version = DRIVER_VERSION;
    return CUDA_OK;
}

int cu_device_count(int *ret_count)
{
    int code = standin_enter();

    if (code)
        return code;
    *ret_count = standin.device_count;
    standin_leave();
    return CUDA_OK;
}

int cu_device_get(int *ret_device, int ordinal)
{
    int code = standin_enter();

    if (code)
        return code;
    if (ordinal >= 0 && ordinal < standin.device_count)
        *ret_device = ordinal;
    else
        code = CUDA_INVALID_DEVICE;
    standin_leave();
    return code;
}

static int enter_device(int device)
{
    int code = standin_enter();

    if (!code && (device < 0 || device >= standin.device_count))
        standin_misuse("device %d of %d", device, standin.device_count);
    return code;
}

int cu_device_name(char *name, int room, int device)
{
    int code = enter_device(device);

    if (code)
        return code;
    snprintf(name, (size_t)room, "stand-in device %d", standin.devices[device].physical);
    standin_leave();
    return CUDA_OK;
}

int cu_device_uuid(struct cuda_uuid *ret_uuid, int device)
{
    int code = enter_device(device);

    if (code)
        return code;
    *ret_uuid = standin.devices[device].uuid;
    standin_leave();
    return CUDA_OK;
}

/* ---- contexts: each device has its primary one, and no other -----------------------------------
 */

static struct CUctx_st *context_find(struct CUctx_st *context)
{
    for (int i = 0; i < standin.device_count; i++)
        if (context == &standin.devices[i])
            return context;
    standin_misuse("%p is no context", (void *)context);
}

int cu_context_retain(struct CUctx_st **ret_context, int device)
{
    int code = enter_device(device);

    if (code)
        return code;
    *ret_context = &standin.devices[device];
    standin_leave();
    return CUDA_OK;
}

int cu_context_push(struct CUctx_st *context)
{
    int code = standin_enter();

    if (code)
        return code;
    if (mine.depth == CONTEXTS_NESTED)
        standin_misuse("more than %d contexts are pushed", CONTEXTS_NESTED);
    mine.stack[mine.depth++] = context_find(context);
    standin_leave();
    return CUDA_OK;
}

/* A context that was pushed can also be popped from a lost device. */
int cu_context_pop(struct CUctx_st **ret_context)
{
    int code = standin_enter();

    if (!code)
        standin_leave();
    if (mine.depth == 0)
        standin_misuse("a context is popped where none is pushed");
    *ret_context = mine.stack[--mine.depth];
    return code;
}

int cu_context_current(struct CUctx_st **ret_context)
{
    int code = standin_enter();

    if (code)
        return code;
    *ret_context = standin_current();
    standin_leave();
    return CUDA_OK;
}

int cu_context_device(int *ret_device)
{
    struct CUctx_st *context;
    int code = standin_enter_context(&context);

    if (code)
        return code;
    *ret_device = context->ordinal;
    standin_leave();
    return CUDA_OK;
}

int standin_ordinal(const struct CUctx_st *context)
{
    return context->ordinal;
}

struct cuda_uuid standin_uuid(const struct CUctx_st *context)
{
    return context->uuid;
}

/* ---- errors ---------------------------------------------------------------------------------- */

static const struct {
    int code;
    const char *name, *text;
} errors[] = {
    {CUDA_OK,               "CUDA_SUCCESS",                              "no error"                  },
    { CUDA_INVALID,         "CUDA_ERROR_INVALID_VALUE",                  "invalid argument"          },
    { CUDA_OUT_OF_MEMORY,   "CUDA_ERROR_OUT_OF_MEMORY",                  "out of memory"             },
    { CUDA_NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED",                "initialization error"      },
    { CUDA_DEINITIALIZED,   "CUDA_ERROR_DEINITIALIZED",                  "driver shutting down"      },
    { CUDA_NO_DEVICE,       "CUDA_ERROR_NO_DEVICE",                      "no CUDA-capable device"    },
    { CUDA_INVALID_DEVICE,  "CUDA_ERROR_INVALID_DEVICE",                 "invalid device ordinal"    },
    { CUDA_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT",                "invalid device context"    },
    { CUDA_INVALID_HANDLE,  "CUDA_ERROR_INVALID_HANDLE",                 "invalid resource handle"   },
    { CUDA_NOT_READY,       "CUDA_ERROR_NOT_READY",                      "device not ready"          },
    { CUDA_ALREADY_PINNED,  "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED",
     "part or all of the requested memory range is already mapped"                                   },
    { CUDA_NOT_PINNED,      "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED",
     "pointer does not correspond to a registered memory region"                                     },
    { CUDA_LAUNCH_FAILED,   "CUDA_ERROR_LAUNCH_FAILED",                  "unspecified launch failure"},
    { CUDA_UNKNOWN,         "CUDA_ERROR_UNKNOWN",                        "unknown error"             },
};

int cu_error_name(int code, const char **ret_name)
{
    for (size_t i = 0; i < ARRAY_SIZE(errors); i++)
        if (errors[i].code == code) {
            *ret_name = errors[i].name;
            return CUDA_OK;
        }
    *ret_name = NULL;
    return CUDA_INVALID;
}

int cu_error_text(int code, const char **ret_text)
{
    for (size_t i = 0; i < ARRAY_SIZE(errors); i++)
        if (errors[i].code == code) {
            *ret_text = errors[i].text;
            return CUDA_OK;
        }
    *ret_text = NULL;
    return CUDA_INVALID;
}
