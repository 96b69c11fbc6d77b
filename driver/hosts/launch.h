/*
 * launch.h: starting agents: a child for a local host, ssh for another, a bounded number at a time.
 *
 * Either way the program is hvd-agent, and what it must know (agent/options.h: the key too) goes in
 * by its standard input, never on a command line. It answers by its exit status once the agent has
 * gone into a session of its own: 0, or a reason on its standard error. Where an agent of the job
 * runs on that host already, that one learns the driver's address, and it is 0 as well.
 */
#ifndef DRIVER_HOSTS_LAUNCH_H
#define DRIVER_HOSTS_LAUNCH_H

#include "base/err.h"

struct event_base;
struct launcher;

struct launch_config {
    const char *agent_path; /* remote: NULL: the path of ours, or else hvd-agent in the PATH */
    const char *local_path; /* of our own hvd-agent */
    uint64_t ssh_port;      /* 0: ssh's choice */
    const char *ssh_identity_file;
    const char *const *ssh_args; /* ends in NULL */
    int64_t limit_us;            /* a start that takes longer has failed */
    uint32_t parallel;
};

/* Each from the loop; the launcher may be used and freed in there. */
struct launch_ops {
    void (*started)(void *arg, const char *host);
    void (*failed)(void *arg, const char *host, const char *why);
};

/* The config is borrowed as long as the launcher lives. */
int launch_create(struct event_base *base, const struct launch_config *config,
                  const struct launch_ops *ops, void *arg, struct launcher **ret_launcher,
                  struct hvd_err *err) MUST_CHECK;
void launch_free(struct launcher *launcher); /* starts that are not done are ended */

/* Both texts are copied; input is what the agent reads. One start per host at a time: a second one
 * follows the first, and a third takes the place of a second that still waits. The program ignores
 * SIGPIPE. */
int launch_start(struct launcher *launcher, const char *host, bool local, const char *input,
                 struct hvd_err *err) MUST_CHECK;

#endif
