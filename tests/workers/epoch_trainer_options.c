/*
 * epoch_trainer_options.c: the options of epoch_trainer: how many epochs it trains, which rank
 * fails when, and what it waits for between two epochs.
 */
#include "tests/workers/epoch_trainer_options.h"

#include "tests/workers/epoch_schedule.h"
#include "tests/workers/worker_options.h"
#include "tests/workers/worker_report.h"

#include <stdio.h>

#define COUNT_MAX UINT64_C(1000000000)
#define GENERAL   "training"
#define EVENTS    "what happens"
#define ROW(...)  OPT(struct epoch_trainer_options, __VA_ARGS__)

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
    ROW(patience_s, .name = "patience", .arg = "S", .min = 1, .max = 3600, .preset = "180",
        .group = EVENTS, .help = "how long to wait for any of it"),
    ROW(help, .name = "help", .key = 'h', .flags = OPT_ARGV_ONLY, .group = GENERAL,
        .help = "this text"),
};

bool epoch_trainer_options_read(struct epoch_trainer_options *options, int argc, char **argv,
                                int *ret_status)
{
    const struct worker_options reads = {
        .program = "epoch_trainer",
        .about = "Trains in epochs of batches, and writes down after each epoch who did.",
        .table = table,
        .count = ARRAY_SIZE(table),
        .into = options,
        .help = &options->help
    };
    struct hvd_err err;

    if (!worker_options_read(&reads, &options->set, argc, argv, ret_status))
        return false;
    if (epoch_schedule_check(options->exits, options->changes, &err)) {
        fprintf(stderr, "epoch_trainer: %s\n", err.text);
        *ret_status = 2;
        return false;
    }
    options->host = worker_variable("HOROVOD_HOSTNAME", "-");
    return true;
}
