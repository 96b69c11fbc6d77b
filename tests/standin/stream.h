/*
 * stream.h: what is queued in streams, and events, among the files of the stand-in of the driver.
 */
#ifndef TESTS_STANDIN_STREAM_H
#define TESTS_STANDIN_STREAM_H

#include "tests/standin/inside.h"

/* ---- marks: what an event stands for once it is recorded --------------------------------------
 */

struct mark {
    unsigned references;
    bool reached;
};

struct CUevent_st {
    struct CUevent_st *next;
    struct CUctx_st *context;
    struct mark *mark; /* of the last record; NULL: none */
    unsigned flags;
};

void mark_release(struct mark *mark);
struct CUevent_st *event_find(struct CUevent_st *event); /* or misuse */

/* ---- streams --------------------------------------------------------------------------------- */

struct command {
    struct command *next;
    uint64_t order;
    const char *name;
    struct mark *after;             /* what it waits for */
    struct mark *reaches;           /* what it is the end of */
    standin_kernel_fn *run, *ended; /* without the lock; or NULL */
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

/* The stream, which has this context, or misuse. NULL: that of the current context. */
int stream_find(struct CUstream_st *named, struct CUctx_st *context,
                struct CUstream_st **ret_stream);
struct command *command_new(const char *name);
uint64_t stream_queue(struct CUstream_st *stream, struct command *command); /* its order */
/* Until what was queued so far has ended. They give up the lock meanwhile. */
void stream_await(struct CUstream_st *stream, uint64_t order);
void context_await(struct CUctx_st *context);
void streams_wake(void); /* after a device was lost; without the lock */

#endif
