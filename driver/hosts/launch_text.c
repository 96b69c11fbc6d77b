#include "driver/hosts/launch_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define WORDS_MAX  (LIMIT_OPTION_ITEMS + 32)
#define SSH_FAILED 255 /* its exit code when it is not that of the command */
#define NO_SUCH    127 /* the shell's, when there is no such command */

void launch_words_init(struct launch_words *words)
{
    *words = (struct launch_words){ .port = "" };
}

void launch_words_release(struct launch_words *words)
{
    VEC_RELEASE(&words->argv);
}

static int add_quoted(struct buf *command, const char *text)
{
    int rc = buf_append_text(command, "'");

    for (; !rc && *text; text++)
        rc = *text == '\'' ? buf_append_text(command, "'\\''") : buf_append(command, text, 1);
    return rc ? rc : buf_append_text(command, "'");
}

/* The login shell over there need not be sh: it only has to know exec and single quotes. */
int launch_remote(const struct launch_config *config, struct buf *command)
{
    const char *path = config->agent_path;
    int rc;

    if (path) {
        rc = buf_append_text(command, "exec ");
        if (!rc)
            rc = add_quoted(command, path);
        return rc ? rc : buf_append_text(command, " --stdin");
    }
    if (config->local_path[0] != '/')
        return buf_append_text(command, "exec hvd-agent --stdin");
    rc = buf_append_text(command, "exec sh -c 'if [ -x \"$1\" ]; then exec \"$1\" --stdin; fi; "
                                  "exec hvd-agent --stdin' sh ");
    return rc ? rc : add_quoted(command, config->local_path);
}

static int add(struct launch_words *words, const char *word)
{
    int rc = VEC_RESERVE(&words->argv, 1, WORDS_MAX);

    if (!rc)
        words->argv.items[words->argv.count++] = word;
    return rc;
}

static int add_all(struct launch_words *words, const char *const *list)
{
    int rc = 0;

    for (; !rc && list && *list; list++)
        rc = add(words, *list);
    return rc;
}

static int add_option(struct launch_words *words, const char *flag, const char *value)
{
    int rc = add(words, flag);

    return rc ? rc : add(words, value);
}

/* Of what is said twice ssh takes what is said first: nobody can ask for a password, and all the
 * rest the user may say otherwise. */
int launch_ssh(const struct launch_config *config, const char *host, const char *remote,
               struct launch_words *words)
{
    static const char *const always[] = { "ssh", "-T", "-o", "BatchMode=yes", NULL };
    static const char *const usual[] = { "-o", "ConnectTimeout=10",
                                         "-o", "ServerAliveInterval=5",
                                         "-o", "ServerAliveCountMax=3",
                                         NULL };
    const char *const last[] = { "--", host, remote, NULL };
    int rc = add_all(words, always);

    snprintf(words->port, sizeof(words->port), "%" PRIu64, config->ssh_port);
    if (!rc && config->ssh_port)
        rc = add_option(words, "-p", words->port);
    if (!rc && config->ssh_identity_file)
        rc = add_option(words, "-i", config->ssh_identity_file);
    if (!rc)
        rc = add_all(words, config->ssh_args);
    if (!rc && config->ssh_identity_file)
        rc = add_option(words, "-o", "IdentitiesOnly=yes");
    if (!rc)
        rc = add_all(words, usual);
    if (!rc)
        rc = add_all(words, last);
    return rc ? rc : add(words, NULL);
}

int launch_local(const struct launch_config *config, struct launch_words *words)
{
    const char *const all[] = { config->local_path, "--stdin", NULL };
    int rc = add_all(words, all);

    return rc ? rc : add(words, NULL);
}

/* Lines of ssh that say nothing about why, and may stand last. */
static bool is_noise(struct span line)
{
    static const char *const beginnings[] = {
        "Warning: Permanently added ",
        "Connection to ",
        "Shared connection to ",
        "debug1: ",
        "debug2: ",
        "debug3: ",
        "Transferred: ",
        "Bytes per second: ",
        "Killed by signal ",
    };

    for (size_t i = 0; i < ARRAY_SIZE(beginnings); i++) {
        size_t length = strlen(beginnings[i]);

        if (line.length >= length && !memcmp(line.at, beginnings[i], length))
            return true;
    }
    return false;
}

static struct span last_line(const struct complaint *complaint)
{
    struct span rest = complaint_tail(complaint);
    struct span noise = { NULL, 0 };
    struct span last = { NULL, 0 };
    struct span line;

    while (complaint_next(&rest, &line)) {
        if (is_noise(line))
            noise = line;
        else
            last = line;
    }
    return last.length ? last : noise;
}

static struct span or_nothing(struct span line)
{
    static const char nothing[] = "it does not say why";

    return line.length ? line : (struct span){ nothing, sizeof(nothing) - 1 };
}

static bool span_has(struct span span, const char *part)
{
    return span.length && memmem(span.at, span.length, part, strlen(part));
}

static const char *ssh_remedy(struct span line)
{
    static const struct {
        const char *part;
        const char *remedy;
    } known[] = {
        {"Host key verification failed",
         "log in there by hand once, and see whether to trust it"                            },
        { "Permission denied",           "let this user log in there without a password, or name a key with "
                               "--ssh-identity-file"           },
        { "Could not resolve",           "check the host's name"                             },
        { "Connection refused",          "start sshd there, or name its port with --ssh-port"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(known); i++)
        if (span_has(line, known[i].part))
            return known[i].remedy;
    return "try to log in there by hand";
}

static void blame_ssh(const char *host, struct span line, struct hvd_err *err)
{
    err_set(err, HVD_E_LOST, "ssh to %s: %.*s (%d); %s", host, (int)line.length, line.at,
            SSH_FAILED, ssh_remedy(line));
}

static void blame_agent(const char *host, struct span line, int code, bool local,
                        struct hvd_err *err)
{
    bool missing = !local && (code == NO_SUCH || code == NO_SUCH - 1);

    err_set(err, HVD_E_LOST, "hvd-agent on %s: %.*s (exit code %d)%s", host, (int)line.length,
            line.at, code,
            missing ? "; install it there, or say where it is with --agent-path" : "");
}

bool launch_worked(const struct command_spec *spec, const struct command_end *end, const char *host,
                   bool local, struct hvd_err *err)
{
    struct span line = last_line(end->complaint);
    const char *what = local ? "hvd-agent on" : "ssh to";
    char how[COMMAND_HOW_MAX];

    if (end->how == COMMAND_EXITED && end->value == 0)
        return true;
    if (end->how == COMMAND_EXITED && end->value == SSH_FAILED && !local)
        blame_ssh(host, or_nothing(line), err);
    else if (end->how == COMMAND_EXITED)
        blame_agent(host, or_nothing(line), end->value, local, err);
    else if (end->how == COMMAND_FAILED || line.length == 0)
        err_set(err, HVD_E_LOST, "%s %s: %s", what, host, command_how(spec, end, how));
    else
        err_set(err, HVD_E_LOST, "%s %s: %s (its last words: %.*s)", what, host,
                command_how(spec, end, how), (int)line.length, line.at);
    return false;
}
