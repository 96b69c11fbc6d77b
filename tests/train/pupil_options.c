#include "tests/train/pupil_options.h"

#include "base/opt_show.h"
#include "base/text.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DAYS_MS    (UINT64_C(1000) * 24 * 3600 * 1000)
#define STEPS_MAX  UINT64_C(1000000000000)
#define GENERAL    "training"
#define WRONG      "what it does wrong"
#define PUPIL(...) OPT(struct pupil_options, __VA_ARGS__)

static const char *const places[] = { "nowhere", "init",  "built", "step", "commit", "async",
                                      "check",   "reset", "load",  "end",  NULL };
static const char *const wrongs[] = { "die", "hang", "fail", NULL };

static const struct opt table[] = {
    PUPIL(steps, .name = "steps", .arg = "N", .max = STEPS_MAX, .preset = "0", .group = GENERAL,
          .help = "steps to train; 0: without end"),
    PUPIL(step_ms, .name = "step-ms", .arg = "MS", .max = DAYS_MS, .preset = "1", .group = GENERAL,
          .help = "how long a step computes"),
    PUPIL(boot_ms, .name = "boot-ms", .arg = "MS", .max = DAYS_MS, .preset = "0", .group = GENERAL,
          .help = "how long it takes until it is built"),
    PUPIL(elements, .name = "elements", .arg = "N", .max = 1 << 28, .min = 1, .preset = "64",
          .group = GENERAL, .help = "numbers that are added up over all ranks in each step"),
    PUPIL(state_mib, .name = "state", .arg = "MIB", .max = 1 << 20, .preset = "0", .group = GENERAL,
          .help = "more state, which is not changed by the training"),
    PUPIL(commit_every, .name = "commit-every", .arg = "N", .max = STEPS_MAX, .min = 1,
          .preset = "1", .group = GENERAL, .help = "steps from one commit to the next"),
    PUPIL(async, .name = "async", .group = GENERAL, .help = "commit beside the training"),
    PUPIL(say, .name = "say", .arg = "FILE", .group = GENERAL,
          .help = "append \"incarnation round rank size\" when a round is entered"),
    PUPIL(made, .name = "made", .arg = "FILE", .group = GENERAL,
          .help = "append \"round rank step incarnation\" when a step is made"),
    PUPIL(final, .name = "final", .arg = "FILE", .group = GENERAL,
          .help = "append \"incarnation rank steps digest\" at the end"),
    PUPIL(place, .name = "where", .arg = "PLACE", .choices = places, .preset = "nowhere",
          .group = WRONG, .help = "where it does wrong"),
    PUPIL(wrong, .name = "wrong", .arg = "DEED", .choices = wrongs, .preset = "die", .group = WRONG,
          .help = "what it does there: die by SIGKILL, hang, or return a code of its own"),
    PUPIL(at, .name = "at", .arg = "STEP", .max = STEPS_MAX, .preset = "0", .group = WRONG,
          .help = "at this step, or at the first chance after it"),
    PUPIL(once, .name = "once", .arg = "FILE", .group = WRONG,
          .help = "only who is the first to create it does wrong"),
    PUPIL(rank, .name = "rank", .arg = "RANK", .max = INT32_MAX, .group = WRONG,
          .help = "only who starts with this rank does wrong"),
    PUPIL(other_state, .name = "other-state", .group = WRONG,
          .help = "register an entry that the others have not"),
    PUPIL(extra_check, .name = "extra-check", .group = WRONG,
          .help = "check once too often a step"),
    PUPIL(two_threads, .name = "two-threads", .group = WRONG,
          .help = "make the calls of the loop from a second thread too"),
    PUPIL(lie, .name = "lie", .group = WRONG,
          .help = "from that step on have another state than the others"),
    PUPIL(drop_news, .name = "drop-news", .group = WRONG,
          .help = "return 0 from train, whatever it is told"),
    PUPIL(help, .name = "help", .key = 'h', .flags = OPT_ARGV_ONLY, .group = GENERAL,
          .help = "this text"),
};

static int show_help(const struct opt_set *set)
{
    struct buf out;
    int rc;

    buf_init(&out, 65536);
    rc = opt_show_help(set, "pupil [options]",
                       "Trains with the library, in a way that shows each lost or repeated step.",
                       &out);
    fputs(buf_text(&out), stdout);
    buf_release(&out);
    return rc ? 2 : 0;
}

static bool is_chosen(const struct pupil_options *options)
{
    const char *rank = getenv("HVD_RANK");
    uint64_t mine = 0;
    int fd;

    if (options->rank != UINT64_MAX && (!rank ||
                                        text_parse_u64((struct span){ rank, strlen(rank) }, 0,
                                                       INT32_MAX, "HVD_RANK", &mine, NULL) ||
                                        mine != options->rank))
        return false;
    if (!options->once)
        return true;
    fd = open(options->once, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return false;
    close(fd);
    return true;
}

bool pupil_options_read(struct pupil_options *options, int argc, char **argv, int *ret_status)
{
    struct hvd_err err;
    int rest = 0;
    int rc = opt_init(&options->set, table, ARRAY_SIZE(table), options);

    *ret_status = 2;
    if (rc)
        return false;
    rc = opt_argv(&options->set, argc, argv, &rest, &err);
    if (!rc && rest < argc)
        rc = err_set(&err, HVD_E_INVAL, "%s: pupil takes options only", argv[rest]);
    if (rc) {
        fprintf(stderr, "pupil: %s\n", err.text);
        return false;
    }
    if (options->help) {
        *ret_status = show_help(&options->set);
        return false;
    }
    if (opt_source(&options->set, "rank") == OPT_UNSET)
        options->rank = UINT64_MAX;
    options->misbehaves = is_chosen(options);
    return true;
}

void pupil_options_release(struct pupil_options *options)
{
    opt_release(&options->set);
}
