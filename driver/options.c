#include "driver/options.h"

#include "base/limits.h"
#include "base/log.h"
#include "base/opt_show.h"
#include "base/text.h"
#include "base/time.h"
#include "driver/ask_options.h"
#include "driver/journal/job_file.h"
#include "driver/option_table.h"
#include "gpu/found.h"
#include "os/file.h"
#include "proto/catalog.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char usage_text[] = "hvd-elastic [options] [--] COMMAND [ARG...]\n"
                                 "       hvd-elastic --resume JOB [options]\n"
                                 "       hvd-elastic status | hosts | changes | events | drain | "
                                 "undrain | blacklist | stop [--help]";
static const char about_text[] =
    "Runs COMMAND once in each slot of the hosts it is given or finds, and keeps the job training "
    "while workers die and hosts come and go. Options go before the command. The second form takes "
    "over a job whose driver has died; the third asks a driver that runs.";

int options_init(struct driver_options *options)
{
    *options = (struct driver_options){ .command = NULL };
    return opt_init(&options->set, driver_option_table, driver_option_count, options);
}

void options_release(struct driver_options *options)
{
    if (options)
        opt_release(&options->set);
}

/* ---- what the table cannot say --------------------------------------------------------------- */

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static int check_names(const struct driver_options *options, struct hvd_err *err)
{
    int rc = 0;

    if (options->job)
        rc = job_name_check(options->job, err);
    if (!rc && options->resume)
        rc = job_name_check(options->resume, err);
    if (rc)
        return err_prefix(err, rc, options->job ? "--job" : "--resume");
    if (options->job && options->resume && strcmp(options->job, options->resume) != 0)
        return err_set(err, HVD_E_INVAL,
                       "--job %s: --resume names another, %s; leave one of them out", options->job,
                       options->resume);
    return 0;
}

/* A variable's name, before the "=" if there is one. */
static int check_env(const struct driver_options *options, struct hvd_err *err)
{
    for (size_t i = 0; i < options->env.count; i++) {
        const char *item = options->env.items[i];
        size_t length = strcspn(item, "=");
        bool fine = length && !is_digit(item[0]);
        char quoted[TEXT_QUOTE_MAX];

        for (size_t j = 0; j < length; j++)
            fine = fine && (is_letter(item[j]) || is_digit(item[j]) || item[j] == '_');
        if (!fine)
            return err_set(err, HVD_E_INVAL,
                           "--env %s: not a variable; write NAME or NAME=VALUE, the name of "
                           "letters, digits and _",
                           text_quote(item, strlen(item), quoted));
    }
    return 0;
}

static const char *const host_sources[] = { "hosts", "hostfile", "host-discovery-script",
                                            "discovery-watch" };

/* Which of host_sources holds; of several the one that was said in the highest place. NONE, or
 * TWICE when two were said there. */
enum { NONE = -1, TWICE = -2 };
static int host_source(const struct driver_options *options, int ret_twice[2])
{
    enum opt_source highest = OPT_DEFAULT;
    int found = NONE;

    for (int i = 0; i < (int)ARRAY_SIZE(host_sources); i++) {
        enum opt_source source = opt_source(&options->set, host_sources[i]);

        if (source > highest) {
            highest = source;
            found = ret_twice[0] = i;
        } else if (source == highest && found != NONE) {
            found = TWICE;
            ret_twice[1] = i;
        }
    }
    return found;
}

static int check_hosts(const struct driver_options *options, struct hvd_err *err)
{
    int twice[2] = { 0, 0 };

    if (host_source(options, twice) == TWICE)
        return err_set(err, HVD_E_INVAL, "--%s and --%s: hosts come from one place; leave one out",
                       host_sources[twice[0]], host_sources[twice[1]]);
    if (options->network_interface && strchr(options->network_interface, ','))
        return err_set(err, HVD_E_INVAL,
                       "--network-interface %s: only one can be said; leave it out, and each host "
                       "is told the address that it can reach",
                       options->network_interface);
    return 0;
}

static int check_log(const struct driver_options *options, struct hvd_err *err)
{
    if (options->log_without_timestamp && options->log_with_timestamp &&
        opt_source(&options->set, "log-with-timestamp") ==
            opt_source(&options->set, "log-without-timestamp"))
        return err_set(err, HVD_E_INVAL,
                       "--log-with-timestamp and --log-without-timestamp: leave one out");
    return 0;
}

/* The words of other programs for the same; in any case. */
static int set_levels(const struct driver_options *options, struct hvd_err *err)
{
    bool said = opt_source(&options->set, "log-level") != OPT_DEFAULT;
    char spec[256];
    size_t length = strlen(options->log_level);
    int rc;

    if (length >= sizeof(spec))
        return err_set(err, HVD_E_LIMIT, "--log-level: longer than %zu bytes", sizeof(spec) - 1);
    for (size_t i = 0; i <= length; i++) {
        char c = options->log_level[i];

        spec[i] = c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
    }
    if (!strcmp(spec, "trace") || (options->verbose && !said))
        snprintf(spec, sizeof(spec), "debug");
    if (!strcmp(spec, "fatal"))
        snprintf(spec, sizeof(spec), "error");
    rc = log_set_levels(spec, err);
    return rc ? err_prefix(err, rc, "--log-level") : 0;
}

/* What follows from several options at once. Doing it again changes nothing. */
static void settle(struct driver_options *options)
{
    uint64_t first = options->np ? options->np : options->min_np;

    if (opt_source(&options->set, "reset-limit") == OPT_UNSET)
        options->reset_limit = CORE_NO_RESET_LIMIT;
    if (!options->stall_check || !options->stall_warning_us)
        options->stall_warning_us = TIME_NEVER;
    if (!options->stall_check || !options->stall_shutdown_us)
        options->stall_shutdown_us = TIME_NEVER;
    options->log_timestamps = options->log_with_timestamp && !options->log_without_timestamp;
    snprintf(options->default_hosts, sizeof(options->default_hosts), "localhost:%" PRIu64, first);
}

/* "statsu" is no job: it does not say how many workers. */
static int check_slip(const struct driver_options *options, struct hvd_err *err)
{
    const char *word = options->command[0];
    const char *verb = options->np || options->min_np ? NULL : ask_nearest_verb(word);

    if (!verb)
        return 0;
    return err_set(err, HVD_E_INVAL,
                   "%s: did you mean %s? to run a program of that name, give -np or --min-np", word,
                   verb);
}

static int check(struct driver_options *options, struct hvd_err *err)
{
    struct core_config config;
    int rc = check_names(options, err);

    settle(options);
    if (!rc)
        rc = check_hosts(options, err);
    if (!rc)
        rc = check_env(options, err);
    if (!rc)
        rc = check_log(options, err);
    if (!rc)
        rc = set_levels(options, err);
    if (rc || (options->resume && !options->command[0]))
        return rc; /* the rest is what the job was started with */
    if (!options->command[0])
        return err_set(err, HVD_E_INVAL,
                       "no command: write what a worker is to run after the options");
    if (check_slip(options, err))
        return HVD_E_INVAL;
    return options_to_core(options, "any", 1, &config, err);
}

/* ---- reading --------------------------------------------------------------------------------- */

static int read_config(struct driver_options *options, struct hvd_err *err)
{
    struct buf text;
    int rc;

    if (!options->config_file)
        return 0;
    buf_init(&text, LIMIT_CONFIG_TEXT_BYTES + 1);
    rc = file_read(options->config_file, &text, err);
    if (!rc)
        rc = opt_config(&options->set, options->config_file, buf_text(&text), text.length, err);
    buf_release(&text);
    return rc;
}

static bool only_asks(const struct driver_options *options)
{
    return options->help || options->version || options->list_options || options->check_build;
}

/* Asking for help must work whatever the environment holds, so that is read last. */
int options_read(struct driver_options *options, int argc, char *const *argv, char *const *envp,
                 struct hvd_err *err)
{
    int rest = 0;
    int rc = opt_argv(&options->set, argc, argv, &rest, err);

    if (rc)
        return rc;
    options->command = argv + rest;
    if (only_asks(options))
        return 0;
    rc = opt_env(&options->set, envp, err);
    if (!rc)
        rc = read_config(options, err);
    if (rc || options->print_config)
        return rc;
    return check(options, err);
}

int options_load(struct driver_options *options, const char *path, const char *text, size_t length,
                 struct hvd_err *err)
{
    int rc = opt_config(&options->set, path, text, length, err);

    if (!rc)
        rc = read_config(options, err); /* again: what it says stands above */
    return rc ? rc : check(options, err);
}

int options_save(const struct driver_options *options, struct buf *out)
{
    return opt_show_config(&options->set, false, out);
}

/* ---- answering ------------------------------------------------------------------------------- */

static int show_build(struct buf *out)
{
    int rc = buf_printf(out,
                        "hvd-elastic %s, protocol %d.%d\n\n"
                        "  [X] elastic jobs, and static ones\n"
                        "  [X] agents by fork and by ssh\n"
                        "  [X] TLS 1.3 with a key of the job's own\n"
                        "  [X] restart and takeover of the driver\n"
                        "  [ ] MPI, jsrun: not needed\n",
                        HVD_VERSION_TEXT, PROTO_MAJOR, PROTO_MINOR);

    return rc ? rc : gpu_found(out);
}

/* Those of the questions too: they are described on the same page. */
static int show_names(const struct driver_options *options, struct buf *out)
{
    struct ask_options asked;
    struct opt_set set;
    int rc = opt_init(&set, ask_option_table, ask_option_count, &asked);

    if (rc)
        return rc;
    rc = opt_show_names(&options->set, out);
    if (!rc)
        rc = opt_show_names(&set, out);
    opt_release(&set);
    return rc;
}

bool options_answer(const struct driver_options *options, int *ret_status)
{
    struct buf out;
    int rc = 0;

    buf_init(&out, LIMIT_CONFIG_TEXT_BYTES);
    if (options->help)
        rc = opt_show_help(&options->set, usage_text, about_text, &out);
    else if (options->version)
        rc = buf_printf(&out, "hvd-elastic %s\n", HVD_VERSION_TEXT);
    else if (options->check_build)
        rc = show_build(&out);
    else if (options->list_options)
        rc = show_names(options, &out);
    else if (options->print_config)
        rc = opt_show_config(&options->set, true, &out);
    else
        return false;
    fputs(buf_text(&out), stdout);
    buf_release(&out);
    if (rc)
        fprintf(stderr, "hvd-elastic: %s\n", err_text(rc));
    *ret_status = rc || fflush(stdout) || ferror(stdout) ? OPTIONS_STORAGE_EXIT : 0;
    return true;
}

int options_complain(const struct hvd_err *err)
{
    fflush(stdout); /* so that the two keep their order where they go to the same place */
    fprintf(stderr, "hvd-elastic: %s\nTry 'hvd-elastic --help'.\n", err->text);
    return OPTIONS_USAGE_EXIT;
}

/* ---- for others ------------------------------------------------------------------------------ */

static int64_t bounded(int64_t us)
{
    return us < LIMIT_DURATION_US ? us : LIMIT_DURATION_US;
}

static struct policy policy_of(const struct driver_options *options)
{
    struct policy policy;

    policy_init(&policy);
    policy.lower_us = options->cooldown.low_us;
    policy.upper_us = options->cooldown.high_us;
    policy.forever = options->blacklist_forever;
    policy.scope = (enum scope)options->blacklist_scope;
    policy.restarts_max = (uint32_t)options->slot_restarts;
    policy.restarts_window_us = options->slot_restarts_window_us;
    policy.decay_us = options->blacklist_decay_us;
    return policy;
}

int options_to_core(const struct driver_options *options, const char *job, uint64_t seed,
                    struct core_config *ret_config, struct hvd_err *err)
{
    struct core_config config;
    int rc;

    core_config_init(&config);
    config.job = job;
    config.np = (uint32_t)options->np;
    config.min_np = (uint32_t)options->min_np;
    config.max_np = (uint32_t)options->max_np;
    config.reset_limit = (uint32_t)options->reset_limit;
    config.blacklist = policy_of(options);
    config.beat_us = options->beat_us;
    config.lease_us = options->lease_us;
    config.driver_grace_us = bounded(options->driver_grace_us);
    config.discovery_us = options->discovery_interval_us;
    config.elastic_timeout_us = bounded(options->elastic_timeout_us);
    config.agent_start_us = options->agent_timeout_us;
    config.start_timeout_us = bounded(options->start_timeout_us);
    config.gather_us = options->gather_us;
    config.prepare_us = options->prepare_timeout_us;
    config.stall_warning_us = bounded(options->stall_warning_us);
    config.stall_us = bounded(options->stall_shutdown_us);
    config.kill_grace_us = options->kill_grace_us;
    config.seed = seed;
    rc = core_config_finish(&config, err);
    if (!rc)
        *ret_config = config;
    return rc;
}

void options_to_discover(const struct driver_options *options, struct discover_config *ret_config)
{
    int twice[2] = { 0, 0 };
    struct discover_config config = {
        .kind = DISCOVER_LIST,
        .source = options->default_hosts,
        .slots_per_host = (uint32_t)options->slots_per_host,
        .limit_us = options->discovery_timeout_us,
    };
    const struct discover_config places[] = {
        {.kind = DISCOVER_LIST,    .source = options->hosts           },
        { .kind = DISCOVER_FILE,   .source = options->hostfile        },
        { .kind = DISCOVER_SCRIPT, .source = options->discovery_script},
        { .kind = DISCOVER_WATCH,  .source = options->discovery_watch },
    };
    int found = host_source(options, twice);

    if (found >= 0) {
        config.kind = places[found].kind;
        config.source = places[found].source;
    }
    *ret_config = config;
}
