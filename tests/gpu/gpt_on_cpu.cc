/* examples/gpt_cuda.cu, compiled for the CPU. */
#include "tests/gpu/cuda_on_cpu.h"

#include <hvd/hvd.h>
#define hvd_set_stream(stream) on_cpu_set_stream(stream)

#include "examples/gpt_cuda.cu"
