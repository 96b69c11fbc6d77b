/*
 * page.h: the page of memory that a worker shares with its agent. The agent makes it, one for each
 * incarnation, and passes it on beside WELCOME_WORKER.
 *
 * `life` is a robust futex in the kernel's sense (set_robust_list(2)), not a pthread mutex, so that
 * worker and agent need not have the same C library. The worker's session thread holds the futex as
 * long as the thread lives: `life` is then its thread id. When the worker's process dies, the
 * kernel sets FUTEX_OWNER_DIED in `life`, before it begins to free the process's memory, and long
 * before it closes a socket.
 *
 * `reports` are the values that the program has reported (report.h).
 */
#ifndef PROTO_PAGE_H
#define PROTO_PAGE_H

#include "proto/report.h"

#define PAGE_MAGIC   UINT32_C(0x65647668)
#define PAGE_VERSION 1
#define PAGE_BYTES   4096

struct page {
    uint32_t magic;
    uint32_t version;
    uint64_t incarnation;
    _Atomic uint32_t life; /* the futex; 0: no worker has taken it yet */
    /* Newest values that the program has reported. A worker of an older release does not write
     * here, so all is 0: no values. */
    struct report_slot reports[LIMIT_REPORTS];
};

_Static_assert(sizeof(struct page) <= PAGE_BYTES, "what a worker and its agent share is one page");

#endif
