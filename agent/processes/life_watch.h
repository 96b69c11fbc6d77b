/*
 * life_watch.h: the agent's half of the futex in a worker's page (proto/page.h): a thread that
 * waits until the kernel says that the owner of the futex has died. The kernel says so before it
 * frees the memory of the process, which can be long before the process is a zombie.
 */
#ifndef AGENT_PROCESSES_LIFE_WATCH_H
#define AGENT_PROCESSES_LIFE_WATCH_H

#include "base/err.h"
#include "proto/page.h"

#include <pthread.h>

struct life_watch {
    pthread_t thread;
    struct page *page;
    int tell;          /* eventfd of the agent's loop */
    bool runs;         /* the thread was started; life_watch_stop must join it */
    _Atomic bool over; /* the thread has seen that the owner of the futex is dead */
};

/* Makes a page in memory that the worker cannot shrink while the agent uses it, and a descriptor
 * that can be passed to the worker. */
int life_page_make(uint64_t incarnation, struct page **ret_page, int *ret_fd,
                   struct hvd_err *err) MUST_CHECK;
void life_page_free(struct page *page, int fd); /* page may be NULL, fd may be -1 */

/* Starts the thread. When the owner has died, one is added to the eventfd `tell`, and
 * life_watch_is_over becomes true. A page can be watched again after its owner has died: a program
 * that replaced another program (exec) joins again. */
int life_watch_start(struct life_watch *watch, struct page *page, int tell,
                     struct hvd_err *err) MUST_CHECK;
bool life_watch_is_over(const struct life_watch *watch);

/* Ends the thread, whether the worker is dead or not. Does nothing when no thread runs. */
void life_watch_stop(struct life_watch *watch);

#endif
