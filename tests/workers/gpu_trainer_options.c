/*
 * gpu_trainer_options.c: the options of gpu_trainer: how long it trains, on how many samples, and
 * which fault of the stand-in strikes its GPU.
 */
#include "tests/workers/gpu_trainer_options.h"

#include "tests/workers/worker_options.h"

#define MANY     UINT64_C(1000000000)
#define GENERAL  "training"
#define WRONG    "what befalls its GPU"
#define ROW(...) OPT(struct gpu_trainer_options, __VA_ARGS__)

static const struct opt table[] = {
    ROW(steps, .name = "steps", .arg = "N", .max = MANY, .preset = "0", .group = GENERAL,
        .help = "steps to train; 0: until it is stopped"),
    ROW(stop, .name = "stop", .arg = "FILE", .group = GENERAL,
        .help = "all stop when one of them has found this file"),
    ROW(step_ms, .name = "step-ms", .arg = "MS", .max = WORKER_DAYS_MS, .preset = "1",
        .group = GENERAL, .help = "how long a step computes"),
    ROW(samples, .name = "samples", .arg = "N", .max = MANY, .min = 1, .preset = "40",
        .group = GENERAL, .help = "samples of an epoch"),
    ROW(batch, .name = "batch", .arg = "N", .max = MANY, .min = 1, .preset = "8", .group = GENERAL,
        .help = "samples of a step, of all ranks together"),
    ROW(elements, .name = "elements", .arg = "N", .max = 1 << 24, .min = 2, .preset = "600",
        .group = GENERAL, .help = "weights"),
    ROW(stream, .name = "stream", .group = GENERAL,
        .help = "work in a stream of its own, in which collectives are queued"),
    ROW(async, .name = "async", .group = GENERAL, .help = "commit beside the training"),
    ROW(say, .name = "say", .arg = "FILE", .group = GENERAL,
        .help = "append \"incarnation round rank size\" when a round is entered"),
    ROW(made, .name = "made", .arg = "FILE", .group = GENERAL,
        .help = "append \"round rank step incarnation communicators carried\" when a step is made; "
                "carried: 1 if NCCL has made its sum"),
    ROW(final, .name = "final", .arg = "FILE", .group = GENERAL,
        .help = "append \"incarnation rank steps sum\" at the end"),
    ROW(befall, .name = "befall", .arg = "FILE", .group = WRONG,
        .help = "before a step: who is the first to take this file away gets the faults that are "
                "in it (see tests/standin/standin.h), and says \"pid incarnation faults\" in "
                "FILE.taken"),
    ROW(last, .name = "last", .arg = "FILE", .group = WRONG,
        .help = "end with a collective, before which this file is taken away likewise"),
    ROW(help, .name = "help", .key = 'h', .flags = OPT_ARGV_ONLY, .group = GENERAL,
        .help = "this text"),
};

bool gpu_trainer_options_read(struct gpu_trainer_options *options, int argc, char **argv,
                              int *ret_status)
{
    const struct worker_options reads = { .program = "gpu_trainer",
                                          .about = "Trains with weights in the memory of a GPU, in "
                                                   "a way that shows each lost or repeated sample.",
                                          .table = table,
                                          .count = ARRAY_SIZE(table),
                                          .into = options,
                                          .help = &options->help };

    return worker_options_read(&reads, &options->set, argc, argv, ret_status);
}
