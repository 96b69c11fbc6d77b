/*
 * A member of a communicator of the stand-in, as a process: for test_standin_processes.c.
 *
 *     standin_member make                     says an id, and ends when its input does
 *     standin_member join ID RANK SIZE DEVICE
 *
 * It says a word when it has done something, and does the next when it reads a line:
 *     ready      or the number of the state that the communicator has come to instead
 *     summed     an allreduce of all
 *     waiting    in an allreduce for which somebody does not come
 *     revoked    and nothing runs any more
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

static void make(void)
{
    const struct nccl *nccl;
    struct nccl_id id;

    if (nccl_open(&nccl, NULL) || nccl->unique_id(&id))
        fail("ncclGetUniqueId");
    for (size_t i = 0; i < sizeof(id.bytes); i++)
        printf("%02x", (unsigned)(uint8_t)id.bytes[i]);
    say("");
    await_line();
}

static void read_id(const char *text, struct nccl_id *ret_id)
{
    char digits[3] = "";

    if (strlen(text) != 2 * sizeof(ret_id->bytes))
        fail("that is no id");
    for (size_t i = 0; i < sizeof(ret_id->bytes); i++) {
        memcpy(digits, text + 2 * i, 2);
        ret_id->bytes[i] = (char)strtoul(digits, NULL, 16);
    }
}

static void join(struct member *member, const char *id_text, int device_number)
{
    struct nccl_config config = { .size = sizeof(config),
                                  .magic = NCCL_CONFIG_MAGIC,
                                  .version = NCCL_CONFIG_VERSION };
    const struct gpu_device *device;
    struct nccl_id id;
    int state;

    read_id(id_text, &id);
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

static void wait_for_nobody(const struct member *member)
{
    int state;

    reduce(member);
    for (int i = 0; i < LOOKS; i++) {
        if (member->nccl->async_error(member->comm, &state) || state != NCCL_OK ||
            member->cuda->stream_query(member->stream) != CUDA_NOT_READY)
            fail("it does not wait");
        sched_yield();
    }
    say("waiting");
}

static void revoke_it(const struct member *member)
{
    if (member->nccl->comm_revoke(member->comm, 0) != NCCL_IN_PROGRESS ||
        settled(member) != NCCL_OK || member->cuda->stream_sync(member->stream))
        fail("ncclCommRevoke");
    say("revoked");
}

int main(int argc, char **argv)
{
    struct member member = { .rank = 0 };

    if (argc == 2 && strcmp(argv[1], "make") == 0) {
        make();
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
    wait_for_nobody(&member);
    await_line();
    revoke_it(&member);
    await_line();
    return member.nccl->comm_abort(member.comm);
}
