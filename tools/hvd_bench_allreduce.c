/*
 * hvd_bench_allreduce.c: `hvd-bench allreduce`: how long an allreduce of each size takes. It runs
 * in hvd_elastic_run and commits after each size; after a change of the membership the size that
 * was under way is measured again, and each row says in which round it was measured.
 */
#include "base/limits.h"
#include "base/mem.h"
#include "base/time.h"
#include "tools/hvd_bench.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The first allreduces of a size try the algorithms, at most 16 times: these calls are not
 * timed. */
#define WARMUP_CALLS 20
#define LEAST_CALLS  10

/* All fields have 8 bytes, so the struct has no padding that could differ between ranks. */
struct size_row {
    uint64_t bytes, calls, round, workers;
    double median, p99; /* seconds of one call, on the slowest worker of that call */
};

struct allreduce_bench {
    struct bench *bench;
    struct size_row *rows; /* the sizes that are measured; an entry of the state */
    size_t count;          /* number of sizes */
    hvd_dtype type;
    size_t element;   /* bytes of one element */
    void *in, *out;   /* the buffers of the allreduces */
    double *times;    /* the seconds of each call of the present size */
    size_t times_max; /* the most calls of one size */
};

const char *const bench_type_names[] = { "float32", "float64", "float16", "bfloat16", NULL };

/* The types, in the order of bench_type_names. */
static const struct {
    hvd_dtype type;
    size_t bytes;
    uint64_t one; /* the bits of 1.0 */
} element_types[] = {
    {HVD_FLOAT32,   4, 0x3f800000                  },
    { HVD_FLOAT64,  8, UINT64_C(0x3ff0000000000000)},
    { HVD_FLOAT16,  2, 0x3c00                      },
    { HVD_BFLOAT16, 2, 0x3f80                      },
};

/* Returns the element as a number. A value of 16 bits must be a normal number, as sums of ones
 * are. */
static double element_read(hvd_dtype type, const void *at)
{
    uint16_t half;
    uint32_t bits;
    double wide;
    float narrow;

    if (type == HVD_FLOAT64) {
        memcpy(&wide, at, sizeof(wide));
        return wide;
    }
    if (type == HVD_FLOAT32) {
        memcpy(&narrow, at, sizeof(narrow));
        return (double)narrow;
    }
    memcpy(&half, at, sizeof(half));
    if (type == HVD_FLOAT16)
        return ldexp((double)(1024 + (half & 1023)), (half >> 10) - 25);
    bits = (uint32_t)half << 16;
    memcpy(&narrow, &bits, sizeof(narrow));
    return (double)narrow;
}

/* Waits until all ranks have come to a barrier, then times one allreduce, and counts it as a step
 * of the benchmark (rounds_step). Returns the code of the call that failed, or 0. */
static int allreduce_time(struct allreduce_bench *run, size_t count, double *ret_seconds)
{
    int code = hvd_barrier();
    double began = bench_now();

    if (!code)
        code = hvd_allreduce(run->in, run->out, count, run->type, HVD_SUM);
    if (code)
        return code;
    *ret_seconds = bench_now() - began;
    rounds_step(run->bench);
    return 0;
}

/* For qsort: the shortest time first. */
static int allreduce_by_time(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;

    return (a > b) - (a < b);
}

/* Measures the allreduce of one size, and checks one result. Returns the code of the call that
 * failed, or 0 and the row. */
static int allreduce_measure(struct allreduce_bench *run, size_t bytes, struct size_row *ret_row)
{
    const struct bench_options *options = run->bench->options;
    size_t count = bytes / run->element;
    const size_t places[] = { 0, count / 2, count - 1 };
    size_t calls = options->repeats;
    double least = 0, size = hvd_size();
    int code = 0;

    for (size_t i = 0; !code && i < WARMUP_CALLS; i++) {
        double seconds = 0;

        code = allreduce_time(run, count, &seconds);
        if (i == 0 || seconds < least)
            least = seconds;
    }
    /* Each rank has given ones, so each element must be the number of workers, within the precision
     * of the type. */
    for (size_t i = 0; !code && i < ARRAY_SIZE(places); i++) {
        double sum = element_read(run->type, (char *)run->out + places[i] * run->element);

        if (fabs(sum - size) > size / 128)
            code = err_set(run->bench->err, HVD_E_CORRUPT,
                           "an allreduce of %zu bytes: element %zu is %g on rank %d, not %g; "
                           "please report it with the output of hvd-elastic --check-build",
                           count * run->element, places[i], sum, hvd_rank(), size);
    }
    /* All ranks must make the same number of calls: the time of the slowest rank decides. */
    if (!code)
        code = hvd_allreduce(&least, &least, 1, HVD_FLOAT64, HVD_MAX);
    if (!code && !calls) {
        double fit = (double)options->time_us / 1e6 / fmax(least, 1e-9);

        calls = fit < LEAST_CALLS              ? LEAST_CALLS
                : fit > (double)run->times_max ? run->times_max
                                               : (size_t)fit;
    }
    for (size_t i = 0; !code && i < calls; i++)
        code = allreduce_time(run, count, &run->times[i]);
    if (!code) /* the time of a call is the time of its slowest worker */
        code = hvd_allreduce(run->times, run->times, calls, HVD_FLOAT64, HVD_MAX);
    if (code)
        return code;
    qsort(run->times, calls, sizeof(run->times[0]), allreduce_by_time);
    *ret_row = (struct size_row){ .bytes = count * run->element,
                                  .calls = calls,
                                  .round = hvd_round(),
                                  .workers = (uint64_t)hvd_size(),
                                  .median = run->times[calls / 2],
                                  .p99 = run->times[(calls * 99 + 99) / 100 - 1] };
    return 0;
}

/* Returns the algorithm bandwidth: bytes of the buffer per second. */
static double algorithm_bandwidth(const struct size_row *row)
{
    return row->median > 0 ? (double)row->bytes / row->median : 0;
}

/* Returns the bus bandwidth: the bytes that each worker must at least send, 2 (n - 1) / n of the
 * buffer, per second. It does not depend on the number of workers n, so it can be compared with the
 * network. */
static double bus_bandwidth(const struct size_row *row)
{
    double workers = (double)row->workers;

    return algorithm_bandwidth(row) * 2 * (workers - 1) / workers;
}

/* Prints all sizes, and the costs of the changes, as one JSON object. */
static void allreduce_show_json(const struct allreduce_bench *run)
{
    printf("{\"benchmark\":\"allreduce\",\"type\":\"%s\",\"hvd_alloc\":%s,\"sizes\":[",
           bench_type_names[run->bench->options->type],
           run->bench->options->alloc ? "true" : "false");
    for (size_t i = 0; i < run->count; i++) {
        const struct size_row *row = &run->rows[i];

        printf("%s{\"bytes\":%" PRIu64 ",\"calls\":%" PRIu64
               ",\"median_us\":%.3f,\"p99_us\":%.3f,\"algorithm_bytes_per_s\":%.0f"
               ",\"bus_bytes_per_s\":%.0f,\"round\":%" PRIu64 ",\"workers\":%" PRIu64 "}",
               i ? "," : "", row->bytes, row->calls, row->median * 1e6, row->p99 * 1e6,
               algorithm_bandwidth(row), bus_bandwidth(row), row->round, row->workers);
    }
    printf("]");
    rounds_show_json(run->bench);
    printf("}\n");
}

/* The training function of hvd_elastic_run: measures the sizes that are left, and commits after
 * each of them. */
static int allreduce_train(hvd_state *state, void *arg)
{
    struct allreduce_bench *run = arg;
    struct bench *bench = run->bench;
    struct bench_progress *progress = bench->progress;
    const struct bench_options *options = bench->options;
    size_t bytes = options->min_bytes;
    int code;

    rounds_enter(bench);
    code = hvd_barrier();
    if (!code)
        code = rounds_begin(bench);
    for (size_t i = 0; i < progress->done; i++)
        bytes *= options->factor;
    while (!code && progress->done < run->count) {
        struct size_row row;

        code = allreduce_measure(run, bytes, &row);
        if (code)
            break;
        if (rounds_talks(bench)) {
            if (!bench->head_printed)
                printf("  %11s  %6s  %11s  %11s  %10s  %10s  %5s  %7s\n", "bytes", "calls",
                       "median us", "p99 us", "alg GB/s", "bus GB/s", "round", "workers");
            bench->head_printed = true;
            printf("  %11" PRIu64 "  %6" PRIu64 "  %11.1f  %11.1f  %10.3f  %10.3f  %5" PRIu64
                   "  %7" PRIu64 "\n",
                   row.bytes, row.calls, row.median * 1e6, row.p99 * 1e6,
                   algorithm_bandwidth(&row) / 1e9, bus_bandwidth(&row) / 1e9, row.round,
                   row.workers);
        }
        /* No rank commits a row that is not printed yet: if rank 0 dies before it prints the row,
         * the size is measured again. */
        code = hvd_barrier();
        if (code)
            break;
        run->rows[progress->done++] = row;
        bytes *= options->factor;
        code = hvd_state_commit(state);
    }
    /* The report comes before the barrier: if rank 0 dies here, the next rank 0 reports. */
    if (!code && rounds_talks(bench))
        rounds_show(bench);
    else if (!code && hvd_rank() == 0)
        allreduce_show_json(run);
    if (!code)
        code = hvd_barrier();
    rounds_leave(bench, code);
    return code;
}

/* Runs the benchmark: makes the buffers and the table of sizes, which is an entry of the state, and
 * trains with allreduce_train. Returns the result of hvd_elastic_run. */
int bench_allreduce(struct bench *bench)
{
    const struct bench_options *options = bench->options;
    struct allreduce_bench run = { .bench = bench };
    size_t largest = 0;
    int code;

    run.type = element_types[options->type].type;
    run.element = element_types[options->type].bytes;
    for (size_t bytes = options->min_bytes; bytes <= options->max_bytes; bytes *= options->factor) {
        largest = bytes / run.element * run.element;
        run.count++;
    }
    run.times_max = options->repeats ? options->repeats : LIMIT_BENCH_REPEATS;
    run.rows = mem_zalloc_array(run.count, sizeof(run.rows[0]));
    run.times = mem_zalloc_array(run.times_max, sizeof(run.times[0]));
    run.in = options->alloc ? hvd_alloc(largest) : mem_alloc(largest);
    run.out = options->alloc ? hvd_alloc(largest) : mem_alloc(largest);
    if (run.rows && run.times && run.in && run.out) {
        for (size_t i = 0; i < largest; i += run.element)
            memcpy((char *)run.in + i, &element_types[options->type].one, run.element);
        memset(run.out, 0, largest);
        code = hvd_state_add(bench->state, "sizes", run.rows, run.count * sizeof(run.rows[0]));
        if (!code)
            code = hvd_elastic_run(bench->state, allreduce_train, &run);
    } else {
        code = err_set(bench->err, HVD_E_NOMEM,
                       "--max-bytes %" PRIu64 ": no memory for two buffers of that size; give less",
                       options->max_bytes);
    }
    rounds_close(bench, code);
    if (options->alloc) {
        hvd_free(run.in);
        hvd_free(run.out);
    } else {
        mem_free(run.in);
        mem_free(run.out);
    }
    mem_free(run.rows);
    mem_free(run.times);
    return code;
}
