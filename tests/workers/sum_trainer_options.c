/*
 * sum_trainer_options.c: the options of sum_trainer: how long it trains, how much state it has, and
 * where it dies, hangs or fails on purpose.
 */
#include "tests/workers/sum_trainer_options.h"

#include "tests/workers/worker_options.h"

#define STEPS_MAX UINT64_C(1000000000000)
#define GENERAL   "training"
#define WRONG     "what it does wrong"
#define ROW(...)  OPT(struct sum_trainer_options, __VA_ARGS__)

static const char *const places[] = { "nowhere", "init",  "built", "step", "commit",
                                      "async",   "check", "reset", "load", "ragged",
                                      "open",    "end",   NULL };
static const char *const wrongs[] = { "die", "hang", "fail", NULL };

static const struct opt table[] = {
    ROW(steps, .name = "steps", .arg = "N", .max = STEPS_MAX, .preset = "0", .group = GENERAL,
        .help = "steps to train; 0: without end"),
    ROW(step_ms, .name = "step-ms", .arg = "MS", .max = WORKER_DAYS_MS, .preset = "1",
        .group = GENERAL, .help = "how long a step computes"),
    ROW(boot_ms, .name = "boot-ms", .arg = "MS", .max = WORKER_DAYS_MS, .preset = "0",
        .group = GENERAL, .help = "how long it takes until it is built"),
    ROW(boot_until, .name = "boot-until", .arg = "FILE", .group = GENERAL,
        .help = "it is not built before the file is there"),
    ROW(elements, .name = "elements", .arg = "N", .max = 1 << 28, .min = 1, .preset = "64",
        .group = GENERAL, .help = "numbers that are added up over all ranks in each step"),
    ROW(state_mib, .name = "state", .arg = "MIB", .max = 1 << 20, .preset = "0", .group = GENERAL,
        .help = "more state, which is not changed by the training"),
    ROW(commit_every, .name = "commit-every", .arg = "N", .max = STEPS_MAX, .min = 1, .preset = "1",
        .group = GENERAL, .help = "steps from one commit to the next"),
    ROW(async, .name = "async", .group = GENERAL, .help = "commit beside the training"),
    ROW(ragged, .name = "ragged", .group = GENERAL,
        .help = "in each step also tell the others numbers of which they do not know how many"),
    ROW(regroup, .name = "regroup", .group = GENERAL,
        .help = "open and close groups in train, and add up in them"),
    ROW(say, .name = "say", .arg = "FILE", .group = GENERAL,
        .help = "append \"incarnation round rank size\" when a round is entered"),
    ROW(made, .name = "made", .arg = "FILE", .group = GENERAL,
        .help = "append \"round rank step incarnation\" when a step is made"),
    ROW(final, .name = "final", .arg = "FILE", .group = GENERAL,
        .help = "append \"incarnation rank steps digest\" at the end"),
    ROW(ask_every, .name = "ask-every", .arg = "N", .max = STEPS_MAX, .preset = "0",
        .group = GENERAL, .help = "wait for a checkpoint after every N steps (hvd_checkpoint)"),
    ROW(asked, .name = "asked", .arg = "FILE", .group = GENERAL,
        .help = "append \"step rank\" for each checkpoint that was waited for"),
    ROW(slow_until, .name = "slow-until", .arg = "FILE", .group = GENERAL,
        .help = "make the last quarter of the steps slowly until the file is there"),
    ROW(timeline, .name = "own-timeline", .arg = "FILE", .group = GENERAL,
        .help = "turn the timeline on, with hvd_timeline_start"),
    ROW(timeline_from, .name = "timeline-from", .arg = "STEP", .max = STEPS_MAX, .preset = "0",
        .group = GENERAL, .help = "at this step"),
    ROW(timeline_to, .name = "timeline-to", .arg = "STEP", .max = STEPS_MAX, .preset = "0",
        .group = GENERAL, .help = "and off at this step; 0: never"),
    ROW(timeline_rank, .name = "timeline-rank", .arg = "RANK", .max = INT32_MAX, .group = GENERAL,
        .help = "only on this rank"),
    ROW(late_ms, .name = "late-ms", .arg = "MS", .max = WORKER_DAYS_MS, .preset = "0",
        .group = GENERAL, .help = "how much longer a step computes on --late-rank"),
    ROW(late_rank, .name = "late-rank", .arg = "RANK", .max = INT32_MAX, .preset = "0",
        .group = GENERAL, .help = "the rank that is late"),
    ROW(place, .name = "where", .arg = "PLACE", .choices = places, .preset = "nowhere",
        .group = WRONG, .help = "where it does wrong"),
    ROW(wrong, .name = "wrong", .arg = "DEED", .choices = wrongs, .preset = "die", .group = WRONG,
        .help = "what it does there: die by SIGKILL, hang, or return a code of its own"),
    ROW(at, .name = "at", .arg = "STEP", .max = STEPS_MAX, .preset = "0", .group = WRONG,
        .help = "at this step, or at the first chance after it"),
    ROW(once, .name = "once", .arg = "FILE", .group = WRONG,
        .help = "only who is the first to create it does wrong"),
    ROW(rank, .name = "rank", .arg = "RANK", .max = INT32_MAX, .group = WRONG,
        .help = "only who starts with this rank does wrong"),
    ROW(other_state, .name = "other-state", .group = WRONG,
        .help = "register an entry that the others have not"),
    ROW(extra_check, .name = "extra-check", .group = WRONG, .help = "check once too often a step"),
    ROW(two_threads, .name = "two-threads", .group = WRONG,
        .help = "make the calls of the loop from a second thread too"),
    ROW(lie, .name = "lie", .group = WRONG,
        .help = "from that step on have another state than the others"),
    ROW(drop_news, .name = "drop-news", .group = WRONG, .help = "return 0 from train at any news"),
    ROW(help, .name = "help", .key = 'h', .flags = OPT_ARGV_ONLY, .group = GENERAL,
        .help = "this text"),
};

bool sum_trainer_options_read(struct sum_trainer_options *options, int argc, char **argv,
                              int *ret_status)
{
    const struct worker_options reads = {
        .program = "sum_trainer",
        .about = "Trains with the library, in a way that shows each lost or repeated step.",
        .table = table,
        .count = ARRAY_SIZE(table),
        .into = options,
        .help = &options->help
    };

    if (!worker_options_read(&reads, &options->set, argc, argv, ret_status))
        return false;
    if (opt_source(&options->set, "rank") == OPT_UNSET)
        options->rank = UINT64_MAX;
    if (opt_source(&options->set, "timeline-rank") == OPT_UNSET)
        options->timeline_rank = UINT64_MAX;
    options->misbehaves = worker_is_chosen(options->rank, options->once);
    return true;
}
