/*
 * standin_member.c: a process that is a member of a communicator of the stand-in, for
 * test_standin_processes.c.
 *
 *     standin_member make                     prints an id, and ends when its input does
 *     standin_member join ID RANK SIZE DEVICE
 *
 * It prints a word for each thing that it has done, and does the next when it reads a line:
 *     ready      or instead the number of the state that the communicator has
 *     summed     an allreduce of all members
 *     waiting    in an allreduce to which one member does not come
 *     revoked    and no kernel runs any more
 */
#include "gpu/device.h"
#include "gpu/nccl.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT 70000U
#define LOOKS 20

struct member {
    const struct nccl *nccl;
    const struct cuda *cuda;
    struct ncclComm *comm;
    struct CUstream_st *stream;
    cuda_address memory;
    int rank, size;
};

NORETURN static void fail(const char *what)
{
    fprintf(stderr, "standin_member: %s\n", what);
    exit(1);
}

static void say(const char *word)
{
    printf("%s\n", word);
    fflush(stdout);
}

static void await_line(void)
{
    char line[16];

    if (!fgets(line, sizeof(line), stdin))
        exit(0);
}

static int settled(const struct member *member)
{
    int state = NCCL_IN_PROGRESS;

    while (state == NCCL_IN_PROGRESS) {
        if (member->nccl->async_error(member->comm, &state))
            fail("ncclCommGetAsyncError");
        sched_yield();
    }
    return state;
}

static void join(struct member *member, const char *id_text, int device_number)
{
    struct nccl_config config = { .size = sizeof(config),
                                  .magic = NCCL_CONFIG_MAGIC,
                                  .version = NCCL_CONFIG_VERSION };
    const struct gpu_device *device;
    struct nccl_id id;
    int state;
    char digits[3] = "";

    if (strlen(id_text) != 2 * sizeof(id.bytes))
        fail("the first argument is no NCCL id");
    for (size_t i = 0; i < sizeof(id.bytes); i++) {
        memcpy(digits, id_text + 2 * i, 2);
        id.bytes[i] = (char)strtoul(digits, NULL, 16);
    }
    if (nccl_open(&member->nccl, NULL) || gpu_device_get(device_number, &device, NULL) ||
        gpu_enter(device, NULL))
        fail("no device");
    member->cuda = device->cuda;
    if (member->cuda->memory_alloc(&member->memory, COUNT * sizeof(float)) ||
        member->cuda->stream_create(&member->stream, CUDA_STREAM_NON_BLOCKING, 0))
        fail("no memory or no stream");
    if (member->nccl->comm_init(&member->comm, member->size, id, member->rank, &config) !=
        NCCL_IN_PROGRESS)
        fail("ncclCommInitRankConfig");
    state = settled(member);
    if (state) {
        printf("%d\n", state);
        exit(0);
    }
    say("ready");
}

static void reduce(const struct member *member)
{
    void *at = (void *)(uintptr_t)member->memory;

    if (member->nccl->allreduce(at, at, COUNT, NCCL_FLOAT32, NCCL_SUM, member->comm,
                                member->stream) != NCCL_IN_PROGRESS ||
        settled(member) != NCCL_OK)
        fail("ncclAllReduce");
}

static void sum(const struct member *member)
{
    static float numbers[COUNT];
    size_t bytes = sizeof(numbers);

    for (size_t i = 0; i < COUNT; i++)
        numbers[i] = (float)(i % 1000) + (float)member->rank;
    if (member->cuda->to_device(member->memory, numbers, bytes, member->stream))
        fail("cuMemcpyHtoDAsync");
    reduce(member);
    if (member->cuda->to_host(numbers, member->memory, bytes, member->stream))
        fail("cuMemcpyDtoHAsync");
    for (size_t i = 0; i < COUNT; i++)
        if (numbers[i] != (float)(i % 1000) * (float)member->size +
                              (float)(member->size * (member->size - 1)) / 2)
            fail("the sum is wrong");
    say("summed");
}

int main(int argc, char **argv)
{
    struct member member = { .rank = 0 };
    int state;

    if (argc == 2 && strcmp(argv[1], "make") == 0) {
        const struct nccl *nccl;
        struct nccl_id id;

        if (nccl_open(&nccl, NULL) || nccl->unique_id(&id))
            fail("ncclGetUniqueId");
        for (size_t i = 0; i < sizeof(id.bytes); i++)
            printf("%02x", (unsigned)(uint8_t)id.bytes[i]);
        say("");
        await_line();
        return 0;
    }
    if (argc != 6 || strcmp(argv[1], "join") != 0)
        fail("usage: make, or join ID RANK SIZE DEVICE");
    member.rank = (int)strtol(argv[3], NULL, 10);
    member.size = (int)strtol(argv[4], NULL, 10);
    join(&member, argv[2], (int)strtol(argv[5], NULL, 10));
    await_line();
    sum(&member);
    await_line();
    reduce(&member);
    for (int i = 0; i < LOOKS; i++) {
        if (member.nccl->async_error(member.comm, &state) || state != NCCL_OK ||
            member.cuda->stream_query(member.stream) != CUDA_NOT_READY)
            fail("the allreduce does not wait");
        sched_yield();
    }
    say("waiting");
    await_line();
    if (member.nccl->revoke_comm(member.comm, 0) != NCCL_IN_PROGRESS ||
        settled(&member) != NCCL_OK || member.cuda->stream_sync(member.stream))
        fail("ncclCommRevoke");
    say("revoked");
    await_line();
    return member.nccl->comm_abort(member.comm);
}
