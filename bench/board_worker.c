/*
 * board_worker: the worker of bench_recovery, bench_join, bench_check, bench_checkpoint and
 * bench_watch. It trains nothing: a step is an allreduce, a moment of rest or work, and a commit or
 * a check. The worker writes the times of its rounds and steps on the board (board.h).
 *
 *     board_worker BOARD STATE-MIB STEP-US BOOT-MS MODE
 *
 * MODE: commit (in each step), check (one commit in the beginning, as a large state would have),
 * time (what a check and a report cost), device (a commit after each BOARD_BLOCK_STEPS steps; the
 * processor rests in a step, as if a device computed), or compute (the same; the processor computes
 * in a step). device-report and compute-report are the same with REPORTS reported values in each
 * step.
 */
#include "base/err.h"
#include "base/mem.h"
#include "base/text.h"
#include "base/time.h"
#include "bench/board.h"
#include "os/clock.h"

#include <hvd/hvd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define NUMBERS 256 /* in an allreduce: a small model's gradient */
/* A unit of work takes about a microsecond: so many numbers of the state, so many times. */
#define UNIT_NUMBERS 1024
#define UNIT_PASSES  1

#define REPORTS      2

#define TIMED        20000000
#define TIMED_CALLS  1000000
#define TIMED_LOADS  200000000

struct worker {
    struct board *board;
    struct board_slot *seat;
    struct board_round *round;
    uint64_t mib, step_us, boot_ms;
    bool commits, times, blocks, computes, reports;
    int64_t block_us; /* when the block of steps began */
    size_t next;      /* the place in the state where the next step computes */
    int64_t steps;
    float numbers[NUMBERS];
    char *state;
};

static void rest(uint64_t us)
{
    struct timespec left = { (time_t)(us / TIME_S), (long)(us % TIME_S) * 1000 };

    if (us)
        nanosleep(&left, NULL);
}

/* ---- the board --------------------------------------------------------------------------------
 */

static int on_reset(hvd_state *state, void *arg)
{
    struct worker *worker = arg;
    uint64_t number = hvd_round();
    struct board_round *round = board_round(worker->seat, number);

    (void)state;
    atomic_store(&round->number, 0);
    round->train_us = round->step_us = round->last_us = round->pause_us = round->told_us = 0;
    round->size = (uint32_t)hvd_size();
    round->reset_us = clock_now_us();
    atomic_store(&round->number, number);
    worker->round = round;
    return 0;
}

static void note_step(struct worker *worker)
{
    struct board_round *round = worker->round;
    int64_t now_us = clock_now_us();

    if (!round->step_us) {
        round->last_us = now_us;
        round->step_us = now_us;
        board_raise(&worker->board->round, round->number);
        board_ring(worker->board);
        return;
    }
    if (now_us - round->last_us > round->pause_us)
        round->pause_us = now_us - round->last_us;
    round->last_us = now_us;
}

/* ---- training ---------------------------------------------------------------------------------
 */

/* All ranks check as often. The reference is what a check cannot do without. Rank 0 alone has
 * values to report. */
static int time_calls(hvd_state *state, struct worker *worker)
{
    static _Atomic uint32_t word;
    uint32_t sum = 0;
    int64_t began_us = clock_now_us();
    int64_t checked_us, loaded_us;

    for (int i = 0; i < TIMED; i++) {
        int code = hvd_state_check(state);

        if (code)
            return code;
    }
    checked_us = clock_now_us();
    for (int i = 0; i < TIMED_LOADS; i++)
        sum += atomic_load_explicit(&word, memory_order_acquire);
    worker->seat->check_ps = (checked_us - began_us) * 1000000 / TIMED;
    loaded_us = clock_now_us();
    worker->seat->load_ps = (loaded_us - checked_us) * 1000000 / TIMED_LOADS + (sum != 0);
    for (int i = 0; i < TIMED_CALLS && hvd_rank() == 0; i++) {
        int code = hvd_report("loss", i);

        if (code)
            return code;
    }
    if (hvd_rank() == 0)
        worker->seat->report_ps = (clock_now_us() - loaded_us) * 1000000 / TIMED_CALLS;
    board_ring(worker->board);
    return 0;
}

/* Changes a part of the state, as an optimizer does: always the same work for the same `units`. */
static void compute(struct worker *worker, uint64_t units)
{
    size_t count = (worker->mib << 20) / sizeof(float);
    float *numbers = (float *)worker->state;

    for (; count && units; units--) {
        float gradient = (float)units * 1e-9F;

        if (worker->next + UNIT_NUMBERS > count)
            worker->next = 0;
        for (int pass = 0; pass < UNIT_PASSES; pass++)
            for (size_t i = worker->next; i < worker->next + UNIT_NUMBERS; i++)
                numbers[i] = numbers[i] * 0.999F + gradient;
        worker->next += UNIT_NUMBERS;
    }
}

/* Notes on the board how long the block of steps took that ends with this commit. */
static void note_block(struct worker *worker)
{
    struct board_slot *seat = worker->seat;
    int64_t now_us = clock_now_us();

    if (worker->block_us) {
        seat->block_us[seat->blocks % BOARD_BLOCKS] = now_us - worker->block_us;
        seat->blocks++;
        board_ring(worker->board);
    }
    worker->block_us = now_us;
}

static int report(const struct worker *worker)
{
    static const char *const names[REPORTS] = { "loss", "rate" };

    for (int i = 0; i < REPORTS; i++) {
        int code = hvd_report(names[i], 1.0 / (double)(worker->steps + i));

        if (code)
            return code;
    }
    return 0;
}

static int step(hvd_state *state, struct worker *worker)
{
    int code = hvd_allreduce(worker->numbers, worker->numbers, NUMBERS, HVD_FLOAT32, HVD_AVERAGE);

    if (code)
        return code;
    worker->steps++;
    if (worker->mib)
        worker->state[worker->steps % 4096]++;
    note_step(worker);
    if (worker->reports)
        code = report(worker);
    if (code)
        return code;
    if (worker->computes)
        compute(worker, worker->step_us);
    else
        rest(worker->step_us);
    if (worker->blocks && worker->steps % BOARD_BLOCK_STEPS == 0) {
        code = hvd_state_commit(state);
        if (!code)
            note_block(worker);
        return code;
    }
    if (worker->commits || worker->steps == 1)
        return hvd_state_commit(state);
    return hvd_state_check(state);
}

static int train(hvd_state *state, void *arg)
{
    struct worker *worker = arg;
    int code = 0;

    worker->round->train_us = clock_now_us();
    while (!code) {
        code = step(state, worker);
        if (!code && worker->times)
            code = time_calls(state, worker);
    }
    worker->round->told_us = clock_now_us();
    return code;
}

/* ---- the program ------------------------------------------------------------------------------
 */

static int read_number(const char *text, const char *name, uint64_t *ret_number)
{
    struct hvd_err err;
    int rc =
        text_parse_u64((struct span){ text, strlen(text) }, 0, UINT64_MAX, name, ret_number, &err);

    if (rc)
        fprintf(stderr, "board_worker: %s\n", err.text);
    return rc;
}

static int read_words(struct worker *worker, char **words, uint64_t *ret_incarnation)
{
    const char *incarnation = getenv("HVD_INCARNATION");
    struct hvd_err err;

    if (!incarnation || read_number(incarnation, "HVD_INCARNATION", ret_incarnation) ||
        read_number(words[2], "the state", &worker->mib) ||
        read_number(words[3], "the step", &worker->step_us) ||
        read_number(words[4], "the boot", &worker->boot_ms))
        return HVD_E_INVAL;
    worker->commits = !strcmp(words[5], "commit");
    worker->times = !strcmp(words[5], "time");
    worker->computes = !strncmp(words[5], "compute", strlen("compute"));
    worker->blocks = worker->computes || !strncmp(words[5], "device", strlen("device"));
    worker->reports = strstr(words[5], "-report") != NULL;
    if (board_open(words[1], &worker->board, &err)) {
        fprintf(stderr, "board_worker: %s\n", err.text);
        return HVD_E_IO;
    }
    worker->seat = board_slot(worker->board, *ret_incarnation);
    worker->seat->pid = getpid();
    board_raise(&worker->board->last, *ret_incarnation);
    return 0;
}

static int take_part(struct worker *worker)
{
    size_t bytes = worker->mib << 20;
    hvd_state *state;
    int code = hvd_init();

    if (code)
        return code;
    state = hvd_state_create();
    worker->state = mem_alloc(bytes + 4096);
    if (!state || !worker->state)
        return HVD_E_NOMEM;
    memset(worker->state, 1, bytes);
    code = hvd_state_add_scalar(state, "steps", &worker->steps, HVD_INT64);
    if (!code)
        code = hvd_state_add(state, "state", worker->state, bytes);
    if (!code)
        code = hvd_state_on_reset(state, on_reset, worker);
    if (!code)
        code = hvd_elastic_run(state, train, worker);
    hvd_state_free(state);
    return code;
}

int main(int argc, char **argv)
{
    static struct worker worker;
    uint64_t incarnation;
    int code;

    if (argc != 6 || read_words(&worker, argv, &incarnation)) {
        fprintf(stderr, "board_worker: BOARD STATE-MIB STEP-US BOOT-MS "
                        "commit|check|time|device|compute|device-report|compute-report\n");
        return 2;
    }
    rest(worker.boot_ms * 1000);
    code = take_part(&worker);
    if (code < 0)
        fprintf(stderr, "board_worker: %s: %s\n", hvd_strerror(code), hvd_last_error());
    mem_free(worker.state);
    board_close(worker.board);
    return code < 0 ? 1 : 0;
}
