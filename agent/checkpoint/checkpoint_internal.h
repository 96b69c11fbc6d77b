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
    uint64_t commit;                /* the commit that is held; 0: none yet */
};

struct checkpoint_task {
    struct list link;
    struct msg msg;          /* a copy of the HOLD or SAVE */
    struct msg result;       /* a copy of the answer; type 0: there was no memory for it */
    struct held_slot *slots; /* the slots of a HOLD; NULL for a SAVE */
    size_t slot_count;
    bool complete; /* all slots of this HOLD keep a commit */
};

struct checkpoint_thread {
    struct checkpoint_config config;
    const struct checkpoint_ops *ops;
    void *arg;
    pthread_t thread;
    int to_loop;        /* an eventfd that wakes the agent's loop: a task has its result */
    struct event *told; /* fires in the agent's loop when to_loop is readable */

    pthread_mutex_t mutex;  /* protects the fields below; held for short moments only */
    pthread_cond_t changed; /* a field below has changed, for the side that waits */
    struct list asked;      /* tasks that wait for the thread, the oldest first */
    struct list answered;   /* tasks with a result for the agent's loop */
    size_t asked_count;
    uint64_t wanted; /* the number of the attempt that is under way; 0: none */
    bool stopping;
    bool over;      /* the thread's function is about to return */
    bool abandoned; /* the agent's loop no longer waits: the thread frees everything itself */
    /* for each slot: true if a worker ran in it at the last HOLD, and has not ended since */
    bool runs[LIMIT_SLOTS_PER_HOST];
    /* the snapshot whose commit the thread awaits; NULL: none */
    struct snapshot *awaited;

    /* the HOLD whose commits are held; written by the thread, under the mutex; NULL: none */
    struct checkpoint_task *held;
};

/* checkpoint_task.c: the result and the end of a task */

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
/* Ends the hold on all commits; a HOLD that is under way has no effect any more. */
void checkpoint_hold_drop(struct checkpoint_thread *thread);
/* Waits until no worker of the held slots writes a commit; returns at until_us at the latest, and
 * earlier when the attempt is over. */
void checkpoint_give_way(struct checkpoint_thread *thread, int64_t until_us);

/* checkpoint_save.c: called by the thread for a SAVE */
void checkpoint_save_run(struct checkpoint_thread *thread, struct checkpoint_task *task);

#endif
