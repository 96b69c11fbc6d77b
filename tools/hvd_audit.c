/*
 * hvd_audit.c: the tool hvd-audit. From the sample logs of the workers (HVD_SAMPLE_LOG) it proves
 * that a job has used each sample of each finished epoch exactly once. The tool reads each log
 * twice: audit.c first judges the batches, then counts single samples. The tool shares no code with
 * the sampler.
 */
#include "base/buf.h"
#include "base/limits.h"
#include "base/mem.h"
#include "os/opt_main.h"
#include "tools/audit.h"
#include "tools/lines.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* The exit codes; docs and tests name them, too. */
enum { EXIT_PROVEN = 0, EXIT_WRONG = 1, EXIT_USAGE = 2, EXIT_STORAGE = 4 };

struct audit_options {
    uint64_t epochs;
    bool successors;
    bool json;
    struct opt_general general;
};

#define ROW(field, ...) OPT(struct audit_options, field, __VA_ARGS__)

/* clang-format off */
static const struct opt table[] = {
    ROW(epochs, .name = "epochs", .arg = "N", .preset = "0", .max = LIMIT_SAMPLES, .group = "Options",
        .flags = OPT_ARGV_ONLY, .help = "each sampler must have finished N epochs at least"),
    ROW(successors, .name = "successors", .flags = OPT_ARGV_ONLY, .group = "Options",
        .help = "each DIR is of a job of its own, which began with a checkpoint of the one before it"),
    ROW(json, .name = "json", .flags = OPT_ARGV_ONLY, .group = "Options",
        .help = "for programs: one JSON object"),
    OPT_GENERAL_ROWS(struct audit_options, general, "Options"),
};
/* clang-format on */

struct log {
    char *path;   /* of the sample log */
    uint64_t job; /* the number of its folder, when each folder is of a job of its own; else 0 */
};

/* The sample logs of all folders. */
struct paths VEC(struct log);

/* Appends the paths of the sample logs in the folder. */
static int audit_list_folder(const char *folder, uint64_t job, struct paths *paths,
                             struct hvd_err *err)
{
    static const char ending[] = ".samples";
    size_t before = paths->count;
    DIR *dir = opendir(folder);
    struct dirent *entry;
    int rc = 0;

    if (!dir)
        return err_set(err, HVD_E_IO, "%s: cannot open: %s; give a folder that this user can read",
                       folder, strerror(errno));
    while (!rc && (entry = readdir(dir))) {
        size_t length = strlen(entry->d_name);
        struct buf path;
        char *copy = NULL;

        if (length < sizeof(ending) || strcmp(entry->d_name + length - strlen(ending), ending) != 0)
            continue;
        buf_init(&path, LIMIT_PATH_BYTES);
        if (!buf_printf(&path, "%s/%s", folder, entry->d_name) &&
            !VEC_RESERVE(paths, 1, LIMIT_INCARNATIONS))
            copy = mem_strdup(buf_text(&path));
        buf_release(&path);
        /* LIMIT_INCARNATIONS, the most workers that a job starts, is more logs than all folders
         * have in practice, and a file that can be opened has a path of at most LIMIT_PATH_BYTES.
         * So a failure here counts as missing memory. */
        if (copy)
            paths->items[paths->count++] = (struct log){ copy, job };
        else
            rc = err_set(
                err, HVD_E_NOMEM,
                "%s: no memory for the names of the logs in this folder; free memory on this host",
                folder);
    }
    closedir(dir);
    if (!rc && paths->count == before)
        return err_set(err, HVD_E_NOTFOUND,
                       "%s: the folder has no file *.samples; set HVD_SAMPLE_LOG to this folder "
                       "when the job is started",
                       folder);
    return rc;
}

/* Takes a line in the first reading, which finds the batches. */
static int audit_take_batch(void *arg, struct span text, struct hvd_err *err)
{
    struct audit_line line;
    int rc = audit_line_read(text, &line, err);

    return rc ? rc : audit_note(arg, &line, err);
}

/* Takes a line in the second reading, which counts single samples. */
static int audit_take_samples(void *arg, struct span text, struct hvd_err *err)
{
    struct audit_line line;
    int rc = audit_line_read(text, &line, err);

    if (!rc)
        audit_mark(arg, &line);
    return rc;
}

/* Reads all logs once, and passes each line to `take`. Text after the last newline is left out: the
 * worker died while it wrote that line, and did not use the batch. */
static int audit_read_logs(struct audit *audit, const struct paths *paths, lines_fn *take,
                           struct hvd_err *err)
{
    const struct lines lines = { .kind = "sample log",
                                 .line_max = LIMIT_SAMPLE_LINE_BYTES,
                                 .too_long = HVD_E_LIMIT,
                                 .take = take,
                                 .arg = audit };
    int rc = 0;

    for (size_t i = 0; !rc && i < paths->count; i++) {
        audit_begin_file(audit);
        audit_begin_job(audit, paths->items[i].job);
        rc = lines_read(&lines, paths->items[i].path, err);
    }
    return rc;
}

/* The epochs of one sampler, summed up. */
struct sum {
    uint64_t finished; /* epochs that are finished */
    uint64_t wrong;    /* epochs with faults */
    uint64_t repeated; /* samples that were rolled back and used again */
    bool too_few;      /* true: fewer epochs are finished than --epochs demands */
};

/* Sums up the epochs of a sampler. epochs: how many finished epochs --epochs demands. */
static struct sum audit_sum(const struct audit_sampler *sampler, uint64_t epochs)
{
    struct sum sum = { 0 };

    for (size_t i = 0; i < sampler->epochs.count; i++) {
        sum.finished += sampler->epochs.items[i]->finished;
        sum.wrong += sampler->epochs.items[i]->faults > 0;
        sum.repeated += sampler->epochs.items[i]->repeated;
    }
    sum.too_few = sum.finished < epochs;
    return sum;
}

/* Prints the result of the audit for an operator: for each sampler its epochs and their faults. */
static void audit_show_text(const struct audit *audit, uint64_t epochs)
{
    for (size_t i = 0; i < audit->samplers.count; i++) {
        const struct audit_sampler *sampler = audit->samplers.items[i];
        struct sum sum = audit_sum(sampler, epochs);

        printf("%s: %" PRIu64 " samples\n", sampler->name, sampler->samples);
        for (size_t k = 0; k < sampler->epochs.count; k++) {
            const struct audit_epoch *epoch = sampler->epochs.items[k];

            printf("  epoch %" PRIu64 ": ", epoch->number);
            if (epoch->faults)
                printf("WRONG");
            else if (epoch->finished)
                printf("each sample exactly once");
            else
                printf("not finished: %" PRIu64 " of %" PRIu64 " used, none twice", epoch->used,
                       sampler->samples);
            printf(", %" PRIu64 " batches", epoch->batches);
            if (epoch->repeated)
                printf("; %" PRIu64 " were rolled back and used again", epoch->repeated);
            putchar('\n');
            for (uint64_t n = 0; n < epoch->faults && n < AUDIT_FAULTS_SHOWN; n++)
                printf("    %s\n", epoch->shown[n]);
            if (epoch->faults > AUDIT_FAULTS_SHOWN)
                printf("    ... and %" PRIu64 " more\n", epoch->faults - AUDIT_FAULTS_SHOWN);
        }
        if (sum.wrong)
            printf("  WRONG: in %" PRIu64 " epochs\n", sum.wrong);
        else
            printf("  %" PRIu64 " epochs finished, each sample of them used exactly once; %" PRIu64
                   " samples were computed twice, as rounds were rolled back %" PRIu64 " times\n",
                   sum.finished, sum.repeated, sampler->rounds_rolled_back);
        if (sum.too_few)
            printf("  WRONG: only %" PRIu64 " epochs are finished, and --epochs demands %" PRIu64
                   "\n",
                   sum.finished, epochs);
    }
    if (audit->samplers.count == 0)
        printf("no batch was used\n");
}

/* Prints a text as JSON. Names (audit_line_read) and faults (text_line) have no control character
 * but the tab, so only the tab, the quote and the backslash are escaped. */
static void audit_show_json_text(const char *text)
{
    putchar('"');
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            putchar('\\');
        if (*text == '\t')
            fputs("\\t", stdout);
        else
            putchar(*text);
    }
    putchar('"');
}

/* Prints the result of the audit as one JSON object. good: nothing is wrong. */
static void audit_show_json(const struct audit *audit, bool good)
{
    printf("{\"ok\":%s,\"samplers\":[", good ? "true" : "false");
    for (size_t i = 0; i < audit->samplers.count; i++) {
        const struct audit_sampler *sampler = audit->samplers.items[i];

        printf("%s{\"name\":", i ? "," : "");
        audit_show_json_text(sampler->name);
        printf(",\"samples\":%" PRIu64 ",\"rollbacks\":%" PRIu64 ",\"epochs\":[", sampler->samples,
               sampler->rounds_rolled_back);
        for (size_t k = 0; k < sampler->epochs.count; k++) {
            const struct audit_epoch *epoch = sampler->epochs.items[k];

            printf("%s{\"epoch\":%" PRIu64 ",\"finished\":%s,\"ok\":%s,\"batches\":%" PRIu64
                   ",\"used\":%" PRIu64 ",\"missing\":%" PRIu64 ",\"twice\":%" PRIu64
                   ",\"repeated\":%" PRIu64 ",\"faults\":[",
                   k ? "," : "", epoch->number, epoch->finished ? "true" : "false",
                   epoch->faults ? "false" : "true", epoch->batches, epoch->used, epoch->missing,
                   epoch->twice, epoch->repeated);
            for (uint64_t n = 0; n < epoch->faults && n < AUDIT_FAULTS_SHOWN; n++) {
                fputs(n ? "," : "", stdout);
                audit_show_json_text(epoch->shown[n]);
            }
            fputs("]}", stdout);
        }
        fputs("]}", stdout);
    }
    puts("]}");
}

/* Runs the tool on these folders, and returns its exit code. */
static int audit_run(const struct opt_program *program, char **folders)
{
    struct paths paths = { .count = 0 };
    struct hvd_err err = { 0 };
    struct audit audit;
    const struct audit_options *options = program->options;
    bool good = true;
    int status;
    int rc = 0;

    if (!folders[0]) {
        err_set(&err, HVD_E_INVAL,
                "no folder is given; name the one that HVD_SAMPLE_LOG was set to");
        return opt_complain(program, &err, EXIT_USAGE);
    }
    /* Reads all logs twice: first the batches, then their samples (audit.h). */
    audit_init(&audit);
    for (size_t i = 0; !rc && folders[i]; i++)
        rc = audit_list_folder(folders[i], options->successors ? i : 0, &paths, &err);
    if (!rc)
        rc = audit_read_logs(&audit, &paths, audit_take_batch, &err);
    if (!rc)
        rc = audit_judge(&audit, &err);
    if (!rc)
        rc = audit_read_logs(&audit, &paths, audit_take_samples, &err);
    if (rc) {
        status = opt_complain(program, &err,
                              rc == HVD_E_NOMEM || rc == HVD_E_LIMIT ? EXIT_STORAGE : EXIT_WRONG);
    } else {
        audit_finish(&audit);
        for (size_t i = 0; i < audit.samplers.count; i++) {
            struct sum sum = audit_sum(audit.samplers.items[i], options->epochs);

            good = good && !sum.wrong && !sum.too_few;
        }
        if (options->json)
            audit_show_json(&audit, good);
        else
            audit_show_text(&audit, options->epochs);
        /* Logs without any batch are a success only when --epochs demands no epoch. */
        good = good && (audit.samplers.count || !options->epochs);
        status = good ? EXIT_PROVEN : EXIT_WRONG;
    }
    for (size_t i = 0; i < paths.count; i++)
        mem_free(paths.items[i].path);
    VEC_RELEASE(&paths);
    audit_release(&audit);
    return status;
}

int main(int argc, char **argv)
{
    struct audit_options options = { 0 };
    const struct opt_program program = {
        .name = "hvd-audit",
        .usage = "hvd-audit [options] DIR...",
        .about = "Says whether each sample of each finished epoch was used exactly once, and how "
                 "many were used again because of rollbacks. A DIR holds the sample logs of a job, "
                 "which its workers write with HVD_SAMPLE_LOG=DIR in their environment; where each "
                 "host has its own, name them all.",
        .table = table,
        .count = ARRAY_SIZE(table),
        .options = &options,
        .general = &options.general,
        .usage_exit = EXIT_USAGE,
        .storage_exit = EXIT_STORAGE,
        .read = opt_argv,
        .run = audit_run,
    };

    return opt_main(&program, argc, argv);
}
