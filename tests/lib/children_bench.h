/*
 * children_bench.h: children.h with an event loop around it, and a note of what children.h has
 * reported of each worker. Workers are numbered from 1 in the order of their start; the number is
 * also the incarnation.
 */
#ifndef TESTS_LIB_CHILDREN_BENCH_H
#define TESTS_LIB_CHILDREN_BENCH_H

#include "agent/processes/child_internal.h"
#include "tests/lib/test.h"

#define BENCH_WORKERS 8192
#define BENCH_TEXT    4096

struct bench_worker {
    pid_t pid;
    /* the code of a failed start; 0: the worker started, or nothing was reported yet */
    int failed;
    char why[512];         /* why the start failed */
    uint64_t said_bytes;   /* bytes written on both streams */
    char said[BENCH_TEXT]; /* the last bytes of standard output, ended by NUL */
    bool error;            /* the worker has written on standard error */
    int dying;
    enum msg_ended ended;
    int32_t value;
    enum msg_witness witness;
    bool disorder; /* a report contradicts an earlier one */
};

struct bench {
    struct event_base *base;
    struct children *children;
    struct event late_timer;
    struct event gone_event;
    bool late;
    bool gone; /* no process has the bench's fifo open any more */
    char dir[200];
    /* a process whose end is watched opens this FIFO as descriptor 9, for writing */
    char fifo[256];
    int fifo_fd;
    int fds; /* descriptors that were open before the first spawn */
    uint64_t count;
    struct bench_worker *workers;
    struct children_remains remains;         /* of the worker that has ended last */
    char tail[STREAM_COUNT][BENCH_TEXT + 1]; /* its output in `remains`, as texts */
};

/* false: the bench cannot be set up, and the test has failed */
bool bench_open(struct bench *bench, struct test *t);
void bench_close(struct bench *bench);

/* Starts a worker and returns its number. */
uint64_t bench_spawn(struct bench *bench, const char *cwd, const char *const *argv);
uint64_t bench_shell(struct bench *bench, const char *format, ...) PRINTF_LIKE(2, 3);

struct bench_worker *bench_worker(struct bench *bench, uint64_t number);
/* the worker has ended, or did not start */
bool bench_is_over(struct bench *bench, uint64_t number);
/* makes a FIFO; the path is valid until the next call */
const char *bench_fifo(struct bench *bench, const char *name);
/* the pid that the worker has printed after this text; 0: not yet */
pid_t bench_pid_said(struct bench *bench, uint64_t number, const char *after);
int bench_descriptors(void);
bool bench_tidy(struct bench *bench); /* every child was reaped, swept and freed */

/* Sends HELLO in the name of the process, and hands it the worker's page through the FIFO. */
void bench_join(struct bench *bench, uint64_t number, pid_t pid, const char *fifo);

/* Runs the event loop until the condition holds; the test fails when that takes too long. */
void bench_turn(struct bench *bench);
#define BENCH_WAIT(t, bench, condition)        \
    do {                                       \
        while (!(condition) && !(bench)->late) \
            bench_turn(bench);                 \
        CHECK(t, condition);                   \
    } while (0)

#endif
