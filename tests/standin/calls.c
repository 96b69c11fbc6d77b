/* calls.c: the beginning and the end of every call on a communicator, and the calls that need no
 * communicator. */
#include "tests/standin/comm.h"

#include "base/limits.h"

static const char *_Atomic noted = "";
/* for each device: threads in a call of NCCL, without aborts */
static atomic_int inside[LIMIT_GPUS];

#ifdef STANDIN_OLD_NCCL
#define VERSION_DEFAULT 22105
#else
#define VERSION_DEFAULT 22809
#endif

void device_enter(const struct CUctx_st *context, const char *call)
{
    if (atomic_fetch_add(&inside[standin_ordinal(context)], 1))
        standin_misuse("%s: another thread is in a call of NCCL for the same device", call);
}

void device_leave(const struct CUctx_st *context)
{
    atomic_fetch_sub(&inside[standin_ordinal(context)], 1);
}

void comm_enter(struct ncclComm *comm, bool abort, const char *call)
{
    if (!comm_is_known(comm))
        standin_misuse("%s: %p is no communicator, or none any more", call, (void *)comm);
    if (atomic_fetch_add(&comm->inside, 1))
        standin_misuse("%s: another thread is in a call on this communicator", call);
    if (!abort)
        device_enter(comm->context, call);
}

void comm_leave(struct ncclComm *comm, bool abort)
{
    if (!abort)
        device_leave(comm->context);
    atomic_fetch_sub(&comm->inside, 1);
}

int comm_note(int code, const char *text)
{
    atomic_store(&noted, text);
    return code;
}

int nc_get_version(int *ret_version)
{
    *ret_version = standin_number("HVD_STANDIN_NCCL", VERSION_DEFAULT);
    return NCCL_OK;
}

int nc_unique_id(struct nccl_id *ret_id)
{
    meeting_make(ret_id);
    return NCCL_OK;
}

const char *nc_result_text(int code)
{
    switch (code) {
    case NCCL_OK: return "no error";
    case NCCL_CUDA_ERROR: return "unhandled cuda error (run with NCCL_DEBUG=INFO for details)";
    case NCCL_SYSTEM_ERROR: return "unhandled system error (run with NCCL_DEBUG=INFO for details)";
    case NCCL_INTERNAL_ERROR:
        return "internal error - please report this issue to the NCCL developers";
    case NCCL_INVALID_ARGUMENT: return "invalid argument (run with NCCL_DEBUG=WARN for details)";
    case NCCL_INVALID_USAGE: return "invalid usage (run with NCCL_DEBUG=WARN for details)";
    case NCCL_REMOTE_ERROR: return "remote process exited or there was a network error";
    case NCCL_IN_PROGRESS: return "NCCL operation in progress";
    default: return "unknown result code";
    }
}

const char *nc_last_error(struct ncclComm *comm)
{
    (void)comm;
    return atomic_load(&noted);
}
