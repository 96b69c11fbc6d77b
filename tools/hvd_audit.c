/*
 * hvd-audit: the proof that a job has used each sample of each finished epoch exactly once, from
 * what its workers wrote into HVD_SAMPLE_LOG. It shares no code with what deals the samples out.
 */
#include "base/limits.h"
#include "base/mem.h"
#include "base/opt.h"
#include "base/opt_show.h"
#include "tools/audit.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Exit codes, in the docs and in the tests. */
enum { EXIT_PROVEN = 0, EXIT_WRONG = 1, EXIT_USAGE = 2, EXIT_STORAGE = 4 };

#define READ_BYTES (256 * 1024)

struct audit_options {
    uint64_t epochs;
    bool json, help, version, list_options;
};

#define ROW(field, ...) OPT(struct audit_options, field, __VA_ARGS__)

/* clang-format off */
static const struct opt table[] = {
    ROW(epochs, .name = "epochs", .arg = "N", .preset = "0", .max = LIMIT_SAMPLES, .group = "Options",
        .flags = OPT_ARGV_ONLY, .help = "each sampler must have finished N epochs at least"),
    ROW(json, .name = "json", .flags = OPT_ARGV_ONLY, .group = "Options",
        .help = "for programs: one JSON object"),
    ROW(list_options, .name = "list-options", .flags = OPT_ARGV_ONLY, .group = "Options",
        .help = "list the options for other programs: name, group, default"),
    ROW(help, .name = "help", .key = 'h', .flags = OPT_ARGV_ONLY, .group = "Options",
        .help = "show this, and end"),
    ROW(version, .name = "version", .flags = OPT_ARGV_ONLY, .group = "Options",
        .help = "show the version, and end"),
};
/* clang-format on */

static const char usage_text[] = "hvd-audit [options] DIR...";
static const char about_text[] =
    "Says whether each sample of each finished epoch was used exactly once, and how many were used "
    "again because of rollbacks. A DIR holds the sample logs of a job, which its workers write "
    "with "
    "HVD_SAMPLE_LOG=DIR in their environment; where each host has its own, name them all.";

static int complain(const struct hvd_err *err, int status)
{
    fflush(stdout);
    fprintf(stderr, "hvd-audit: %s\n", err->text);
    if (status == EXIT_USAGE)
        fprintf(stderr, "Try 'hvd-audit --help'.\n");
    return status;
}

/* ---- files ----------------------------------------------------------------------------------- */

struct paths VEC(char *);

static int failed(const char *path, const char *what, struct hvd_err *err)
{
    return err_set(err, HVD_E_IO, "%s: cannot %s: %s", path, what, strerror(errno));
}

static int add_path(struct paths *paths, const char *folder, const char *name, struct hvd_err *err)
{
    struct buf path;
    char *copy = NULL;

    buf_init(&path, LIMIT_PATH_BYTES);
    if (!buf_printf(&path, "%s/%s", folder, name) && !VEC_RESERVE(paths, 1, LIMIT_INCARNATIONS))
        copy = mem_strdup(buf_text(&path));
    buf_release(&path);
    if (!copy)
        return err_set(err, HVD_E_NOMEM, "%s: no memory for the names of its logs", folder);
    paths->items[paths->count++] = copy;
    return 0;
}

static int list_folder(const char *folder, struct paths *paths, struct hvd_err *err)
{
    static const char ending[] = ".samples";
    size_t before = paths->count;
    DIR *dir = opendir(folder);
    struct dirent *entry;
    int rc = 0;

    if (!dir)
        return failed(folder, "open", err);
    while (!rc && (entry = readdir(dir))) {
        size_t length = strlen(entry->d_name);

        if (length >= sizeof(ending) && !strcmp(entry->d_name + length - strlen(ending), ending))
            rc = add_path(paths, folder, entry->d_name, err);
    }
    closedir(dir);
    if (!rc && paths->count == before)
        return err_set(err, HVD_E_NOTFOUND,
                       "%s: no *.samples in it; set HVD_SAMPLE_LOG to it where the job is started",
                       folder);
    return rc;
}

struct reading {
    struct audit *audit;
    const char *path;
    uint64_t line;
    bool mark; /* the second time */
};

static int take_line(struct reading *reading, struct span text, struct hvd_err *err)
{
    struct audit_line line;
    int rc = audit_line_read(text, &line, err);

    reading->line++;
    if (!rc && reading->mark)
        audit_mark(reading->audit, &line);
    else if (!rc)
        rc = audit_note(reading->audit, &line, err);
    if (rc)
        err_prefix(err, rc, "%s: line %" PRIu64, reading->path, reading->line);
    return rc;
}

/* Takes the lines that are whole, and leaves the rest for the next time. */
static int take_lines(struct reading *reading, struct buf *buf, struct hvd_err *err)
{
    const char *at = buf_text(buf);
    const char *end = at + buf->length;
    const char *newline;
    int rc = 0;

    while (!rc && (newline = memchr(at, '\n', (size_t)(end - at)))) {
        rc = take_line(reading, (struct span){ at, (size_t)(newline - at) }, err);
        at = newline + 1;
    }
    buf_consume(buf, (size_t)(at - buf_text(buf)));
    return rc;
}

/* What stands behind the last newline is of a worker that died while it wrote: it was not used. */
static int read_log(struct reading *reading, struct hvd_err *err)
{
    int fd = open(reading->path, O_RDONLY | O_CLOEXEC);
    ssize_t got = 1;
    struct buf buf;
    int rc = 0;

    if (fd < 0)
        return failed(reading->path, "open", err);
    buf_init(&buf, LIMIT_SAMPLE_LINE_BYTES + READ_BYTES);
    audit_begin_file(reading->audit);
    while (!rc && got > 0) {
        rc = buf_reserve(&buf, READ_BYTES);
        if (rc) {
            err_set(err, rc, "%s: line %" PRIu64 ": no room for it; this is no sample log",
                    reading->path, reading->line + 1);
            break;
        }
        got = read(fd, buf.data + buf.length, READ_BYTES);
        if (got < 0)
            rc = failed(reading->path, "read", err);
        if (got > 0) {
            buf.length += (size_t)got;
            rc = take_lines(reading, &buf, err);
        }
    }
    buf_release(&buf);
    close(fd);
    return rc;
}

static int read_all(struct audit *audit, const struct paths *paths, bool mark, struct hvd_err *err)
{
    int rc = 0;

    for (size_t i = 0; !rc && i < paths->count; i++)
        rc = read_log(&(struct reading){ audit, paths->items[i], 0, mark }, err);
    return rc;
}

/* ---- what is said ---------------------------------------------------------------------------- */

struct sum {
    uint64_t finished, wrong, repeated, unfinished_samplers;
};

static struct sum sum_of_sampler(const struct audit_sampler *sampler, uint64_t epochs)
{
    struct sum sum = { 0 };

    for (size_t i = 0; i < sampler->epochs.count; i++) {
        sum.finished += sampler->epochs.items[i]->finished;
        sum.wrong += sampler->epochs.items[i]->faults > 0;
        sum.repeated += sampler->epochs.items[i]->repeated;
    }
    sum.unfinished_samplers = sum.finished < epochs;
    return sum;
}

static void show_epoch(const struct audit_sampler *sampler, const struct audit_epoch *epoch)
{
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
    for (uint64_t i = 0; i < epoch->faults && i < AUDIT_FAULTS_SHOWN; i++)
        printf("    %s\n", epoch->shown[i]);
    if (epoch->faults > AUDIT_FAULTS_SHOWN)
        printf("    ... and %" PRIu64 " more\n", epoch->faults - AUDIT_FAULTS_SHOWN);
}

static void show_sampler(const struct audit_sampler *sampler, uint64_t epochs)
{
    struct sum sum = sum_of_sampler(sampler, epochs);

    printf("%s: %" PRIu64 " samples\n", sampler->name, sampler->samples);
    for (size_t i = 0; i < sampler->epochs.count; i++)
        show_epoch(sampler, sampler->epochs.items[i]);
    if (sum.wrong)
        printf("  WRONG: in %" PRIu64 " epochs\n", sum.wrong);
    else
        printf("  %" PRIu64 " epochs finished, each sample of them used exactly once; %" PRIu64
               " samples were computed twice, as rounds were rolled back %" PRIu64 " times\n",
               sum.finished, sum.repeated, sampler->rounds_rolled_back);
    if (sum.unfinished_samplers)
        printf("  WRONG: fewer than the %" PRIu64 " epochs that should be finished\n", epochs);
}

/* Names and faults are clean text (audit_line.h): only these two need care. */
static void show_json_text(const char *text)
{
    putchar('"');
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            putchar('\\');
        putchar(*text);
    }
    putchar('"');
}

static void show_json_epoch(const struct audit_epoch *epoch)
{
    printf("{\"epoch\":%" PRIu64 ",\"finished\":%s,\"ok\":%s,\"batches\":%" PRIu64
           ",\"used\":%" PRIu64 ",\"missing\":%" PRIu64 ",\"twice\":%" PRIu64
           ",\"repeated\":%" PRIu64 ",\"faults\":[",
           epoch->number, epoch->finished ? "true" : "false", epoch->faults ? "false" : "true",
           epoch->batches, epoch->used, epoch->missing, epoch->twice, epoch->repeated);
    for (uint64_t i = 0; i < epoch->faults && i < AUDIT_FAULTS_SHOWN; i++) {
        fputs(i ? "," : "", stdout);
        show_json_text(epoch->shown[i]);
    }
    fputs("]}", stdout);
}

static void show_json(const struct audit *audit, bool good)
{
    printf("{\"ok\":%s,\"samplers\":[", good ? "true" : "false");
    for (size_t i = 0; i < audit->samplers.count; i++) {
        const struct audit_sampler *sampler = audit->samplers.items[i];

        printf("%s{\"name\":", i ? "," : "");
        show_json_text(sampler->name);
        printf(",\"samples\":%" PRIu64 ",\"rollbacks\":%" PRIu64 ",\"epochs\":[", sampler->samples,
               sampler->rounds_rolled_back);
        for (size_t k = 0; k < sampler->epochs.count; k++) {
            fputs(k ? "," : "", stdout);
            show_json_epoch(sampler->epochs.items[k]);
        }
        fputs("]}", stdout);
    }
    puts("]}");
}

static int show(const struct audit *audit, const struct audit_options *options)
{
    bool good = true;

    for (size_t i = 0; i < audit->samplers.count; i++) {
        struct sum sum = sum_of_sampler(audit->samplers.items[i], options->epochs);

        good = good && !sum.wrong && !sum.unfinished_samplers;
    }
    if (options->json)
        show_json(audit, good);
    for (size_t i = 0; !options->json && i < audit->samplers.count; i++)
        show_sampler(audit->samplers.items[i], options->epochs);
    if (!options->json && audit->samplers.count == 0)
        printf("no batch was used\n");
    return good && (audit->samplers.count || !options->epochs) ? EXIT_PROVEN : EXIT_WRONG;
}

/* ---- the program ----------------------------------------------------------------------------- */

static int run(const struct audit_options *options, char **folders)
{
    struct paths paths = { .count = 0 };
    struct hvd_err err = { 0 };
    struct audit audit;
    int status;
    int rc = 0;

    if (!folders[0]) {
        err_set(&err, HVD_E_INVAL, "no folder; name the one that HVD_SAMPLE_LOG was set to");
        return complain(&err, EXIT_USAGE);
    }
    audit_init(&audit);
    for (size_t i = 0; !rc && folders[i]; i++)
        rc = list_folder(folders[i], &paths, &err);
    if (!rc)
        rc = read_all(&audit, &paths, false, &err);
    if (!rc)
        rc = audit_judge(&audit, &err);
    if (!rc)
        rc = read_all(&audit, &paths, true, &err);
    if (rc) {
        status = complain(&err, rc == HVD_E_NOMEM || rc == HVD_E_LIMIT ? EXIT_STORAGE : EXIT_WRONG);
    } else {
        audit_finish(&audit);
        status = show(&audit, options);
    }
    for (size_t i = 0; i < paths.count; i++)
        mem_free(paths.items[i]);
    VEC_RELEASE(&paths);
    audit_release(&audit);
    return status;
}

/* --help and its like: true when it was asked for, and has been answered. */
static bool answer(const struct opt_set *set, const struct audit_options *options, int *ret_status)
{
    struct buf out;
    int rc = 0;

    buf_init(&out, LIMIT_CONFIG_TEXT_BYTES);
    if (options->help)
        rc = opt_show_help(set, usage_text, about_text, &out);
    else if (options->version)
        rc = buf_printf(&out, "hvd-audit %s\n", HVD_VERSION_TEXT);
    else if (options->list_options)
        rc = opt_show_names(set, &out);
    else
        return false;
    fputs(buf_text(&out), stdout);
    buf_release(&out);
    *ret_status = rc ? EXIT_STORAGE : EXIT_PROVEN;
    return true;
}

int main(int argc, char **argv)
{
    struct audit_options options;
    struct hvd_err err = { 0 };
    struct opt_set set;
    int status = EXIT_PROVEN;
    int rest;

    if (opt_init(&set, table, ARRAY_SIZE(table), &options)) {
        fprintf(stderr, "hvd-audit: out of memory\n");
        return EXIT_STORAGE;
    }
    if (opt_argv(&set, argc, argv, &rest, &err))
        status = complain(&err, EXIT_USAGE);
    else if (!answer(&set, &options, &status))
        status = run(&options, argv + rest);
    opt_release(&set);
    if ((fflush(stdout) || ferror(stdout)) && status == EXIT_PROVEN) {
        err_set(&err, HVD_E_IO, "cannot write to standard output: %s", strerror(errno));
        status = complain(&err, EXIT_STORAGE);
    }
    return status;
}
