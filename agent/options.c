#include "agent/options.h"

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
        .help = "what discovery calls this host"),
    ROW(key, .name = "key", .arg = "DIGITS", .min = 1, .group = "Job",
        .help = "the job's key, 64 hexadecimal digits"),
    ROW(drivers, .name = "drivers", .arg = "ADDRESS:PORT", .min = 1, .group = "Job",
        .help = "where the driver listens, in numbers: 10.0.0.7:4321 or [fd00::7]:4321; may be "
                "repeated, the likeliest first"),
    ROW(agent, .name = "agent", .arg = "N", .preset = "0", .group = "Job",
        .help = "the number of this start of an agent, which differs from every other; 0: one that "
                "is drawn"),
    ROW(min_np, .name = "min-np", .arg = "N", .preset = "0", .max = LIMIT_WORKERS, .group = "Job",
        .help = "what workers are told is the least size of a round"),
    ROW(max_np, .name = "max-np", .arg = "N", .preset = "0", .max = LIMIT_WORKERS, .group = "Job",
        .help = "what they are told is the greatest; 0: no such limit"),

    ROW(beat_us, .name = "beat", .arg = "TIME", .preset = "1s", .min = TIME_MS, .group = "Times",
        .help = "how often the agent and its workers are heard when they have nothing to say; a "
                "driver's welcome overrides this, --lease and --driver-grace"),
    ROW(lease_us, .name = "lease", .arg = "TIME", .preset = "10s", .min = TIME_MS, .group = "Times",
        .help = "silence that is taken for a death"),
    ROW(driver_grace_us, .name = "driver-grace", .arg = "TIME", .preset = "10m",
        .flags = OPT_NEVER, .group = "Times",
        .help = "how long workers train on without a driver, before they are ended"),
    ROW(redial_us, .name = "redial", .arg = "TIME", .preset = "500ms", .min = TIME_MS,
        .group = "Times", .help = "from one attempt to reach the driver to the next"),
    ROW(kill_grace_us, .name = "kill-grace", .arg = "TIME", .preset = "5s", .group = "Times",
        .help = "from SIGTERM to SIGKILL when the agent ends its workers by itself"),
    ROW(notice_us, .name = "notice", .arg = "TIME", .preset = "30s", .group = "Times",
        .help = "how soon after a SIGTERM to the agent this machine goes away; a second SIGTERM "
                "ends the agent and its workers at once"),
    ROW(stall_warning_us, .name = "stall-warning", .arg = "TIME", .preset = "1m",
        .flags = OPT_NEVER, .group = "Times",
        .help = "what workers are told: report an operation that has waited for so long"),
    ROW(stall_shutdown_us, .name = "stall-shutdown", .arg = "TIME", .preset = "never",
        .flags = OPT_NEVER, .group = "Times",
        .help = "what workers are told: give up an operation that has waited for so long"),

    ROW(log_file, .name = "log-file", .arg = "FILE", .min = 1, .group = "Log",
        .help = "where the log is appended, made when there is a line for it (default "
                "hvd-elastic/JOB/HOST.log in XDG_STATE_HOME, or else in ~/.local/state)"),
    ROW(log_level, .name = "log-level", .arg = "LEVEL", .preset = "warning", .min = 1,
        .group = "Log",
        .help = "error, warning, info or debug, and exceptions after it: info,net:debug"),

    ROW(from_stdin, .name = "stdin", .flags = OPT_ARGV_ONLY, .group = "Command line",
        .help = "read all that stands above from standard input, as lines of \"name = value\", to "
                "its end; then start the agent, print its pid, and leave it alone"),
    ROW(foreground, .name = "foreground", .flags = OPT_ARGV_ONLY, .group = "Command line",
        .help = "do not leave it alone: it stays a child of the terminal, logs there, and ends "
                "with it"),
    ROW(list_options, .name = "list-options", .flags = OPT_ARGV_ONLY, .group = "Command line",
        .help = "list the options for other programs: name, group, default"),
    ROW(help, .name = "help", .key = 'h', .flags = OPT_ARGV_ONLY, .group = "Command line",
        .help = "show this, and end"),
    ROW(version, .name = "version", .flags = OPT_ARGV_ONLY, .group = "Command line",
        .help = "show the version, and end"),
};
/* clang-format on */

const size_t agent_option_count = ARRAY_SIZE(agent_option_table);

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
            return err_set(err, HVD_E_INVAL,
                           "--%s: is not for a command line, which everybody can read; write "
                           "\"%s = ...\" to standard input, and give --stdin",
                           row->name, row->name);
    }
    if (rest < argc)
        return err_set(err, HVD_E_INVAL, "%s: unknown; see --help",
                       text_quote(argv[rest], strlen(argv[rest]), quoted));
    return 0;
}

static int missing(const char *name, struct hvd_err *err)
{
    return err_set(err, HVD_E_INVAL,
                   "%s: is missing; hvd-elastic starts agents and tells them, see --help", name);
}

/* A name that becomes a part of a path and of a socket's name. */
static int check_name(const char *option, const char *name, size_t max, struct hvd_err *err)
{
    char quoted[TEXT_QUOTE_MAX];
    size_t length;

    if (!name)
        return missing(option, err);
    length = strlen(name);
    text_quote(name, length, quoted);
    if (length > max)
        return err_set(err, HVD_E_LIMIT, "%s: %s: longer than %zu bytes", option, quoted, max);
    if (!text_is_clean(name, length) || strpbrk(name, "/\n\t") || name[0] == '.')
        return err_set(err, HVD_E_INVAL,
                       "%s: %s: cannot be part of a path; leave out control characters, / and a "
                       "dot at the beginning",
                       option, quoted);
    return 0;
}

static int hex_value(char c)
{
    static const char digits[] = "0123456789abcdef";
    const char *found = c ? strchr(digits, c | ' ') : NULL;

    return found && (c >= '0') ? (int)(found - digits) : -1;
}

static int read_key(const char *text, uint8_t ret_key[AGENT_KEY_BYTES])
{
    if (strlen(text) != 2 * (size_t)AGENT_KEY_BYTES)
        return HVD_E_INVAL;
    for (size_t i = 0; i < AGENT_KEY_BYTES; i++) {
        int high = hex_value(text[2 * i]);
        int low = hex_value(text[2 * i + 1]);

        if (high < 0 || low < 0)
            return HVD_E_INVAL;
        ret_key[i] = (uint8_t)(high * 16 + low);
    }
    return 0;
}

/* The key is not quoted: what is wrong with it may be one digit. */
static int check_key(const char *text, struct hvd_err *err)
{
    uint8_t key[AGENT_KEY_BYTES];
    int rc;

    if (!text)
        return missing("key", err);
    rc = read_key(text, key);
    explicit_bzero(key, sizeof(key));
    return rc ? err_set(err, rc, "key: is not %d hexadecimal digits", 2 * AGENT_KEY_BYTES) : 0;
}

static int check_drivers(const struct opt_list *drivers, struct hvd_err *err)
{
    struct address address;
    int rc = 0;

    if (!drivers->count)
        return missing("drivers", err);
    if (drivers->count > LIMIT_ADDRESSES)
        return err_set(err, HVD_E_LIMIT, "drivers: %zu addresses; give LIMIT_ADDRESSES (%d)",
                       drivers->count, LIMIT_ADDRESSES);
    for (size_t i = 0; !rc && i < drivers->count; i++)
        rc = address_parse(drivers->items[i], &address, err);
    return rc ? err_prefix(err, rc, "drivers") : 0;
}

static int check(const struct agent_options *options, struct hvd_err *err)
{
    int rc = check_name("job", options->job, LIMIT_JOB_NAME_BYTES, err);

    if (!rc)
        rc = check_name("host", options->host, LIMIT_HOST_NAME_BYTES, err);
    if (!rc)
        rc = check_key(options->key, err);
    if (!rc)
        rc = check_drivers(&options->drivers, err);
    if (!rc && options->max_np && options->min_np > options->max_np)
        rc = err_set(err, HVD_E_INVAL, "min-np: is more than max-np");
    if (!rc && options->beat_us >= options->lease_us)
        rc = err_set(err, HVD_E_INVAL,
                     "beat: is not shorter than lease; who is heard once in a while must not be "
                     "taken for dead in between");
    return rc;
}

int agent_options_text(struct opt_set *set, const char *text, size_t length, struct hvd_err *err)
{
    int rc = opt_config(set, "standard input", text, length, err);

    return rc ? rc : check(set->config, err);
}

int agent_options_stdin(struct opt_set *set, struct hvd_err *err)
{
    struct buf text;
    int rc;

    buf_init(&text, LIMIT_CONFIG_TEXT_BYTES + 1);
    rc = buf_reserve(&text, text.max); /* it never moves, so nothing is left where it was */
    if (rc)
        err_set(err, rc, "standard input: no memory to read it");
    else
        rc = file_read("-", &text, err);
    if (!rc)
        rc = agent_options_text(set, buf_text(&text), text.length, err);
    if (text.data)
        explicit_bzero(text.data, text.length);
    buf_release(&text);
    return rc;
}

void agent_options_key(struct agent_options *options, uint8_t ret_key[AGENT_KEY_BYTES])
{
    if (read_key(options->key, ret_key))
        memset(ret_key, 0, AGENT_KEY_BYTES); /* it was judged: it cannot be */
    explicit_bzero(options->key, strlen(options->key));
}
