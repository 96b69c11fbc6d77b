/*
 * opt_sample.h: an option table with every kind of option, for the tests and the fuzzer of
 * base/opt.h, and helpers that parse input with it.
 */
#ifndef TESTS_LIB_OPT_SAMPLE_H
#define TESTS_LIB_OPT_SAMPLE_H

#include "base/limits.h"
#include "base/opt_show.h"
#include "base/time.h"

enum sample_level { SAMPLE_ERROR, SAMPLE_WARNING, SAMPLE_INFO };

struct sample {
    bool help;
    bool verbose;
    bool stall_check;
    uint64_t np;
    uint64_t min_np;
    uint64_t max_np;
    int64_t start_timeout_us;
    int64_t grace_us;
    struct opt_range cooldown;
    char *hosts;
    char *config_file;
    char *label;
    enum sample_level level;
    struct opt_list env;
    uint64_t seed;
};

static const char *const sample_levels[] = { "error", "warning", "info", NULL };

static const struct opt sample_table[] = {
    OPT(struct sample, help, .name = "help", .key = 'h', .flags = OPT_ARGV_ONLY, .group = "general",
        .help = "show this and exit"),
    OPT(struct sample, config_file, .name = "config-file", .arg = "FILE", .flags = OPT_ARGV_ONLY,
        .group = "general", .help = "read options from FILE too"),
    OPT(struct sample, np, .name = "np", .alias = "num-proc", .arg = "N", .min = 1, .max = 65536,
        .group = "job", .help = "workers to start with"),
    OPT(struct sample, min_np, .name = "min-np", .alias = "min-num-proc", .arg = "N", .preset = "1",
        .min = 1, .group = "job", .help = "workers without which the job waits"),
    OPT(struct sample, max_np, .name = "max-np", .alias = "max-num-proc", .arg = "N",
        .group = "job",
        .help = "workers beyond which no more are started, however many slots there are"),
    OPT(struct sample, hosts, .name = "hosts", .key = 'H', .arg = "HOST:SLOTS,...", .min = 1,
        .group = "hosts", .help = "the hosts of a job that does not look for any"),
    OPT(struct sample, cooldown, .name = "blacklist-cooldown-range", .arg = "LOW HIGH",
        .preset = "10 600", .min = TIME_S, .max = TIME_HOUR, .group = "hosts",
        .help = "how long a host that failed is left alone, the first time and at most"),
    OPT(struct sample, start_timeout_us, .name = "start-timeout", .arg = "TIME", .preset = "10m",
        .min = TIME_S, .max = TIME_DAY, .group = "job",
        .help = "how long to wait for the first workers"),
    OPT(struct sample, grace_us, .name = "grace", .arg = "TIME", .flags = OPT_NEVER,
        .preset = "never", .group = "job", .help = "how long agents wait for a driver"),
    OPT(struct sample, label, .name = "label", .arg = "TEXT", .group = "job",
        .help = "its name among users"),
    OPT(struct sample, stall_check, .name = "stall-check", .preset = "true", .group = "job",
        .help = "watch for workers that hang"),
    OPT(struct sample, verbose, .name = "verbose", .key = 'v', .group = "general",
        .help = "say more"),
    OPT(struct sample, level, .name = "log-level", .arg = "LEVEL", .preset = "warning",
        .choices = sample_levels, .group = "general", .help = "what to say"),
    OPT(struct sample, env, .name = "env", .key = 'x', .arg = "NAME[=VALUE]", .group = "hosts",
        .help = "a variable to pass on"),
    OPT(struct sample, seed, .name = "test-seed", .arg = "N", .preset = "7", .flags = OPT_TEST_ONLY,
        .group = "job", .help = "where chance begins"),
    OPT_REFUSE(.name = "mpi-args",
               .help = "there is no MPI here; give options to the command itself"),
    OPT_REFUSE(.name = "autotune", .alias = "tune", .key = 'a',
               .help = "there is nothing to tune; leave it out"),
};

/* A run of a program that has this table, with the results. */
struct sample_run {
    struct sample config;
    struct opt_set set;
    struct buf out;
    struct hvd_err err;
    int rest; /* index of the first word that is no option */
};

int sample_init(struct sample_run *run) MUST_CHECK;
void sample_release(struct sample_run *run);

/* The words are separated by single blanks; the program's name is added. */
int sample_argv(struct sample_run *run, const char *words) MUST_CHECK;
/* The variables are separated by bars (|). */
int sample_env(struct sample_run *run, const char *variables) MUST_CHECK;
/* Reads the text as a config file with the name job.conf. */
int sample_config(struct sample_run *run, const char *text) MUST_CHECK;

#endif
