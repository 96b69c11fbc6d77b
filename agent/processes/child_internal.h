/*
 * child_internal.h: what the files behind children.h share. These files call each other downwards
 * only, in the order of README.md.
 *
 * The states of a child; `report` is what process_start writes when exec succeeded or failed:
 *
 *     STARTING ──report: it runs──► RUNS ──its end was told──► OVER
 *         └──────report: it failed────────────────────────────► OVER
 *
 * In state OVER the agent was told the end, and child_find does not find the child any more. The
 * process may still run: it is reaped later, and its struct is freed when no process is left that
 * it had started.
 */
#ifndef AGENT_PROCESSES_CHILD_INTERNAL_H
#define AGENT_PROCESSES_CHILD_INTERNAL_H

#include "agent/processes/children.h"
#include "agent/processes/life_watch.h"
#include "base/buf.h"
#include "base/limits.h"
#include "base/list.h"

#include <event2/event.h>
#include <event2/event_struct.h>

enum child_state { CHILD_STARTING, CHILD_RUNS, CHILD_OVER };

struct child_output {
    struct child *child;
    enum msg_stream stream;
    int fd; /* the pipe; -1: the agent has closed it, also because no process can write any more */
    struct event ready; /* the pipe can be read */
    struct event pause; /* timer: the pipe is read again when it fires */
    uint64_t dropped;   /* bytes that were read and thrown away, and not reported yet */
    bool mid_line;      /* the last byte that was handed on did not end a line */
    struct buf tail;    /* the last bytes that the worker has written */
};

/* The process that said hello as this worker: the started process, or one below it. In that case
 * the started process is a wrapper, such as sh -c 'python train.py | tee log'. */
struct child_joined {
    pid_t pid;          /* 0: no process has said hello yet */
    int fd;             /* pidfd of `pid`; -1: none, also if `watch_fd` is a pidfd of `pid` */
    struct event ready; /* `fd` is readable: the process has ended */
    int status;         /* wait status of `pid`, if its end is the worker's end; 0: not known */
    enum msg_witness witness; /* by which sign the agent has seen that end */
};

struct child {
    struct list link;
    struct children *children;
    uint64_t incarnation;
    enum child_state state;
    pid_t pid;   /* pid of the process that was started; its process group has the same number */
    bool reaped; /* pid may mean another process now */
    int status;  /* wait status of the worker's end; counts in state OVER */
    bool doomed; /* this process and all its descendants are being killed */

    int report_fd; /* pipe for the report of process_start; -1: the report has come */
    struct event report_ready;
    int watch_fd; /* pidfd of `pid`; -1: no pidfd, the end is seen by SIGCHLD only */
    struct event watch_ready;
    struct child_output output[STREAM_COUNT];
    struct child_joined joined;
    int page_fd; /* the memory that agent and worker share: descriptor and mapping; -1: none */
    struct page *page;
    struct life_watch life; /* the thread that watches the futex in the page */
    /* timer: the next look for the end of the process in `joined`, or the end of last_words_us */
    struct event again;
    unsigned looks; /* how often the agent has looked for the end of that process */
};

struct children {
    struct event_base *base;
    const struct children_ops *ops;
    void *arg;
    struct list all;           /* a list of struct child */
    struct event child_signal; /* SIGCHLD */
    int life_fd;               /* eventfd: readable when a life_watch is over */
    struct event life_ready;   /* `life_fd` is readable */
    struct event sweep;        /* timer: the next look for processes of doomed workers */
    int64_t sweep_wait_us;     /* the wait between the next sweep and the one after it */
    int64_t sweep_at_us;       /* when the next sweep is due */
    /* how long a wrapper may still pass on output after its worker has failed; tests change it */
    int64_t last_words_us;
    bool held, dropping;   /* held: output is not read; dropping: output is thrown away */
    struct event patience; /* timer: output was held for patience_us, and is dropped from now on */
    int64_t patience_us;
    size_t budget;       /* bytes of output that may still be read in this iteration of the loop */
    struct event refill; /* runs at the end of an iteration: fills `budget` again */
    uint8_t chunk[LIMIT_OUTPUT_CHUNK_BYTES];
};

struct child *child_find(const struct children *children, uint64_t incarnation); /* not if OVER */
struct child *child_find_pid(const struct children *children, pid_t pid); /* never a reaped child */
void child_started(struct child *child); /* reads the report; calls ops->spawned or spawn_failed */
void child_free(struct child *child);    /* the child has been reaped before */
void child_output_close(struct child_output *output);
void child_event_off(struct event *event);
void child_timer(struct event *event, int64_t after_us);

/* child_output.c: the pipes of a worker's output */
int child_output_open(struct child *child, int ret_writers[STREAM_COUNT], struct hvd_err *err);
void child_output_finish(struct child *child); /* hands on what the pipes hold, closes them */
void child_output_init(struct children *children);

/* orphans.c: orphans_doom kills all processes of the worker, again and again until none is left */
void orphans_doom(struct child *child);
void orphans_sweep_soon(struct children *children);
void orphans_sweep(struct children *children); /* kills and frees doomed children */
/* true: no process of a worker is left; `look`: false spares the work while one is not reaped */
bool orphans_gone(struct children *children, bool look);

/* child_end.c: how the end of a worker is seen */
void child_end_init(struct child *child);
void child_reap_all(struct children *children);
void child_lives_check(struct children *children);
void child_joined_watch(struct child *child);

#endif
