/*
 * checkpoint_task.c: a HOLD or SAVE as a task of the thread, from its answer to its end. Called by
 * the files that carry tasks out (checkpoint_hold.c, checkpoint_save.c) and by checkpoint_thread.c.
 * Invariant: a task that was answered belongs to the agent's loop, which frees the task.
 */
#include "agent/checkpoint/checkpoint_internal.h"
#include "base/mem.h"

#include <sys/eventfd.h>

/* true: the attempt of this number is the one under way. false: it is over, or the agent ends, so
 * no result is wanted. */
bool checkpoint_is_wanted(struct checkpoint_thread *thread, uint64_t number)
{
    bool wanted;

    pthread_mutex_lock(&thread->mutex);
    wanted = thread->wanted == number && !thread->stopping;
    pthread_mutex_unlock(&thread->mutex);
    return wanted;
}

/* Gives a task and a copy of its result to the agent's loop, which frees the task. A result of type
 * 0 stands for a lack of memory. */
void checkpoint_answer(struct checkpoint_thread *thread, struct checkpoint_task *task,
                       const struct msg *result)
{
    if (!result->type || msg_copy(result, &task->result))
        task->result = (struct msg){ 0 };
    pthread_mutex_lock(&thread->mutex);
    list_append(&thread->answered, &task->link);
    pthread_mutex_unlock(&thread->mutex);
    (void)eventfd_write(thread->to_loop, 1);
}

/* Frees a task, and puts down the snapshots of its slots. */
void checkpoint_task_free(struct checkpoint_task *task)
{
    for (size_t i = 0; i < task->slot_count; i++)
        shared_snapshot_put_down(task->slots[i].shared);
    mem_free(task->slots);
    msg_release(&task->msg);
    msg_release(&task->result);
    mem_free(task);
}
