/*
 * world_thread.h: threads of the simulated world. A thread runs code of the product that waits (the
 * scribe, the store in etcd, a standby), on a stack of its own. It runs until it waits; then the
 * world goes on, and wakes it by an event of the virtual time. So the code that is run is the
 * product's own: world_thread.c gives it the clock and the threads of os/, and world_gateway.c the
 * HTTP of http/.
 *
 * A client is a machine with a driver or a standby, as its store sees it: the threads of a client
 * stop, go on and die together.
 */
#ifndef TESTS_WORLD_WORLD_THREAD_H
#define TESTS_WORLD_WORLD_THREAD_H

#include "os/thread.h"
#include "tests/world/world_queue.h"

struct world_thread;
struct world_driver;
struct scribe;

struct world_client {
    struct world *world;
    struct world_process process;
    uint32_t number;
    bool dead;        /* each wait ends at once, and each request fails */
    int64_t ahead_us; /* of a dead client: its clock has gone on by so much */
    int64_t cut_us;   /* until then it reaches only the server `alone` of etcd */
    size_t alone;
    struct VEC(struct world_thread *) threads;
    struct scribe *scribe;       /* NULL: it does not drive */
    struct world_driver *driver; /* NULL: it does not drive yet */
    char unsure_key[64]; /* of the journal, whose last write had no answer; for a planted bug */
    void (*woken)(struct world_client *client); /* called after each run of a thread */
};

struct world_client *client_create(struct world *world, void (*woken)(struct world_client *client));
/* Ends the threads: their waits and requests fail. */
void client_kill(struct world_client *client);
/* Runs the function for a dead client, to its end. */
void client_run_dead(struct world_client *client, thread_fn *run, void *arg);
void client_free(struct world_client *client);

/* Starts a thread; it begins with an event of its own. */
void client_run(struct world_client *client, thread_fn *run, void *arg);
/* Wakes all threads of the client, as a signal of a condition does. */
void client_signal(struct world_client *client);

/* ---- within a thread ------------------------------------------------------------------------ */

/* The thread that runs now; NULL: the world itself does. */
struct world_thread *thread_now(void);
struct world_client *thread_client(void);
/* Waits until the thread is woken or this time has come; false: the time has come, or the client is
 * dead. */
bool thread_wait(int64_t until_us);
void thread_wake(struct world_thread *thread);

#endif
