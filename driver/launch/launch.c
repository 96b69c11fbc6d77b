/*
 * launch.c: the starts of agents, by host. The driver's event loop requests a start. At most
 * config.parallel commands run at a time, and at most one for each host. The agent of a local host
 * is started as a child process, any other by ssh or by the command of --launcher. The event loop
 * tells the owner once how each start has ended.
 */
#include "driver/launch/launch.h"

#include "base/list.h"
#include "base/mem.h"
#include "base/text.h"
#include "base/time.h"
#include "base/vec.h"
#include "discovery/hosts.h"
#include "os/command/command.h"
#include "os/process.h"

#include <errno.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define BUCKETS    1024                      /* the number of lists in the hash table of hosts */
#define WORDS_MAX  (LIMIT_OPTION_ITEMS + 32) /* the most words of a command */
#define SSH_FAILED 255                       /* the exit code of ssh if ssh itself fails */
/* The exit code of a shell if the command does not exist. The code before it, 126, says that the
 * command is not executable. */
#define NO_SUCH 127
/* the end of each error text about --launcher */
#define LAUNCHER_WAYS \
    "name ssh, or a command that is called as COMMAND... HOST AGENT-COMMAND-LINE, such as rsh"

/* The words of the command of one start. */
struct launch_words {
    /* The words are borrowed from the config and from the texts below; the last word is NULL. */
    struct VEC(const char *) argv;
    char port[24]; /* the text of the ssh port */
    char host_keys[sizeof("StrictHostKeyChecking=accept-new")];
};

/* ---- commands and their ends ----------------------------------------------------------------- */

/* Appends a word to argv. --launcher and --ssh-args may have any number of words, so WORDS_MAX
 * limits the number of words in argv. */
static int words_add(struct launch_words *words, const char *word)
{
    int rc = VEC_RESERVE(&words->argv, 1, WORDS_MAX);

    if (!rc)
        words->argv.items[words->argv.count++] = word;
    return rc;
}

/* Appends all words of `list`, which ends in NULL; list NULL: none. */
static int words_add_all(struct launch_words *words, const char *const *list)
{
    int rc = 0;

    for (; !rc && list && *list; list++)
        rc = words_add(words, *list);
    return rc;
}

/* Appends an option of ssh: two words, such as "-p" and "22". */
static int words_add_option(struct launch_words *words, const char *flag, const char *value)
{
    int rc = words_add(words, flag);

    return rc ? rc : words_add(words, value);
}

/* Returns the last line of standard error that may say why a start failed. A line that begins like
 * one of `noise`, which ssh and kubectl often print at their end, gives no reason: it is the result
 * only if no other line exists. */
static struct span last_line(const struct stderr_tail *stderr_tail)
{
    static const char *const noise[] = {
        "Warning: Permanently added ",
        "Connection to ",
        "Shared connection to ",
        "debug1: ",
        "debug2: ",
        "debug3: ",
        "Transferred: ",
        "Bytes per second: ",
        "Killed by signal ",
        "command terminated with exit code ",
    };
    struct span rest = stderr_tail_text(stderr_tail);
    struct span noisy = { NULL, 0 };
    struct span last = { NULL, 0 };
    struct span line;

    while (stderr_tail_next_line(&rest, &line)) {
        bool says_why = true;

        for (size_t i = 0; i < ARRAY_SIZE(noise) && says_why; i++)
            says_why =
                line.length < strlen(noise[i]) || memcmp(line.at, noise[i], strlen(noise[i])) != 0;
        *(says_why ? &last : &noisy) = line;
    }
    return last.length ? last : noisy;
}

/* ---- starts --------------------------------------------------------------------------------- */

/*
 * The states of a start. A start waits while config.parallel starts run. It also waits while an
 * earlier start of its host runs, or has ended without the owner having been told.
 *
 *     waiting ──► running ──► done ──► freed, once the owner was told
 */
enum start_state { START_WAITING, START_RUNNING, START_DONE };

struct start {
    struct list link;    /* in the list of all starts in this state, launcher->starts[state] */
    struct list by_host; /* in the list of the hash table (launcher->buckets) for its host */
    struct launcher *launcher;
    enum start_state state;
    char *host;
    bool local;  /* the host is this machine, so no ssh is needed */
    char *input; /* the agent's standard input, which holds the host's key */
    struct launch_words words;
    struct command_spec spec;
    struct command *command; /* the command while it runs, else NULL */
    bool worked;             /* the command has exited with status 0 */
    struct hvd_err failure;  /* why the start has failed */
};

struct launcher {
    struct event_base *base;
    struct launch_config config;
    struct launch_ops ops;
    void *arg;
    struct buf remote;                  /* the command line that starts hvd-agent on another host */
    struct list starts[START_DONE + 1]; /* for each state the starts that are in it */
    uint32_t running;                   /* the number of starts in START_RUNNING */
    /* activated when a start may begin, or when the owner must be told how a start ended */
    struct event work_event;
    struct list buckets[BUCKETS]; /* a hash table of all starts by their host */
};

/* Returns the list of all starts whose hosts have the same hash (FNV-1a). A hash table is used
 * because a job may have LIMIT_HOSTS hosts. */
static struct list *launch_bucket(struct launcher *launcher, const char *host)
{
    uint32_t hash = 2166136261u;

    for (; *host; host++)
        hash = (hash ^ (unsigned char)*host) * 16777619u;
    return &launcher->buckets[hash % BUCKETS];
}

/* Returns a start of this host that is in this state; NULL: there is none. */
static struct start *launch_find(struct launcher *launcher, const char *host,
                                 enum start_state state)
{
    LIST_EACH (it, launch_bucket(launcher, host)) {
        struct start *start = CONTAINER_OF(it, struct start, by_host);

        if (start->state == state && !strcmp(start->host, host))
            return start;
    }
    return NULL;
}

/* Makes the event loop call launch_run_starts in its next iteration. */
static void launch_wake(struct launcher *launcher)
{
    event_active(&launcher->work_event, EV_TIMEOUT, 1);
}

/* Moves a start to the end of the list of its new state. */
static void start_set_state(struct start *start, enum start_state state)
{
    list_remove(&start->link);
    start->state = state;
    list_append(&start->launcher->starts[state], &start->link);
}

/* Overwrites the input of an agent before the memory is freed, because it holds the key of the
 * host. */
static void start_forget_input(char *text)
{
    if (text)
        explicit_bzero(text, strlen(text));
    mem_free(text);
}

/* Frees a start; kills its command if that still runs. */
static void start_free(struct start *start)
{
    if (!start)
        return;
    command_free(start->command);
    list_remove(&start->link);
    list_remove(&start->by_host);
    VEC_RELEASE(&start->words.argv);
    start_forget_input(start->input);
    mem_free(start->host);
    mem_free(start);
}

/* Called by the event loop when the command of a start has ended. The start has worked if the
 * command exited with status 0. Otherwise start->failure names the host, quotes the last useful
 * line of standard error, and ends with a remedy if one is known: `known` has parts of error lines
 * of ssh. `agent_says`: the line is one of hvd-agent itself. */
static void start_on_ended(void *arg, const struct command_end *end)
{
    static const char nothing[] = "the program printed no reason", agent[] = "hvd-agent: ";
    /* clang-format off */
    static const struct {
        const char *part;
        const char *remedy;
    } known[] = {
        { "Host key verification failed", "log in to this host by hand once, and check its key; or give --ssh-host-key-checking accept-new" },
        { "Permission denied", "let this user log in to this host without a password, or name a key with "
                               "--ssh-identity-file" },
        { "Could not resolve", "check the host's name" },
        { "Connection refused", "start sshd on this host, or name the port of sshd with --ssh-port" },
    };
    /* clang-format on */
    struct start *start = arg;
    struct launcher *launcher = start->launcher;
    struct hvd_err *err = &start->failure;
    struct span last = last_line(end->stderr_tail);
    struct span line = last.length ? last : (struct span){ nothing, sizeof(nothing) - 1 };
    const char *name = start->local ? "hvd-agent" : start->spec.argv[0];
    const char *place = start->local ? "on" : "to";
    bool ssh = !start->local && !launcher->config.launcher;
    bool missing = !start->local && (end->value == NO_SUCH || end->value == NO_SUCH - 1);
    bool agent_says = memmem(line.at, line.length, agent, sizeof(agent) - 1);
    const char *remedy = ssh ? "try to log in to this host by hand"
                             : "run the command of --launcher by hand, with this host and true";
    char how[COMMAND_HOW_MAX];

    start->worked = end->how == COMMAND_EXITED && end->value == 0;
    for (size_t i = 0; ssh && i < ARRAY_SIZE(known); i++)
        if (memmem(line.at, line.length, known[i].part, strlen(known[i].part)))
            remedy = known[i].remedy;
    if (start->worked) {
        /* nothing to describe: start->failure is used only after a failure */
    } else if (end->how == COMMAND_EXITED && ssh && end->value == SSH_FAILED) {
        err_set(err, HVD_E_LOST, "ssh to %s: %.*s (%d); %s", start->host, (int)line.length, line.at,
                SSH_FAILED, remedy);
    } else if (end->how == COMMAND_EXITED && !ssh && !start->local && !missing && !agent_says) {
        /* A command of --launcher: its exit code may be its own or that of the agent. */
        err_set(err, HVD_E_LOST, "%s to %s: %.*s (exit code %d); %s", name, start->host,
                (int)line.length, line.at, end->value, remedy);
    } else if (end->how == COMMAND_EXITED) { /* the exit code of the agent, which ssh passes on */
        err_set(err, HVD_E_LOST, "hvd-agent on %s: %.*s (exit code %d)%s", start->host,
                (int)line.length, line.at, end->value,
                missing ? "; install hvd-agent on this host, or give its path with --agent-path"
                        : "");
    } else if (end->how == COMMAND_FAILED || last.length == 0) {
        err_set(err, HVD_E_LOST, "%s %s %s: %s", name, place, start->host,
                command_how(&start->spec, end, how));
    } else {
        err_set(err, HVD_E_LOST, "%s %s %s: %s (last line: %.*s)", name, place, start->host,
                command_how(&start->spec, end, how), (int)last.length, last.at);
    }
    command_free(start->command);
    start->command = NULL;
    launcher->running--;
    start_set_state(start, START_DONE);
    launch_wake(launcher);
}

/* Runs the command of a start: hvd-agent on this machine; or for another host ssh or the command of
 * --launcher. The command gets the agent's input on its standard input. config.limit_us is for the
 * whole start, and the input has no limit of its own. On failure start->failure says why. */
static int start_run(struct start *start)
{
    static const struct command_ops ops = { .ended = start_on_ended };
    static const char *const always[] = { "ssh", "-T", "-o", "BatchMode=yes", NULL };
    static const char *const usual[] = { "-o", "ConnectTimeout=10",
                                         "-o", "ServerAliveInterval=5",
                                         "-o", "ServerAliveCountMax=3",
                                         NULL };
    struct launcher *launcher = start->launcher;
    const struct launch_config *config = &launcher->config;
    const char *const local[] = { config->local_path, "--stdin", NULL };
    const char *const last[] = { "--", start->host, buf_text(&launcher->remote), NULL };
    struct launch_words *words = &start->words;
    bool ssh = !start->local && !config->launcher;
    int rc = words_add_all(words, start->local ? local : ssh ? always : config->launcher);

    /* Of two equal options ssh takes the first. BatchMode (`always`) comes before the options of
     * the user, so ssh never asks for a password. The options in `usual` come after them, so the
     * user may set other values. */
    snprintf(words->port, sizeof(words->port), "%" PRIu64, config->ssh_port);
    if (!rc && ssh && config->ssh_port)
        rc = words_add_option(words, "-p", words->port);
    if (!rc && ssh && config->ssh_identity_file)
        rc = words_add_option(words, "-i", config->ssh_identity_file);
    snprintf(words->host_keys, sizeof(words->host_keys), "StrictHostKeyChecking=%s",
             config->ssh_host_keys ? config->ssh_host_keys : "");
    if (!rc && ssh && config->ssh_host_keys)
        rc = words_add_option(words, "-o", words->host_keys);
    if (!rc && ssh)
        rc = words_add_all(words, config->ssh_args);
    if (!rc && ssh && config->ssh_identity_file)
        rc = words_add_option(words, "-o", "IdentitiesOnly=yes");
    if (!rc && ssh)
        rc = words_add_all(words, usual);
    if (!rc && !start->local)
        rc = words_add_all(words, ssh ? last : last + 1); /* only ssh knows "--" */
    if (!rc)
        rc = words_add(words, NULL); /* the list of words ends in NULL */
    if (rc)
        return err_set(&start->failure, rc, "%s: the agent cannot be started: %s", start->host,
                       err_text(rc));
    start->spec = (struct command_spec){ .argv = start->words.argv.items,
                                         .input = start->input,
                                         .limit_us = config->limit_us,
                                         /* the command may run on after the end of its output */
                                         .linger_us = TIME_NEVER,
                                         .dies_with_us = SIGTERM };
    rc = command_run(launcher->base, &start->spec, &ops, start, &start->command, &start->failure);
    if (rc)
        err_prefix(&start->failure, rc, "%s: the agent cannot be started", start->host);
    return rc;
}

/* The callback of work_event (launch_wake): begins all starts that may begin, then tells the owner
 * how one start has ended. */
static void launch_run_starts(evutil_socket_t fd, short what, void *arg)
{
    struct launcher *launcher = arg;
    struct list *done = &launcher->starts[START_DONE];
    struct start *start;

    (void)fd;
    (void)what;
    LIST_EACH_SAFE (it, after, &launcher->starts[START_WAITING]) {
        start = CONTAINER_OF(it, struct start, link);
        if (launcher->running >= launcher->config.parallel)
            break;
        /* A start of the same host that runs, or whose end the owner does not know yet, comes
         * first. */
        if (launch_find(launcher, start->host, START_RUNNING) ||
            launch_find(launcher, start->host, START_DONE))
            continue;
        if (start_run(start)) {
            start_set_state(start, START_DONE);
        } else {
            launcher->running++;
            start_set_state(start, START_RUNNING);
        }
    }
    if (list_empty(done))
        return;
    start = CONTAINER_OF(done->next, struct start, link);
    list_remove(&start->link);
    list_remove(&start->by_host);
    launch_wake(launcher); /* another start may have ended, or may begin now */
    /* The owner may free the launcher in its callback, so nothing below uses the launcher. */
    if (start->worked)
        launcher->ops.started(launcher->arg, start->host);
    else
        launcher->ops.failed(launcher->arg, start->host, start->failure.text);
    start_free(start);
}

/* Checks the options of ssh, the command of --launcher and the agent's path, before anything is
 * made for a job. */
int launch_check(const struct launch_config *config, struct hvd_err *err)
{
    const char *key = config->ssh_identity_file, *path = config->agent_path;
    const char *program = config->launcher ? config->launcher[0] : "ssh";
    const char *slash = program ? strrchr(program, '/') : NULL;
    const char *name = slash ? slash + 1 : program;
    char quoted[TEXT_QUOTE_MAX];

    if (!program)
        return err_set(err, HVD_E_INVAL, "--launcher: has only blanks; " LAUNCHER_WAYS);
    if (!strcmp(name, "srun") || !strcmp(name, "blaunch"))
        return err_set(err, HVD_E_UNSUPPORTED,
                       "--launcher: %s may end an agent when the command that has started the "
                       "agent ends; run \"hvd-agent --join\" by %s, and give --discovery join",
                       name, name);
    if (config->launcher && !process_findable(program))
        return err_set(err, HVD_E_NOTFOUND,
                       "--launcher: %s is no program of the PATH; " LAUNCHER_WAYS,
                       text_quote(program, strlen(program), quoted));
    if (config->launcher && (config->ssh_port || key || config->ssh_host_keys ||
                             (config->ssh_args && config->ssh_args[0])))
        return err_set(err, HVD_E_INVAL,
                       "--launcher: %s gets no options of ssh; leave out --ssh-port, "
                       "--ssh-identity-file, --ssh-host-key-checking and --ssh-args, or write "
                       "their words into --launcher",
                       text_quote(program, strlen(program), quoted));
    if (config->ssh_port > UINT16_MAX)
        return err_set(err, HVD_E_INVAL, "--ssh-port: must be from 1 to %d", UINT16_MAX);
    if (key && access(key, R_OK))
        return err_set(err, HVD_E_NOTFOUND,
                       "--ssh-identity-file: %s: %s; name a private key for ssh", key,
                       strerror(errno));
    if (path && !*path)
        return err_set(
            err, HVD_E_INVAL,
            "--agent-path: cannot be empty; name the path of hvd-agent on the other hosts");
    return 0;
}

/* Makes a launcher without starts. `remote` becomes the command line for other hosts: it starts the
 * agent of --agent-path; without that option the agent at config->local_path, or if the other host
 * has no such file, hvd-agent of its PATH. */
int launch_create(struct event_base *base, const struct launch_config *config,
                  const struct launch_ops *ops, void *arg, struct launcher **ret_launcher,
                  struct hvd_err *err)
{
    const char *path = config->agent_path;
    struct launcher *launcher;
    struct buf *remote;
    int rc = launch_check(config, err);

    if (rc)
        return rc;
    launcher = mem_zalloc(sizeof(*launcher));
    if (!launcher)
        return err_set(err, HVD_E_NOMEM, "no memory to start agents; free memory on this host");
    launcher->base = base;
    launcher->config = *config;
    if (launcher->config.parallel == 0)
        launcher->config.parallel = 1;
    launcher->ops = *ops;
    launcher->arg = arg;
    for (size_t i = 0; i < ARRAY_SIZE(launcher->starts); i++)
        list_init(&launcher->starts[i]);
    for (size_t i = 0; i < BUCKETS; i++)
        list_init(&launcher->buckets[i]);
    event_assign(&launcher->work_event, base, -1, 0, launch_run_starts, launcher);
    remote = &launcher->remote;
    buf_init(remote, (size_t)8 * LIMIT_PATH_BYTES);
    /* The command line is one word for the login shell of the other host. That shell need not be
     * sh, but must know `exec` and single quotes. */
    if (path)
        rc = buf_append_text(remote, "exec ");
    else if (config->local_path[0] != '/')
        rc = buf_append_text(remote, "exec hvd-agent --stdin");
    else
        rc = buf_append_text(remote, "exec sh -c 'if [ -x \"$1\" ]; then exec \"$1\" --stdin; fi; "
                                     "exec hvd-agent --stdin' sh ");
    /* The path stands in single quotes, because a shell reads it; a quote in the path becomes '\''.
     */
    if (path || config->local_path[0] == '/') {
        if (!rc)
            rc = buf_append_text(remote, "'");
        for (const char *at = path ? path : config->local_path; !rc && *at; at++)
            rc = *at == '\'' ? buf_append_text(remote, "'\\''") : buf_append(remote, at, 1);
        if (!rc)
            rc = buf_append_text(remote, path ? "' --stdin" : "'");
    }
    if (rc) {
        launch_free(launcher);
        return rc == HVD_E_LIMIT
                   ? err_set(err, rc,
                             "--agent-path: the path is too long for a command of "
                             "ssh; name a shorter one")
                   : err_set(err, rc, "no memory for the command of ssh; free memory on this host");
    }
    *ret_launcher = launcher;
    return 0;
}

/* Frees the launcher, and kills the commands of starts that still run. */
void launch_free(struct launcher *launcher)
{
    if (!launcher)
        return;
    /* Agents that already run are not ended: they belong to the job, not to this driver. */
    for (size_t i = 0; i < ARRAY_SIZE(launcher->starts); i++)
        LIST_EACH_SAFE (it, after, &launcher->starts[i])
            start_free(CONTAINER_OF(it, struct start, link));
    event_del(&launcher->work_event);
    buf_release(&launcher->remote);
    mem_free(launcher);
}

/* Requests the start of the agent on `host`; the agent reads `input`. The owner is told later how
 * the start has ended. `local`: the host is this machine, so no ssh is needed. */
int launch_start(struct launcher *launcher, const char *host, bool local, const char *input,
                 struct hvd_err *err)
{
    struct start *start = launch_find(launcher, host, START_WAITING);
    int rc = host_name_check(host, strlen(host), err);
    char *copy;

    if (rc)
        return rc;
    copy = mem_strdup(input);
    /* A start of this host that still waits gets the newer input, and no second start is made. */
    if (start && copy) {
        start_forget_input(start->input);
        start->input = copy;
        start->local = local;
        return 0;
    }
    start = copy ? mem_zalloc(sizeof(*start)) : NULL;
    if (!start) {
        start_forget_input(copy);
        return err_set(err, HVD_E_NOMEM,
                       "%s: no memory to start an agent; free memory on this host", host);
    }
    list_init(&start->link);
    list_init(&start->by_host);
    start->launcher = launcher;
    start->local = local;
    start->input = copy;
    start->host = mem_strdup(host);
    if (!start->host) {
        start_free(start);
        return err_set(err, HVD_E_NOMEM,
                       "%s: no memory to start an agent; free memory on this host", host);
    }
    start_set_state(start, START_WAITING);
    list_append(launch_bucket(launcher, host), &start->by_host);
    launch_wake(launcher);
    return 0;
}
