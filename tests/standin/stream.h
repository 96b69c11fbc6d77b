/*
 * stream.h: the commands that are queued in streams, and events. Private to the stand-in of the
 * CUDA driver.
 */
#ifndef TESTS_STANDIN_STREAM_H
#define TESTS_STANDIN_STREAM_H

#include "tests/standin/driver_internal.h"

/* ---- marks: what an event stands for after it was recorded ---- */

struct mark {
    unsigned references;
    bool reached;
};

struct CUevent_st {
    struct CUevent_st *next;
    struct CUctx_st *context;
    struct mark *mark; /* the mark of the last record; NULL: never recorded */
    unsigned flags;
};

void mark_release(struct mark *mark);
struct CUevent_st *event_find(struct CUevent_st *event); /* an unknown event is misuse */

/* ---- streams --------------------------------------------------------------------------------- */

struct command {
    struct command *next;
    uint64_t order;
    const char *name;
    struct mark *after;             /* the mark that this command waits for */
    struct mark *reaches;           /* the mark that is reached when this command ends */
    standin_kernel_fn *run, *ended; /* called without the lock; or NULL */
    void *arg;
};

struct CUstream_st {
    struct CUstream_st *next;
    struct CUctx_st *context;
    unsigned flags;
    int priority;
    pthread_cond_t work;
    struct command *head, **tail; /* the head may be running */
    unsigned held;
    bool destroyed;
};

/* The stream, which must belong to this context; else it is misuse. NULL: the NULL stream of the
 * current context. */
int stream_find(struct CUstream_st *named, struct CUctx_st *context,
                struct CUstream_st **ret_stream);
struct command *command_new(const char *name);
/* returns the command's order */
uint64_t stream_queue(struct CUstream_st *stream, struct command *command);
/* Both wait until the work queued up to this order has ended. They release the lock meanwhile. */
void stream_await(struct CUstream_st *stream, uint64_t order);
void context_await(struct CUctx_st *context);
void streams_wake(void); /* after a device was lost; call it without the lock */

#endif
