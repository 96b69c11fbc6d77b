/*
 * join_agent.c: starts agents on this host, as ssh would: runs `hvd-agent --stdin` with the
 * settings of the driver, and watches the agent that this leaves in the background. Called by
 * join.c. Invariant: one start at a time, and every copy of the settings, which have a key, is
 * wiped.
 */
#include "agent/join/join_internal.h"

#include "base/log.h"
#include "base/text.h"
#include "base/time.h"
#include "os/command/command.h"
#include "os/process.h"

#include <event2/event.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define START_LIMIT_US (60 * TIME_S) /* how long `hvd-agent --stdin` may run */
#define OUTPUT_MAX     512           /* bytes of its output that are read: "pid N" and a little */

/* Prepares for starts of agents. The agent's program is the one that this process runs. */
int join_agent_init(struct join_agent *agent, struct event_base *base, struct hvd_err *err)
{
    ssize_t length;

    *agent = (struct join_agent){ .base = base, .watch = -1 };
    buf_init(&agent->settings, LIMIT_CONFIG_TEXT_BYTES);
    buf_init(&agent->input, LIMIT_CONFIG_TEXT_BYTES);
    length = readlink("/proc/self/exe", agent->program, sizeof(agent->program) - 1);
    if (length <= 0)
        return err_set(err, HVD_E_IO,
                       "hvd-agent does not find its own program; make /proc readable");
    agent->program[length] = '\0';
    return 0;
}

/* Stops watching the agent, which has ended or is replaced by another one. */
static void agent_forget(struct join_agent *agent)
{
    if (agent->end_event)
        event_free(agent->end_event);
    if (agent->watch >= 0)
        close(agent->watch);
    agent->end_event = NULL;
    agent->watch = -1;
    agent->pid = 0;
}

void join_agent_release(struct join_agent *agent)
{
    command_free(agent->command);
    agent_forget(agent);
    buf_release(&agent->settings);
    buf_release(&agent->input);
}

/* The agent's pidfd is readable: the agent has ended. */
static void agent_on_end(evutil_socket_t fd, short what, void *arg)
{
    struct join_agent *agent = arg;

    (void)fd;
    (void)what;
    agent_forget(agent);
    agent->ended(agent->arg);
}

/* Watches the agent with this pid. Does nothing if this agent is watched already. */
static void agent_watch(struct join_agent *agent, pid_t pid)
{
    if (pid == agent->pid)
        return;
    agent_forget(agent);
    agent->watch = process_watch(pid);
    if (agent->watch < 0)
        return; /* no pidfd can be opened: the agent has ended already */
    agent->end_event = event_new(agent->base, agent->watch, EV_READ, agent_on_end, agent);
    if (!agent->end_event || event_add(agent->end_event, NULL))
        agent_forget(agent);
    else
        agent->pid = pid;
}

static int agent_begin(struct join_agent *agent);

/* Reaps the children that have ended. While the program of agent_begin runs, none is reaped: the
 * end of that program belongs to command.c. agent_on_started calls this function again. */
void join_agent_reap(const struct join_agent *agent)
{
    while (!agent->command && waitpid(-1, NULL, WNOHANG) > 0)
        ;
}

/* `hvd-agent --stdin`, which starts an agent in the background, has ended: its output is "pid N" of
 * the agent that is watched from now on, or its standard error says why there is no agent. If newer
 * settings have come meanwhile, the program is run again with them. */
static void agent_on_started(void *arg, const struct command_end *end)
{
    const struct command_spec spec = { .limit_us = START_LIMIT_US };
    struct join_agent *agent = arg;
    struct command *command = agent->command;
    char why[LIMIT_REASON_BYTES + 1], how[COMMAND_HOW_MAX];
    struct span line = stderr_tail_first(end->stderr_tail);
    bool started = end->how == COMMAND_EXITED && !end->value;
    uint64_t pid = 0;

    if (started) {
        struct span text = { buf_text(end->output), end->output->length }, first;

        if (span_next(&text, '\n', &first) && first.length > 4 && !strncmp(first.at, "pid ", 4) &&
            !text_parse_u64((struct span){ first.at + 4, first.length - 4 }, 1, INT32_MAX, "a pid",
                            &pid, NULL))
            agent_watch(agent, (pid_t)pid);
    }
    /* SIGUSR2 came while no agent was there to get it */
    if (agent->warned && agent->pid)
        (void)kill(agent->pid, SIGUSR2);
    agent->warned = false;
    snprintf(why, sizeof(why), "%s%s%.*s", command_how(&spec, end, how), line.length ? ": " : "",
             (int)line.length, line.length ? line.at : "");
    agent->command = NULL;
    command_free(command);
    join_agent_reap(agent);
    buf_clear(&agent->input); /* the program has read these settings */
    if (!started) {
        log_warning(AGENT, "no agent could be started: %s", why);
        agent->failed(agent->arg, why);
    }
    if (agent->settings.length && agent_begin(agent))
        agent->failed(agent->arg, "no memory for the start of an agent; free memory on this host");
    if (!join_agent_lives(agent))
        agent->ended(agent->arg);
}

/* Starts the agent's program with the waiting settings on its standard input. */
static int agent_begin(struct join_agent *agent)
{
    static const struct command_ops ops = { .ended = agent_on_started };
    const char *const argv[] = { agent->program, "--stdin", NULL };
    struct command_spec spec = { .argv = argv,
                                 .output_max = OUTPUT_MAX,
                                 .limit_us = START_LIMIT_US,
                                 .linger_us = TIME_NEVER,
                                 .dies_with_us = SIGTERM };
    struct buf waiting = agent->settings;
    struct hvd_err err;
    int rc;

    /* The two buffers change places: `input` gets the waiting settings, which the program reads;
     * `settings` is empty again, and takes newer settings while the program runs. */
    agent->settings = agent->input;
    buf_clear(&agent->settings);
    agent->input = waiting;
    spec.input = buf_text(&agent->input);
    rc = command_run(agent->base, &spec, &ops, agent, &agent->command, &err);
    if (rc)
        log_warning(AGENT, "no agent could be started: %s", err.text);
    return rc;
}

/* Starts an agent with these settings, or gives the settings to an agent that runs. While a start
 * is under way the settings wait for its end, and replace older ones that wait. */
int join_agent_start(struct join_agent *agent, const struct buf *settings)
{
    int rc;

    buf_clear(&agent->settings);
    rc = buf_append(&agent->settings, buf_text(settings), settings->length);
    return rc || agent->command ? rc : agent_begin(agent);
}

/* true: an agent runs (its pid is known), or is being started. */
bool join_agent_lives(const struct join_agent *agent)
{
    return agent->command || agent->pid;
}

/* Passes SIGUSR2, the warning of a scheduler, on to the agent. An agent that is being started gets
 * the signal when it runs (`warned`). false: no agent got the signal, and none is being started. */
bool join_agent_warn(struct join_agent *agent)
{
    agent->warned = agent->command && !agent->pid;
    return agent->warned || (agent->pid && !kill(agent->pid, SIGUSR2));
}

/* Ends the agent and its workers at once. The signal is SIGINT: one SIGTERM only tells the agent
 * that its machine will go away, and two in a row may arrive as one. */
void join_agent_end(const struct join_agent *agent)
{
    if (agent->pid)
        kill(agent->pid, SIGINT);
}
