/*
 * life.h: the worker's half of the futex in its page (proto/page.h): the thread that holds it
 * lives, and with it the worker. When its process dies, or becomes another program, the kernel says
 * so to the agent.
 *
 * This is a robust list of our own, with this one entry, in place of the one that the C library has
 * for the thread. Our entry could not be put into that one: where its futexes lie is between the
 * library and the kernel, and differs among libraries. The price: a robust pthread mutex that this
 * thread holds while it dies stays locked for ever. So only a thread of our own holds a life, and
 * that thread has no such mutexes.
 */
#ifndef WORKER_IO_LIFE_H
#define WORKER_IO_LIFE_H

#include "base/err.h"
#include "proto/page.h"

/* The calling thread is the life from now on. HVD_E_BUSY when another thread is, HVD_E_STATE when
 * this one is that of another page, HVD_E_UNSUPPORTED when the kernel has no robust lists. */
int life_hold(struct page *page) MUST_CHECK;

/* By the thread that holds it, before it ends in order. From any other, and from a process that the
 * holder has forked, it does nothing. */
void life_release(struct page *page);

#endif
