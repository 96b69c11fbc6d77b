#include "tests/train/cadet_options.h"

#include "base/opt_show.h"

#include <stdio.h>

#define DAYS_MS    (UINT64_C(1000) * 24 * 3600 * 1000)
#define MANY       UINT64_C(1000000000)
#define GENERAL    "training"
#define WRONG      "what befalls its GPU"
#define CADET(...) OPT(struct cadet_options, __VA_ARGS__)

static const struct opt table[] = {
    CADET(steps, .name = "steps", .arg = "N", .max = MANY, .preset = "0", .group = GENERAL,
          .help = "steps to train; 0: until it is stopped"),
    CADET(stop, .name = "stop", .arg = "FILE", .group = GENERAL,
          .help = "all stop when one of them has found this file"),
    CADET(step_ms, .name = "step-ms", .arg = "MS", .max = DAYS_MS, .preset = "1", .group = GENERAL,
          .help = "how long a step computes"),
    CADET(samples, .name = "samples", .arg = "N", .max = MANY, .min = 1, .preset = "40",
          .group = GENERAL, .help = "samples of an epoch"),
    CADET(batch, .name = "batch", .arg = "N", .max = MANY, .min = 1, .preset = "8",
          .group = GENERAL, .help = "samples of a step, of all ranks together"),
    CADET(elements, .name = "elements", .arg = "N", .max = 1 << 24, .min = 2, .preset = "600",
          .group = GENERAL, .help = "weights"),
    CADET(stream, .name = "stream", .group = GENERAL,
          .help = "work in a stream of its own, in which collectives are queued"),
    CADET(async, .name = "async", .group = GENERAL, .help = "commit beside the training"),
    CADET(say, .name = "say", .arg = "FILE", .group = GENERAL,
          .help = "append \"incarnation round rank size\" when a round is entered"),
    CADET(made, .name = "made", .arg = "FILE", .group = GENERAL,
          .help = "append \"round rank step incarnation communicators\" when a step is made"),
    CADET(final, .name = "final", .arg = "FILE", .group = GENERAL,
          .help = "append \"incarnation rank steps sum\" at the end"),
    CADET(befall, .name = "befall", .arg = "FILE", .group = WRONG,
          .help = "before a step: who is the first to take this file away gets the faults that are "
                  "in it (see tests/standin/standin.h), and says \"pid incarnation faults\" in "
                  "FILE.taken"),
    CADET(last, .name = "last", .arg = "FILE", .group = WRONG,
          .help = "end with a collective, before which this file is taken away likewise"),
    CADET(help, .name = "help", .key = 'h', .flags = OPT_ARGV_ONLY, .group = GENERAL,
          .help = "this text"),
};

static int show_help(const struct opt_set *set)
{
    struct buf out;
    int rc;

    buf_init(&out, 65536);
    rc = opt_show_help(set, "cadet [options]",
                       "Trains with weights in the memory of a GPU, in a way that shows each lost "
                       "or repeated sample.",
                       &out);
    fputs(buf_text(&out), stdout);
    buf_release(&out);
    return rc ? 2 : 0;
}

bool cadet_options_read(struct cadet_options *options, int argc, char **argv, int *ret_status)
{
    struct hvd_err err;
    int rest = 0;
    int rc = opt_init(&options->set, table, ARRAY_SIZE(table), options);

    *ret_status = 2;
    if (rc)
        return false;
    rc = opt_argv(&options->set, argc, argv, &rest, &err);
    if (!rc && rest < argc)
        rc = err_set(&err, HVD_E_INVAL, "%s: cadet takes options only", argv[rest]);
    if (rc) {
        fprintf(stderr, "cadet: %s\n", err.text);
        return false;
    }
    if (options->help) {
        *ret_status = show_help(&options->set);
        return false;
    }
    return true;
}

void cadet_options_release(struct cadet_options *options)
{
    opt_release(&options->set);
}
