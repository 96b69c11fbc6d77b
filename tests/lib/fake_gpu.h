/*
 * fake_gpu.h: access to the stand-ins for CUDA and NCCL (tests/standin), for a test and for the
 * product code under test.
 */
#ifndef TESTS_LIB_FAKE_GPU_H
#define TESTS_LIB_FAKE_GPU_H

#include "base/base.h"

struct CUstream_st;

/* Call it before any code asks for the driver. */
void fake_gpu_use(unsigned devices);
/* Loads the library, so that the functions of standin.h can be called. */
void fake_gpu_load(void);

bool fake_gpu_nccl_is_loaded(void); /* true: some code of this process has loaded NCCL */

void fake_gpu_faults(const char *text); /* adds faults; NULL: clears all faults */
/* Memory of the device with this number. fake_gpu_free accepts NULL. */
int fake_gpu_alloc(uint32_t device, size_t bytes, void **ret_at) MUST_CHECK;
void fake_gpu_free(uint32_t device, void *at);
/* the same bytes at an address that the host can use */
void *fake_gpu_memory(const void *device_memory);
void *fake_gpu_managed(size_t bytes);
size_t fake_gpu_live(const char *what);
/* Runs a function of the test as work in a stream. */
void fake_gpu_run(struct CUstream_st *stream, void (*run)(void *arg), void *arg);
int fake_gpu_priority(struct CUstream_st *stream);

#endif
