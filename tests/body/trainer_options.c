#include "tests/body/trainer_options.h"

#include "base/base.h"
#include "base/opt_show.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DAYS_MS      (UINT64_C(1000) * 24 * 3600 * 1000)
#define MEMORY_MAX   (UINT64_C(1024) * 1024)
#define STEPS_MAX    UINT64_C(1000000000000)
#define GENERAL      "training"
#define WRONG        "what it does wrong"
#define TRAINER(...) OPT(struct trainer_options, __VA_ARGS__)

static const struct opt table[] = {
    TRAINER(steps, .name = "steps", .arg = "N", .max = STEPS_MAX, .preset = "0", .group = GENERAL,
            .help = "steps to train; 0: without end"),
    TRAINER(step_ms, .name = "step-ms", .arg = "MS", .max = DAYS_MS, .preset = "10",
            .group = GENERAL, .help = "how long a step takes"),
    TRAINER(boot_ms, .name = "boot-ms", .arg = "MS", .max = DAYS_MS, .preset = "0",
            .group = GENERAL, .help = "how long it takes until it is ready"),
    TRAINER(say, .name = "say", .arg = "FILE", .group = GENERAL,
            .help = "append \"incarnation round rank size\" when a round is entered"),
    TRAINER(memory_mib, .name = "memory", .arg = "MIB", .max = MEMORY_MAX, .preset = "0",
            .group = GENERAL, .help = "memory to use, all of it touched"),
    TRAINER(hold, .name = "hold", .arg = "SOCKET", .group = GENERAL,
            .help = "connect to this Unix socket too, and say nothing there"),
    TRAINER(print_bytes, .name = "print", .arg = "BYTES", .max = STEPS_MAX, .preset = "0",
            .group = GENERAL, .help = "to print in each step"),
    TRAINER(exit_at, .name = "exit-at", .arg = "STEP", .max = STEPS_MAX, .preset = "0",
            .group = WRONG, .help = "end the process there, without a word"),
    TRAINER(exit_code, .name = "exit-code", .arg = "CODE", .max = 255, .preset = "1",
            .group = WRONG, .help = "with this status"),
    TRAINER(hang_at, .name = "hang-at", .arg = "STEP", .max = STEPS_MAX, .preset = "0",
            .group = WRONG, .help = "make no further step; beats go on"),
    TRAINER(freeze_at, .name = "freeze-at", .arg = "STEP", .max = STEPS_MAX, .preset = "0",
            .group = WRONG, .help = "do nothing at all any more"),
    TRAINER(once, .name = "once", .arg = "FILE", .group = WRONG,
            .help = "only who is the first to create it does wrong"),
    TRAINER(rank, .name = "rank", .arg = "RANK", .max = INT32_MAX, .group = WRONG,
            .help = "only who starts with this rank does wrong"),
    TRAINER(daemon, .name = "daemon", .group = WRONG,
            .help = "leave a process behind, in a session of its own, that keeps the output open"),
    TRAINER(ignore_term, .name = "ignore-term", .group = WRONG, .help = "ignore SIGTERM"),
    TRAINER(close_stdout, .name = "close-stdout", .group = WRONG,
            .help = "close standard output and standard error"),
    TRAINER(help, .name = "help", .key = 'h', .flags = OPT_ARGV_ONLY, .group = GENERAL,
            .help = "this text"),
};

static int show_help(const struct opt_set *set)
{
    struct buf out;
    int rc;

    buf_init(&out, 65536);
    rc = opt_show_help(set, "trainer [options]", "A worker for tests, started by hvd-elastic.",
                       &out);
    fputs(buf_text(&out), stdout);
    buf_release(&out);
    return rc ? 2 : 0;
}

static bool is_chosen(const struct trainer_options *options)
{
    const char *rank = getenv("HVD_RANK");
    struct hvd_err err;
    uint64_t mine = 0;
    int fd;

    if (options->rank != UINT64_MAX) {
        if (!rank || text_parse_u64((struct span){ rank, strlen(rank) }, 0, INT32_MAX, "HVD_RANK",
                                    &mine, &err))
            return false;
        if (mine != options->rank)
            return false;
    }
    if (!options->once)
        return true;
    fd = open(options->once, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return false;
    close(fd);
    return true;
}

bool trainer_options_read(struct trainer_options *options, int argc, char **argv, int *ret_status)
{
    struct hvd_err err;
    int rest = 0;
    int rc = opt_init(&options->set, table, ARRAY_SIZE(table), options);

    *ret_status = 2;
    if (rc)
        return false;
    rc = opt_argv(&options->set, argc, argv, &rest, &err);
    if (!rc && rest < argc)
        rc = err_set(&err, HVD_E_INVAL, "%s: trainer takes options only", argv[rest]);
    if (rc) {
        fprintf(stderr, "trainer: %s\n", err.text);
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

void trainer_options_release(struct trainer_options *options)
{
    opt_release(&options->set);
}
