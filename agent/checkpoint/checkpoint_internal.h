/*
 * checkpoint_internal.h: the thread of checkpoint_thread.h and its tasks, for the files of this
 * folder. A task is one HOLD or SAVE of the driver. The agent's loop puts it into the list `asked`;
 * the thread takes it from there, carries it out, and puts it into `answered`; the loop passes on
 * the result and frees the task.
 *
 *     asked ──► carried out by the thread ──► answered ──► freed
 *
 * A HOLD whose commits are held stays in `held` until its attempt is over.
 */
#ifndef AGENT_CHECKPOINT_CHECKPOINT_INTERNAL_H
#define AGENT_CHECKPOINT_CHECKPOINT_INTERNAL_H

#include "agent/checkpoint/checkpoint_thread.h"
#include "base/list.h"

#include <pthread.h>

/* One slot of a HOLD. */
struct held_slot {
    uint32_t slot;
    struct shared_snapshot *shared; /* NULL: the slot has no snapshot */
    uint64_t commit;                /* 0: not yet */
};

struct checkpoint_task {
    struct list link;
    struct msg msg;          /* a copy of the HOLD or SAVE */
    struct msg result;       /* a copy; type 0: there was no memory for it */
    struct held_slot *slots; /* of a HOLD */
    size_t slot_count;
    bool complete; /* all slots of this HOLD keep a commit */
};

struct checkpoint_thread {
    struct checkpoint_config config;
    const struct checkpoint_ops *ops;
    void *arg;
    pthread_t thread;
    int to_loop;        /* an eventfd: there are results */
    struct event *told; /* fires in the agent's loop when to_loop is readable */

    pthread_mutex_t mutex; /* protects the fields below; held for short moments only */
    pthread_cond_t changed;
    struct list asked;
    struct list answered;
    size_t asked_count;
    uint64_t wanted; /* the number of the attempt that is under way; 0: none */
    bool stopping;
    bool over;      /* the thread's function is about to return */
    bool abandoned; /* the thread frees everything itself */
    /* for each slot: true if a worker has run in the slot since the last HOLD */
    bool runs[LIMIT_SLOTS_PER_HOST];
    /* the snapshot whose commit the thread awaits; NULL: none */
    struct snapshot *awaited;

    /* the HOLD whose commits are held; written by the thread, under the mutex; NULL: none */
    struct checkpoint_task *held;
};

/* checkpoint_task.c */

/* false: the attempt is over, so no result is wanted */
bool checkpoint_is_wanted(struct checkpoint_thread *thread, uint64_t number);
/* Copies the result of a task, and gives the task to the agent's loop. */
void checkpoint_answer(struct checkpoint_thread *thread, struct checkpoint_task *task,
                       const struct msg *result);
void checkpoint_task_free(struct checkpoint_task *task);

/* checkpoint_hold.c: the loop calls checkpoint_hold_prepare; then the thread takes the task and
 * calls checkpoint_hold_run */
int checkpoint_hold_prepare(struct checkpoint_thread *thread,
                            struct checkpoint_task *task) MUST_CHECK;
void checkpoint_hold_run(struct checkpoint_thread *thread, struct checkpoint_task *task);
/* holds no commit any more */
void checkpoint_hold_drop(struct checkpoint_thread *thread);
/* waits until no worker of the held slots writes a commit; returns early at this time, or when the
 * attempt is over */
void checkpoint_give_way(struct checkpoint_thread *thread, int64_t until_us);

/* checkpoint_save.c */
void checkpoint_save_run(struct checkpoint_thread *thread, struct checkpoint_task *task);

#endif
