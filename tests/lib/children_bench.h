/*
 * children_bench.h: children.h with a loop around it, and what it has said of each worker. The
 * workers are numbered from 1 in the order of their start: that is their incarnation too.
 */
#ifndef TESTS_LIB_CHILDREN_BENCH_H
#define TESTS_LIB_CHILDREN_BENCH_H

#include "agent/io/child.h"
#include "tests/lib/test.h"

#define BENCH_WORKERS 8192
#define BENCH_TEXT    4096

struct bench_worker {
    pid_t pid;
    int failed;            /* the code; 0: it started, or nothing was said yet */
    char why[512];         /* of the failure */
    uint64_t said_bytes;   /* on both streams */
    char said[BENCH_TEXT]; /* the last of it, standard output only, ends in NUL */
    bool error;            /* something came on standard error */
    int dying;
    enum msg_ended ended;
    int32_t value;
    enum msg_witness witness;
    bool disorder; /* what was said contradicts what was said before */
};

struct bench {
    struct event_base *base;
    struct children *children;
    struct event late_timer;
    struct event gone_event;
    bool late;
    bool gone; /* nobody has the bench's fifo open any more */
    char dir[200];
    char fifo[256]; /* what is to be seen ending opens this as descriptor 9, for writing */
    int fifo_fd;
    int fds; /* open descriptors before the first spawn */
    uint64_t count;
    struct bench_worker *workers;
};

/* False, with the test failed, when it cannot be had. */
bool bench_open(struct bench *bench, struct test *t);
void bench_close(struct bench *bench);

/* Start a worker; its number. */
uint64_t bench_spawn(struct bench *bench, const char *cwd, const char *const *argv);
uint64_t bench_shell(struct bench *bench, const char *format, ...) PRINTF_LIKE(2, 3);

struct bench_worker *bench_worker(struct bench *bench, uint64_t number);
bool bench_is_over(struct bench *bench, uint64_t number);      /* ended, or not started */
const char *bench_fifo(struct bench *bench, const char *name); /* a new one; valid until the next */
pid_t bench_pid_said(struct bench *bench, uint64_t number, const char *after); /* 0: not yet */
int bench_descriptors(void);
bool bench_tidy(struct bench *bench); /* every child was reaped, swept and freed */

/* Says hello for the process, and gives it its page through the fifo. */
void bench_join(struct bench *bench, uint64_t number, pid_t pid, const char *fifo);

/* Turns the loop until the condition holds; the test fails when it takes too long. */
void bench_turn(struct bench *bench);
#define BENCH_WAIT(t, bench, condition)        \
    do {                                       \
        while (!(condition) && !(bench)->late) \
            bench_turn(bench);                 \
        CHECK(t, condition);                   \
    } while (0)

#endif
