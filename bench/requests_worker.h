/*
 * requests_worker.h: the forms in which requests_worker reduces many buffers, for bench_requests.
 */
#ifndef BENCH_REQUESTS_WORKER_H
#define BENCH_REQUESTS_WORKER_H

#define REQUESTS 200

enum requests_form {
    REQUESTS_STARTED, /* hvd_start for each, then hvd_wait for each */
    REQUESTS_ALONE,   /* hvd_start and hvd_wait for one of them */
    REQUESTS_RUN,     /* hvd_allreduce for each */
    REQUESTS_PIECES,  /* one call with pieces */
    REQUESTS_FORMS
};

#endif
