/*
 * checkpoint_thread.h: the thread of an agent that holds commits of its workers and writes them to
 * a checkpoint. A disk or a network may keep this thread waiting for any time: neither the agent's
 * loop, nor a worker, nor the end of the agent waits for it.
 *
 * HOLD and SAVE (PROTOCOL.md, "Checkpoints") are carried out in order. Each gets one result. No
 * result may follow if the attempt ends before, if the message is dropped (checkpoint_thread_ask),
 * or if no memory is left.
 */
#ifndef AGENT_CHECKPOINT_CHECKPOINT_THREAD_H
#define AGENT_CHECKPOINT_CHECKPOINT_THREAD_H

#include "agent/commits/snapshots.h"
#include "proto/msg.h"
#include "state/checkpoint/storage.h"

struct event_base;
struct checkpoint_thread;

struct checkpoint_config {
    struct snapshots *snapshots; /* borrowed as long as the thread lives; used in the loop only */
    /* opens the place of the job's checkpoints: checkpoint_store_open, or a function of a test */
    int (*open)(const char *where, struct checkpoint_store **ret_storage, struct hvd_err *err);
    int64_t stop_us; /* how long checkpoint_thread_stop waits for a write that hangs */
    /* How long the work on a file may pause at its beginning for workers that write commits. Later
     * the work may pause for longer (checkpoint_save.c). */
    int64_t give_way_us;
};

/* The callbacks of the thread; they are called in the agent's loop. */
struct checkpoint_ops {
    /* The result of a HOLD or SAVE, a HOLDING or SAVED; borrowed. NULL: no memory is left, and the
     * result is lost. */
    void (*result)(void *arg, const struct msg *result);
    bool (*runs)(void *arg, uint32_t slot); /* does a worker run in this slot? */
};

/* Starts the thread. HVD_E_NOMEM: no memory is left; HVD_E_LIMIT: no thread or descriptor is left.
 */
int checkpoint_thread_start(struct event_base *base, const struct checkpoint_config *config,
                            const struct checkpoint_ops *ops, void *arg,
                            struct checkpoint_thread **ret_thread, struct hvd_err *err) MUST_CHECK;

/* Ends the thread; no result follows. A thread that hangs in a write is left alone after stop_us:
 * it frees itself when the write returns, or dies with the process. NULL is allowed. */
void checkpoint_thread_stop(struct checkpoint_thread *thread);

/* Gives the thread a HOLD, which begins an attempt at a checkpoint and ends earlier attempts, or a
 * SAVE. The message is copied. If LIMIT_CHECKPOINT_TASKS messages wait already, this message is
 * dropped with a warning, and 0 is returned, too: no result follows, and the driver ends the
 * attempt after its time limit. HVD_E_NOMEM: no result follows. */
int checkpoint_thread_ask(struct checkpoint_thread *thread, const struct msg *msg) MUST_CHECK;

/* Ends the attempts up to and with this number: their commits are held no longer. */
void checkpoint_thread_release(struct checkpoint_thread *thread, uint64_t number);

/* The worker of this slot has ended: its next commit will not come. */
void checkpoint_thread_ended(struct checkpoint_thread *thread, uint32_t slot);

#endif
