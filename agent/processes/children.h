/*
 * children.h: the processes of workers. Each worker is started in a process group of its own. Three
 * witnesses (a futex, a pidfd and SIGCHLD) watch for the end of a worker; the first one counts. The
 * worker's output is read with back-pressure, and no process of the worker is left behind.
 *
 * A worker ends when the process that was started ends. Below a wrapper another process may say
 * hello (join) as the worker: the worker also ends when the joined process dies of a signal or
 * exits with a code other than 0. The rest of the process group and all processes that the worker
 * started elsewhere are killed then. The agent reads the output that is in the pipe at that moment,
 * and does not wait for an orphan that keeps the pipe open.
 *
 * Processes that outlive their parent become children of the agent (PR_SET_CHILD_SUBREAPER).
 * HVD_INCARNATION in their environment says to which worker they belong; an orphan without that
 * variable is killed with the last worker. So a process has one `struct children`, and starts no
 * other child processes.
 */
#ifndef AGENT_PROCESSES_CHILDREN_H
#define AGENT_PROCESSES_CHILDREN_H

#include "base/arena.h"
#include "proto/msg.h"
#include "proto/recorder.h"
#include "proto/report.h"

#include <sys/types.h>

struct children;
struct event_base;

/* These callbacks are called from the event loop; `spawned` and `spawn_failed` also from inside
 * children_spawn. A callback may call every function here except children_free. */
struct children_ops {
    /* the worker's program runs; or it could not be started, for this reason */
    void (*spawned)(void *arg, uint64_t incarnation, pid_t pid);
    void (*spawn_failed)(void *arg, uint64_t incarnation, int code, const char *text);
    /* the worker has printed these bytes, borrowed */
    void (*output)(void *arg, uint64_t incarnation, enum msg_stream stream, struct msg_bytes data);
    /* the worker is about to end: read its last messages; `ended` follows */
    void (*dying)(void *arg, uint64_t incarnation);
    /* the worker has ended; `value`: its exit code or signal; `witness`: how the agent has seen it
     */
    void (*ended)(void *arg, uint64_t incarnation, enum msg_ended ended, int32_t value,
                  enum msg_witness witness);
};

int children_create(struct event_base *base, const struct children_ops *ops, void *arg,
                    struct children **ret_children, struct hvd_err *err) MUST_CHECK;

/* Sends SIGKILL to all processes of all workers, and waits until they have ended. No callback is
 * called any more. */
void children_free(struct children *children);

/* Starts the program of a LAUNCH. `env` ends in NULL and is the whole environment of the worker;
 * HVD_INCARNATION must be in it. Called only from the main thread: the kernel kills workers when
 * the thread that started them ends. */
void children_spawn(struct children *children, const struct msg *launch, const char *const *env);

/* children_term sends SIGTERM to the worker's process group. children_kill sends SIGKILL to that
 * group and to the worker's processes outside of the group. An unknown incarnation is ignored. */
void children_term(struct children *children, uint64_t incarnation);
void children_kill(struct children *children, uint64_t incarnation);

/* Returns the descriptor (borrowed) of the page of a worker that runs, to be passed to that worker;
 * -1: no such worker. */
int children_page(const struct children *children, uint64_t incarnation);

/* Lists, in the arena, the values that workers have reported in their pages: of this worker; 0: of
 * all workers that run. HVD_E_NOMEM: memory is short, or the arena is full. */
int children_reports(const struct children *children, uint64_t incarnation, struct arena *arena,
                     struct report_list *ret_reports) MUST_CHECK;

/* The remains of a worker that has died; the same is read of one that lives. */
struct children_remains {
    pid_t pid; /* of the process that has said hello, or of the one that was started */
    struct recorded recorded;              /* what its page says that it has done last */
    struct msg_bytes output[STREAM_COUNT]; /* the end of its output; borrowed for the callback */
    bool dumped;                           /* the kernel has written a core file */
};

/* Reads them, also in the callback `ended`; false: there is no such worker. */
bool children_remains(const struct children *children, uint64_t incarnation,
                      struct children_remains *ret_remains);

/* true: this process may speak for that worker, because it was started as that worker or is a
 * descendant. */
bool children_owns(const struct children *children, uint64_t incarnation, pid_t pid);

/* The worker has said hello: from now on the futex in its page is watched too. */
void children_joined(struct children *children, uint64_t incarnation, pid_t pid);

/* While the driver cannot take output, no output is read, and workers that print wait. After
 * CHILDREN_PATIENCE_US the output is read and thrown away, and a later output says how much. */
void children_hold_output(struct children *children, bool hold);
#define CHILDREN_PATIENCE_US (10 * INT64_C(1000000))

#endif
