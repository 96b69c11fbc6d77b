/*
 * checkpoint_thread.c: the thread that holds commits and writes checkpoints, and the lists between
 * this thread and the agent's loop. Called by agent/io/loop*.c. Invariants: a task is in one list,
 * or the thread carries it out; the loop never waits for the thread, except in
 * checkpoint_thread_stop, for a bounded time.
 */
#include "agent/checkpoint/checkpoint_internal.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/panic.h"
#include "base/time.h"
#include "os/clock.h"
#include "os/thread.h"
#include "state/snapshot/snapshot_hold.h"

#include <event2/event.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

/* nice value of the thread: it runs after the agent's loop and the threads of workers */
#define THREAD_NICE 10

/* Takes the oldest task out of a list; NULL: the list is empty. */
static struct checkpoint_task *thread_take(struct list *list)
{
    struct checkpoint_task *task =
        list_empty(list) ? NULL : CONTAINER_OF(list->next, struct checkpoint_task, link);

    if (task)
        list_remove(&task->link);
    return task;
}

/* Returns the number of the attempt (one try at a checkpoint) that a task belongs to. */
static uint64_t thread_number_of(const struct checkpoint_task *task)
{
    return task->msg.type == MSG_HOLD ? task->msg.u.hold.number : task->msg.u.save.number;
}

/* Frees everything but `told`, the event of the agent's loop. Called by the loop when the thread
 * has ended, or by the thread when the loop no longer waits for it. */
static void checkpoint_thread_destroy(struct checkpoint_thread *thread)
{
    struct checkpoint_task *task;

    checkpoint_hold_drop(thread);
    while ((task = thread_take(&thread->asked)) || (task = thread_take(&thread->answered)))
        checkpoint_task_free(task);
    close(thread->to_loop);
    pthread_cond_destroy(&thread->changed);
    pthread_mutex_destroy(&thread->mutex);
    mem_free(thread);
}

/* The thread: carries out the tasks of the agent's loop, one after the other, and ends holds whose
 * attempt is over. Its priority is lower than that of all threads of the training. */
static void *checkpoint_thread_main(void *arg)
{
    const struct sched_param none = { 0 };
    struct checkpoint_thread *thread = arg;
    bool stopping = false;
    bool abandoned;

    (void)setpriority(PRIO_PROCESS, 0, THREAD_NICE); /* on Linux: of this thread alone */
    (void)pthread_setschedparam(pthread_self(), SCHED_BATCH, &none);
    while (!stopping) {
        struct checkpoint_task *task;

        /* waits for a task, for the end, or for the end of the attempt whose commits are held */
        pthread_mutex_lock(&thread->mutex);
        while (!thread->stopping && list_empty(&thread->asked) &&
               (!thread->held || thread_number_of(thread->held) == thread->wanted))
            pthread_cond_wait(&thread->changed, &thread->mutex);
        task = thread->stopping ? NULL : thread_take(&thread->asked);
        if (task)
            thread->asked_count--;
        pthread_mutex_unlock(&thread->mutex);
        if (thread->held && !checkpoint_is_wanted(thread, thread_number_of(thread->held)))
            checkpoint_hold_drop(thread);
        if (task && !checkpoint_is_wanted(thread, thread_number_of(task)))
            checkpoint_task_free(task);
        else if (task && task->msg.type == MSG_HOLD)
            checkpoint_hold_run(thread, task);
        else if (task)
            checkpoint_save_run(thread, task);
        pthread_mutex_lock(&thread->mutex);
        stopping = thread->stopping;
        pthread_mutex_unlock(&thread->mutex);
    }
    checkpoint_hold_drop(thread);
    pthread_mutex_lock(&thread->mutex);
    thread->over = true;
    abandoned = thread->abandoned;
    pthread_cond_broadcast(&thread->changed);
    pthread_mutex_unlock(&thread->mutex);
    if (abandoned)
        checkpoint_thread_destroy(thread);
    return NULL;
}

/* Called in the agent's loop when the thread has answered tasks: passes their results on. */
static void checkpoint_thread_on_told(evutil_socket_t fd, short what, void *arg)
{
    struct checkpoint_thread *thread = arg;
    struct checkpoint_task *task;
    eventfd_t ignored;

    (void)what;
    (void)eventfd_read(fd, &ignored);
    for (;;) {
        pthread_mutex_lock(&thread->mutex);
        task = thread_take(&thread->answered);
        pthread_mutex_unlock(&thread->mutex);
        if (!task)
            return;
        thread->ops->result(thread->arg, task->result.type ? &task->result : NULL);
        checkpoint_task_free(task);
    }
}

/* Makes the lists and the eventfd, and starts the thread. On failure all of it is freed. */
int checkpoint_thread_start(struct event_base *base, const struct checkpoint_config *config,
                            const struct checkpoint_ops *ops, void *arg,
                            struct checkpoint_thread **ret_thread, struct hvd_err *err)
{
    struct checkpoint_thread *thread = mem_zalloc(sizeof(*thread));
    int rc;

    if (!thread)
        return err_set(
            err, HVD_E_NOMEM,
            "no memory for the thread that writes checkpoints; free memory on this host");
    thread->config = *config;
    thread->ops = ops;
    thread->arg = arg;
    list_init(&thread->asked);
    list_init(&thread->answered);
    rc = pthread_mutex_init(&thread->mutex, NULL);
    ASSERT(rc == 0);
    rc = thread_cond_init(&thread->changed);
    ASSERT(rc == 0);
    thread->to_loop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (thread->to_loop < 0)
        rc = HVD_E_LIMIT;
    else
        thread->told = event_new(base, thread->to_loop, EV_READ | EV_PERSIST,
                                 checkpoint_thread_on_told, thread);
    if (!rc && (!thread->told || event_add(thread->told, NULL)))
        rc = HVD_E_NOMEM;
    if (!rc)
        rc = thread_start(&thread->thread, 0, checkpoint_thread_main, thread);
    if (rc) {
        if (thread->told)
            event_free(thread->told);
        checkpoint_thread_destroy(thread);
        return err_set(
            err, rc,
            rc == HVD_E_LIMIT
                ? "no thread or file descriptor is left for checkpoints; raise "
                  "ulimit -u or ulimit -n"
                : "no memory for the thread that writes checkpoints; free memory on this host");
    }
    *ret_thread = thread;
    return 0;
}

/* Wakes the thread, wherever it waits. The caller holds the mutex. */
static void thread_wake(struct checkpoint_thread *thread)
{
    pthread_cond_broadcast(&thread->changed);
    if (thread->awaited)
        snapshot_ring(thread->awaited);
}

/* Ends the thread, and waits for that for at most stop_us. A thread that hangs in a write is left
 * alone: it frees everything itself when the write returns, or ends with the process. */
void checkpoint_thread_stop(struct checkpoint_thread *thread)
{
    int64_t until_us;
    bool over;

    if (!thread)
        return;
    until_us = clock_now_us() + thread->config.stop_us;
    event_free(thread->told);
    pthread_mutex_lock(&thread->mutex);
    thread->stopping = true;
    thread_wake(thread);
    while (!thread->over && !thread_cond_wait(&thread->changed, &thread->mutex, until_us))
        ;
    over = thread->over;
    thread->abandoned = !over;
    if (!over)
        thread_abandon(thread->thread); /* under the mutex: the thread still exists */
    pthread_mutex_unlock(&thread->mutex);
    if (over) {
        pthread_join(thread->thread, NULL);
        checkpoint_thread_destroy(thread);
    } else {
        log_warning(STATE, "a write to the checkpoint directory does not return; the agent ends "
                           "without it, and the file stays unfinished");
    }
}

/* Gives a copy of a HOLD or SAVE to the thread. The attempt of a HOLD becomes the one that is
 * wanted, even if the HOLD itself is dropped because too many tasks wait: so the thread ends what
 * it still has of earlier attempts. Called in the agent's loop, which never waits here. */
int checkpoint_thread_ask(struct checkpoint_thread *thread, const struct msg *msg)
{
    struct checkpoint_task *task = mem_zalloc(sizeof(*task));
    int rc = task ? msg_copy(msg, &task->msg) : HVD_E_NOMEM;

    if (rc) {
        mem_free(task);
        return rc;
    }
    list_init(&task->link);
    if (msg->type == MSG_HOLD)
        rc = checkpoint_hold_prepare(thread, task);
    if (rc) {
        checkpoint_task_free(task);
        return rc;
    }
    pthread_mutex_lock(&thread->mutex);
    if (msg->type == MSG_HOLD)
        thread->wanted = msg->u.hold.number;
    if (thread->asked_count < LIMIT_CHECKPOINT_TASKS) {
        thread->asked_count++;
        list_append(&thread->asked, &task->link);
        task = NULL;
    }
    thread_wake(thread);
    pthread_mutex_unlock(&thread->mutex);
    if (task) {
        log_warning(
            STATE,
            "%s: dropped, because %d orders of the driver wait for the checkpoint directory "
            "already: this checkpoint fails, and the driver begins another one; check that "
            "the directory of --checkpoint-dir takes writes on this host",
            msg->type == MSG_SAVE ? msg->u.save.name : "the order to keep commits (HOLD)",
            LIMIT_CHECKPOINT_TASKS);
        checkpoint_task_free(task);
    }
    return 0;
}

/* The driver ends this attempt and earlier ones: the thread drops their commits when it is woken.
 */
void checkpoint_thread_release(struct checkpoint_thread *thread, uint64_t number)
{
    pthread_mutex_lock(&thread->mutex);
    if (thread->wanted <= number)
        thread->wanted = 0;
    thread_wake(thread);
    pthread_mutex_unlock(&thread->mutex);
}

/* The worker of this slot has ended: a thread that awaits a commit of that worker waits no longer.
 */
void checkpoint_thread_ended(struct checkpoint_thread *thread, uint32_t slot)
{
    pthread_mutex_lock(&thread->mutex);
    thread->runs[slot] = false;
    thread_wake(thread);
    pthread_mutex_unlock(&thread->mutex);
}
