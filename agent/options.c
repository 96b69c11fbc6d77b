/*
 * options.c: the table of hvd-agent's options, and the checks that concern several options. Called
 * by main.c. Invariant: no error quotes the key, and every copy of the key's text is wiped.
 */
#include "agent/options.h"

#include "agent/io/key_word.h"
#include "agent/join/join_places.h"
#include "base/limits.h"
#include "base/text.h"
#include "base/time.h"
#include "os/file.h"
#include "proto/preemption.h"
#include "wire/address.h"

#include <inttypes.h>
#include <string.h>

#define ROW(field, ...) OPT(struct agent_options, field, __VA_ARGS__)

/* clang-format off */
const struct opt agent_option_table[] = {
    ROW(job, .name = "job", .arg = "NAME", .min = 1, .group = "Job", .help = "the job's name"),
    ROW(host, .name = "host", .arg = "NAME", .min = 1, .group = "Job",
        .help = "the name of this host in discovery"),
    ROW(job_id, .name = "job-id", .arg = "DIGITS", .min = 1, .group = "Job",
        .help = "the id that tells this job from other jobs of its name: 16 hexadecimal digits "
                "(default: made of the key)"),
    ROW(key, .name = "key", .arg = "DIGITS", .min = 1, .group = "Job",
        .help = "the key of this host in this job, 64 hexadecimal digits"),
    ROW(epoch, .name = "epoch", .arg = "N", .preset = "0", .group = "Job",
        .help = "the number of the key; a running agent replaces its key by a key with a higher "
                "number"),
    ROW(drivers, .name = "drivers", .arg = "ADDRESS:PORT", .min = 1, .group = "Job",
        .help = "the address and port of the driver, in numbers: 10.0.0.7:4321 or [fd00::7]:4321; "
                "may be repeated, the likeliest first"),
    ROW(agent, .name = "agent", .arg = "N", .preset = "0", .group = "Job",
        .help = "the number of this start of an agent, different for each start; 0: a random "
                "number"),
    ROW(address, .name = "address", .arg = "ADDRESS", .min = 1, .group = "Job",
        .help = "the address at which the other hosts of the job reach this one, in numbers. "
                "Default: the one from which this host reaches the driver"),
    ROW(min_np, .name = "min-np", .arg = "N", .preset = "0", .max = LIMIT_WORKERS, .group = "Job",
        .help = "the least number of workers in a round, as workers are told"),
    ROW(max_np, .name = "max-np", .arg = "N", .preset = "0", .max = LIMIT_WORKERS, .group = "Job",
        .help = "the greatest number of workers in a round, as workers are told; 0: no limit"),

    ROW(beat_us, .name = "beat", .arg = "TIME", .preset = "1s", .min = TIME_MS, .group = "Times",
        .help = "the time from one heartbeat of the agent or a worker to the next; a driver's "
                "welcome overrides beat, lease and driver-grace"),
    ROW(lease_us, .name = "lease", .arg = "TIME", .preset = "10s", .min = TIME_MS, .group = "Times",
        .help = "the time without a message after which a peer counts as dead"),
    ROW(driver_grace_us, .name = "driver-grace", .arg = "TIME", .preset = "10m",
        .flags = OPT_NEVER, .group = "Times",
        .help = "how long workers train on without a driver, before the agent ends them"),
    ROW(redial_us, .name = "redial", .arg = "TIME", .preset = "500ms", .min = TIME_MS,
        .group = "Times", .help = "the longest time from one attempt to reach the driver to the next"),
    ROW(kill_grace_us, .name = "kill-grace", .arg = "TIME", .preset = "5s", .group = "Times",
        .help = "the time from SIGTERM to SIGKILL when the agent ends its workers without an "
                "order of the driver"),
    ROW(notice_us, .name = "notice", .arg = "TIME", .preset = "30s", .group = "Times",
        .help = "the time from a SIGTERM to the agent until this machine goes away; a second "
                "SIGTERM ends the agent and its workers at once"),
    ROW(preemption, .name = "preemption", .arg = "GIVERS", .preset = "auto", .min = 1,
        .group = "Times",
        .help = "who is asked whether this machine will go away: auto, none, or a list of aws, gcp, "
                "azure, slurm, file:PATH and command:CMD"),
    ROW(stall.warning_us, .name = "stall-warning", .arg = "TIME", .preset = "1m",
        .flags = OPT_NEVER, .group = "Times",
        .help = "the time after which workers report an operation that still waits"),
    ROW(stall.shutdown_us, .name = "stall-shutdown", .arg = "TIME", .preset = "never",
        .flags = OPT_NEVER, .group = "Times",
        .help = "the time after which workers give up an operation that still waits"),

    ROW(storage_env, .name = "storage-env", .arg = "AWS_NAME=VALUE", .min = 1, .group = "Job",
        .help = "a variable of the driver for checkpoints in S3, which the agent takes unless this "
                "host has its own; may be repeated"),

    ROW(log_file, .name = "log-file", .arg = "FILE", .min = 1, .group = "Log",
        .help = "the file to which log lines are appended, made for the first line (default "
                "hvd-elastic/JOB/HOST.log in XDG_STATE_HOME, or else in ~/.local/state)"),
    ROW(log_level, .name = "log-level", .arg = "LEVEL", .preset = "warning", .min = 1,
        .group = "Log",
        .help = "the least severe lines in the log: error, warning, info or debug; exceptions for "
                "parts may follow: info,net:debug"),

    ROW(join, .name = "join", .arg = "HOST:PORT[,HOST:PORT...]", .min = 1, .flags = OPT_ARGV_ONLY,
        .group = "Joining",
        .help = "join the job of the driver at one of these addresses, wait for that driver if it is "
                "not there yet, and end with the job"),
    ROW(token_file, .name = "token-file", .arg = "FILE", .min = 1, .flags = OPT_ARGV_ONLY,
        .group = "Joining", .help = "the file with the token that lets this host join"),
    ROW(name, .name = "name", .arg = "NAME", .min = 1, .flags = OPT_ARGV_ONLY, .group = "Joining",
        .help = "the name of this host in the job, different for each host. Default: its host name"),
    ROW(slots, .name = "slots", .arg = "N", .preset = "1", .min = 1, .max = LIMIT_SLOTS_PER_HOST,
        .flags = OPT_ARGV_ONLY, .group = "Joining", .help = "how many workers may run on this host"),
    ROW(join_timeout_us, .name = "join-timeout", .arg = "TIME", .preset = "never",
        .flags = OPT_ARGV_ONLY | OPT_NEVER, .group = "Joining",
        .help = "how long to wait for the first driver that lets this host in"),

    ROW(healthy, .name = "healthy", .flags = OPT_ARGV_ONLY, .group = "Command line",
        .help = "ask the agents of this user on this host, and hvd-agent --join, how they are; "
                "print a line for each; exit code 1: one of them hangs, or there is none"),
    ROW(from_stdin, .name = "stdin", .flags = OPT_ARGV_ONLY, .group = "Command line",
        .help = "read the options above from standard input, as lines of \"name = value\", to its "
                "end; then start the agent in the background, and print its pid"),
    ROW(foreground, .name = "foreground", .flags = OPT_ARGV_ONLY, .group = "Command line",
        .help = "keep the agent in the foreground, without a supervisor: the agent logs to "
                "standard error"),
    OPT_GENERAL_ROWS(struct agent_options, general, "Command line"),
};
/* clang-format on */

const size_t agent_option_count = ARRAY_SIZE(agent_option_table);

/* Reads the command line. Every user of the machine can read it, so it may have only the options
 * marked with OPT_ARGV_ONLY; with --join also those that are passed on to each agent. */
int agent_options_argv(struct opt_set *set, int argc, char *const *argv, struct hvd_err *err)
{
    const struct agent_options *options = set->config;
    char quoted[TEXT_QUOTE_MAX];
    int rest = argc;
    int rc = opt_argv(set, argc, argv, &rest, err);

    if (rc)
        return rc;
    for (size_t i = 0; i < agent_option_count; i++) {
        const struct opt *row = &agent_option_table[i];
        bool passed_on =
            options->join && (!strcmp(row->name, "notice") || !strcmp(row->name, "log-file") ||
                              !strcmp(row->name, "log-level") || !strcmp(row->name, "address"));

        if (!(row->flags & OPT_ARGV_ONLY) && opt_source(set, row->name) == OPT_COMMAND_LINE &&
            !passed_on)
            return err_set(
                err, HVD_E_INVAL,
                "--%s: is not allowed on the command line, which every user can read; write "
                "\"%s = ...\" to standard input, and give --stdin",
                row->name, row->name);
    }
    if (rest < argc)
        return err_set(err, HVD_E_INVAL, "%s: unknown; see --help",
                       text_quote(argv[rest], strlen(argv[rest]), quoted));
    return 0;
}

/* The error of an option that each agent needs, and that was not given. */
static int options_missing(const char *name, struct hvd_err *err)
{
    return err_set(
        err, HVD_E_INVAL,
        "%s: is missing; hvd-elastic gives this option to each agent; to start an agent by hand, "
        "see --help",
        name);
}

/* Checks the value of an option (the name of a job or host) that becomes a part of a path and of a
 * socket's name. `max`: bytes. */
static int options_check_name(const char *option, const char *name, size_t max, struct hvd_err *err)
{
    char quoted[TEXT_QUOTE_MAX];
    size_t length;

    if (!name)
        return options_missing(option, err);
    length = strlen(name);
    text_quote(name, length, quoted);
    if (length > max)
        return err_set(err, HVD_E_LIMIT, "%s: %s: longer than %zu bytes; shorten it", option,
                       quoted, max);
    if (!text_is_clean(name, length) || strpbrk(name, "/\n\t") || name[0] == '.')
        return err_set(err, HVD_E_INVAL,
                       "%s: %s: cannot be part of a path; leave out control characters, / and a "
                       "dot at the beginning",
                       option, quoted);
    return 0;
}

/* Checks the address of this host; NULL: none is given. It must have the usual spelling, in which
 * the driver compares addresses. */
static int options_check_address(const char *given, struct hvd_err *err)
{
    char usual[ADDRESS_TEXT_MAX];
    struct address address;
    int rc = given ? address_make(given, strlen(given), 0, &address, err) : 0;

    if (rc)
        return err_prefix(err, rc, "address");
    if (given && strcmp(address_show_host(&address, usual), given) != 0)
        return err_set(err, HVD_E_INVAL, "address: %s: write it as %s", given, usual);
    return 0;
}

/* Checks the options of a host that joins. `name`: the host name of this machine, which --name
 * replaces. */
int agent_options_join(const struct agent_options *options, const char *name, struct hvd_err *err)
{
    const char *given = options->name ? options->name : name;
    int rc;

    if (options->from_stdin || options->foreground)
        return err_set(err, HVD_E_INVAL,
                       "--join: starts agents by itself; leave out --stdin and "
                       "--foreground");
    if (!options->token_file)
        return err_set(
            err, HVD_E_INVAL,
            "--join: give --token-file, the file with the token that lets this host join");
    rc = join_places_check(options->join, err);
    if (rc)
        return err_prefix(err, rc, "--join");
    rc = options_check_name("--name", given, LIMIT_HOST_NAME_BYTES, err);
    if (!rc && (rc = options_check_address(options->address, err)))
        err_prefix(err, rc, "--join");
    if (!rc &&
        given[strspn(given, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-")])
        rc = err_set(err, HVD_E_INVAL,
                     "--name: %s: a host name has letters, digits, dots, dashes and underscores",
                     given);
    return rc;
}

/* With --join: appends the options of the command line that each agent of this host gets, as lines
 * "name = value", which agent_options_text of that agent reads. */
int agent_options_pass_on(const struct opt_set *set, struct buf *out)
{
    const struct agent_options *options = set->config;
    char time[TIME_TEXT_MAX];
    int rc = 0;

    if (opt_source(set, "notice") == OPT_COMMAND_LINE)
        rc = buf_printf(out, "notice = %s\n", time_format(options->notice_us, time));
    if (!rc && opt_source(set, "log-level") == OPT_COMMAND_LINE)
        rc = buf_printf(out, "log-level = \"%s\"\n", options->log_level);
    if (!rc && opt_source(set, "log-file") == OPT_COMMAND_LINE)
        rc = buf_printf(out, "log-file = \"%s\"\n", options->log_file);
    if (!rc && options->address)
        rc = buf_printf(out, "address = \"%s\"\n", options->address);
    return rc;
}

/* Reads the settings of an agent, as lines "name = value", and checks them. */
int agent_options_text(struct opt_set *set, const char *text, size_t length, struct hvd_err *err)
{
    const struct agent_options *options = set->config;
    const struct opt_list *drivers = &options->drivers;
    uint8_t key[AGENT_KEY_BYTES];
    struct preemption preemption;
    struct address address;
    int rc = opt_config(set, "standard input", text, length, err);

    if (!rc)
        rc = options_check_name("job", options->job, LIMIT_JOB_NAME_BYTES, err);
    if (!rc)
        rc = options_check_name("host", options->host, LIMIT_HOST_NAME_BYTES, err);

    if (!rc && options->job_id && strlen(options->job_id) != KEY_JOB_MAX - 1)
        rc = err_set(err, HVD_E_INVAL,
                     "job-id: must be %d hexadecimal digits; the driver and the agent must be of "
                     "the same release",
                     KEY_JOB_MAX - 1);
    if (!rc && !options->key)
        rc = options_missing("key", err);
    /* The error does not quote the key: a wrong key may be right except for one digit. */
    if (!rc && key_digits(options->key, key))
        rc = err_set(err, HVD_E_INVAL,
                     "key: must be %d hexadecimal digits; the driver and the agent must be of the "
                     "same release",
                     2 * AGENT_KEY_BYTES);
    explicit_bzero(key, sizeof(key));

    if (!rc && !drivers->count)
        rc = options_missing("drivers", err);
    if (!rc && drivers->count > LIMIT_ADDRESSES)
        rc = err_set(err, HVD_E_LIMIT,
                     "drivers: %zu addresses are too many; give at most %d (LIMIT_ADDRESSES)",
                     drivers->count, LIMIT_ADDRESSES);
    /* The addresses must be numeric, because an agent asks no name server. */
    for (size_t i = 0; !rc && i < drivers->count; i++) {
        rc = address_parse(drivers->items[i], &address, err);
        if (rc)
            rc = err_prefix(err, rc, "drivers");
    }
    if (!rc)
        rc = options_check_address(options->address, err);
    if (!rc && options->max_np && options->min_np > options->max_np)
        rc = err_set(err, HVD_E_INVAL,
                     "min-np: %" PRIu64 " is more than max-np, which is %" PRIu64
                     "; lower min-np, or raise max-np",
                     options->min_np, options->max_np);
    if (!rc && (rc = preemption_parse(options->preemption, &preemption, err)))
        rc = err_prefix(err, rc, "preemption");
    if (!rc && options->beat_us >= options->lease_us)
        rc = err_set(err, HVD_E_INVAL,
                     "beat: is not shorter than lease, so a peer would count as dead between "
                     "two heartbeats; shorten beat");
    return rc;
}

/* Reads the settings from standard input (the file name "-"). buf_release wipes the text, which
 * holds the key. */
int agent_options_stdin(struct opt_set *set, struct hvd_err *err)
{
    struct buf text;
    int rc;

    buf_init(&text, LIMIT_CONFIG_TEXT_BYTES + 1);
    rc = file_read("-", &text, err);
    if (!rc)
        rc = agent_options_text(set, buf_text(&text), text.length, err);
    buf_release(&text);
    return rc;
}

/* Moves the host's key out of the options: gives its bytes, and wipes its digits. */
void agent_options_key(struct agent_options *options, uint8_t ret_key[AGENT_KEY_BYTES])
{
    if (key_digits(options->key, ret_key))
        memset(ret_key, 0, AGENT_KEY_BYTES); /* cannot happen: the text was checked before */
    explicit_bzero(options->key, strlen(options->key));
}
