/*
 * fake_gpu.h: the stand-ins of tests/standin, for a test and the product under it.
 */
#ifndef TESTS_LIB_FAKE_GPU_H
#define TESTS_LIB_FAKE_GPU_H

#include "base/base.h"

struct CUstream_st;

/* Before anything asks for the driver. */
void fake_gpu_use(unsigned devices);
/* From here on also for standin.h's: the library is there. */
void fake_gpu_load(void);

bool fake_gpu_nccl_is_loaded(void); /* by anybody in this process */

void fake_gpu_faults(const char *text); /* these too; NULL: none any more */
void *fake_gpu_memory(const void *device_memory);
void *fake_gpu_managed(size_t bytes);
size_t fake_gpu_live(const char *what);
/* Work of the test's own in a stream. */
void fake_gpu_run(struct CUstream_st *stream, void (*run)(void *arg), void *arg);
int fake_gpu_priority(struct CUstream_st *stream);

#endif
