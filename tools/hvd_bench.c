/*
 * hvd_bench.c: the tool hvd-bench: benchmarks that an operator runs on the hosts of a job, under
 * hvd-elastic or alone. This file has the options, the command line and the end; the benchmarks use
 * of the library only what hvd.h declares, as any training program does.
 */
#include "tools/hvd_bench.h"
#include "base/limits.h"
#include "base/time.h"

#include <inttypes.h>
#include <string.h>

/* The exit codes; docs and tests name them, too. */
enum { EXIT_MEASURED = 0, EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_STORAGE = 4 };

#define ROW(field, ...)   OPT(struct bench_options, field, .flags = OPT_ARGV_ONLY, __VA_ARGS__)
#define OF_ALLREDUCE(...) ROW(__VA_ARGS__, .group = "allreduce")
#define OF_TRAIN(...)     ROW(__VA_ARGS__, .group = "train")

/* clang-format off */
static const struct opt table[] = {
    OF_ALLREDUCE(min_bytes, .name = "min-bytes", .arg = "N", .preset = "4096", .min = 8,
        .max = LIMIT_BENCH_BYTES, .help = "the smallest buffer"),
    OF_ALLREDUCE(max_bytes, .name = "max-bytes", .arg = "N", .preset = "67108864", .min = 8,
        .max = LIMIT_BENCH_BYTES, .help = "the largest buffer; a worker has two of them"),
    OF_ALLREDUCE(factor, .name = "factor", .arg = "N", .preset = "4", .min = 2, .max = 1024,
        .help = "from one size to the next"),
    OF_ALLREDUCE(time_us, .name = "time", .arg = "TIME", .preset = "1s", .min = TIME_MS,
        .max = TIME_HOUR, .help = "how long each size is measured; 10 calls at least"),
    OF_ALLREDUCE(repeats, .name = "repeats", .arg = "N", .min = 1, .max = LIMIT_BENCH_REPEATS,
        .help = "calls of each size, instead of --time"),
    OF_ALLREDUCE(type, .name = "type", .arg = "TYPE", .preset = "float32",
        .choices = bench_type_names, .help = "the type of the numbers that are summed"),
    OF_ALLREDUCE(alloc, .name = "hvd-alloc",
        .help = "buffers from hvd_alloc, which other workers of the host read in place"),

    OF_TRAIN(model_mb, .name = "model-mb", .arg = "N", .preset = "8", .min = 1,
        .max = LIMIT_BENCH_MODEL_MB, .help = "MiB of parameters, in float32"),
    OF_TRAIN(layers, .name = "layers", .arg = "N", .preset = "8", .min = 1,
        .max = LIMIT_BENCH_LAYERS, .help = "buffers in which the gradients travel"),
    OF_TRAIN(batch, .name = "batch", .arg = "N", .preset = "16", .min = 1,
        .max = LIMIT_BENCH_BATCH, .help = "samples of a step, for each worker"),
    OF_TRAIN(compute_ms, .name = "compute-ms", .arg = "N", .min = 1, .max = LIMIT_BENCH_WAIT_MS,
        .help = "the computation of a step is a wait of N ms, as for a GPU, instead of arithmetic "
                "on the CPU"),
    OF_TRAIN(one_call, .name = "one-call",
        .help = "one allreduce of all layers after the last; else the allreduce of each layer "
                "starts when its gradients are computed"),
    OF_TRAIN(steps, .name = "steps", .arg = "N", .preset = "10", .min = 1,
        .max = LIMIT_BENCH_STEPS, .help = "steps of an iteration"),
    OF_TRAIN(iterations, .name = "iterations", .arg = "N", .preset = "10", .min = 1,
        .max = LIMIT_BENCH_STEPS, .help = "iterations, in all rounds together"),
    OF_TRAIN(warmup, .name = "warmup", .arg = "N", .preset = "5", .min = 1,
        .max = LIMIT_BENCH_STEPS, .help = "steps of a round before anything is measured"),
    OF_TRAIN(commit_every, .name = "commit-every", .arg = "N", .preset = "10", .min = 1,
        .max = LIMIT_BENCH_STEPS, .help = "steps from one commit to the next; each iteration ends "
                                          "with one"),

    ROW(json, .name = "json", .group = "General",
        .help = "for programs: one JSON object in the end, on rank 0"),
    OPT_GENERAL_ROWS(struct bench_options, general, "General"),
};
/* clang-format on */

/* Reads the name of the benchmark, then its options. Options of the other benchmark are refused. */
static int bench_read_options(struct opt_set *set, int argc, char *const *argv, int *ret_rest,
                              struct hvd_err *err)
{
    static const char *const names[] = {
        [BENCH_NONE] = "", [BENCH_ALLREDUCE] = "allreduce", [BENCH_TRAIN] = "train"
    };
    struct bench_options *options = set->config;
    int words = argc > 1 && argv[1][0] != '-'; /* 1: the name of a benchmark comes first; else 0 */
    int rc;

    options->mode = BENCH_NONE;
    for (size_t i = 1; words && i < ARRAY_SIZE(names); i++)
        if (!strcmp(argv[1], names[i]))
            options->mode = (enum bench_mode)i;
    if (words && !options->mode)
        return err_set(err, HVD_E_INVAL, "%.40s: not a benchmark; name allreduce or train",
                       argv[1]);
    rc = opt_argv(set, argc - words, argv + words, ret_rest, err);
    if (rc)
        return rc;
    *ret_rest += words;
    if (options->general.help || options->general.version || options->general.list_options)
        return 0;
    if (!options->mode)
        return err_set(err, HVD_E_INVAL,
                       "no benchmark; name allreduce or train, before all options");
    if (argv[*ret_rest])
        return err_set(err, HVD_E_INVAL, "%.40s: one word too many; leave it out", argv[*ret_rest]);
    for (size_t i = 0; i < set->count; i++) {
        const struct opt *row = &set->table[i];

        if (opt_source(set, row->name) == OPT_COMMAND_LINE && strcmp(row->group, "General") != 0 &&
            strcmp(row->group, names[options->mode]) != 0)
            return err_set(err, HVD_E_INVAL, "--%s: belongs to %s, not to %s; leave it out",
                           row->name, row->group, names[options->mode]);
    }
    if (options->min_bytes > options->max_bytes)
        return err_set(err, HVD_E_INVAL,
                       "--min-bytes %" PRIu64 " is more than --max-bytes %" PRIu64
                       "; change one of the two",
                       options->min_bytes, options->max_bytes);
    if (options->mode == BENCH_ALLREDUCE && options->repeats &&
        opt_source(set, "time") == OPT_COMMAND_LINE)
        return err_set(err, HVD_E_INVAL, "--repeats and --time: give one or the other");
    return 0;
}

/* Runs the benchmark that the options name, and returns the exit code. Each benchmark calls
 * rounds_close at its end, which frees the state made here and ends the use of the library. */
static int bench_run(const struct opt_program *program, char **words)
{
    struct hvd_err err = { 0 };
    struct bench bench = { .options = program->options, .err = &err };
    int code;

    (void)words;
    /* Each line is written at once, so a row is visible even if the process is killed next. */
    setvbuf(stdout, NULL, _IOLBF, 0);
    code = hvd_init();
    if (!code && !(bench.state = hvd_state_create()))
        code = HVD_E_NOMEM;
    if (!code)
        code = rounds_prepare(&bench);
    if (code)
        rounds_close(&bench, code);
    else if (bench.options->mode == BENCH_ALLREDUCE)
        code = bench_allreduce(&bench);
    else
        code = bench_train(&bench);
    /* HVD_LEFT and HVD_DONE are successes too: other workers go on, or have reported the
     * results. */
    if (code >= 0)
        return EXIT_MEASURED;
    return opt_complain(program, &err, code == HVD_E_NOMEM ? EXIT_STORAGE : EXIT_FAILED);
}

int main(int argc, char **argv)
{
    struct bench_options options = { 0 };
    const struct opt_program program = {
        .name = "hvd-bench",
        .usage = "hvd-bench allreduce|train [options]",
        .about = "Measures the hosts of a job: hvd-elastic -np 4 hvd-bench allreduce, or train. "
                 "allreduce: the time and bandwidth of an allreduce of each size. train: samples/s "
                 "of a synthetic training, and its efficiency against one worker. Workers may die, "
                 "leave and join meanwhile: each row names its round, and what each change cost is "
                 "shown. Rank 0 prints. Without hvd-elastic it is a job of one worker.",
        .table = table,
        .count = ARRAY_SIZE(table),
        .options = &options,
        .general = &options.general,
        .usage_exit = EXIT_USAGE,
        .storage_exit = EXIT_STORAGE,
        .read = bench_read_options,
        .run = bench_run,
    };

    return opt_main(&program, argc, argv);
}
