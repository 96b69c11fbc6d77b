/* The binary interfaces in gpu/cuda.h and gpu/nccl.h are those of the headers that are installed
 * with the toolkit. Where no headers are installed, that is printed. */
#include "gpu/cuda.h"
#include "gpu/nccl.h"
#include "tests/lib/fixture.h"

#include <stdio.h>

#ifdef HVD_HAS_CUDA_H
#include <cuda.h>

#define SAME(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #ours)
SAME(CUDA_OK, CUDA_SUCCESS);
SAME(CUDA_INVALID, CUDA_ERROR_INVALID_VALUE);
SAME(CUDA_OUT_OF_MEMORY, CUDA_ERROR_OUT_OF_MEMORY);
SAME(CUDA_DEINITIALIZED, CUDA_ERROR_DEINITIALIZED);
SAME(CUDA_NO_DEVICE, CUDA_ERROR_NO_DEVICE);
SAME(CUDA_NOT_READY, CUDA_ERROR_NOT_READY);
SAME(CUDA_ALREADY_PINNED, CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
SAME(CUDA_STREAM_NON_BLOCKING, CU_STREAM_NON_BLOCKING);
SAME(CUDA_EVENT_BLOCKING, CU_EVENT_BLOCKING_SYNC);
SAME(CUDA_EVENT_UNTIMED, CU_EVENT_DISABLE_TIMING);
SAME(CUDA_PIN_PORTABLE, CU_MEMHOSTREGISTER_PORTABLE);
SAME(CUDA_PIN_PORTABLE, CU_MEMHOSTALLOC_PORTABLE);
SAME(CUDA_POINTER_TYPE, CU_POINTER_ATTRIBUTE_MEMORY_TYPE);
SAME(CUDA_POINTER_MANAGED, CU_POINTER_ATTRIBUTE_IS_MANAGED);
SAME(CUDA_POINTER_DEVICE, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL);
SAME(CUDA_TYPE_DEVICE, CU_MEMORYTYPE_DEVICE);
SAME(sizeof(cuda_address), sizeof(CUdeviceptr));
SAME(sizeof(struct cuda_uuid), sizeof(CUuuid));
SAME(sizeof(int), sizeof(CUdevice));

TEST(the_driver_is_as_its_header_says)
{
    struct CUstream_st *stream = (CUstream)NULL; /* the same tags, or this does not compile */
    struct CUevent_st *event = (CUevent)NULL;
    struct CUctx_st *context = (CUcontext)NULL;

    CHECK(t, !stream && !event && !context);
    CHECK_INT(t, CUDA_VERSION / 1000, >=, 12);
}
#else
TEST(the_driver_is_as_its_header_says)
{
    (void)t;
    printf("skipped: cuda.h is not installed here\n");
}
#endif

#ifdef HVD_HAS_NCCL_H
#include <nccl.h>

SAME(NCCL_OK, ncclSuccess);
SAME(NCCL_CUDA_ERROR, ncclUnhandledCudaError);
SAME(NCCL_SYSTEM_ERROR, ncclSystemError);
SAME(NCCL_INTERNAL_ERROR, ncclInternalError);
SAME(NCCL_INVALID_ARGUMENT, ncclInvalidArgument);
SAME(NCCL_INVALID_USAGE, ncclInvalidUsage);
SAME(NCCL_REMOTE_ERROR, ncclRemoteError);
SAME(NCCL_IN_PROGRESS, ncclInProgress);
SAME(NCCL_INT8, ncclInt8);
SAME(NCCL_UINT8, ncclUint8);
SAME(NCCL_INT32, ncclInt32);
SAME(NCCL_INT64, ncclInt64);
SAME(NCCL_FLOAT16, ncclFloat16);
SAME(NCCL_FLOAT32, ncclFloat32);
SAME(NCCL_FLOAT64, ncclFloat64);
SAME(NCCL_BFLOAT16, ncclBfloat16);
SAME(NCCL_SUM, ncclSum);
SAME(NCCL_PRODUCT, ncclProd);
SAME(NCCL_MAX, ncclMax);
SAME(NCCL_MIN, ncclMin);
SAME(NCCL_AVERAGE, ncclAvg);
SAME(NCCL_SCALAR_ON_HOST, ncclScalarHostImmediate);
SAME(sizeof(struct nccl_id), sizeof(ncclUniqueId));
SAME(offsetof(struct nccl_config, size), offsetof(ncclConfig_t, size));
SAME(offsetof(struct nccl_config, magic), offsetof(ncclConfig_t, magic));
SAME(offsetof(struct nccl_config, version), offsetof(ncclConfig_t, version));
SAME(offsetof(struct nccl_config, blocking), offsetof(ncclConfig_t, blocking));

TEST(nccl_is_as_its_header_says)
{
    ncclConfig_t theirs = NCCL_CONFIG_INITIALIZER;
    struct ncclComm *comm = (ncclComm_t)NULL;

    CHECK(t, !comm);
    CHECK_INT(t, theirs.magic, ==, NCCL_CONFIG_MAGIC);
    CHECK_INT(t, theirs.version, >=, NCCL_CONFIG_VERSION);
    CHECK_INT(t, theirs.size, >=, sizeof(struct nccl_config));
}
#else
TEST(nccl_is_as_its_header_says)
{
    (void)t;
    printf("skipped: nccl.h is not installed here\n");
}
#endif
