/*
 * hvd_timeline.c: the tool hvd-timeline. From the timelines of a job (--timeline-filename) it says
 * which worker was the last to come to the collectives, and how long the others waited for it.
 */
#include "base/time.h"
#include "os/opt_main.h"
#include "tools/arrivals.h"
#include "tools/lines.h"

#include <inttypes.h>
#include <stdio.h>

/* The exit codes; docs and tests name them, too. */
enum { EXIT_SHOWN = 0, EXIT_NOTHING = 1, EXIT_USAGE = 2, EXIT_STORAGE = 4 };

/* the most bytes of a line; timeline/ writes lines of at most 4096 bytes */
#define LINE_BYTES 65536

struct timeline_options {
    bool json;
    struct opt_general general;
};

#define ROW(field, ...) OPT(struct timeline_options, field, __VA_ARGS__)

/* clang-format off */
static const struct opt table[] = {
    ROW(json, .name = "json", .flags = OPT_ARGV_ONLY, .group = "Options",
        .help = "for programs: one JSON object"),
    OPT_GENERAL_ROWS(struct timeline_options, general, "Options"),
};
/* clang-format on */

/* Gets each line of the files from lines_read; `arg` is the struct arrivals. */
static int timeline_take(void *arg, struct span line, struct hvd_err *err)
{
    return arrivals_line(arg, line, err);
}

/* Writes a length of time as text; one that is too large for int64_t loses its highest bit. */
static const char *timeline_shown(uint64_t us, char text[TIME_TEXT_MAX])
{
    return time_format((int64_t)(us & INT64_MAX), text);
}

/* Prints a line for each worker, the worst call, and by how much the clocks of the machines differ.
 */
static void show_text(const struct arrivals *arrivals)
{
    char alone[TIME_TEXT_MAX], most[TIME_TEXT_MAX];

    printf("%" PRIu64 " collectives were compared", arrivals->compared);
    if (arrivals->partial)
        printf("; %" PRIu64
               " more could not be compared, because the calls of some ranks are missing",
               arrivals->partial);
    putchar('\n');
    if (!arrivals->compared)
        return;
    printf("%10s  %10s  %10s  %s\n", "was last", "waited for", "at most", "worker");
    for (size_t i = 0; i < arrivals->workers.count; i++) {
        const struct arrivals_worker *worker = &arrivals->workers.items[i];

        printf("%10" PRIu64 "  %10s  %10s  %s\n", worker->last,
               timeline_shown(worker->alone_us, alone), timeline_shown(worker->most_us, most),
               worker->name[0] ? worker->name : "(no name)");
    }
    printf("sum over all collectives of the time between first and last rank: %s",
           timeline_shown(arrivals->spread_us, alone));
    printf(", at most %s, in call %" PRIu64 " of round %" PRIu64 "\n",
           timeline_shown(arrivals->worst.us, most), arrivals->worst.number, arrivals->worst.round);
    if (arrivals->clock_us)
        printf(
            "the clocks of the machines differ by %s or more: smaller times mean nothing between "
            "machines\n",
            timeline_shown(arrivals->clock_us, alone));
}

/* Runs the tool on these timelines, and returns its exit code: EXIT_NOTHING also when no collective
 * could be compared. */
static int timeline_run(const struct opt_program *program, char **files)
{
    const struct timeline_options *options = program->options;
    struct hvd_err err = { 0 };
    struct arrivals arrivals;
    const struct lines lines = { .kind = "timeline of hvd-elastic",
                                 .line_max = LINE_BYTES,
                                 .too_long = HVD_E_INVAL,
                                 .take = timeline_take,
                                 .arg = &arrivals };
    int status;
    int rc = 0;

    if (!files[0]) {
        err_set(&err, HVD_E_INVAL,
                "the file is missing; name the file that --timeline-filename has written");
        return opt_complain(program, &err, EXIT_USAGE);
    }
    arrivals_init(&arrivals);
    for (size_t i = 0; !rc && files[i]; i++)
        rc = lines_read(&lines, files[i], &err);
    if (!rc)
        rc = arrivals_judge(&arrivals, &err);
    if (rc) {
        status = opt_complain(program, &err,
                              rc == HVD_E_NOMEM || rc == HVD_E_LIMIT ? EXIT_STORAGE : EXIT_NOTHING);
    } else {
        if (!options->json) {
            show_text(&arrivals);
        } else {
            printf("{\"compared\":%" PRIu64 ",\"partial\":%" PRIu64 ",\"spread_us\":%" PRIu64
                   ",\"clock_us\":%" PRIu64 ",\"worst\":{\"us\":%" PRIu64 ",\"round\":%" PRIu64
                   ",\"number\":%" PRIu64 "},\"workers\":[",
                   arrivals.compared, arrivals.partial, arrivals.spread_us, arrivals.clock_us,
                   arrivals.worst.us, arrivals.worst.round, arrivals.worst.number);
            /* The names are valid JSON texts already, because they keep the escapes of the file. */
            for (size_t i = 0; i < arrivals.workers.count; i++) {
                const struct arrivals_worker *worker = &arrivals.workers.items[i];

                printf("%s{\"worker\":\"%s\",\"last\":%" PRIu64 ",\"alone_us\":%" PRIu64
                       ",\"most_us\":%" PRIu64 "}",
                       i ? "," : "", worker->name, worker->last, worker->alone_us, worker->most_us);
            }
            puts("]}");
        }
        status = arrivals.compared ? EXIT_SHOWN : EXIT_NOTHING;
    }
    arrivals_release(&arrivals);
    return status;
}

int main(int argc, char **argv)
{
    struct timeline_options options = { 0 };
    const struct opt_program program = {
        .name = "hvd-timeline",
        .usage = "hvd-timeline [options] FILE...",
        .about = "Says which worker was the last to come to the collectives of a job, and how long "
                 "the others were there before it. A FILE is a timeline, which a job writes with "
                 "--timeline-filename; where each host has its own, name them all.",
        .table = table,
        .count = ARRAY_SIZE(table),
        .options = &options,
        .general = &options.general,
        .usage_exit = EXIT_USAGE,
        .storage_exit = EXIT_STORAGE,
        .read = opt_argv,
        .run = timeline_run,
    };

    return opt_main(&program, argc, argv);
}
