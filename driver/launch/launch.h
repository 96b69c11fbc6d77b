/*
 * launch.h: starts agents: as a child process on a local host, by ssh or by another command
 * (config.launcher) on another host. Only a limited number of starts run at a time.
 *
 * The program is hvd-agent in each case. Its parameters go to its standard input and never onto a
 * command line, because one of them is the key of the host (agent/options.h). The program exits
 * with status 0 when the agent runs in a session of its own. Otherwise the exit status is not 0,
 * and the reason is on standard error. If an agent of the job already runs on the host, that agent
 * is told the driver's address, and the status is 0 too.
 */
#ifndef DRIVER_LAUNCH_LAUNCH_H
#define DRIVER_LAUNCH_LAUNCH_H

#include "base/err.h"

struct event_base;
struct launcher;

struct launch_config {
    /* The path of hvd-agent on other hosts. NULL: the path that hvd-agent has on this machine, or
     * else hvd-agent in the PATH of the other host. */
    const char *agent_path;
    const char *local_path; /* the path of hvd-agent on this machine, for local hosts */
    /* The words of a command that is run in place of ssh, as "COMMAND... HOST AGENT-COMMAND-LINE",
     * where AGENT-COMMAND-LINE is one word for a shell. The command must pass on its standard
     * input, and end with the exit code of AGENT-COMMAND-LINE. The last word is NULL. If the
     * pointer is NULL, ssh is used. */
    const char *const *launcher;
    uint64_t ssh_port; /* 0: the port that ssh is configured with */
    const char *ssh_identity_file;
    /* a value of StrictHostKeyChecking; NULL: the configuration of ssh decides */
    const char *ssh_host_keys;
    const char *const *ssh_args; /* words for ssh; the last one is NULL */
    int64_t limit_us;            /* a start that takes longer has failed, in µs */
    uint32_t parallel;           /* the most starts that run at a time */
};

/* The event loop calls one of the two callbacks for each start. The callback may use and free the
 * launcher. */
struct launch_ops {
    void (*started)(void *arg, const char *host);
    void (*failed)(void *arg, const char *host, const char *why);
};

/* Checks the options of ssh, and that there is a program for config.launcher. HVD_E_NOTFOUND,
 * HVD_E_INVAL: the error text names the wrong option. */
int launch_check(const struct launch_config *config, struct hvd_err *err) MUST_CHECK;

/* Creates the launcher. The config is borrowed while the launcher lives. */
int launch_create(struct event_base *base, const struct launch_config *config,
                  const struct launch_ops *ops, void *arg, struct launcher **ret_launcher,
                  struct hvd_err *err) MUST_CHECK;
void launch_free(struct launcher *launcher); /* also kills the commands of starts that still run */

/* Starts an agent on the host; the agent reads `input` from its standard input. `local`: the host
 * is this machine. Both texts are copied. Only one start runs for a host at a time: a second start
 * waits for the first, and a third start replaces a second start that still waits. The calling
 * program must ignore SIGPIPE. */
int launch_start(struct launcher *launcher, const char *host, bool local, const char *input,
                 struct hvd_err *err) MUST_CHECK;

#endif
