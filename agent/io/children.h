/*
 * children.h: the processes of workers: started in process groups of their own, watched by whatever
 * sees their end first, their output read with back-pressure, and nothing of them left behind.
 *
 * The end of a worker is the end of the process that was started, or of the one that has joined
 * (said hello) in its stead below a wrapper, if that died of a signal or with a code that is not 0.
 * What is left of its group and of what it started elsewhere is killed then. Output is read until
 * nothing is there at that moment: nobody waits for an orphan that keeps the pipe.
 *
 * Processes that outlive their parent become children of ours (PR_SET_CHILD_SUBREAPER), and
 * HVD_INCARNATION in their environment says whose they are; one without it is killed with the last
 * worker. So there is one of these in a process, which starts no other child processes of its own.
 */
#ifndef AGENT_IO_CHILDREN_H
#define AGENT_IO_CHILDREN_H

#include "proto/msg.h"

#include <sys/types.h>

struct children;
struct event_base;

/* Called from the loop, and spawned or spawn_failed from inside children_spawn too. They may call
 * everything here but children_free. */
struct children_ops {
    void (*spawned)(void *arg, uint64_t incarnation, pid_t pid);
    void (*spawn_failed)(void *arg, uint64_t incarnation, int code, const char *text);
    void (*output)(void *arg, uint64_t incarnation, enum msg_stream stream, struct msg_bytes data);
    void (*dying)(void *arg, uint64_t incarnation); /* read what it has still said; ended follows */
    void (*ended)(void *arg, uint64_t incarnation, enum msg_ended ended, int32_t value,
                  enum msg_witness witness);
};

int children_create(struct event_base *base, const struct children_ops *ops, void *arg,
                    struct children **ret_children, struct hvd_err *err) MUST_CHECK;

/* SIGKILL to all that is left of everybody, and waits for it. Nobody is told any more. */
void children_free(struct children *children);

/* A LAUNCH; env ends in NULL and is all that the worker gets: HVD_INCARNATION must be in it. From
 * the thread in which the process began: workers are killed when that thread ends. */
void children_spawn(struct children *children, const struct msg *launch, const char *const *env);

/* To the process group, and on SIGKILL to whatever has left it. Unknown ones are ignored. */
void children_term(struct children *children, uint64_t incarnation);
void children_kill(struct children *children, uint64_t incarnation);

/* The page of a worker that runs (borrowed), to be passed to it; -1. */
int children_page(const struct children *children, uint64_t incarnation);

/* May this process speak for that worker: is it the one that was started, or below it? */
bool children_owns(const struct children *children, uint64_t incarnation, pid_t pid);

/* It has said hello: from now on the futex in its page is watched too. */
void children_joined(struct children *children, uint64_t incarnation, pid_t pid);

/* While the driver cannot take output, none is read, and workers that print wait. After
 * CHILDREN_PATIENCE_US of that it is read and thrown away, which a later output says. */
void children_hold_output(struct children *children, bool hold);
#define CHILDREN_PATIENCE_US (10 * INT64_C(1000000))

#endif
