/*
 * hvd_hosts.c: the tool hvd-hosts, the dry run of a discovery script: what a host list, a host file
 * or the output of a script means, and what changes from one list to the next. The tool reads lists
 * as the driver does (discovery/) and shows the ranks that the driver would give. Nothing is
 * launched; no job is needed.
 */
#include "base/buf.h"
#include "base/limits.h"
#include "base/text.h"
#include "discovery/diff.h"
#include "discovery/format.h"
#include "discovery/order.h"
#include "discovery/parse.h"
#include "os/file.h"
#include "os/opt_main.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The exit codes; docs and tests name them, too. */
enum { EXIT_FINE = 0, EXIT_BAD_HOSTS = 1, EXIT_USAGE = 2, EXIT_STORAGE = 4 };

#define NAME_COLUMN_MIN 20
#define NAME_COLUMN_MAX 48

struct hosts_options {
    char *hosts;
    uint64_t slots_per_host;
    bool hostfile; /* the files are host files, and not outputs of a script */
    char *config_file;
    struct opt_general general;
};

#define ROW(field, ...) OPT(struct hosts_options, field, __VA_ARGS__)

/* clang-format off */
static const struct opt table[] = {
    ROW(hosts, .name = "hosts", .key = 'H', .arg = "LIST", .min = 1, .group = "Hosts",
        .flags = OPT_ARGV_ONLY, .help = "hosts as on a command line, \"a:2,b:2\", instead of files"),
    ROW(slots_per_host, .name = "slots-per-host", .arg = "N", .preset = "1", .min = 1,
        .max = LIMIT_SLOTS_PER_HOST, .group = "Hosts",
        .help = "slots of a host that is written without a number"),

    ROW(hostfile, .name = "hostfile", .flags = OPT_ARGV_ONLY, .group = "Hosts",
        .help = "read the files as hvd-elastic reads that of its --hostfile: a host that is named "
                "again without a number has more slots"),

    ROW(config_file, .name = "config-file", .arg = "FILE", .min = 1, .flags = OPT_ARGV_ONLY,
        .group = "General", .help = "read options from lines of \"name = value\""),
    ROW(general.print_config, .name = "print-config", .flags = OPT_ARGV_ONLY, .group = "General",
        .help = "show each option's value and where it is from, as a config file, and end"),
    OPT_GENERAL_ROWS(struct hosts_options, general, "General"),
};
/* clang-format on */

/* Returns the ending of a noun with this count. */
static const char *plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

/* Prints the hosts in the order of their ranks, one line for each, and the sum of their slots. */
static void hosts_show(const struct hosts *hosts)
{
    uint64_t slots = hosts_total_slots(hosts);
    char name[HOST_NAME_TEXT_MAX];
    uint64_t next_rank = 0;
    size_t column = NAME_COLUMN_MIN;

    /* The column of names is as wide as the longest name, within bounds. */
    for (size_t i = 0; i < hosts->count; i++) {
        size_t width = strlen(hosts->items[i].name) + 2;

        if (width > column && width <= NAME_COLUMN_MAX)
            column = width;
    }
    for (size_t i = 0; i < hosts->count; i++) {
        const struct host *host = &hosts->items[i];

        printf("  %-*s %4" PRIu32 " slot%s  ", (int)column, host_name_format(host->name, name),
               host->slots, host->slots == 1 ? " " : "s");
        /* The driver gives ranks in the order of the hosts, slot by slot. */
        if (host->slots == 0)
            printf("not used\n");
        else if (host->slots == 1)
            printf("rank %" PRIu64 "\n", next_rank);
        else
            printf("ranks %" PRIu64 "-%" PRIu64 "\n", next_rank, next_rank + host->slots - 1);
        next_rank += host->slots;
    }
    printf("%zu host%s, %" PRIu64 " slot%s\n", hosts->count, plural(hosts->count), slots,
           plural(slots));
}

/* Reads the next list from the file at path (NULL: from --hosts), and changes `known` to it, in
 * the order in which the driver would keep the hosts. Shows the change, unless this is the first
 * list. */
static int hosts_follow(const struct hosts_options *options, const char *path, bool first,
                        struct hosts *known, struct hvd_err *err)
{
    char described[DIFF_TEXT_MAX];
    char quoted[TEXT_QUOTE_MAX];
    uint32_t slots = (uint32_t)options->slots_per_host;
    struct hosts now;
    struct diff diff;
    struct buf text;
    int rc;

    hosts_init(&now);
    diff_init(&diff);
    buf_init(&text, LIMIT_HOST_TEXT_BYTES + 1);
    if (!path)
        rc = hosts_parse_list((struct span){ options->hosts, strlen(options->hosts) }, "--hosts",
                              slots, &now, err);
    else if (!(rc = file_read(path, &text, err)))
        rc = (options->hostfile ? hosts_parse_hostfile : hosts_parse_text)(
            (struct span){ buf_text(&text), text.length },
            strcmp(path, "-") != 0 ? path : "standard input", slots, &now, err);
    buf_release(&text);
    if (!rc)
        rc = diff_between(known, &now, &diff);
    if (!rc && !first) {
        bool clean = text_is_clean(path, strlen(path)) && !strchr(path, '\n');

        printf("%s: %s\n", clean ? path : text_quote(path, strlen(path), quoted),
               diff_describe(&diff, described));
    }
    /* A list without hosts is valid, but it would end every worker of a job. */
    if (!rc && now.count == 0) {
        fflush(stdout);
        fprintf(stderr,
                "hvd-hosts: warning: a list without hosts means that all hosts leave the job\n");
    }
    if (!rc)
        rc = order_update(known, &now, known);
    if (rc == HVD_E_NOMEM)
        err_set(err, rc, "%s", err_text(rc));
    diff_release(&diff);
    hosts_release(&now);
    return rc;
}

/* Runs the tool: reads --hosts, or the files in their order, and shows the last list with its
 * ranks. A path "-" is standard input. Returns the exit code. */
static int hosts_run(const struct opt_program *program, char **paths)
{
    const struct hosts_options *options = program->options;
    struct hvd_err err = { 0 };
    /* How often standard input ("-") is named. */
    size_t inputs = options->config_file && !strcmp(options->config_file, "-");
    struct hosts known;
    int status = EXIT_FINE;
    int rc = 0;

    for (size_t i = 0; paths[i] && !rc; i++) {
        inputs += !strcmp(paths[i], "-");
        if (paths[i][0] == '-' && paths[i][1])
            rc = err_set(&err, HVD_E_INVAL,
                         "%s: options go before the files; write ./%s for a file of this name",
                         paths[i], paths[i]);
    }
    if (!rc && inputs > 1)
        rc = err_set(&err, HVD_E_INVAL, "-: standard input can be read only once; give it once");
    if (!rc && options->hosts && paths[0])
        rc = err_set(&err, HVD_E_INVAL,
                     "--hosts and files are both given; give only one of the two");
    if (!rc && !options->hosts && !paths[0])
        rc = err_set(&err, HVD_E_INVAL, "there are no hosts; name a file, - or --hosts LIST");
    if (rc)
        return opt_complain(program, &err, EXIT_USAGE);
    hosts_init(&known);
    if (options->hosts)
        rc = hosts_follow(options, NULL, true /* the first list */, &known, &err);
    for (size_t i = 0; !rc && paths[i]; i++)
        rc = hosts_follow(options, paths[i], i == 0, &known, &err);
    if (rc)
        status = opt_complain(program, &err, rc == HVD_E_NOMEM ? EXIT_STORAGE : EXIT_BAD_HOSTS);
    else
        hosts_show(&known);
    hosts_release(&known);
    return status;
}

/* Reads the command line, then the environment, then the config file. After --help the environment
 * and the config file are not read, because --help must work with any environment. */
static int hosts_read_options(struct opt_set *set, int argc, char *const *argv, int *ret_rest,
                              struct hvd_err *err)
{
    const struct hosts_options *options = set->config;
    struct buf text;
    int rc = opt_argv(set, argc, argv, ret_rest, err);

    if (rc || options->general.help || options->general.version || options->general.list_options)
        return rc;
    rc = opt_env(set, environ, err);
    if (rc || !options->config_file)
        return rc;
    buf_init(&text, LIMIT_CONFIG_TEXT_BYTES + 1);
    rc = file_read(options->config_file, &text, err);
    if (!rc)
        rc = opt_config(set, options->config_file, buf_text(&text), text.length, err);
    buf_release(&text);
    return rc;
}

int main(int argc, char **argv)
{
    struct hosts_options options = { 0 };
    const struct opt_program program = {
        .name = "hvd-hosts",
        .usage = "hvd-hosts [options] [FILE...]",
        .about = "Shows what a host list means to hvd-elastic. A FILE holds what a discovery "
                 "script prints, or is a host file; \"-\" is standard input. Several FILEs are "
                 "read one after another, as if the script had printed them in turn, and what "
                 "changes between them is shown. Options go before the files.",
        .table = table,
        .count = ARRAY_SIZE(table),
        .options = &options,
        .general = &options.general,
        .usage_exit = EXIT_USAGE,
        .storage_exit = EXIT_STORAGE,
        .read = hosts_read_options,
        .run = hosts_run,
    };

    return opt_main(&program, argc, argv);
}
