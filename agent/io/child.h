/*
 * child.h: what the files behind children.h share.
 *
 *     STARTING ──report──► RUNS ──told──► OVER        and beside that: reaped, then swept, then
 * freed └──────report──────────────────► OVER
 *
 * OVER is what the agent knows: it has been told of the end (or that there was no start), and no
 * call finds the child any more. The process itself may take longer: it is reaped when it can be,
 * and its child is freed when nothing is left of what it had started.
 */
#ifndef AGENT_IO_CHILD_H
#define AGENT_IO_CHILD_H

#include "agent/io/children.h"
#include "agent/io/life_watch.h"
#include "base/limits.h"
#include "base/list.h"

#include <event2/event.h>
#include <event2/event_struct.h>

enum child_state { CHILD_STARTING, CHILD_RUNS, CHILD_OVER };

struct child_output {
    struct child *child;
    enum msg_stream stream;
    int fd; /* -1: closed, by us or by all who could write */
    struct event ready;
    struct event sip; /* until it is read again */
    uint64_t dropped;
    bool mid_line;
};

struct child {
    struct list link;
    struct children *children;
    uint64_t incarnation;
    enum child_state state;
    pid_t pid;   /* whom we started, until it is reaped: its group has the same number */
    bool reaped; /* the numbers mean somebody else now */
    bool doomed; /* it, and whatever it started, is being killed */

    int report_fd; /* -1 once it is known whether the program runs */
    struct event report_ready;
    int watch_fd; /* pidfd of pid; -1: SIGCHLD must do */
    struct event watch_ready;
    struct child_output output[STREAM_COUNT];

    pid_t joined;  /* who said hello: pid, or somebody below it; 0: nobody yet */
    int joined_fd; /* pidfd, if it is not pid */
    struct event joined_ready;
    int joined_status; /* how it ended, if that is the worker's end; 0: not, or not yet */
    enum msg_witness joined_witness;
    int page_fd;
    struct page *page;
    struct life_watch life;
    struct event again; /* looks again for how the joined one ends, or waits for last words */
    unsigned looks;
};

struct children {
    struct event_base *base;
    const struct children_ops *ops;
    void *arg;
    struct list all; /* struct child */

    struct event child_signal;
    int life_fd; /* eventfd: some life_watch is over */
    struct event life_ready;
    struct event sweep;
    int64_t sweep_wait_us;
    int64_t sweep_at_us;

    bool held;
    bool dropping;
    struct event patience;
    int64_t patience_us;
    size_t budget; /* bytes of output that may still be read in this turn of the loop */
    struct event refill;
    uint8_t chunk[LIMIT_OUTPUT_CHUNK_BYTES];
};

/* children.c */
struct child *child_find(const struct children *children, uint64_t incarnation); /* not over */
struct child *child_find_pid(const struct children *children, pid_t pid);        /* not reaped */
void child_started(struct child *child); /* the report is there */
void child_free(struct child *child);    /* it is reaped */
void child_event_off(struct event *event);
void child_timer(struct event *event, int64_t after_us);

/* child_end.c */
void child_end_init(struct child *child);
void child_over(struct child *child); /* pid is a zombie: tells of it, and reaps it */
void child_lives_check(struct children *children);
void child_joined_watch(struct child *child);

/* child_output.c */
int child_output_open(struct child *child, int ret_writers[STREAM_COUNT], struct hvd_err *err);
void child_output_finish(struct child *child); /* says what is there, and closes */
void child_output_close(struct child *child);
void child_output_init(struct children *children);
void child_output_release(struct children *children);

/* orphans.c */
void orphans_doom(struct child *child); /* kills all of it, now and until nothing is left */
void orphans_sweep(struct children *children);
void orphans_reap(struct children *children);
/* When all are doomed: kills; is there nothing left? It looks for orphans when all workers are
 * reaped, or when it is asked to. */
bool orphans_gone(struct children *children, bool look);

#endif
