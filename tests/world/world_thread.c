/*
 * world_thread.c: threads under the virtual clock, each on a stack of its own, and the functions of
 * os/clock.h, os/thread.h that the product's code calls on them. The world calls client_run and
 * client_signal. Invariant: one thread at a time runs, and it runs until it waits, so the same seed
 * gives the same world.
 */
#include "tests/world/world_thread.h"

#include "base/mem.h"
#include "base/panic.h"
#include "os/clock.h"
#include "tests/world/world_state.h"

#include <sys/mman.h>
#include <ucontext.h>

#define STACK_BYTES ((size_t)1 << 20)

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#endif

struct world_thread {
    struct world_client *client;
    thread_fn *run;
    void *arg;
    ucontext_t own, world;
    void *stack;
    bool begun, over;
    bool woken;      /* by thread_wake, not by its time */
    uint64_t waking; /* number of the event for which it waits; older ones are dropped */
    const void *world_stack;
    size_t world_stack_bytes;
};

static struct world_thread *running;

struct world_thread *thread_now(void)
{
    return running;
}

struct world_client *thread_client(void)
{
    return running ? running->client : NULL;
}

/* ---- changing stacks ------------------------------------------------------------------------ */

/* Leaves the stack of the thread for that of the world. */
static void thread_leave(struct world_thread *thread)
{
#ifdef __SANITIZE_ADDRESS__
    void *fake = NULL;

    __sanitizer_start_switch_fiber(thread->over ? NULL : &fake, thread->world_stack,
                                   thread->world_stack_bytes);
#endif
    if (swapcontext(&thread->own, &thread->world))
        PANIC("a thread cannot wait");
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_finish_switch_fiber(fake, &thread->world_stack, &thread->world_stack_bytes);
#endif
}

static void thread_body(void)
{
    struct world_thread *thread = running;

#ifdef __SANITIZE_ADDRESS__
    __sanitizer_finish_switch_fiber(NULL, &thread->world_stack, &thread->world_stack_bytes);
#endif
    (void)thread->run(thread->arg);
    thread->over = true;
    for (size_t i = 0; i < thread->client->threads.count; i++)
        if (thread->client->threads.items[i] != thread) /* one may wait for the end of this one */
            thread_wake(thread->client->threads.items[i]);
    thread_leave(thread);
}

/* Runs the thread until it waits or ends. */
static void thread_enter(struct world_thread *thread)
{
#ifdef __SANITIZE_ADDRESS__
    void *fake = NULL;
#endif

    ASSERT(!running && !thread->over);
    running = thread;
    if (!thread->begun) {
        thread->begun = true;
        if (getcontext(&thread->own))
            PANIC("a thread cannot begin");
        thread->own.uc_stack.ss_sp = thread->stack;
        thread->own.uc_stack.ss_size = STACK_BYTES;
        thread->own.uc_link = NULL;
        makecontext(&thread->own, thread_body, 0);
    }
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_start_switch_fiber(&fake, thread->stack, STACK_BYTES);
#endif
    if (swapcontext(&thread->world, &thread->own))
        PANIC("a thread cannot go on");
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_finish_switch_fiber(fake, NULL, NULL);
#endif
    running = NULL;
}

/* ---- waking --------------------------------------------------------------------------------- */

static void on_wake(struct world *world, struct world_event *event)
{
    struct world_thread *thread = event->who;
    struct world_client *client = thread->client;

    (void)world;
    if (thread->over || client->dead || event->number != thread->waking ||
        !process_takes(&client->process, event))
        return;
    thread_enter(thread);
    client->woken(client);
}

/* Queues the event that wakes the thread; an earlier one does not wake it any more. */
static void thread_wake_at(struct world_thread *thread, int64_t at_us)
{
    struct world *world = thread->client->world;

    world_after(world, at_us > world->now_us ? at_us - world->now_us : 0, on_wake, thread, NULL,
                ++thread->waking);
}

void thread_wake(struct world_thread *thread)
{
    if (thread->over || thread->woken || thread->client->dead)
        return;
    thread->woken = true;
    thread_wake_at(thread, 0);
}

void client_signal(struct world_client *client)
{
    for (size_t i = 0; i < client->threads.count; i++)
        thread_wake(client->threads.items[i]);
}

bool thread_wait(int64_t until_us)
{
    struct world_thread *thread = running;
    struct world_client *client = thread->client;

    if (!client->dead && !thread->woken) {
        if (until_us != TIME_NEVER)
            thread_wake_at(thread, until_us);
        thread_leave(thread);
    }
    if (client->dead && until_us > client->world->now_us + client->ahead_us)
        client->ahead_us = until_us - client->world->now_us;
    if (!thread->woken || client->dead)
        return false;
    thread->woken = false;
    return true;
}

/* ---- clients -------------------------------------------------------------------------------- */

struct world_client *client_create(struct world *world, void (*woken)(struct world_client *client))
{
    struct world_client *client = world_alloc(sizeof(*client));

    client->world = world;
    client->woken = woken;
    process_init(&client->process);
    return client;
}

static struct world_thread *client_add(struct world_client *client, thread_fn *run, void *arg)
{
    struct world_thread *thread = world_alloc(sizeof(*thread));

    thread->client = client;
    thread->run = run;
    thread->arg = arg;
    thread->stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (thread->stack == MAP_FAILED)
        PANIC("a thread has no stack");
    *WORLD_PUSH(&client->threads) = thread;
    return thread;
}

void client_run(struct world_client *client, thread_fn *run, void *arg)
{
    thread_wake_at(client_add(client, run, arg), client->world->now_us);
}

/* A dead client does not wait: the thread ends in one go. */
static void thread_bury(struct world_thread *thread)
{
    while (!thread->over)
        thread_enter(thread);
    munmap(thread->stack, STACK_BYTES);
    thread->stack = NULL;
}

void client_run_dead(struct world_client *client, thread_fn *run, void *arg)
{
    ASSERT(client->dead);
    thread_bury(client_add(client, run, arg));
}

void client_kill(struct world_client *client)
{
    ASSERT(!running);
    if (client->dead)
        return;
    client->dead = true;
    process_end(&client->process);
    for (size_t i = 0; i < client->threads.count; i++) {
        struct world_thread *thread = client->threads.items[i];

        thread->over = thread->over || !thread->begun; /* then it has nothing to free */
        thread_bury(thread);
    }
}

void client_free(struct world_client *client)
{
    client_kill(client);
    for (size_t i = 0; i < client->threads.count; i++)
        mem_free(client->threads.items[i]);
    VEC_RELEASE(&client->threads);
    mem_free(client);
}

/* ---- os/clock.h, os/thread.h ----------------------------------------------------------------- */

int64_t clock_now_us(void)
{
    return running->client->world->now_us + running->client->ahead_us;
}

int64_t clock_wall_us(void)
{
    return world_wall(running->client->world);
}

/* The number of the thread stands for it: the caller joins it by that number. */
int thread_start(pthread_t *ret_thread, size_t stack_bytes, thread_fn *run, void *arg)
{
    struct world_client *client = thread_client();

    (void)stack_bytes;
    *ret_thread = (pthread_t)client->threads.count;
    client_run(client, run, arg);
    return 0;
}

void thread_join(pthread_t thread)
{
    if (!running) /* the world frees what a dead client has left: client_kill has ended the thread
                   */
        return;
    while (!running->client->threads.items[thread]->over && !running->client->dead)
        (void)thread_wait(TIME_NEVER);
}

void thread_pause(int64_t us)
{
    int64_t until_us = clock_now_us() + us;

    while (clock_now_us() < until_us)
        (void)thread_wait(until_us);
}

int thread_cond_init(pthread_cond_t *cond)
{
    return pthread_cond_init(cond, NULL) ? -1 : 0;
}

/* true: the deadline has passed. */
bool thread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex, int64_t deadline_us)
{
    bool woken;

    (void)cond;
    pthread_mutex_unlock(mutex);
    woken = thread_wait(deadline_us);
    pthread_mutex_lock(mutex);
    return !woken;
}
