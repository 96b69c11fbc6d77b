/*
 * life.h: the worker's half of the futex in its page (proto/page.h). One thread of the worker holds
 * the futex: while that thread lives, the worker lives. When its process dies, or becomes another
 * program, the kernel marks the futex, and the agent sees that at once.
 *
 * For this the thread has a robust list of our own, with this one entry, in place of the list that
 * the C library has for the thread. Our entry could not be put into the library's list, as the
 * distance between entry and futex is a private matter of each library. The price: a robust pthread
 * mutex that this thread holds while it dies stays locked for ever. So only a thread of this
 * library holds a page, and that thread uses no such mutexes.
 */
#ifndef WORKER_IO_LIFE_H
#define WORKER_IO_LIFE_H

#include "base/err.h"
#include "proto/page.h"

/* Makes the calling thread hold the page. HVD_E_BUSY: another thread holds it; HVD_E_STATE: this
 * thread holds another page; HVD_E_UNSUPPORTED: the kernel has no robust lists. */
int life_hold(struct page *page) MUST_CHECK;

/* Releases the page. The thread that holds the page calls it before the thread ends normally. On
 * another thread, or in a forked child of that thread, the call does nothing. */
void life_release(struct page *page);

#endif
