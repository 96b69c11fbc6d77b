/*
 * greeting.h: how a worker and its agent meet: hello, welcome, and the page that comes with it.
 */
#ifndef WORKER_IO_GREETING_H
#define WORKER_IO_GREETING_H

#include "proto/page.h"
#include "worker/io/agent_link.h"

/* Until the deadline (by clock_now_us), or until there is something to read or room to send, or
 * until wake_fd can be read (-1: none). */
void greeting_wait(const struct agent_link *link, int wake_fd, int64_t deadline_us);

/* Says hello and waits for the welcome; the calling thread is then the life of the page. The
 * welcome is given: release it. On failure the link is open still, and the page is not held. */
int greeting_exchange(struct agent_link *link, uint64_t incarnation, struct msg *ret_welcome,
                      struct page **ret_page, struct hvd_err *err) MUST_CHECK;

/* By the same thread, at the end. */
void greeting_undo(struct page *page);

#endif
