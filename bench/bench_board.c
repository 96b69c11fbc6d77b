/*
 * bench_board: what it costs the processes of one host to go in step, and to hand 4 KiB to each
 * other by a step, beside a copy of the same 4 KiB.
 */
#include "bench/bench.h"
#include "collectives/shm/board.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MEMBERS_MAX  8
#define SAMPLES      500
#define STEPS        100 /* steps that are timed together, as one sample */
#define HANDED_BYTES 4096

struct shared {
    double step_ns[SAMPLES], handed_ns[SAMPLES]; /* of place 0 */
};

struct me {
    struct board *board;
    uint8_t own[HANDED_BYTES], others[MEMBERS_MAX][HANDED_BYTES];
    uint64_t turn;
};

static void must(int rc, const struct hvd_err *err)
{
    if (rc) {
        (void)fprintf(stderr, "bench_board: %s: %s\n", err_name(rc), err->text);
        exit(1);
    }
}

static double now_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static void step(struct me *me)
{
    const struct hvd_err err = { .text = "" };

    must(board_step(me->board), &err);
}

static void hand(struct me *me)
{
    memcpy(board_stage(me->board, board_local(me->board), me->turn), me->own, HANDED_BYTES);
    step(me);
    for (uint32_t i = 0; i < board_count(me->board); i++) {
        if (i != board_local(me->board))
            memcpy(me->others[i], board_stage(me->board, i, me->turn), HANDED_BYTES);
    }
    me->turn++;
    bench_keep(me->others);
}

static void measure(struct me *me, void (*work)(struct me *me), double *ret_ns)
{
    for (int i = 0; i < SAMPLES; i++) {
        double begun_ns = now_ns();

        for (int k = 0; k < STEPS; k++)
            work(me);
        ret_ns[i] = (now_ns() - begun_ns) / STEPS;
    }
}

static void live(struct segment *segment, struct shared *ret_shared)
{
    static struct me me;

    me.board = segment_board(segment, 0);
    measure(&me, step, ret_shared->step_ns);
    measure(&me, hand, ret_shared->handed_ns);
}

static int by_size(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;

    return (a > b) - (a < b);
}

static void show(const char *name, double *samples_ns)
{
    qsort(samples_ns, SAMPLES, sizeof(samples_ns[0]), by_size);
    printf("  %-26s median %8.3f us, 10%% %8.3f, 90%% %8.3f\n", name,
           samples_ns[SAMPLES / 2] / 1000, samples_ns[SAMPLES / 10] / 1000,
           samples_ns[SAMPLES * 9 / 10] / 1000);
}

static void processes(uint32_t count)
{
    static const uint32_t places[MEMBERS_MAX] = { 0, 1, 2, 3, 4, 5, 6, 7 };
    const struct segment_board board = { places, count };
    struct segment_spec spec = { .round = 1, .count = count, .boards = &board, .board_count = 1 };
    uint8_t locator[SEGMENT_LOCATOR_BYTES];
    struct hvd_err err = { .text = "" };
    struct segment *segment;
    struct shared *shared = mmap(NULL, sizeof(*shared) * count, PROT_READ | PROT_WRITE,
                                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (shared == MAP_FAILED)
        exit(1);
    must(segment_create(&spec, &segment, &err), &err);
    segment_locate(segment, locator);
    printf("%u processes\n", count);
    (void)fflush(stdout);
    for (spec.place = 0; spec.place < count; spec.place++) {
        if (!fork()) {
            (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
            must(segment_open(&spec, locator, &segment, &err), &err);
            live(segment, &shared[spec.place]);
            exit(0);
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        int status;

        if (wait(&status) < 0 || status)
            exit(1); /* the others end with us */
    }
    show("step", shared->step_ns);
    show("write, step, read 4 KiB", shared->handed_ns);
    segment_free(segment);
    munmap(shared, sizeof(*shared) * count);
}

static uint8_t copied[2][HANDED_BYTES];

static void copy(void *arg)
{
    bench_keep(arg);
    memcpy(copied[0], copied[1], HANDED_BYTES);
}

int main(void)
{
    struct bench_result result = bench_time(copy, copied, 0.2);

    bench_line("memcpy 4 KiB", result, "itself", result);
    for (uint32_t count = 2; count <= MEMBERS_MAX; count *= 2)
        processes(count);
    return 0;
}
