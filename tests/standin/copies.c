/* copies.c: copies and fills, which the stream's thread carries out in order. */
#include "tests/standin/stream.h"

#include "base/mem.h"
#include "os/clock.h"
#include "os/thread.h"

#include <string.h>

struct copy {
    const char *name;
    const void *from; /* NULL: this is a fill */
    void *to;
    size_t bytes;
    bool from_device, to_device;
    unsigned char byte;
    enum standin_what fault;
    int64_t slow_us;
    unsigned losses; /* the count of lost devices when the copy was queued */
};

static bool is_lost(const struct copy *copy)
{
    return standin_lost() || standin_losses() != copy->losses;
}

static void run(void *arg)
{
    struct copy *copy = arg;
    const void *from = copy->from;
    void *to = copy->to;
    bool lost;
    int64_t until_us;

    if (copy->fault == STANDIN_DIE)
        standin_die();
    pthread_mutex_lock(&standin.lock);
    /* Lets the fault of this copy happen. */
    until_us = clock_now_us() + copy->slow_us;
    while (!is_lost(copy) && (copy->fault == STANDIN_HANG ||
                              (copy->fault == STANDIN_SLOW && clock_now_us() < until_us)))
        if (copy->fault == STANDIN_HANG)
            pthread_cond_wait(&standin.news, &standin.lock);
        else
            thread_cond_wait(&standin.news, &standin.lock, until_us);
    lost = is_lost(copy);
    if (!lost && copy->from_device)
        from = memory_range(NULL, from, copy->bytes, copy->name);
    if (!lost && copy->to_device)
        to = memory_range(NULL, to, copy->bytes, copy->name);
    pthread_mutex_unlock(&standin.lock);
    if (!lost && from)
        memmove(to, from, copy->bytes);
    else if (!lost)
        memset(to, copy->byte, copy->bytes);
    mem_free(copy);
}

/* true: the call must return after the copy, because the driver stages host memory that is not
 * pinned. */
static bool must_wait(const struct copy *copy)
{
    return (!copy->from_device && copy->from && !host_range_of(copy->from, copy->bytes)) ||
           (!copy->to_device && !host_range_of(copy->to, copy->bytes));
}

/* Queues a copy or fill in the stream, and waits for its end if the real driver would. */
static int queue(const struct copy *what, struct CUstream_st *named)
{
    struct CUstream_st *stream;
    struct command *command;
    struct copy *copy;
    uint64_t order;
    int code = standin_enter();

    if (code)
        return code;
    code = stream_find(named, NULL, &stream);
    if (!code && what->bytes) {
        const void *host = what->from_device ? what->to : what->from;

        if (what->from_device)
            (void)memory_range(NULL, what->from, what->bytes, what->name);
        if (what->to_device)
            (void)memory_range(NULL, what->to, what->bytes, what->name);
        if (what->from_device != what->to_device && host && memory_device(host))
            standin_misuse("%s: %p is device memory, and the host's is wanted", what->name, host);
        copy = mem_alloc(sizeof(*copy));
        if (!copy)
            standin_misuse("no memory");
        *copy = *what;
        copy->losses = standin_losses();
        copy->fault = standin_fault("copy", STANDIN_NO_RANK, &copy->slow_us);
        if (copy->fault == STANDIN_FAIL) {
            mem_free(copy);
            standin_leave();
            return CUDA_UNKNOWN;
        }
        command = command_new(what->name);
        command->run = run;
        command->arg = copy;
        order = stream_queue(stream, command);
        if (must_wait(what))
            stream_await(stream, order);
    }
    standin_leave();
    return code;
}

int cu_to_host(void *to, cuda_address from, size_t bytes, struct CUstream_st *stream)
{
    return queue(&(struct copy){ .name = "cuMemcpyDtoHAsync",
                                 .from = (const void *)(uintptr_t)from,
                                 .to = to,
                                 .bytes = bytes,
                                 .from_device = true },
                 stream);
}

int cu_to_device(cuda_address to, const void *from, size_t bytes, struct CUstream_st *stream)
{
    return queue(&(struct copy){ .name = "cuMemcpyHtoDAsync",
                                 .from = from,
                                 .to = (void *)(uintptr_t)to,
                                 .bytes = bytes,
                                 .to_device = true },
                 stream);
}

int cu_on_device(cuda_address to, cuda_address from, size_t bytes, struct CUstream_st *stream)
{
    return queue(&(struct copy){ .name = "cuMemcpyDtoDAsync",
                                 .from = (const void *)(uintptr_t)from,
                                 .to = (void *)(uintptr_t)to,
                                 .bytes = bytes,
                                 .from_device = true,
                                 .to_device = true },
                 stream);
}

int cu_fill(cuda_address at, unsigned char byte, size_t bytes, struct CUstream_st *stream)
{
    return queue(&(struct copy){ .name = "cuMemsetD8Async",
                                 .to = (void *)(uintptr_t)at,
                                 .bytes = bytes,
                                 .to_device = true,
                                 .byte = byte },
                 stream);
}
