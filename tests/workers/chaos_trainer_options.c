/*
 * chaos_trainer_options.c: the options of chaos_trainer: the size of its state and steps, and the
 * error that it makes on purpose (slip.h).
 */
#include "tests/workers/chaos_trainer_options.h"

#include "tests/chaos/slip.h"
#include "tests/workers/worker_options.h"

#define GIB_KIB  (UINT64_C(1024) * 1024)
#define GENERAL  "training"
#define ROW(...) OPT(struct chaos_trainer_options, __VA_ARGS__)

static const struct opt table[] = {
    ROW(step_ms, .name = "step-ms", .arg = "MS", .max = WORKER_DAYS_MS, .preset = "2",
        .group = GENERAL, .help = "how long a step computes"),
    ROW(boot_ms, .name = "boot-ms", .arg = "MS", .max = WORKER_DAYS_MS, .preset = "0",
        .group = GENERAL, .help = "how long it takes until it is built"),
    ROW(state_kib, .name = "state-kib", .arg = "KIB", .max = 64 * GIB_KIB, .preset = "0",
        .group = GENERAL, .help = "more state, of which each step changes a page"),
    ROW(samples, .name = "samples", .arg = "N", .min = 1, .max = 65536, .preset = "1024",
        .group = GENERAL, .help = "samples of an epoch"),
    ROW(batch, .name = "batch", .arg = "N", .min = 1, .max = 65536, .preset = "32",
        .group = GENERAL, .help = "samples of a step, of all ranks together"),
    ROW(commit_every, .name = "commit-every", .arg = "N", .min = 1, .max = CHAOS_TRAINER_EVERY_MAX,
        .preset = "1", .group = GENERAL, .help = "steps from one commit to the next"),
    ROW(slip, .name = "slip", .arg = "KIND", .choices = slip_names, .preset = "none",
        .group = GENERAL, .help = "what it does wrong on purpose, once there was a change"),
    ROW(help, .name = "help", .key = 'h', .flags = OPT_ARGV_ONLY, .group = GENERAL,
        .help = "this text"),
};

bool chaos_trainer_options_read(struct chaos_trainer_options *options, int argc, char **argv,
                                int *ret_status)
{
    const struct worker_options reads = {
        .program = "chaos_trainer",
        .about = "Trains until $CHAOS_ARENA/stop is there, and writes "
                 "down in $CHAOS_ARENA/wrong each mistake that it finds.",
        .table = table,
        .count = ARRAY_SIZE(table),
        .into = options,
        .help = &options->help
    };

    return worker_options_read(&reads, &options->set, argc, argv, ret_status);
}
