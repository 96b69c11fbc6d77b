/*
 * greeting.h: the greeting between a worker and its agent: hello, welcome, and the page: the page
 * of memory that both share (proto/page.h).
 */
#ifndef WORKER_IO_GREETING_H
#define WORKER_IO_GREETING_H

#include "proto/page.h"
#include "worker/io/agent_link.h"

/* Waits until one of these happens: the socket is readable, or writable if messages are unsent;
 * wake_fd is readable (-1: there is no wake_fd); the deadline (a time of clock_now_us) has
 * passed. */
void greeting_wait(const struct agent_link *link, int wake_fd, int64_t deadline_us);

/* Sends HELLO_WORKER and waits for WELCOME_WORKER. On success the calling thread holds the futex of
 * the page (life.h), and the caller releases *ret_welcome. On failure the link is still open, and
 * the futex is not held. */
int greeting_exchange(struct agent_link *link, uint64_t incarnation, struct msg *ret_welcome,
                      struct page **ret_page, struct hvd_err *err) MUST_CHECK;

/* Unmaps the page, when the thread that held it has released it (life_release). NULL is allowed. */
void greeting_unmap(struct page *page);

#endif
