#include "tests/conformance/scholar_options.h"

#include "base/opt_show.h"
#include "tests/conformance/schedule.h"

#include <stdio.h>
#include <stdlib.h>

#define COUNT_MAX UINT64_C(1000000000)
#define GENERAL   "training"
#define EVENTS    "what happens"
#define ROW(...)  OPT(struct scholar_options, __VA_ARGS__)

static const struct opt table[] = {
    ROW(epochs, .name = "epochs", .arg = "N", .min = 1, .max = COUNT_MAX, .preset = "3",
        .group = GENERAL, .help = "epochs to train"),
    ROW(batches, .name = "batches", .arg = "N", .min = 1, .max = COUNT_MAX, .preset = "10",
        .group = GENERAL, .help = "batches of an epoch"),
    ROW(batch_ms, .name = "batch-ms", .arg = "MS", .max = COUNT_MAX, .preset = "1",
        .group = GENERAL, .help = "how long a batch computes"),
    ROW(log, .name = "log", .arg = "FILE", .group = GENERAL,
        .help = "rank 0 appends at the end of an epoch \"epoch batch commits host start-rank rank "
                "size rounds round\""),
    ROW(say, .name = "say", .arg = "FILE", .group = GENERAL,
        .help = "append \"incarnation round rank size\" when a round is entered"),
    ROW(exits, .name = "exits", .arg = "LIST", .group = EVENTS,
        .help = "who fails when, and how: \"EPOCH.BATCH:HOW:RANK,RANK ...\", by the rank in its "
                "first round, or RANK@HOST; HOW is raise, kill, raise-once or kill-once"),
    ROW(once, .name = "once", .arg = "FOLDER", .preset = ".", .group = EVENTS,
        .help = "where is kept who has failed once"),
    ROW(looks, .name = "looks", .arg = "FILE", .group = EVENTS,
        .help = "go on after an epoch when the driver has looked for hosts twice: a line each, "
                "with how many epochs it knew of"),
    ROW(changes, .name = "changes", .arg = "LIST", .group = EVENTS,
        .help = "go on after these epochs when there is another round"),
    ROW(door, .name = "door", .arg = "FILE", .group = EVENTS,
        .help = "who is started after the first epoch joins only while a change is waited for"),
    ROW(gates, .name = "gates", .arg = "FOLDER", .group = EVENTS,
        .help = "if it has FOLDER/EPOCH.shut, go on after that epoch when FOLDER/EPOCH.open is "
                "there too"),
    ROW(patience_s, .name = "patience", .arg = "S", .min = 1, .max = 3600, .preset = "50",
        .group = EVENTS, .help = "how long to wait for any of it"),
    ROW(help, .name = "help", .key = 'h', .flags = OPT_ARGV_ONLY, .group = GENERAL,
        .help = "this text"),
};

static int show_help(const struct opt_set *set)
{
    struct buf out;
    int rc;

    buf_init(&out, 65536);
    rc = opt_show_help(set, "scholar [options]",
                       "Trains in epochs of batches, and writes down after each epoch who did.",
                       &out);
    fputs(buf_text(&out), stdout);
    buf_release(&out);
    return rc ? 2 : 0;
}

static const char *variable(const char *name, const char *otherwise)
{
    const char *value = getenv(name);

    return value ? value : otherwise;
}

bool scholar_options_read(struct scholar_options *options, int argc, char **argv, int *ret_status)
{
    struct hvd_err err;
    int rest = 0;
    int rc = opt_init(&options->set, table, ARRAY_SIZE(table), options);

    *ret_status = 2;
    if (rc)
        return false;
    rc = opt_argv(&options->set, argc, argv, &rest, &err);
    if (!rc && rest < argc)
        rc = err_set(&err, HVD_E_INVAL, "%s: scholar takes options only", argv[rest]);
    if (!rc)
        rc = schedule_check(options->exits, options->changes, &err);
    if (rc) {
        fprintf(stderr, "scholar: %s\n", err.text);
        return false;
    }
    if (options->help) {
        *ret_status = show_help(&options->set);
        return false;
    }
    options->host = variable("HOROVOD_HOSTNAME", "-");
    options->incarnation = variable("HVD_INCARNATION", "0");
    return true;
}

void scholar_options_release(struct scholar_options *options)
{
    opt_release(&options->set);
}
