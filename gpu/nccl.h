/*
 * nccl.h: the part of NCCL that this library uses, found at run time like the CUDA driver (cuda.h).
 * A copy that a framework has loaded into the process is shared. NCCL groups calls by thread, and
 * one thread at a time may use a communicator (see collectives/nccl/nccl_thread.h).
 */
#ifndef GPU_NCCL_H
#define GPU_NCCL_H

#include "gpu/cuda.h"

struct ncclComm;

enum nccl_result {
    NCCL_OK = 0,
    NCCL_CUDA_ERROR = 1,
    NCCL_SYSTEM_ERROR = 2,
    NCCL_INTERNAL_ERROR = 3,
    NCCL_INVALID_ARGUMENT = 4,
    NCCL_INVALID_USAGE = 5,
    NCCL_REMOTE_ERROR = 6,
    NCCL_IN_PROGRESS = 7,
};

enum nccl_type {
    NCCL_INT8 = 0,
    NCCL_UINT8 = 1,
    NCCL_INT32 = 2,
    NCCL_UINT32 = 3,
    NCCL_INT64 = 4,
    NCCL_UINT64 = 5,
    NCCL_FLOAT16 = 6,
    NCCL_FLOAT32 = 7,
    NCCL_FLOAT64 = 8,
    NCCL_BFLOAT16 = 9,
};
enum nccl_op { NCCL_SUM = 0, NCCL_PRODUCT = 1, NCCL_MAX = 2, NCCL_MIN = 3, NCCL_AVERAGE = 4 };

enum nccl_residence { NCCL_SCALAR_ON_HOST = 1 }; /* NCCL reads the factor before the call returns */
#define NCCL_ID_BYTES 128
struct nccl_id {
    char bytes[NCCL_ID_BYTES];
};

/* The first fields of NCCL's ncclConfig_t; fields beyond `size` bytes get NCCL's defaults. */
struct nccl_config {
    size_t size;
    unsigned magic;
    unsigned version;
    int blocking;
};
#define NCCL_CONFIG_MAGIC   0xcafebeefU
#define NCCL_CONFIG_VERSION 21400U /* the NCCL version whose struct had these fields */

/* CALL(name in struct nccl, name in NCCL, parameters); MAYBE: not every version has the call. */
/* clang-format off */
#define NCCL_CALLS(CALL, MAYBE)                                                                    \
    CALL(comm_init, "ncclCommInitRankConfig",                                                      \
         (struct ncclComm **ret_comm, int size, struct nccl_id id, int rank,                       \
          struct nccl_config *config))                                                             \
    CALL(get_version, "ncclGetVersion", (int *ret_version))                                        \
    CALL(unique_id, "ncclGetUniqueId", (struct nccl_id *ret_id))                                   \
    CALL(async_error, "ncclCommGetAsyncError", (struct ncclComm *comm, int *ret_code))             \
    CALL(comm_abort, "ncclCommAbort", (struct ncclComm *comm))                                     \
    MAYBE(revoke_comm, "ncclCommRevoke", (struct ncclComm *comm, int flags))                       \
    MAYBE(comm_shrink, "ncclCommShrink",                                                           \
          (struct ncclComm *comm, int *excluded, int excluded_count, struct ncclComm **ret_comm,   \
           struct nccl_config *config, int flags))                                                 \
    CALL(group_start, "ncclGroupStart", (void))                                                    \
    CALL(group_end, "ncclGroupEnd", (void))                                                        \
    CALL(allreduce, "ncclAllReduce",                                                               \
         (const void *in, void *out, size_t count, int type, int op, struct ncclComm *comm,        \
          struct CUstream_st *stream))                                                             \
    CALL(broadcast, "ncclBroadcast",                                                               \
         (const void *in, void *out, size_t count, int type, int root, struct ncclComm *comm,      \
          struct CUstream_st *stream))                                                             \
    CALL(reduce, "ncclReduce",                                                                     \
         (const void *in, void *out, size_t count, int type, int op, int root,                     \
          struct ncclComm *comm, struct CUstream_st *stream))                                      \
    CALL(allgather, "ncclAllGather",                                                               \
         (const void *in, void *out, size_t count, int type, struct ncclComm *comm,                \
          struct CUstream_st *stream))                                                             \
    CALL(reducescatter, "ncclReduceScatter",                                                       \
         (const void *in, void *out, size_t count, int type, int op, struct ncclComm *comm,        \
          struct CUstream_st *stream))                                                             \
    CALL(send, "ncclSend",                                                                         \
         (const void *in, size_t count, int type, int peer, struct ncclComm *comm,                 \
          struct CUstream_st *stream))                                                             \
    CALL(recv, "ncclRecv",                                                                         \
         (void *out, size_t count, int type, int peer, struct ncclComm *comm,                      \
          struct CUstream_st *stream))                                                             \
    CALL(make_scaled_sum, "ncclRedOpCreatePreMulSum",                                              \
         (int *ret_op, void *scale, int type, int residence, struct ncclComm *comm))               \
    CALL(free_op, "ncclRedOpDestroy", (int op, struct ncclComm *comm))
/* clang-format on */

#define NCCL_MEMBER(name, symbol, parameters) int(*name) parameters;
struct nccl {
    const struct cuda *cuda;
    int version; /* 22809 is 2.28.9 */
    NCCL_CALLS(NCCL_MEMBER, NCCL_MEMBER)
    const char *(*result_text)(int code);
    /* text of the last error in this process; `comm` may be NULL */
    const char *(*last_error)(struct ncclComm *comm);
};
#undef NCCL_MEMBER

/* Finds NCCL and the CUDA driver, for any thread. HVD_E_UNSUPPORTED: no driver, no NCCL, or one
 * older than NCCL_VERSION_LEAST (2.18.0). HVD_NCCL_LIBRARY may name its file. It is kept then. */
#define NCCL_VERSION_LEAST 21800
int nccl_open(const struct nccl **ret_nccl, struct hvd_err *err) MUST_CHECK;

/* Translates a code of NCCL into 0 (also for NCCL_IN_PROGRESS), HVD_E_LOST (a peer has died), or
 * HVD_E_IO. `what`: the call that returned the code, for the error's text. */
int nccl_judge(const struct nccl *nccl, int code, const char *what, struct hvd_err *err) MUST_CHECK;

/* Writes the version of NCCL as text: "2.28.9" for 22809. */
#define NCCL_VERSION_TEXT_MAX 24
void nccl_version_text(int version, char text[NCCL_VERSION_TEXT_MAX]);

#endif
