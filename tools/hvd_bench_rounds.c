/*
 * hvd_bench_rounds.c: what a change of the membership costs a benchmark of hvd-bench, measured by
 * the training loop itself: it notes when it made its last step, when it was told, when it was
 * called again and when the next step was done. Both benchmarks call these functions. Every row is
 * made from the result of an allreduce, so all ranks keep the same rows.
 */
#include "base/limits.h"
#include "base/mem.h"
#include "tools/hvd_bench.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

/* The causes of rounds, as the table and the JSON name them. */
static const struct {
    const char *text, *json;
} cause_names[] = {
    [CAUSE_START] = {"start",                  "start"   },
    [CAUSE_LOST] = { "a worker was lost",     "lost"    },
    [CAUSE_ALL_LOST] = { "all workers were lost", "all_lost"},
    [CAUSE_JOINED] = { "workers joined",        "joined"  },
    [CAUSE_LEFT] = { "workers left",          "left"    },
    [CAUSE_OTHER] = { "workers were replaced", "replaced"},
};

/* Returns the time of the monotonic clock, in seconds. */
double bench_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* true: this rank prints the lines for an operator. */
bool rounds_talks(const struct bench *bench)
{
    return !bench->options->json && hvd_rank() == 0;
}

/* Allocates the progress with the full table of rounds, because an entry of the state cannot
 * grow. */
int rounds_prepare(struct bench *bench)
{
    size_t bytes =
        sizeof(*bench->progress) + LIMIT_BENCH_ROUNDS * sizeof(bench->progress->rounds[0]);

    bench->progress = mem_zalloc(bytes);
    if (!bench->progress)
        return HVD_E_NOMEM;
    return hvd_state_add(bench->state, "progress", bench->progress, bytes);
}

/* Ends the use of the library. Before that, a failure of the library (code below 0) puts its text
 * into bench->err, unless the benchmark has put its own there. */
void rounds_close(struct bench *bench, int code)
{
    if (code < 0 && !bench->err->text[0])
        err_set(bench->err, code, "%s: %s", hvd_strerror(code), hvd_last_error());
    hvd_state_free(bench->state);
    hvd_shutdown();
    mem_free(bench->progress);
}

/* Called first in train: notes the time, and counts the steps that the restore has undone. */
void rounds_enter(struct bench *bench)
{
    bench->entered_at = bench_now();
    /* The state is that of the last commit: steps after this commit are lost. A joiner has made no
     * step. */
    if (bench->steps_made > bench->progress->steps_made)
        bench->lost_steps += bench->steps_made - bench->progress->steps_made;
    bench->steps_made = bench->progress->steps_made;
}

/* Called after each step: counts the step, and notes its time. */
void rounds_step(struct bench *bench)
{
    /* A switch of rounds may commit at any check, so the progress counts each step at once. */
    bench->steps_made = ++bench->progress->steps_made;
    bench->stepped_at = bench_now();
}

/* Called when train returns this code: notes when train was told of the change to the next round,
 * and whether a member was lost. */
void rounds_leave(struct bench *bench, int code)
{
    /* `told_at` is set already if the round before has failed before its first step: the training
     * has stood still since then, so that earlier time stays. */
    if (bench->told_at <= 0)
        bench->told_at = bench_now();
    bench->lost |= code == HVD_E_REVOKED;
}

/* Returns the row of the present round, which rounds_begin has added. */
struct bench_round *rounds_now(struct bench *bench)
{
    return &bench->progress->rounds[bench->progress->round_count - 1];
}

/* Returns why the round began. `survivors`: some worker of it trained before this round. `lost`: a
 * member was lost before it. round->from is the number of workers in the round before, 0: this is
 * the first round. */
static enum bench_cause rounds_cause(const struct bench_round *round, bool survivors, bool lost)
{
    if (!round->from)
        return CAUSE_START;
    if (!survivors)
        return CAUSE_ALL_LOST;
    if (lost)
        return CAUSE_LOST;
    if (round->size == round->from)
        return CAUSE_OTHER;
    return round->size > round->from ? CAUSE_JOINED : CAUSE_LEFT;
}

/* Called after the first step of a round, on all ranks: computes the row of the round from the
 * times of all ranks, adds it to the progress, and commits. */
int rounds_begin(struct bench *bench)
{
    enum { NOTICED, STOPPED, FIRST_STEP, PAUSE, LOST_STEPS, LOST, SURVIVOR, FIGURES };
    struct bench_progress *progress = bench->progress;
    struct bench_round round = { .number = hvd_round(), .size = (uint64_t)hvd_size() };
    double figures[FIGURES] = { 0 };
    double hosts = hvd_local_rank() == 0; /* 1 on one rank of each host: the sum counts hosts */
    double now = bench_now();
    int code;

    /* Only a worker that trained before this round has waited; other workers give zeros. */
    if (bench->stepped_at > 0) {
        figures[NOTICED] = bench->told_at - bench->stepped_at;
        figures[STOPPED] = bench->entered_at - bench->told_at;
        figures[FIRST_STEP] = now - bench->entered_at;
        figures[PAUSE] = now - bench->stepped_at;
        figures[LOST_STEPS] = (double)bench->lost_steps;
        figures[LOST] = bench->lost;
        figures[SURVIVOR] = 1;
    }
    code = hvd_allreduce(figures, figures, FIGURES, HVD_FLOAT64, HVD_MAX);
    if (!code)
        code = hvd_allreduce(&hosts, &hosts, 1, HVD_FLOAT64, HVD_SUM);
    if (code)
        return code;
    round.noticed = figures[NOTICED];
    round.stopped = figures[STOPPED];
    round.first_step = figures[FIRST_STEP];
    round.pause = figures[PAUSE];
    round.lost_steps = (uint64_t)figures[LOST_STEPS];
    round.hosts = (uint64_t)hosts;
    if (progress->round_count)
        round.from = rounds_now(bench)->size;
    round.cause = rounds_cause(&round, figures[SURVIVOR] > 0, figures[LOST] > 0);
    /* The last row is the row of the present round, also when the table is full. */
    if (progress->round_count < LIMIT_BENCH_ROUNDS)
        progress->round_count++;
    else
        progress->rounds_left_out++;
    *rounds_now(bench) = round;
    bench->told_at = 0;
    bench->lost = false;
    bench->lost_steps = 0;
    rounds_step(bench);
    if (rounds_talks(bench)) {
        printf("round %" PRIu64 ": %" PRIu64 " worker%s on %" PRIu64 " host%s", round.number,
               round.size, round.size == 1 ? "" : "s", round.hosts, round.hosts == 1 ? "" : "s");
        if (round.cause == CAUSE_ALL_LOST)
            printf(": %s, and with them the cost", cause_names[round.cause].text);
        else if (round.from)
            printf(": %s; %" PRIu64 " step%s lost, no step for %.1f ms",
                   cause_names[round.cause].text, round.lost_steps,
                   round.lost_steps == 1 ? "" : "s", round.pause * 1e3);
        printf("\n");
    }
    /* A worker may die right after this line: the row of the round must not be lost with it. */
    return hvd_state_commit(bench->state);
}

/* Prints the cost of each change as a table. The first row is of no change, so it is left out. */
void rounds_show(const struct bench *bench)
{
    const struct bench_progress *progress = bench->progress;

    if (progress->round_count < 2)
        return;
    printf("\nwhat each change of the workers cost; times in ms\n"
           "  %8s  %-21s %11s  %10s  %8s  %8s  %10s  %8s\n",
           "to round", "because", "workers", "steps lost", "noticed", "stopped", "first step",
           "pause");
    for (size_t i = 1; i < progress->round_count; i++) {
        const struct bench_round *round = &progress->rounds[i];
        char workers[48];

        (void)snprintf(workers, sizeof(workers), "%" PRIu64 " -> %" PRIu64, round->from,
                       round->size);
        printf("  %8" PRIu64 "  %-21s %11s", round->number, cause_names[round->cause].text,
               workers);
        /* CAUSE_ALL_LOST: all workers that could have measured the cost were lost */
        if (round->cause == CAUSE_ALL_LOST)
            printf("  %10s  %8s  %8s  %10s  %8s\n", "-", "-", "-", "-", "-");
        else
            printf("  %10" PRIu64 "  %8.1f  %8.1f  %10.1f  %8.1f\n", round->lost_steps,
                   round->noticed * 1e3, round->stopped * 1e3, round->first_step * 1e3,
                   round->pause * 1e3);
    }
    printf("  steps lost: made again; noticed: from the last step until train was told\n"
           "  stopped: from then until train was called again\n"
           "  first step: from then until the first step of the new round was done\n"
           "  pause: from the last step to the next; each time is of the slowest worker\n");
    if (progress->rounds_left_out)
        printf("  %" PRIu64 " rounds before the last one are left out: the table has %d rows\n",
               progress->rounds_left_out, LIMIT_BENCH_ROUNDS);
}

/* Prints the cost of each change as the last two members of a JSON object that is still open. */
void rounds_show_json(const struct bench *bench)
{
    const struct bench_progress *progress = bench->progress;

    printf(",\"changes\":[");
    for (size_t i = 1; i < progress->round_count; i++) {
        const struct bench_round *round = &progress->rounds[i];

        printf("%s{\"round\":%" PRIu64 ",\"cause\":\"%s\",\"from\":%" PRIu64 ",\"to\":%" PRIu64,
               i > 1 ? "," : "", round->number, cause_names[round->cause].json, round->from,
               round->size);
        if (round->cause != CAUSE_ALL_LOST)
            printf(",\"lost_steps\":%" PRIu64 ",\"noticed_us\":%.0f,\"stopped_us\":%.0f"
                   ",\"first_step_us\":%.0f,\"pause_us\":%.0f",
                   round->lost_steps, round->noticed * 1e6, round->stopped * 1e6,
                   round->first_step * 1e6, round->pause * 1e6);
        printf("}");
    }
    printf("],\"rounds_left_out\":%" PRIu64, progress->rounds_left_out);
}
