/*
 * viewers.h: browsers that look at the page of a job, and a Prometheus that reads its metrics once
 * a second, played by one thread of the benchmark.
 */
#ifndef BENCH_VIEWERS_H
#define BENCH_VIEWERS_H

#include "base/err.h"

#include <pthread.h>
#include <stdatomic.h>

#define VIEWERS_MAX 32 /* as many as a driver serves */

struct viewers {
    char page[64], metrics[64]; /* ADDRESS:PORT */
    size_t count;
    int fds[VIEWERS_MAX];
    uint64_t bytes[VIEWERS_MAX]; /* what each viewer has got */
    uint64_t scrapes;            /* complete answers with metrics */
    int64_t scrape_at_us;        /* when the next one is asked for */
    atomic_bool stop;
    atomic_bool failed; /* a viewer or a scrape was refused or cut off: `err` says which */
    struct hvd_err err;
    pthread_t thread;
};

/* Opens the connections of so many viewers and begins to read. viewers_end is called after a
 * success. */
int viewers_begin(struct viewers *viewers, const char *page, const char *metrics, size_t count,
                  struct hvd_err *err) MUST_CHECK;

/* Closes all connections. An error: a viewer has got nothing, or was cut off, or a scrape failed.
 */
int viewers_end(struct viewers *viewers, struct hvd_err *err) MUST_CHECK;

#endif
