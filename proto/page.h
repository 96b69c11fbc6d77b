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
 * `reports` are the values that the program has reported (report.h), `recorder` is what the worker
 * has done last (recorder.h). They stay when the worker dies: the page is the agent's memory.
 */
#ifndef PROTO_PAGE_H
#define PROTO_PAGE_H

#include "proto/recorder.h"
#include "proto/report.h"

#define PAGE_MAGIC   UINT32_C(0x65647668)
#define PAGE_VERSION 1
#define PAGE_BYTES   8192
/* The size of the memory that agents of older releases make: it has no recorder. */
#define PAGE_BYTES_MIN 4096

struct page {
    uint32_t magic;
    uint32_t version;
    uint64_t incarnation;
    _Atomic uint32_t life; /* the futex; 0: no worker has taken it yet */
    uint32_t bytes;        /* PAGE_BYTES; 0: an agent of an older release has made PAGE_BYTES_MIN */
    /* A worker of an older release leaves the memory from here on as it is: 0, which means no
     * values and no activities. */
    struct report_slot reports[LIMIT_REPORTS];
    struct recorder recorder;
};

_Static_assert(sizeof(struct page) <= PAGE_BYTES, "the page has room for its fields");
_Static_assert(offsetof(struct page, recorder) <= PAGE_BYTES_MIN, "older agents have the reports");

#endif
