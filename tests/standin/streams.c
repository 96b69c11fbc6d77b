/*
 * streams.c: streams of the stand-in: a thread for each stream runs one command after the other,
 * and the default stream waits like that of CUDA.
 */
#include "tests/standin/stream.h"

#include "base/mem.h"
#include "os/thread.h"
#include "tests/standin/standin.h"

#define PRIORITY_LEAST    0
#define PRIORITY_GREATEST (-5)

STANDIN_EXPORT standin_run_fn standin_run;
STANDIN_EXPORT standin_priority_fn standin_priority;

/* ---- when a command may run ---- */

static bool is_blocking(const struct CUstream_st *stream)
{
    return !(stream->flags & CUDA_STREAM_NON_BLOCKING);
}

static bool is_behind(const struct CUstream_st *stream, uint64_t order)
{
    return stream && stream->head && stream->head->order < order;
}

/* The NULL stream waits for all commands that were queued before in blocking streams, and blocking
 * streams wait for the NULL stream. */
static bool is_free(const struct CUstream_st *stream, uint64_t order)
{
    const struct CUctx_st *context = stream->context;

    if (!is_blocking(stream))
        return true;
    if (stream != context->null_stream)
        return !is_behind(context->null_stream, order);
    for (const struct CUstream_st *one = context->streams; one; one = one->next)
        if (one != stream && is_blocking(one) && is_behind(one, order))
            return false;
    return true;
}

static bool is_ready(const struct CUstream_st *stream)
{
    const struct command *command = stream->head;

    if (!command)
        return false;
    return standin_lost() ||
           ((!command->after || command->after->reached) && is_free(stream, command->order));
}

/* ---- the thread of a stream ------------------------------------------------------------------ */

static void wake_all(void)
{
    pthread_cond_broadcast(&standin.news);
    for (int i = 0; i < standin.device_count; i++)
        for (struct CUstream_st *stream = standin.devices[i].streams; stream; stream = stream->next)
            if (is_ready(stream))
                pthread_cond_signal(&stream->work);
}

void streams_wake(void)
{
    pthread_mutex_lock(&standin.lock);
    if (atomic_load(&standin.pid))
        wake_all();
    pthread_mutex_unlock(&standin.lock);
}

/* Removes the head command and reaches its mark. The caller holds the lock. */
static void end_head(struct CUstream_st *stream)
{
    struct command *command = stream->head;

    stream->head = command->next;
    if (!stream->head)
        stream->tail = &stream->head;
    if (command->reaches)
        command->reaches->reached = true;
    mark_release(command->reaches);
    mark_release(command->after);
    wake_all();
}

/* The thread of a stream: runs its commands in order, until the stream is destroyed and empty. */
static void *stream_main(void *arg)
{
    struct CUstream_st *stream = arg;
    struct CUstream_st **link;

    pthread_mutex_lock(&standin.lock);
    while (!stream->destroyed || stream->head) {
        if (is_ready(stream)) {
            /* Runs the head command. */
            struct command *command = stream->head;

            if (command->run) {
                pthread_mutex_unlock(&standin.lock);
                command->run(command->arg);
                pthread_mutex_lock(&standin.lock);
            }
            end_head(stream);
            if (command->ended) {
                pthread_mutex_unlock(&standin.lock);
                command->ended(command->arg);
                pthread_mutex_lock(&standin.lock);
            }
            mem_free(command);
        } else {
            pthread_cond_wait(&stream->work, &standin.lock);
        }
    }
    link = &stream->context->streams;
    while (*link != stream)
        link = &(*link)->next;
    *link = stream->next;
    pthread_cond_destroy(&stream->work);
    mem_free(stream);
    pthread_mutex_unlock(&standin.lock);
    return NULL;
}

static struct CUstream_st *stream_new(struct CUctx_st *context, unsigned flags, int priority)
{
    struct CUstream_st *stream = mem_zalloc(sizeof(*stream));
    pthread_t thread;

    if (!stream || thread_cond_init(&stream->work))
        standin_misuse("no memory");
    stream->context = context;
    stream->flags = flags;
    stream->priority = priority;
    stream->tail = &stream->head;
    stream->next = context->streams;
    context->streams = stream;
    if (thread_start(&thread, 0, stream_main, stream))
        standin_misuse("no thread for a stream");
    pthread_detach(thread);
    return stream;
}

/* ---- finding a stream ------------------------------------------------------------------------ */

static struct CUstream_st *null_stream(struct CUctx_st *context)
{
    if (!context->null_stream)
        context->null_stream = stream_new(context, 0, PRIORITY_LEAST);
    return context->null_stream;
}

static struct CUstream_st *named_stream(const struct CUstream_st *named)
{
    for (int i = 0; i < standin.device_count; i++)
        for (struct CUstream_st *stream = standin.devices[i].streams; stream; stream = stream->next)
            if (stream == named && !stream->destroyed && stream != stream->context->null_stream)
                return stream;
    standin_misuse("%p is no stream", (const void *)named);
}

static int look_up(struct CUstream_st *named, const struct CUctx_st *context,
                   struct CUstream_st **ret_stream)
{
    struct CUstream_st *stream;

    if (!named && !standin_current())
        return CUDA_INVALID_CONTEXT;
    stream = named ? named_stream(named) : null_stream(standin_current());
    if (context && stream->context != context)
        standin_misuse("a stream of device %d is used for something of device %d",
                       stream->context->ordinal, context->ordinal);
    *ret_stream = stream;
    return 0;
}

int stream_find(struct CUstream_st *named, struct CUctx_st *context,
                struct CUstream_st **ret_stream)
{
    int code = look_up(named, context, ret_stream);

    if (!code && (*ret_stream)->held)
        standin_misuse("a stream is used while a collective is still being launched in it");
    return code;
}

/* ---- queueing and waiting -------------------------------------------------------------------- */

struct command *command_new(const char *name)
{
    struct command *command = mem_zalloc(sizeof(*command));

    if (!command)
        standin_misuse("no memory");
    command->name = name;
    return command;
}

uint64_t stream_queue(struct CUstream_st *stream, struct command *command)
{
    uint64_t order = ++standin.order;

    command->order = order;
    *stream->tail = command;
    stream->tail = &command->next;
    pthread_cond_signal(&stream->work);
    return order;
}

void stream_await(struct CUstream_st *stream, uint64_t order)
{
    while (is_behind(stream, order + 1) && !standin_lost())
        pthread_cond_wait(&standin.news, &standin.lock);
}

static bool is_context_behind(const struct CUctx_st *context, uint64_t order)
{
    for (const struct CUstream_st *one = context->streams; one; one = one->next)
        if (is_behind(one, order + 1))
            return true;
    return false;
}

void context_await(struct CUctx_st *context)
{
    uint64_t order = standin.order;

    while (is_context_behind(context, order) && !standin_lost())
        pthread_cond_wait(&standin.news, &standin.lock);
}

void standin_hold(const struct CUctx_st *context, struct CUstream_st *named)
{
    struct CUstream_st *stream;

    pthread_mutex_lock(&standin.lock);
    if (look_up(named, context, &stream))
        standin_misuse("a collective in the NULL stream without a current context");
    stream->held++;
    pthread_mutex_unlock(&standin.lock);
}

static struct CUstream_st *held_stream(const struct CUctx_st *context, struct CUstream_st *named)
{
    struct CUstream_st *stream = named ? named_stream(named) : context->null_stream;

    stream->held--;
    return stream;
}

void standin_release(const struct CUctx_st *context, struct CUstream_st *named)
{
    pthread_mutex_lock(&standin.lock);
    held_stream(context, named);
    pthread_mutex_unlock(&standin.lock);
}

void standin_launch(struct CUctx_st *context, struct CUstream_st *named, standin_kernel_fn *run,
                    standin_kernel_fn *ended, void *arg)
{
    struct command *command = command_new("a kernel");

    command->run = run;
    command->ended = ended;
    command->arg = arg;
    pthread_mutex_lock(&standin.lock);
    stream_queue(held_stream(context, named), command);
    pthread_mutex_unlock(&standin.lock);
}

void standin_run(struct CUstream_st *named, void (*run)(void *arg), void *arg)
{
    struct command *command = command_new("a kernel of the test");
    struct CUstream_st *stream;

    command->run = run;
    command->arg = arg;
    pthread_mutex_lock(&standin.lock);
    if (stream_find(named, NULL, &stream))
        standin_misuse("a kernel in the NULL stream without a current context");
    stream_queue(stream, command);
    pthread_mutex_unlock(&standin.lock);
}

int standin_priority(struct CUstream_st *named)
{
    int priority;

    pthread_mutex_lock(&standin.lock);
    priority = named_stream(named)->priority;
    pthread_mutex_unlock(&standin.lock);
    return priority;
}

/* ---- the calls ------------------------------------------------------------------------------- */

int cu_stream_priorities(int *ret_least, int *ret_greatest)
{
    struct CUctx_st *context;
    int code = standin_enter_context(&context);

    if (code)
        return code;
    *ret_least = PRIORITY_LEAST;
    *ret_greatest = PRIORITY_GREATEST;
    standin_leave();
    return CUDA_OK;
}

int cu_stream_create(struct CUstream_st **ret_stream, unsigned flags, int priority)
{
    struct CUctx_st *context;
    int code = standin_enter_context(&context);

    if (code)
        return code;
    if (flags & ~(unsigned)CUDA_STREAM_NON_BLOCKING)
        standin_misuse("cuStreamCreateWithPriority with flags %u", flags);
    if (priority > PRIORITY_LEAST)
        priority = PRIORITY_LEAST;
    if (priority < PRIORITY_GREATEST)
        priority = PRIORITY_GREATEST;
    if (standin_fault("stream", STANDIN_NO_RANK, NULL)) {
        code = CUDA_UNKNOWN;
    } else {
        *ret_stream = stream_new(context, flags, priority);
        standin_count("streams", 1);
    }
    standin_leave();
    return code;
}

/* Destroys the stream, also on a lost device; its queued work is still done. */
int cu_stream_destroy(struct CUstream_st *named)
{
    struct CUstream_st *stream;
    int code;

    if (!named)
        standin_misuse("the NULL stream cannot be destroyed");
    if (!standin_enter_to_destroy(&code))
        return code;
    (void)stream_find(named, NULL, &stream); /* a stream with a name is found, or it is misuse */
    stream->destroyed = true;
    pthread_cond_signal(&stream->work);
    standin_count("streams", -1);
    standin_leave();
    return code;
}

int cu_stream_sync(struct CUstream_st *named)
{
    struct CUstream_st *stream;
    int code = standin_enter();

    if (code)
        return code;
    code = stream_find(named, NULL, &stream);
    if (!code) {
        /* waits for an empty command, because a command of the NULL stream also waits for other
         * streams */
        stream_await(stream, stream_queue(stream, command_new("cuStreamSynchronize")));
        if (standin_lost())
            code = CUDA_LAUNCH_FAILED;
    }
    standin_leave();
    return code;
}

int cu_stream_query(struct CUstream_st *named)
{
    struct CUstream_st *stream;
    int code = standin_enter();

    if (code)
        return code;
    code = stream_find(named, NULL, &stream);
    if (!code && (stream->head || !is_free(stream, standin.order + 1)))
        code = CUDA_NOT_READY;
    standin_leave();
    return code;
}

int cu_stream_context(struct CUstream_st *named, struct CUctx_st **ret_context)
{
    struct CUstream_st *stream;
    int code = standin_enter();

    if (code)
        return code;
    code = look_up(named, NULL, &stream);
    if (!code)
        *ret_context = stream->context;
    standin_leave();
    return code;
}
