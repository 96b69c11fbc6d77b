/*
 * events.c: events of the stand-in: a mark in a stream that is reached when the work before it is
 * done, and that another stream can wait for.
 */
#include "tests/standin/stream.h"

#include "base/mem.h"

static struct CUevent_st *events; /* a list of all events */

void mark_release(struct mark *mark)
{
    if (mark && --mark->references == 0)
        mem_free(mark);
}

struct CUevent_st *event_find(struct CUevent_st *event)
{
    for (struct CUevent_st *one = events; one; one = one->next)
        if (one == event)
            return one;
    standin_misuse("%p is no event", (void *)event);
}

int cu_event_create(struct CUevent_st **ret_event, unsigned flags)
{
    struct CUctx_st *context;
    struct CUevent_st *event;
    int code = standin_enter_context(&context);

    if (code)
        return code;
    if (standin_fault("event", STANDIN_NO_RANK, NULL)) {
        standin_leave();
        return CUDA_UNKNOWN;
    }
    event = mem_zalloc(sizeof(*event));
    if (!event)
        standin_misuse("no memory");
    *event = (struct CUevent_st){ .next = events, .context = context, .flags = flags };
    events = event;
    standin_count("events", 1);
    *ret_event = event;
    standin_leave();
    return CUDA_OK;
}

/* Frees the event, also on a lost device. A stream that waits for the event still waits for its
 * mark. */
int cu_event_destroy(struct CUevent_st *event)
{
    struct CUevent_st **link = &events;
    int code;

    if (!standin_enter_to_destroy(&code))
        return code;
    event_find(event);
    while (*link != event)
        link = &(*link)->next;
    *link = event->next;
    mark_release(event->mark);
    mem_free(event);
    standin_count("events", -1);
    standin_leave();
    return code;
}

int cu_event_record(struct CUevent_st *event, struct CUstream_st *named)
{
    struct CUstream_st *stream;
    struct command *command;
    struct mark *mark;
    int code = standin_enter();

    if (code)
        return code;
    code = stream_find(named, event_find(event)->context, &stream);
    if (!code && standin_fault("event", STANDIN_NO_RANK, NULL))
        code = CUDA_UNKNOWN;
    if (!code) {
        mark = mem_zalloc(sizeof(*mark));
        if (!mark)
            standin_misuse("no memory");
        mark->references = 2; /* the event and the command each hold a reference */
        mark_release(event->mark);
        event->mark = mark;
        command = command_new("cuEventRecord");
        command->reaches = mark;
        stream_queue(stream, command);
    }
    standin_leave();
    return code;
}

int cu_event_query(struct CUevent_st *event)
{
    int code = standin_enter();

    if (code)
        return code;
    event_find(event);
    if (event->mark && !event->mark->reached)
        code = CUDA_NOT_READY;
    standin_leave();
    return code;
}

int cu_event_sync(struct CUevent_st *event)
{
    struct mark *mark;
    int code = standin_enter();

    if (code)
        return code;
    mark = event_find(event)->mark;
    if (mark) {
        mark->references++;
        while (!mark->reached && !standin_lost())
            pthread_cond_wait(&standin.news, &standin.lock);
        if (standin_lost())
            code = CUDA_LAUNCH_FAILED;
        mark_release(mark);
    }
    standin_leave();
    return code;
}

int cu_stream_wait(struct CUstream_st *named, struct CUevent_st *event, unsigned flags)
{
    struct CUstream_st *stream;
    struct command *command;
    int code = standin_enter();

    if (code)
        return code;
    if (flags)
        standin_misuse("cuStreamWaitEvent with flags %u", flags);
    event_find(event);
    code = stream_find(named, NULL, &stream);
    if (!code && event->mark && !event->mark->reached) {
        command = command_new("cuStreamWaitEvent");
        command->after = event->mark;
        command->after->references++;
        stream_queue(stream, command);
    }
    standin_leave();
    return code;
}
