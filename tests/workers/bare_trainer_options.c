/*
 * bare_trainer_options.c: the options of bare_trainer: how long it trains, what it holds, and which
 * fault it has at which step.
 */
#include "tests/workers/bare_trainer_options.h"

#include "tests/workers/worker_options.h"

#define MEMORY_MAX (UINT64_C(1024) * 1024)
#define STEPS_MAX  UINT64_C(1000000000000)
#define GENERAL    "training"
#define WRONG      "what it does wrong"
#define ROW(...)   OPT(struct bare_trainer_options, __VA_ARGS__)

static const struct opt table[] = {
    ROW(steps, .name = "steps", .arg = "N", .max = STEPS_MAX, .preset = "0", .group = GENERAL,
        .help = "steps to train; 0: without end"),
    ROW(step_ms, .name = "step-ms", .arg = "MS", .max = WORKER_DAYS_MS, .preset = "10",
        .group = GENERAL, .help = "how long a step takes"),
    ROW(boot_ms, .name = "boot-ms", .arg = "MS", .max = WORKER_DAYS_MS, .preset = "0",
        .group = GENERAL, .help = "how long it takes until it is ready"),
    ROW(say, .name = "say", .arg = "FILE", .group = GENERAL,
        .help = "append \"incarnation round rank size\" when a round is entered"),
    ROW(memory_mib, .name = "memory", .arg = "MIB", .max = MEMORY_MAX, .preset = "0",
        .group = GENERAL, .help = "memory to use, all of it touched"),
    ROW(hold, .name = "hold", .arg = "SOCKET", .group = GENERAL,
        .help = "connect to this Unix socket too, and say nothing there"),
    ROW(print_bytes, .name = "print", .arg = "BYTES", .max = STEPS_MAX, .preset = "0",
        .group = GENERAL, .help = "to print in each step"),
    ROW(exit_at, .name = "exit-at", .arg = "STEP", .max = STEPS_MAX, .preset = "0", .group = WRONG,
        .help = "end the process there, without a word"),
    ROW(exit_code, .name = "exit-code", .arg = "CODE", .max = 255, .preset = "1", .group = WRONG,
        .help = "with this status"),
    ROW(hang_at, .name = "hang-at", .arg = "STEP", .max = STEPS_MAX, .preset = "0", .group = WRONG,
        .help = "make no further step; beats go on"),
    ROW(freeze_at, .name = "freeze-at", .arg = "STEP", .max = STEPS_MAX, .preset = "0",
        .group = WRONG, .help = "do nothing at all any more"),
    ROW(once, .name = "once", .arg = "FILE", .group = WRONG,
        .help = "only who is the first to create it does wrong"),
    ROW(rank, .name = "rank", .arg = "RANK", .max = INT32_MAX, .group = WRONG,
        .help = "only who starts with this rank does wrong"),
    ROW(daemon, .name = "daemon", .group = WRONG,
        .help = "leave a process behind, in a session of its own, that keeps the output open"),
    ROW(ignore_term, .name = "ignore-term", .group = WRONG, .help = "ignore SIGTERM"),
    ROW(close_stdout, .name = "close-stdout", .group = WRONG,
        .help = "close standard output and standard error"),
    ROW(help, .name = "help", .key = 'h', .flags = OPT_ARGV_ONLY, .group = GENERAL,
        .help = "this text"),
};

bool bare_trainer_options_read(struct bare_trainer_options *options, int argc, char **argv,
                               int *ret_status)
{
    const struct worker_options reads = { .program = "bare_trainer",
                                          .about = "A worker for tests, started by hvd-elastic.",
                                          .table = table,
                                          .count = ARRAY_SIZE(table),
                                          .into = options,
                                          .help = &options->help };

    if (!worker_options_read(&reads, &options->set, argc, argv, ret_status))
        return false;
    if (opt_source(&options->set, "rank") == OPT_UNSET)
        options->rank = UINT64_MAX;
    options->misbehaves = worker_is_chosen(options->rank, options->once);
    return true;
}
