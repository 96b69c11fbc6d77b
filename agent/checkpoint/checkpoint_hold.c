/*
 * checkpoint_hold.c: holds a commit of each slot that a HOLD names, and waits until each slot has
 * one. To hold a commit means that its memory is not used for later commits.
 * Called by checkpoint_thread.c and checkpoint_save.c. Invariant: a snapshot is held only while
 * `held` names it, so the next HOLD or RELEASE finds and frees all of them.
 */
#include "agent/checkpoint/checkpoint_internal.h"
#include "base/mem.h"
#include "base/time.h"
#include "os/clock.h"
#include "state/snapshot/snapshot_hold.h"

#include <inttypes.h>

/* The time limit of one wait for a snapshot. Each change of the snapshot rings its bell (a futex),
 * which ends the wait earlier. */
#define AWAIT_US TIME_S

/* Called in the agent's loop, which owns the table of snapshots, before the thread gets the HOLD:
 * finds the snapshot of each slot, and notes whether a worker runs there. */
int checkpoint_hold_prepare(struct checkpoint_thread *thread, struct checkpoint_task *task)
{
    const struct msg_hold *hold = &task->msg.u.hold;

    task->slots = mem_zalloc_array(hold->slots.count, sizeof(*task->slots));
    if (!task->slots)
        return HVD_E_NOMEM;
    for (size_t i = 0; i < hold->slots.count; i++) {
        struct held_slot *slot = &task->slots[task->slot_count++];
        bool runs;

        slot->slot = (uint32_t)hold->slots.items[i];
        if (hold->slots.items[i] >= LIMIT_SLOTS_PER_HOST)
            continue; /* no host has a slot of this number: `shared` stays NULL */
        runs = thread->ops->runs(thread->arg, slot->slot);
        pthread_mutex_lock(&thread->mutex);
        thread->runs[slot->slot] = runs;
        pthread_mutex_unlock(&thread->mutex);
        slot->shared = snapshots_newer(thread->config.snapshots, slot->slot);
    }
    return 0;
}

/* Answers a HOLD: with the commits that are held now, or with the error. A result of type 0 tells
 * the agent's loop that no memory was left for the answer. */
static void hold_answer(struct checkpoint_thread *thread, struct checkpoint_task *task,
                        const struct hvd_err *err)
{
    const struct checkpoint_task *held = thread->held;
    struct msg_kept *kept = NULL;
    struct msg msg = { .type = MSG_HOLDING, .round = task->msg.round };

    msg.u.holding = (struct msg_holding){ .number = task->msg.u.hold.number,
                                          .code = err->code,
                                          .text = err->text };
    if (!err->code) {
        kept = mem_zalloc_array(held->slot_count, sizeof(*kept));
        for (size_t i = 0; kept && i < held->slot_count; i++)
            kept[i] =
                (struct msg_kept){ .slot = held->slots[i].slot, .commit = held->slots[i].commit };
        msg.u.holding.kept = (struct msg_kept_list){ kept, held->slot_count };
        if (!kept)
            msg.type = 0;
    }
    checkpoint_answer(thread, task, &msg);
    mem_free(kept);
}

/* Waits until a commit of this slot is held. The bell (a futex in the snapshot) is read before the
 * look and awaited after it, so no change is missed. HVD_E_REVOKED: the attempt is over;
 * HVD_E_LOST: the worker has ended before its commit came; HVD_E_NOTFOUND: the HOLD wants one
 * commit only, and that commit is gone. */
static int hold_await(struct checkpoint_thread *thread, struct held_slot *slot,
                      const struct msg_hold *hold, struct hvd_err *err)
{
    uint64_t number = hold->number;
    struct snapshot *snapshot = shared_snapshot_of(slot->shared);

    for (;;) {
        uint32_t bell = snapshot_bell(snapshot);
        bool wanted, runs;

        pthread_mutex_lock(&thread->mutex);
        wanted = thread->wanted == number && !thread->stopping;
        runs = thread->runs[slot->slot];
        thread->awaited = wanted ? snapshot : NULL;
        pthread_mutex_unlock(&thread->mutex);
        if (!wanted)
            return HVD_E_REVOKED;
        slot->commit = snapshot_hold_commit(snapshot);
        if (slot->commit)
            return 0;
        if (hold->only)
            return err_set(
                err, HVD_E_NOTFOUND,
                "slot %u: the commit for the checkpoint is not kept any more; the driver begins "
                "another checkpoint",
                slot->slot);
        if (!runs)
            return err_set(
                err, HVD_E_LOST,
                "slot %u: the worker has ended before the commit for the checkpoint; the driver "
                "begins another checkpoint",
                slot->slot);
        snapshot_await_bell(snapshot, bell, AWAIT_US);
    }
}

/* Waits, slot by slot, while the worker writes a commit, because writing a file at the same time
 * would slow that commit. The wait ends at until_us. It also ends when the worker has ended (no
 * commit is finished then), or has taken the memory of its held commit back (no bell rings then,
 * and the checkpoint has failed), or when the attempt is over. */
void checkpoint_give_way(struct checkpoint_thread *thread, int64_t until_us)
{
    const struct checkpoint_task *held = thread->held;

    for (size_t i = 0; i < held->slot_count; i++) {
        const struct held_slot *slot = &held->slots[i];
        struct snapshot *snapshot = shared_snapshot_of(slot->shared);
        bool wait = true;

        while (wait) {
            uint32_t bell = snapshot_bell(snapshot);
            int64_t left_us = until_us - clock_now_us();

            pthread_mutex_lock(&thread->mutex);
            wait = left_us > 0 && snapshot_is_open(snapshot) && snapshot_hold_stands(snapshot) &&
                   thread->runs[slot->slot] && thread->wanted == held->msg.u.hold.number &&
                   !thread->stopping;
            thread->awaited = wait ? snapshot : NULL;
            pthread_mutex_unlock(&thread->mutex);
            if (wait)
                snapshot_await_bell(snapshot, bell, left_us);
        }
    }
}

/* Ends the hold on all commits of the present HOLD, if there is one, and frees its task. `held` is
 * set under the mutex, although only this thread writes it, because the agent's loop reads it. */
void checkpoint_hold_drop(struct checkpoint_thread *thread)
{
    struct checkpoint_task *held = thread->held;

    if (!held)
        return;
    pthread_mutex_lock(&thread->mutex);
    thread->held = NULL;
    pthread_mutex_unlock(&thread->mutex);
    for (size_t i = 0; i < held->slot_count; i++)
        if (held->slots[i].shared)
            snapshot_hold_end(shared_snapshot_of(held->slots[i].shared));
    checkpoint_task_free(held);
}

/* Carries out a HOLD. First the holds of all slots begin, and only then the thread waits for the
 * commit of each slot: so the slots hold the same commit if possible (the driver compares them).
 * The task stays as `held`; a second task, with a copy of its message, takes the result to the
 * agent's loop, which frees the second task. No result follows if the attempt is over. */
void checkpoint_hold_run(struct checkpoint_thread *thread, struct checkpoint_task *task)
{
    uint64_t number = task->msg.u.hold.number;
    struct checkpoint_task *answer;
    struct hvd_err err = { 0 };
    int rc = 0;

    if (thread->held && thread->held->msg.u.hold.number == number && thread->held->complete) {
        hold_answer(thread, task, &err); /* the driver has repeated a HOLD that was carried out */
        return;
    }
    checkpoint_hold_drop(thread);
    answer = mem_zalloc(sizeof(*answer));
    if (!answer || msg_copy(&task->msg, &answer->msg)) {
        mem_free(answer);
        checkpoint_answer(thread, task, &(struct msg){ 0 });
        return;
    }
    list_init(&answer->link);
    pthread_mutex_lock(&thread->mutex);
    thread->held = task;
    pthread_mutex_unlock(&thread->mutex);

    for (size_t i = 0; i < task->slot_count && !rc; i++) {
        if (task->slots[i].shared && task->msg.u.hold.only)
            snapshot_hold_only(shared_snapshot_of(task->slots[i].shared), task->msg.u.hold.at);
        else if (task->slots[i].shared)
            snapshot_hold(shared_snapshot_of(task->slots[i].shared), task->msg.u.hold.at);
        else
            rc = err_set(&err, HVD_E_NOTFOUND,
                         "slot %u: the worker of this slot has no state yet, so this checkpoint is "
                         "given up; the driver begins another checkpoint",
                         task->slots[i].slot);
    }
    for (size_t i = 0; i < task->slot_count && !rc; i++)
        rc = hold_await(thread, &task->slots[i], &task->msg.u.hold, &err);
    pthread_mutex_lock(&thread->mutex);
    thread->awaited = NULL;
    pthread_mutex_unlock(&thread->mutex);
    task->complete = !rc;
    if (rc == HVD_E_REVOKED)
        checkpoint_task_free(answer);
    else
        hold_answer(thread, answer, &err);
    if (rc)
        checkpoint_hold_drop(thread);
}
