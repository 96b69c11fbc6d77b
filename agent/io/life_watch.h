/*
 * life_watch.h: the agent's half of the futex in a worker's page (proto/page.h): a thread that
 * waits until the kernel says that its owner has died, which can be long before the process is a
 * zombie: a big one is taken apart first.
 */
#ifndef AGENT_IO_LIFE_WATCH_H
#define AGENT_IO_LIFE_WATCH_H

#include "base/err.h"
#include "proto/page.h"

#include <pthread.h>

struct life_watch {
    pthread_t thread;
    struct page *page;
    int tell;
    bool runs; /* the thread is there, and is to be joined */
    _Atomic bool over;
};

/* A page in memory that its worker cannot shrink under us, and its descriptor to be passed on. */
int life_page_make(uint64_t incarnation, struct page **ret_page, int *ret_fd,
                   struct hvd_err *err) MUST_CHECK;
void life_page_free(struct page *page, int fd); /* NULL and -1 are fine */

/* One is added to the eventfd `tell` when the owner has died; then life_watch_is_over. A page that
 * has had an owner before is as new: a program that another replaced (exec) joins again. */
int life_watch_start(struct life_watch *watch, struct page *page, int tell,
                     struct hvd_err *err) MUST_CHECK;
bool life_watch_is_over(const struct life_watch *watch);

/* Ends the thread, whose worker is dead or has died to it; one that does not run is fine. */
void life_watch_stop(struct life_watch *watch);

#endif
