/*
 * options.c: the table of hvd-agent's options, and the checks that concern several options. Called
 * by main.c. Invariant: no error quotes the key, and every copy of the key's text is wiped.
 */
#include "agent/options.h"

#include "agent/io/key_word.h"
#include "base/limits.h"
#include "base/text.h"
#include "base/time.h"
#include "os/file.h"
#include "wire/address.h"

#include <string.h>

#define ROW(field, ...) OPT(struct agent_options, field, __VA_ARGS__)

/* clang-format off */
const struct opt agent_option_table[] = {
    ROW(job, .name = "job", .arg = "NAME", .min = 1, .group = "Job", .help = "the job's name"),
    ROW(host, .name = "host", .arg = "NAME", .min = 1, .group = "Job",
        .help = "the name of this host in discovery"),
    ROW(job_id, .name = "job-id", .arg = "DIGITS", .min = 1, .group = "Job",
        .help = "tells the job from others of its name: 16 hexadecimal digits (default: made of the "
                "key)"),
    ROW(key, .name = "key", .arg = "DIGITS", .min = 1, .group = "Job",
        .help = "the key of this host in this job, 64 hexadecimal digits"),
    ROW(epoch, .name = "epoch", .arg = "N", .preset = "0", .group = "Job",
        .help = "which key of this host it is; a running agent takes a later one"),
    ROW(drivers, .name = "drivers", .arg = "ADDRESS:PORT", .min = 1, .group = "Job",
        .help = "the address and port of the driver, in numbers: 10.0.0.7:4321 or [fd00::7]:4321; "
                "may be repeated, the likeliest first"),
    ROW(agent, .name = "agent", .arg = "N", .preset = "0", .group = "Job",
        .help = "the number of this start of an agent, different for each start; 0: a random "
                "number"),
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
        .help = "how long workers train on without a driver, before they are ended"),
    ROW(redial_us, .name = "redial", .arg = "TIME", .preset = "500ms", .min = TIME_MS,
        .group = "Times", .help = "the time from one attempt to reach the driver to the next"),
    ROW(kill_grace_us, .name = "kill-grace", .arg = "TIME", .preset = "5s", .group = "Times",
        .help = "the time from SIGTERM to SIGKILL when the agent ends its workers without an "
                "order of the driver"),
    ROW(notice_us, .name = "notice", .arg = "TIME", .preset = "30s", .group = "Times",
        .help = "the time from a SIGTERM to the agent until this machine goes away; a second "
                "SIGTERM ends the agent and its workers at once"),
    ROW(stall_warning_us, .name = "stall-warning", .arg = "TIME", .preset = "1m",
        .flags = OPT_NEVER, .group = "Times",
        .help = "the time after which workers report an operation that still waits"),
    ROW(stall_shutdown_us, .name = "stall-shutdown", .arg = "TIME", .preset = "never",
        .flags = OPT_NEVER, .group = "Times",
        .help = "the time after which workers give up an operation that still waits"),

    ROW(log_file, .name = "log-file", .arg = "FILE", .min = 1, .group = "Log",
        .help = "the file to which log lines are appended, made for the first line (default "
                "hvd-elastic/JOB/HOST.log in XDG_STATE_HOME, or else in ~/.local/state)"),
    ROW(log_level, .name = "log-level", .arg = "LEVEL", .preset = "warning", .min = 1,
        .group = "Log",
        .help = "the least severe lines in the log: error, warning, info or debug; exceptions for "
                "parts may follow: info,net:debug"),

    ROW(from_stdin, .name = "stdin", .flags = OPT_ARGV_ONLY, .group = "Command line",
        .help = "read the options above from standard input, as lines of \"name = value\", to its "
                "end; then start the agent in the background, and print its pid"),
    ROW(foreground, .name = "foreground", .flags = OPT_ARGV_ONLY, .group = "Command line",
        .help = "keep the agent in the foreground: the agent logs on the terminal, and ends with "
                "it"),
    OPT_GENERAL_ROWS(struct agent_options, general, "Command line"),
};
/* clang-format on */

const size_t agent_option_count = ARRAY_SIZE(agent_option_table);

/* Reads the command line. Only options with OPT_ARGV_ONLY are allowed there. */
int agent_options_argv(struct opt_set *set, int argc, char *const *argv, struct hvd_err *err)
{
    char quoted[TEXT_QUOTE_MAX];
    int rest = argc;
    int rc = opt_argv(set, argc, argv, &rest, err);

    if (rc)
        return rc;
    for (size_t i = 0; i < agent_option_count; i++) {
        const struct opt *row = &agent_option_table[i];

        if (!(row->flags & OPT_ARGV_ONLY) && opt_source(set, row->name) == OPT_COMMAND_LINE)
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

static int options_missing(const char *name, struct hvd_err *err)
{
    return err_set(
        err, HVD_E_INVAL,
        "%s: is missing; hvd-elastic starts each agent with it; to start one by hand, see --help",
        name);
}

/* Checks a name that becomes a part of a path and of a socket's name. */
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

/* Reads the settings of an agent, as lines "name = value", and checks them. */
int agent_options_text(struct opt_set *set, const char *text, size_t length, struct hvd_err *err)
{
    const struct agent_options *options = set->config;
    const struct opt_list *drivers = &options->drivers;
    uint8_t key[AGENT_KEY_BYTES];
    struct address address;
    int rc = opt_config(set, "standard input", text, length, err);

    if (!rc)
        rc = options_check_name("job", options->job, LIMIT_JOB_NAME_BYTES, err);
    if (!rc)
        rc = options_check_name("host", options->host, LIMIT_HOST_NAME_BYTES, err);

    /* The error does not quote the key: a wrong key may be right except for one digit. */
    if (!rc && options->job_id && strlen(options->job_id) != KEY_JOB_MAX - 1)
        rc = err_set(err, HVD_E_INVAL, "job-id: must be %d hexadecimal digits", KEY_JOB_MAX - 1);
    if (!rc && !options->key)
        rc = options_missing("key", err);
    if (!rc && key_digits(options->key, key))
        rc = err_set(err, HVD_E_INVAL, "key: must be %d hexadecimal digits", 2 * AGENT_KEY_BYTES);
    explicit_bzero(key, sizeof(key));

    /* The addresses must be numeric, because an agent asks no name server. */
    if (!rc && !drivers->count)
        rc = options_missing("drivers", err);
    if (!rc && drivers->count > LIMIT_ADDRESSES)
        rc = err_set(err, HVD_E_LIMIT,
                     "drivers: %zu addresses are too many; give at most %d (LIMIT_ADDRESSES)",
                     drivers->count, LIMIT_ADDRESSES);
    for (size_t i = 0; !rc && i < drivers->count; i++) {
        rc = address_parse(drivers->items[i], &address, err);
        if (rc)
            rc = err_prefix(err, rc, "drivers");
    }
    if (!rc && options->max_np && options->min_np > options->max_np)
        rc =
            err_set(err, HVD_E_INVAL, "min-np: is more than max-np; lower min-np, or raise max-np");
    if (!rc && options->beat_us >= options->lease_us)
        rc = err_set(err, HVD_E_INVAL,
                     "beat: is not shorter than lease; shorten beat, or a worker that is heard "
                     "once per beat counts as dead in between");
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

void agent_options_key(struct agent_options *options, uint8_t ret_key[AGENT_KEY_BYTES])
{
    if (key_digits(options->key, ret_key))
        memset(ret_key, 0, AGENT_KEY_BYTES); /* cannot happen: the text was checked before */
    explicit_bzero(options->key, strlen(options->key));
}
