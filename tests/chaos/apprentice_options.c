#include "tests/chaos/apprentice_options.h"

#include "base/buf.h"
#include "base/opt_show.h"
#include "tests/chaos/slip.h"

#include <stdio.h>

#define DAY_MS     (UINT64_C(24) * 3600 * 1000)
#define GIB_KIB    (UINT64_C(1024) * 1024)
#define HELP_BYTES 65536
#define GENERAL    "training"
#define ROW(...)   OPT(struct apprentice_options, __VA_ARGS__)

static const struct opt table[] = {
    ROW(step_ms, .name = "step-ms", .arg = "MS", .max = DAY_MS, .preset = "2", .group = GENERAL,
        .help = "how long a step computes"),
    ROW(boot_ms, .name = "boot-ms", .arg = "MS", .max = DAY_MS, .preset = "0", .group = GENERAL,
        .help = "how long it takes until it is built"),
    ROW(state_kib, .name = "state-kib", .arg = "KIB", .max = 64 * GIB_KIB, .preset = "0",
        .group = GENERAL, .help = "more state, of which each step changes a page"),
    ROW(samples, .name = "samples", .arg = "N", .min = 1, .max = 65536, .preset = "1024",
        .group = GENERAL, .help = "samples of an epoch"),
    ROW(batch, .name = "batch", .arg = "N", .min = 1, .max = 65536, .preset = "32",
        .group = GENERAL, .help = "samples of a step, of all ranks together"),
    ROW(commit_every, .name = "commit-every", .arg = "N", .min = 1, .max = APPRENTICE_EVERY_MAX,
        .preset = "1", .group = GENERAL, .help = "steps from one commit to the next"),
    ROW(slip, .name = "slip", .arg = "KIND", .choices = slip_names, .preset = "none",
        .group = GENERAL, .help = "what it does wrong on purpose, once there was a change"),
    ROW(help, .name = "help", .key = 'h', .flags = OPT_ARGV_ONLY, .group = GENERAL,
        .help = "this text"),
};

static int show_help(const struct opt_set *set)
{
    struct buf out;
    int rc;

    buf_init(&out, HELP_BYTES);
    rc = opt_show_help(set, "apprentice [options]",
                       "Trains until $CHAOS_ARENA/stop is there, and writes down in "
                       "$CHAOS_ARENA/wrong whatever it finds wrong.",
                       &out);
    fputs(buf_text(&out), stdout);
    buf_release(&out);
    return rc ? 2 : 0;
}

bool apprentice_options_read(struct apprentice_options *options, int argc, char **argv,
                             int *ret_status)
{
    struct hvd_err err;
    int rest = 0;
    int rc = opt_init(&options->set, table, ARRAY_SIZE(table), options);

    *ret_status = 2;
    if (rc)
        return false;
    rc = opt_argv(&options->set, argc, argv, &rest, &err);
    if (!rc && rest < argc)
        rc = err_set(&err, HVD_E_INVAL, "%s: apprentice takes options only", argv[rest]);
    if (rc) {
        fprintf(stderr, "apprentice: %s\n", err.text);
        return false;
    }
    if (options->help) {
        *ret_status = show_help(&options->set);
        return false;
    }
    return true;
}

void apprentice_options_release(struct apprentice_options *options)
{
    opt_release(&options->set);
}
