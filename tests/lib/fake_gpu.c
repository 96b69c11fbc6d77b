#include "tests/lib/fake_gpu.h"

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
