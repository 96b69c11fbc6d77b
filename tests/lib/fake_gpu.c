/*
 * fake_gpu.c: loads the stand-ins of CUDA and NCCL into the process of a test, allocates memory on
 * their devices, and sets their faults.
 */
#include "tests/lib/fake_gpu.h"

#include "gpu/device.h"
#include "tests/standin/standin.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void fake_gpu_use(unsigned devices)
{
    char number[16];

    snprintf(number, sizeof(number), "%u", devices);
    setenv("HVD_CUDA_LIBRARY", FAKE_CUDA, 1);
    setenv("HVD_NCCL_LIBRARY", FAKE_NCCL, 1);
    setenv("HVD_STANDIN_DEVICES", number, 1);
}

static void *library(void)
{
    void *library = dlopen(FAKE_CUDA, RTLD_NOW | RTLD_LOCAL);

    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        abort();
    }
    return library;
}

bool fake_gpu_nccl_is_loaded(void)
{
    void *library = dlopen(FAKE_NCCL, RTLD_NOW | RTLD_NOLOAD);

    if (library)
        dlclose(library);
    return library != NULL;
}

void fake_gpu_load(void)
{
    (void)library();
}

/* ISO C has no conversion of an object's address to a function's. */
#define FIND(variable, symbol)                \
    do {                                      \
        void *at = dlsym(library(), symbol);  \
                                              \
        memcpy(&(variable), &at, sizeof(at)); \
    } while (0)

void fake_gpu_faults(const char *text)
{
    standin_faults_fn *faults;

    FIND(faults, STANDIN_FAULTS);
    faults(text);
}

int fake_gpu_alloc(uint32_t device, size_t bytes, void **ret_at)
{
    const struct gpu_device *gpu;
    cuda_address at = 0;
    int rc = gpu_device_get((int)device, &gpu, NULL);

    if (!rc)
        rc = gpu_enter(gpu, NULL);
    if (rc)
        return rc;
    rc = cuda_judge(gpu->cuda, gpu->cuda->memory_alloc(&at, bytes ? bytes : 1), "memory", NULL);
    gpu_leave(gpu);
    *ret_at = (void *)(uintptr_t)at;
    return rc;
}

void fake_gpu_free(uint32_t device, void *at)
{
    const struct gpu_device *gpu;

    if (!at || gpu_device_get((int)device, &gpu, NULL) || gpu_enter(gpu, NULL))
        return;
    (void)gpu->cuda->memory_free((cuda_address)(uintptr_t)at);
    gpu_leave(gpu);
}

void *fake_gpu_memory(const void *device_memory)
{
    standin_memory_fn *memory;

    FIND(memory, STANDIN_MEMORY);
    return memory(device_memory);
}

void *fake_gpu_managed(size_t bytes)
{
    standin_managed_fn *managed;

    FIND(managed, STANDIN_MANAGED);
    return managed(bytes);
}

size_t fake_gpu_live(const char *what)
{
    standin_live_fn *live;

    FIND(live, STANDIN_LIVE);
    return live(what);
}

void fake_gpu_run(struct CUstream_st *stream, void (*run)(void *arg), void *arg)
{
    standin_run_fn *queue;

    FIND(queue, STANDIN_RUN);
    queue(stream, run, arg);
}

int fake_gpu_priority(struct CUstream_st *stream)
{
    standin_priority_fn *priority;

    FIND(priority, STANDIN_PRIORITY);
    return priority(stream);
}
