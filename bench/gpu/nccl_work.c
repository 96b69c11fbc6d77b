#include "bench/gpu/nccl_work.h"

#include <string.h>

#define POLL_US 20

static int64_t deadline(double seconds)
{
    return now_us() + (int64_t)(seconds * 1e6);
}

int work_settle(struct member *member, struct ncclComm *comm)
{
    int64_t until_us = deadline(TEAM_WAIT_S);
    int code = NCCL_IN_PROGRESS;

    while (code == NCCL_IN_PROGRESS) {
        int rc = member->nccl->async_error(comm, &code);

        if (rc != NCCL_OK)
            return rc;
        if (now_us() > until_us)
            member_fail(member, "NCCL", "still in progress");
        if (code == NCCL_IN_PROGRESS)
            nap_us(POLL_US);
    }
    return code;
}

struct ncclComm *work_comm(struct member *member, uint32_t ranks, const char *name)
{
    struct nccl_config config = { .size = sizeof(config),
                                  .magic = NCCL_CONFIG_MAGIC,
                                  .version = NCCL_CONFIG_VERSION,
                                  .blocking = 0 };
    struct nccl_id *id = &member->page->ids[member->ids++ % TEAM_IDS];
    struct ncclComm *comm = NULL;
    int64_t start_us;

    if (member->rank == 0)
        member_must_nccl(member, member->nccl->unique_id(id), "an id");
    member_gate(member);
    if (member->rank >= ranks)
        return NULL;
    start_us = now_us();
    member_must_nccl(member,
                     member->nccl->comm_init(&comm, (int)ranks, *id, (int)member->rank, &config),
                     "a communicator");
    member_must_nccl(member, work_settle(member, comm), "a communicator");
    if (name[0])
        figure_add(&member->page->figures, member->question, name, ranks, "ms",
                   (double)(now_us() - start_us) / 1e3);
    return comm;
}

void work_allreduce(struct member *member, struct ncclComm *comm, size_t count,
                    struct CUstream_st *stream)
{
    int code = member->nccl->allreduce(member->data, member->data, count, NCCL_FLOAT32, NCCL_SUM,
                                       comm, stream);

    member_must_nccl(member, code, "an allreduce");
    member_must_nccl(member, work_settle(member, comm), "an allreduce");
}

bool work_done(struct member *member, struct CUstream_st *stream, double seconds)
{
    int64_t until_us = deadline(seconds);
    int code;

    while ((code = member->cuda->stream_query(stream)) == CUDA_NOT_READY) {
        if (now_us() > until_us)
            return false;
        nap_us(POLL_US);
    }
    member_must_cuda(member, code, "a stream");
    return true;
}

void work_verify(struct member *member, struct ncclComm *comm, uint32_t ranks)
{
    const struct cuda *cuda = member->cuda;
    cuda_address at = (cuda_address)(uintptr_t)member->data;
    float one = 1.0F;
    float sum = 0.0F;

    member_must_cuda(member, cuda->to_device(at, &one, sizeof(one), member->stream), "a copy");
    member_must_cuda(member, cuda->stream_sync(member->stream), "a copy");
    work_allreduce(member, comm, 1, member->stream);
    if (!work_done(member, member->stream, TEAM_WAIT_S))
        member_fail(member, "an allreduce", "it does not end");
    member_must_cuda(member, cuda->to_host(&sum, at, sizeof(sum), member->stream), "a copy");
    member_must_cuda(member, cuda->stream_sync(member->stream), "a copy");
    if (sum != (float)ranks)
        member_fail(member, "an allreduce", "the sum is wrong");
    work_allreduce(member, comm, MEMBER_NUMBERS, member->stream);
    if (!work_done(member, member->stream, TEAM_WAIT_S))
        member_fail(member, "an allreduce", "it does not end");
}

double work_abort(struct member *member, struct ncclComm *comm)
{
    int64_t start_us = now_us();

    member_must_nccl(member, member->nccl->comm_abort(comm), "an abort");
    return (double)(now_us() - start_us) / 1e3;
}
