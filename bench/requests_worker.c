/*
 * requests_worker: the worker of bench_requests. A step reduces REQUESTS buffers, in each of
 * several forms; rank 0 appends to a file the time of a form
 * that one step in four does not exceed: other programs take part of the machine now and then.
 *
 *     requests_worker FILE
 *
 * A line of FILE: the bytes of a buffer, the form, nanoseconds.
 */
#include "bench/requests_worker.h"
#include "base/base.h"

#include <hvd/hvd.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LARGEST 65536 /* bytes of a buffer */
#define WARM    40    /* steps: every algorithm has been tried before anything is timed */
#define TIMED   60
#define ALONE   8 /* so many times as many steps of the form with one request */

static const size_t sizes[] = { 64, 4096, LARGEST };
static uint8_t memory[REQUESTS][LARGEST];
static hvd_request *requests[REQUESTS];
static hvd_piece pieces[REQUESTS];
static int64_t times[TIMED * ALONE];
static const char *file;

static int64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static int by_value(const void *left, const void *right)
{
    int64_t a = *(const int64_t *)left;
    int64_t b = *(const int64_t *)right;

    return a < b ? -1 : a > b;
}

static int start_and_wait(size_t count, size_t bytes)
{
    int rc = 0;

    for (size_t i = 0; i < count && !rc; i++) {
        const hvd_call call = { .kind = HVD_ALLREDUCE,
                                .in = memory[i],
                                .out = memory[i],
                                .count = bytes / sizeof(float),
                                .type = HVD_FLOAT32,
                                .op = HVD_MAX };

        rc = hvd_start(&call, &requests[i]);
    }
    for (size_t i = 0; i < count && !rc; i++)
        rc = hvd_wait(requests[i]);
    return rc;
}

static int one_step(enum requests_form form, size_t bytes)
{
    hvd_call call = { .kind = HVD_ALLREDUCE, .type = HVD_FLOAT32, .op = HVD_MAX };
    int rc = 0;

    switch (form) {
    case REQUESTS_STARTED: return start_and_wait(REQUESTS, bytes);
    case REQUESTS_ALONE: return start_and_wait(1, bytes);
    case REQUESTS_RUN:
        for (size_t i = 0; i < REQUESTS && !rc; i++)
            rc = hvd_allreduce(memory[i], memory[i], bytes / sizeof(float), HVD_FLOAT32, HVD_MAX);
        return rc;
    case REQUESTS_PIECES:
        for (size_t i = 0; i < REQUESTS; i++)
            pieces[i] = (hvd_piece){ memory[i], memory[i], bytes / sizeof(float) };
        call.pieces = pieces;
        call.piece_count = REQUESTS;
        return hvd_run(&call);
    case REQUESTS_FORMS: break;
    }
    return HVD_E_INTERNAL;
}

static int time_form(enum requests_form form, size_t bytes)
{
    size_t timed = form == REQUESTS_ALONE ? TIMED * ALONE : TIMED;
    FILE *out;
    int rc = 0;

    for (int i = 0; i < WARM && !rc; i++)
        rc = one_step(form, bytes);
    for (size_t i = 0; i < timed && !rc; i++) {
        rc = hvd_barrier();
        times[i] = now_ns();
        if (!rc)
            rc = one_step(form, bytes);
        times[i] = now_ns() - times[i];
    }
    if (rc || hvd_rank())
        return rc;
    qsort(times, timed, sizeof(times[0]), by_value);
    out = fopen(file, "ae");
    if (!out)
        return HVD_E_IO;
    fprintf(out, "%zu %d %lld\n", bytes, (int)form, (long long)times[timed / 4]);
    return fclose(out) ? HVD_E_IO : 0;
}

static int train(hvd_state *state, void *arg)
{
    int rc = 0;

    (void)state;
    (void)arg;
    for (size_t i = 0; i < ARRAY_SIZE(sizes) && !rc; i++)
        for (int form = 0; form < REQUESTS_FORMS && !rc; form++)
            rc = time_form((enum requests_form)form, sizes[i]);
    return rc;
}

int main(int argc, char **argv)
{
    hvd_state *state;
    int rc = hvd_init();

    if (argc != 2) {
        fprintf(stderr, "requests_worker: FILE\n");
        return 2;
    }
    file = argv[1];
    memset(memory, 1, sizeof(memory));
    state = rc ? NULL : hvd_state_create();
    if (!rc)
        rc = state ? hvd_elastic_run(state, train, NULL) : HVD_E_NOMEM;
    hvd_state_free(state);
    if (rc < 0)
        fprintf(stderr, "requests_worker: %s: %s\n", hvd_strerror(rc), hvd_last_error());
    return rc < 0;
}
