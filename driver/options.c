/*
 * options.c: the options of a job: reads them from the command line, the environment and a config
 * file, checks them, and hands them to the core and to discovery. run.c calls it. option_table.c
 * has the rows. All checks come before anything is made for the job.
 */
#include "driver/options.h"

#include "base/limits.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/opt_show.h"
#include "base/text.h"
#include "base/time.h"
#include "discovery/parse.h"
#include "driver/cli/verbs.h"
#include "driver/horovod/mpirun.h"
#include "driver/horovod/variables.h"
#include "driver/horovod/yaml.h"
#include "driver/store/store.h"
#include "gpu/device.h"
#include "os/file.h"
#include "proto/catalog.h"
#include "proto/preemption.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The shortest --checkpoint-interval: the user of a shorter one has probably mistaken the unit. */
#define CHECKPOINT_INTERVAL_MIN_US (100 * TIME_MS)

static const char usage_text[] =
    "hvd-elastic [options] [--] COMMAND [ARG...]\n"
    "       hvd-elastic --resume JOB [options]\n"
    "       hvd-elastic --standby JOB --store URL [options]\n"; /* and the verbs */
static const char about_text[] =
    "Runs COMMAND once in each slot of the hosts it is given or finds, and keeps the job training "
    "while workers die and hosts come and go. Options go before the command. The second form takes "
    "over a job whose driver has died; the third waits for that on another machine; the fourth "
    "asks the driver of a job; the last form lists and removes jobs and checkpoints.";

/* Prepares the options; opt_init sets their defaults. Returns 0 or HVD_E_NOMEM. */
int options_init(struct driver_options *options)
{
    *options = (struct driver_options){ .command = NULL };
    buf_init(&options->interfaces, LIMIT_OPTION_TEXT_BYTES);
    buf_init(&options->unused_variables, LIMIT_UNUSED_TEXT_BYTES);
    buf_init(&options->unused_keys, LIMIT_UNUSED_TEXT_BYTES);
    buf_init(&options->host_notes, LIMIT_UNUSED_TEXT_BYTES);
    return opt_init(&options->set, driver_option_table, driver_option_count, options);
}

void options_release(struct driver_options *options)
{
    if (!options)
        return;
    opt_release(&options->set);
    buf_release(&options->interfaces);
    buf_release(&options->unused_variables);
    buf_release(&options->unused_keys);
    buf_release(&options->host_notes);
}

/* Finds the kind of the source of hosts: the kind whose option is given. If the options of several
 * sources are given, the one of the highest origin counts: the command line, then the environment,
 * then the config file. *ret_kind is DISCOVER_KINDS if no such option is given. HVD_E_INVAL: two of
 * these options have the same highest origin. */
static int find_host_source(const struct driver_options *options, enum discover_kind *ret_kind,
                            struct hvd_err *err)
{
    enum opt_source highest = OPT_DEFAULT;
    enum discover_kind second = DISCOVER_KINDS;

    *ret_kind = DISCOVER_KINDS;
    for (int i = 0; i < DISCOVER_KINDS; i++) {
        enum discover_kind kind = (enum discover_kind)i;
        enum opt_source source = opt_source(&options->set, discover_option(kind));

        if (source > highest) {
            highest = source;
            *ret_kind = kind;
            second = DISCOVER_KINDS;
        } else if (source == highest && *ret_kind != DISCOVER_KINDS) {
            second = kind;
        }
    }
    if (second == DISCOVER_KINDS)
        return 0;
    return err_set(err, HVD_E_INVAL,
                   "--%s of %s and --%s of %s: hosts come from one source; leave one option out",
                   discover_option(*ret_kind),
                   opt_origin(&options->set, discover_option(*ret_kind)), discover_option(second),
                   opt_origin(&options->set, discover_option(second)));
}

/* True: an option names hosts. */
static bool options_has_source(const struct driver_options *options)
{
    enum discover_kind kind = DISCOVER_KINDS;

    (void)find_host_source(options, &kind, NULL);
    return kind != DISCOVER_KINDS;
}

/* Keeps only the source of hosts that counts (find_host_source). The options of other sources are
 * forgotten: they must not be saved for --resume, where all saved options have the same origin.
 * host_notes gets a line for each forgotten option, which report_options shows to the user. */
static int options_keep_hosts(struct driver_options *options, struct hvd_err *err)
{
    enum discover_kind kept;
    int rc;

    if (options->discovery == OPTIONS_JOIN && !options->port)
        return err_set(err, HVD_E_INVAL,
                       "--discovery join: give the port that hosts dial with --port, as they must "
                       "know it beforehand");
    if (options->discovery == OPTIONS_JOIN && !options->np && !options->min_np &&
        !options_has_source(options) && !options->resume && !options->standby)
        return err_set(err, HVD_E_INVAL,
                       "-np: missing; hosts that join do not say how many workers the job needs to "
                       "start: say that with -np or --min-np");
    rc = find_host_source(options, &kept, err);
    for (int i = 0; i < DISCOVER_KINDS && !rc; i++) {
        const char *name = discover_option((enum discover_kind)i);

        if ((enum discover_kind)i == kept || opt_source(&options->set, name) <= OPT_DEFAULT)
            continue;
        rc = buf_printf(&options->host_notes, "hosts come from --%s of %s, not from --%s of %s\n",
                        discover_option(kept), opt_origin(&options->set, discover_option(kept)),
                        name, opt_origin(&options->set, name));
        if (rc)
            return err_set(err, rc, "--%s: %s", name, err_text(rc));
        opt_forget(&options->set, name);
    }
    return rc;
}

/* Checks that --min-np is at most -np, and -np at most --max-np. The errors name the origin of each
 * number, because each may come from another one, such as the environment. */
static int options_check_numbers(const struct driver_options *options, struct hvd_err *err)
{
    const struct opt_set *set = &options->set;
    const char *name = options->np ? "np" : "min-np";
    uint64_t np = options->np ? options->np : options->min_np;

    if (options->min_np > np)
        return err_set(err, HVD_E_INVAL,
                       "--min-np: %" PRIu64 " of %s is more than -np, %" PRIu64
                       " of %s; lower --min-np, or raise -np",
                       options->min_np, opt_origin(set, "min-np"), np, opt_origin(set, "np"));
    if (options->max_np && np > options->max_np)
        return err_set(err, HVD_E_INVAL,
                       "-%s%s: %" PRIu64 " of %s is more than --max-np, %" PRIu64
                       " of %s; lower -%s%s, or raise --max-np",
                       options->np ? "" : "-", name, np, opt_origin(set, name), options->max_np,
                       opt_origin(set, "max-np"), options->np ? "" : "-", name);
    return 0;
}

/* Joins the values of --network-interface in options->interfaces: "eth0,eth1", or "^lo,docker0" for
 * all interfaces but these. */
static int options_join_interfaces(struct driver_options *options, struct hvd_err *err)
{
    const struct opt_list *list = &options->network_interfaces;
    /* A list in the environment was split at its commas, so a "^" before its first item is for all
     * items. */
    bool split = opt_source(&options->set, "network-interface") == OPT_ENVIRONMENT;
    bool except = list->count && list->items[0][0] == '^';
    const char *place = opt_place(&options->set, "--network-interface");
    int rc = 0;

    buf_clear(&options->interfaces);
    for (size_t i = 0; i < list->count && !rc; i++) {
        const char *names = list->items[i];

        if ((*names == '^') != except && !(except && split))
            return err_set(err, HVD_E_INVAL,
                           "%s %s: another list is %s; name only interfaces to use, or only "
                           "interfaces not to use, with ^",
                           place, names, list->items[0]);
        names += *names == '^';
        if (!*names || *names == ',' || strstr(names, ",,") || names[strlen(names) - 1] == ',' ||
            strpbrk(names, " ^"))
            return err_set(
                err, HVD_E_INVAL,
                "%s %s: not a list of network interfaces; write eth0,eth1 or ^lo,docker0", place,
                list->items[i]);
        rc = buf_printf(&options->interfaces, "%s%s", i ? "," : except ? "^" : "", names);
    }
    return rc ? err_set(err, rc, "--network-interface: %s", err_text(rc)) : 0;
}

/* Checks that --thread-affinity is a list of numbers of cores, with commas. */
static int options_check_cores(const struct driver_options *options, struct hvd_err *err)
{
    const char *cores = options->thread_affinity;
    struct span rest = { cores, strlen(cores) };
    struct span core;
    uint64_t number;
    int rc = 0;

    while (!rc && span_next(&rest, ',', &core))
        rc = text_parse_u64(core, 0, LIMIT_CORES - 1, "a core", &number, err);
    return rc ? err_prefix(err, rc, "%s", opt_place(&options->set, "--thread-affinity")) : 0;
}

/* Checks values that option_table.c cannot check, and values that depend on each other. */
static int options_check_values(struct driver_options *options, struct hvd_err *err)
{
    static const char name_chars[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                     "0123456789_";
    const char *const jobs[][2] = {
        {"--job",      options->job    },
        { "--resume",  options->resume },
        { "--standby", options->standby}
    };
    const struct opt_list *variables[] = { &options->env, &options->exports };
    struct etcd_store_config store;
    char quoted[TEXT_QUOTE_MAX];
    int rc = 0;

    for (size_t i = 0; i < ARRAY_SIZE(jobs); i++)
        if (jobs[i][1] && (rc = job_name_check(jobs[i][1], err)))
            return err_prefix(err, rc, "%s", jobs[i][0]);
    if (options->checkpoint_dir && options->checkpoint_command)
        return err_set(err, HVD_E_INVAL,
                       "%s: a job keeps its checkpoints in one place, and --checkpoint-dir names "
                       "another place; leave one of the two options out",
                       opt_place(&options->set, "--checkpoint-command"));
    if (options->standby && (options->resume || !options->store))
        return err_set(err, HVD_E_INVAL,
                       options->resume ? "--standby and --resume: leave one of the two out"
                                       : "--standby: give --store, as the job was started with");
    if (options->standby && options->detach)
        return err_set(err, HVD_E_INVAL, "--standby and --detach: leave one of the two out");
    if (options_to_store(options, &store) && (rc = etcd_store_check_config(&store, err)))
        return rc;
    if (options->stop && !options->resume)
        return err_set(err, HVD_E_INVAL, "--stop: name the job with --resume JOB");
    if (options->job && options->resume && strcmp(options->job, options->resume) != 0)
        return err_set(err, HVD_E_INVAL,
                       "--job %s: --resume names another job, %s; leave one of the two options out",
                       options->job, options->resume);
    rc = options_keep_hosts(options, err);
    if (rc)
        return rc;
    rc = options_join_interfaces(options, err);
    if (!rc && options->thread_affinity)
        rc = options_check_cores(options, err);
    if (rc)
        return rc;
    if (options->cpu_operations == OPTIONS_GLOO &&
        (options->data_security == OPTIONS_ENCRYPTED ||
         options->data_security == OPTIONS_AUTHENTICATED))
        return err_set(err, HVD_E_INVAL,
                       "--cpu-operations gloo and --data-security %s: Gloo sends in clear; leave "
                       "one of the two options out",
                       options_data_security[options->data_security]);
    if (options->log_without_timestamp && options->log_with_timestamp &&
        opt_source(&options->set, "log-with-timestamp") ==
            opt_source(&options->set, "log-without-timestamp"))
        return err_set(err, HVD_E_INVAL,
                       "--log-with-timestamp and --log-without-timestamp: leave one out");
    /* Each --env and -x has the name of a variable, before the "=" if there is one. */
    for (size_t i = 0; i < options->env.count + options->exports.count; i++) {
        bool more = i >= options->env.count;
        const char *item = variables[more]->items[more ? i - options->env.count : i];
        size_t length = strcspn(item, "=");

        if (!length || strspn(item, name_chars) != length || (*item >= '0' && *item <= '9'))
            return err_set(err, HVD_E_INVAL,
                           "%s %s: not a variable; write NAME or NAME=VALUE, where NAME has only "
                           "letters, digits and _, and does not begin with a digit",
                           more ? "-x" : "--env", text_quote(item, strlen(item), quoted));
    }
    return 0;
}

/* Checks that the list of -H, which never changes, has at least -np slots. If neither -np nor
 * --min-np is given, -np becomes the number of slots in -H, in the present host file or of the
 * batch job. This -np counts as an option of a config file: it is saved with the options, and
 * --resume uses the same number again. */
static int options_count_slots(struct driver_options *options, struct hvd_err *err)
{
    const char *name = options->np ? "-np" : "--min-np";
    uint64_t np = options->np ? options->np : options->min_np, slots;
    enum discover_kind kind;
    struct hosts hosts;
    struct span span;
    struct buf text;
    char line[32];
    int rc = find_host_source(options, &kind, err);
    bool is_read_now = kind == DISCOVER_FILE || kind == DISCOVER_BATCH;

    if (!rc && !np && kind != DISCOVER_KINDS && kind != DISCOVER_LIST && !is_read_now)
        return err_set(err, HVD_E_INVAL,
                       "-np: missing; the hosts of --%s may change, so they do not say how many "
                       "workers the job needs to start; give this number with -np or --min-np, and "
                       "with --max-np the number up to which the job may grow",
                       discover_option(kind));
    if (rc || (kind != DISCOVER_LIST && (!is_read_now || np)))
        return rc;
    hosts_init(&hosts);
    buf_init(&text, LIMIT_HOST_TEXT_BYTES + 1);
    span = (struct span){ options->hosts_from[kind], strlen(options->hosts_from[kind]) };
    if (kind == DISCOVER_FILE)
        rc = file_read(options->hosts_from[kind], &text, err);
    if (!rc && kind == DISCOVER_FILE)
        rc = hosts_parse_hostfile((struct span){ buf_text(&text), text.length },
                                  options->hosts_from[kind], (uint32_t)options->slots_per_host,
                                  &hosts, err);
    else if (kind == DISCOVER_BATCH)
        rc = discover_batch_hosts(options->hosts_from[kind], (uint32_t)options->slots_per_host,
                                  &hosts, err);
    else if (!rc)
        rc = hosts_parse_list(span, "--hosts", (uint32_t)options->slots_per_host, &hosts, err);
    slots = rc ? 0 : hosts_total_slots(&hosts);
    if (!rc && np > slots && !options->resume && !options->standby)
        rc = err_set(err, HVD_E_INVAL,
                     "%s: %" PRIu64 " is more than the slots of --hosts, %" PRIu64
                     "; lower %s, or list more hosts or slots, \"a:%" PRIu64 "\"",
                     name, np, slots, name, np);
    if (!rc && !np && !slots && !options->resume && !options->standby)
        rc = err_set(err, HVD_E_INVAL,
                     "%s%s: no host with a slot is listed; list hosts, or say with -np for how "
                     "many slots the job waits",
                     kind == DISCOVER_FILE    ? "--hostfile "
                     : kind == DISCOVER_BATCH ? "--batch-system "
                                              : "--hosts",
                     is_read_now ? options->hosts_from[kind] : "");
    if (!rc && !np && slots) {
        snprintf(line, sizeof(line), "np = %" PRIu64 "\n",
                 options->max_np && options->max_np < slots ? options->max_np : slots);
        rc = opt_config(&options->set, "the list of hosts", line, strlen(line), err);
    }
    buf_release(&text);
    hosts_release(&hosts);
    return rc;
}

/* Checks all options, sets the fields that follow from several options, and sets the levels of the
 * log. Called by options_read, and again after options_load has added options: so a second call
 * with the same options must give the same values. */
static int options_check(struct driver_options *options, struct hvd_err *err)
{
    bool level_given = opt_source(&options->set, "log-level") != OPT_DEFAULT;
    size_t length = strlen(options->log_level);
    struct preemption preemption;
    struct core_config config;
    const char *word = options->command[0];
    const char *verb;
    char spec[256];
    int rc;

    /* Values that follow from several options. */
    if (opt_source(&options->set, "reset-limit") == OPT_UNSET)
        options->reset_limit = CORE_NO_RESET_LIMIT;
    if (!options->stall_check || !options->stall_warning_us)
        options->stall_warning_us = TIME_NEVER;
    if (!options->stall_check || !options->stall_shutdown_us)
        options->stall_shutdown_us = TIME_NEVER;
    options->log_timestamps = options->log_with_timestamp && !options->log_without_timestamp;
    snprintf(options->default_hosts, sizeof(options->default_hosts), "localhost:%" PRIu64,
             options->np ? options->np : options->min_np);

    rc = options_check_values(options, err);
    if (!rc && (rc = preemption_parse(options->preemption, &preemption, err)))
        rc = err_prefix(err, rc, "--preemption");
    if (!rc && (rc = event_filter_parse(options->on_event_filter, &options->event_filter, err)))
        rc = err_prefix(err, rc, "%s", opt_place(&options->set, "--on-event-filter"));
    /* --log-level also accepts words of other programs, in upper or lower case: TRACE means debug,
     * FATAL means error. */
    if (!rc && length >= sizeof(spec))
        rc = err_set(err, HVD_E_LIMIT, "--log-level: longer than %zu bytes; shorten it",
                     sizeof(spec) - 1);
    if (!rc) {
        for (size_t i = 0; i <= length; i++) {
            char c = options->log_level[i];

            spec[i] = c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
        }
        if (!strcmp(spec, "trace") || (options->verbose && !level_given))
            snprintf(spec, sizeof(spec), "debug");
        if (!strcmp(spec, "fatal"))
            snprintf(spec, sizeof(spec), "error");
        rc = log_set_levels(spec, err);
        if (rc)
            err_prefix(err, rc, "%s", opt_place(&options->set, "--log-level"));
    }
    if (rc || ((options->resume || options->standby) && !word))
        return rc; /* the options with which the job was started are missing still; options_load
                      adds and checks them */
    if (!word)
        return err_set(err, HVD_E_INVAL,
                       "the command is missing: write what each worker runs after the options");
    /* A command such as "statsu" without -np and --min-np is a mistyped verb: the command line of a
     * job would also say how many workers it needs. */
    verb = options->np || options->min_np ? NULL : cli_nearest_verb(word);
    if (verb)
        return err_set(err, HVD_E_INVAL,
                       "%s: did you mean %s? to run a program of that name, give -np or --min-np",
                       word, verb);
    rc = options_count_slots(options, err);
    rc = rc ? rc : options_check_numbers(options, err);
    /* Called only for the checks of options_to_core: `config` is thrown away, and so are the name
     * "any" and the seed 1. run.c calls options_to_core again with the true ones. */
    return rc ? rc : options_to_core(options, "any", 1, &config, err);
}

/* Reads the file of --config-file, if that option was given. */
static int options_read_config(struct driver_options *options, struct hvd_err *err)
{
    const char *path = options->config_file;
    struct span span;
    struct buf text;
    int rc;

    if (!path)
        return 0;
    buf_init(&text, LIMIT_CONFIG_TEXT_BYTES + 1);
    buf_clear(&options->unused_keys);
    rc = file_read(path, &text, err);
    span = (struct span){ buf_text(&text), text.length };
    if (!rc && horovod_yaml_is(span))
        rc = horovod_yaml(&options->set, path, span, &options->unused_keys, err);
    else if (!rc)
        rc = opt_config(&options->set, path, span.at, span.length, err);
    buf_release(&text);
    return rc;
}

/* Reads the command line, the environment and the config file, and checks all options. --help,
 * --version, --list-options and --check-build must work with any environment, so nothing else is
 * read after them. */
int options_read(struct driver_options *options, int argc, char *const *argv, char *const *envp,
                 struct hvd_err *err)
{
    struct mpirun_words words = { .mca = &options->mca };
    const struct opt_list *exports = &options->exports;
    size_t count = 0;
    char **all;
    int rest = 0;
    int rc = opt_argv(&options->set, argc, argv, &rest, err);

    if (rc)
        return rc;
    options->command = argv + rest;
    if (options->help || options->version || options->list_options || options->check_build)
        return 0;
    words.bind_to = options->bind_to;
    words.map_by = options->map_by;
    rc = horovod_mpirun(&options->set, &words, err);
    if (!rc)
        rc = opt_env(&options->set, envp, err);
    if (rc)
        return rc;
    /* The variables of -x come before those of the environment, because of two variables with the
     * same name the first one counts. */
    while (envp[count])
        count++;
    all = mem_zalloc_array(exports->count + count + 1, sizeof(*all));
    if (!all)
        return err_set(err, HVD_E_NOMEM,
                       "no memory for the list of environment variables; free memory on this host");
    for (size_t i = 0; i < exports->count; i++)
        all[i] = exports->items[i];
    for (size_t i = 0; i < count; i++)
        all[exports->count + i] = envp[i];
    rc = horovod_variables(&options->set, all, &options->unused_variables, err);
    mem_free(all);
    if (!rc)
        rc = options_read_config(options, err);
    if (rc || options->print_config)
        return rc;
    return options_check(options, err);
}

/* Adds the options with which a job was started (--resume). Options of this program's own command
 * line and environment were read before, and count more. */
int options_load(struct driver_options *options, const char *path, const char *text, size_t length,
                 struct hvd_err *err)
{
    int rc = opt_config(&options->set, path, text, length, err);

    if (!rc)
        /* The config file of this command line is read again, because its options count more than
         * those that were loaded. */
        rc = options_read_config(options, err);
    return rc ? rc : options_check(options, err);
}

/* Writes the options as lines of a config file, for options_load of the next driver. */
int options_save(const struct driver_options *options, struct buf *out)
{
    return opt_show_config(&options->set, false /* without origins */, out);
}

/* Answers an option that only prints something, such as --help or --print-config. True: such an
 * option was given; its text is printed, and *ret_status is the exit code. False: the options are
 * those of a job. */
bool options_answer(const struct driver_options *options, int *ret_status)
{
    struct cli_options verbs;
    struct opt_set verb_set;
    struct buf out, usage;
    int rc = 0;

    buf_init(&out, LIMIT_CONFIG_TEXT_BYTES);
    if (options->help) {
        buf_init(&usage, LIMIT_CONFIG_TEXT_BYTES);
        rc = buf_append_text(&usage, usage_text);
        if (!rc)
            rc = cli_append_usage(&usage);
        if (!rc)
            rc = opt_show_help(&options->set, buf_text(&usage), about_text, &out);
        buf_release(&usage);
    } else if (options->version) {
        rc = buf_printf(&out, "hvd-elastic %s\n", HVD_VERSION_TEXT);
    } else if (options->check_build) {
        rc = buf_printf(&out,
                        "hvd-elastic %s, protocol %d.%d\n\n"
                        "Frameworks:\n"
                        "  [X] C, C++, CUDA: libhvd\n"
                        "  [X] PyTorch: the Python package hvd_elastic\n"
                        "  [ ] TensorFlow: no bindings\n"
                        "  [ ] MXNet: retired by its project\n\n"
                        "Controllers:\n"
                        "  [X] agents, by fork and by ssh: elastic jobs and static ones, takeover\n"
                        "  [X] TLS 1.3 with a key for each host\n"
                        "  [ ] MPI, jsrun: not needed\n\n"
                        "Carriers of collectives:\n"
                        "  [X] shared memory, between the workers of a host\n"
                        "  [X] TCP\n"
                        "  [X] Gloo\n"
                        "  [ ] MPI, CCL, DDL: not needed\n",
                        HVD_VERSION_TEXT, PROTO_MAJOR, PROTO_MINOR);
        if (!rc)
            rc = gpu_found(&out);
    } else if (options->list_options) {
        /* The options of the verbs are listed too, because docs/cli.md describes all of them. */
        rc = opt_init(&verb_set, cli_option_table, cli_option_count, &verbs);
        if (!rc) {
            rc = opt_show_names(&options->set, &out);
            rc = rc ? rc : opt_show_names(&verb_set, &out);
            opt_release(&verb_set);
        }
    } else if (options->print_config) {
        rc = opt_show_config(&options->set, true /* with origins */, &out);
        if (!rc && options->unused_variables.length)
            rc = buf_printf(&out, "\n# no effect: %s\n", buf_text(&options->unused_variables));
        if (!rc && options->unused_keys.length)
            rc = buf_printf(&out, "\n# no effect: %s\n", buf_text(&options->unused_keys));
    } else {
        return false;
    }
    fputs(buf_text(&out), stdout);
    buf_release(&out);
    if (rc)
        fprintf(stderr, "hvd-elastic: %s\n", err_text(rc));
    *ret_status = rc || fflush(stdout) || ferror(stdout) ? OPTIONS_STORAGE_EXIT : 0;
    return true;
}

/* Prints an error in the options, and returns the exit code for it. */
int options_complain(const struct hvd_err *err)
{
    fflush(stdout); /* flushed first, so that the output comes before the error */
    fprintf(stderr, "hvd-elastic: %s\nTry 'hvd-elastic --help'.\n", err->text);
    return OPTIONS_USAGE_EXIT;
}

/* Returns `us`, but at most LIMIT_DURATION_US: an option with the value "never" is TIME_NEVER, with
 * which sums in the core would overflow. */
static int64_t bounded(int64_t us)
{
    return us < LIMIT_DURATION_US ? us : LIMIT_DURATION_US;
}

/* Returns the number of an option as the core takes it: "unlimited", which is UINT64_MAX, becomes
 * CORE_NO_PROGRESS_LIMIT. */
static uint32_t options_limit(uint64_t number)
{
    return number < CORE_NO_PROGRESS_LIMIT ? (uint32_t)number : CORE_NO_PROGRESS_LIMIT;
}

/* Reads --checkpoint-interval: a time (*ret_us), or a number of commits with a "c" behind it
 * (*ret_commits). The result of the kind that is not given is 0. */
static int options_checkpoint_interval(const struct driver_options *options, int64_t *ret_us,
                                       uint32_t *ret_commits, struct hvd_err *err)
{
    const char *text = options->checkpoint_interval;
    size_t digits = strspn(text, "0123456789");
    unsigned long long commits = strtoull(text, NULL, 10);
    int rc;

    *ret_us = 0;
    *ret_commits = 0;
    if (digits && !strcmp(text + digits, "c")) {
        if (!commits || digits > 9)
            return err_set(err, HVD_E_INVAL,
                           "%s: %s: give a number of commits from 1c to 999999999c",
                           opt_place(&options->set, "--checkpoint-interval"), text);
        *ret_commits = (uint32_t)commits;
        return 0;
    }
    rc = time_parse(text, ret_us, err);
    if (!rc && (*ret_us < CHECKPOINT_INTERVAL_MIN_US || *ret_us > LIMIT_DURATION_US))
        rc = err_set(err, HVD_E_LIMIT, "%s: from 100ms to ten years, or a number of commits", text);
    return rc ? err_prefix(err, rc, "%s", opt_place(&options->set, "--checkpoint-interval")) : 0;
}

/* Makes the settings of the core from the options, and checks them. `seed` is for the random part
 * of cooldowns. After a failure *ret_config is unchanged. */
int options_to_core(const struct driver_options *options, const char *job, uint64_t seed,
                    struct core_config *ret_config, struct hvd_err *err)
{
    struct core_config config;
    int rc;

    core_config_init(&config);
    config.job = job;
    config.np = (uint32_t)options->np;
    config.min_np = (uint32_t)options->min_np;
    config.max_np = options->max_np == UINT64_MAX ? LIMIT_WORKERS : (uint32_t)options->max_np;
    config.reset_limit = (uint32_t)options->reset_limit;
    config.progress_restarts = options_limit(options->progress_restarts);
    /* --progress-restarts-job without a value has the default of core_config_init, but at least the
     * value of --progress-restarts: the job may fail at least as often as one slot. */
    if (options->progress_restarts_job || options->progress_restarts > config.progress_restarts_job)
        config.progress_restarts_job =
            options_limit(options->progress_restarts_job ? options->progress_restarts_job
                                                         : options->progress_restarts);
    policy_init(&config.blacklist);
    config.blacklist.lower_us = options->cooldown.low_us;
    config.blacklist.upper_us = options->cooldown.high_us;
    config.blacklist.forever = options->blacklist_forever;
    config.blacklist.scope = (enum scope)options->blacklist_scope;
    config.blacklist.restarts_max = (uint32_t)options->slot_restarts;
    config.blacklist.restarts_window_us = options->slot_restarts_window_us;
    config.blacklist.decay_us = options->blacklist_decay_us;
    config.beat_us = options->beat_us;
    config.lease_us = options->lease_us;
    config.driver_grace_us = bounded(options->driver_grace_us);
    if (options->discovery == OPTIONS_JOIN)
        config.join = options_has_source(options) ? JOIN_LISTED : JOIN_ALONE;
    config.join_token = options->token_file != NULL;
    config.discovery.pause_us = options->discovery_interval_us;
    config.discovery.retry_first = options->discovery_retry_first;
    config.elastic_timeout_us = bounded(options->elastic_timeout_us);
    config.agent_start_us = options->agent_timeout_us;
    config.start_timeout_us = bounded(options->start_timeout_us);
    config.gather_us = options->gather_us;
    config.prepare_us = options->prepare_timeout_us;
    config.stall_warning_us = bounded(options->stall_warning_us);
    config.stall_us = bounded(options->stall_shutdown_us);
    config.kill_grace_us = options->kill_grace_us;
    config.seed = seed;
    config.checkpoint_dir = options->checkpoint_dir;
    rc = options_checkpoint_interval(options, &config.checkpoint_us, &config.checkpoint_commits,
                                     err);
    if (!rc)
        rc = core_config_finish(&config, err);
    if (!rc)
        *ret_config = config;
    return rc;
}

/* Makes the settings of the store in etcd. Returns false if --store is not given; the journal is
 * then in job.db. */
bool options_to_store(const struct driver_options *options, struct etcd_store_config *ret_config)
{
    *ret_config = (struct etcd_store_config){ .url = options->store,
                                              .ca_file = options->store_ca,
                                              .cert_file = options->store_cert,
                                              .key_file = options->store_key,
                                              .user = options->store_user,
                                              .password_file = options->store_password_file,
                                              .insecure = options->store_insecure,
                                              .lease_us = options->store_lease_us,
                                              .takeover = options->takeover };
    return options->store;
}

/* Makes the settings of the source of hosts: the source whose option is given, or else a list with
 * localhost and -np slots. find_host_source gets no err, because options_check has already reported
 * two sources of the same origin. */
void options_to_discover(const struct driver_options *options, struct discover_config *ret_config)
{
    struct discover_config config = {
        .kind = DISCOVER_LIST,
        .value = options->default_hosts,
        .slots_per_host = (uint32_t)options->slots_per_host,
        .limit_us = options->discovery_timeout_us,
    };
    enum discover_kind kind;

    if (!find_host_source(options, &kind, NULL) && kind != DISCOVER_KINDS) {
        config.kind = kind;
        config.value = options->hosts_from[kind];
    }
    *ret_config = config;
}
