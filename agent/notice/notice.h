/*
 * notice.h: the watch for notices that this machine will go away. A source of notices (a metadata
 * service, a file, a command) is called a giver. Each giver has a thread and a row in a table. A
 * notice says how much time is left before the machine goes away, and nothing else. The core of the
 * agent and the driver decide the rest, in the same way as for SIGTERM.
 *
 *     rc = notice_start(base, &config, &ops, arg, &notice, &err);
 *     notice_host_empty(notice, true);          no worker runs: tells the givers that want to know
 *     notice_stop(notice);                      ends the requests that are being sent
 */
#ifndef AGENT_NOTICE_NOTICE_H
#define AGENT_NOTICE_NOTICE_H

#include "base/err.h"

struct event_base;
struct notice;

struct notice_config {
    const char *preemption; /* the givers (proto/preemption.h); borrowed while the watch lives */
    int64_t default_us;     /* the time that is left when a notice does not say it */
};

struct notice_ops {
    /* The machine goes away in left_us (TIME_NEVER: no time is known); `text` says who told so and
     * why. Called in the event loop. */
    void (*given)(void *arg, int64_t left_us, const char *text);
};

/* HVD_E_INVAL: the file of --preemption cannot appear on this host, as its folder is not there or
 * may not be searched; or it is there, and is not a plain file that this user may read. */
int notice_check(const char *preemption, struct hvd_err *err) MUST_CHECK;

/* Starts a thread for each giver that is wanted; *ret_notice is NULL when there is none.
 * HVD_E_LIMIT, HVD_E_NOMEM. */
int notice_start(struct event_base *base, const struct notice_config *config,
                 const struct notice_ops *ops, void *arg, struct notice **ret_notice,
                 struct hvd_err *err) MUST_CHECK;

/* Says whether the host is empty: true: no worker runs on it. `notice` may be NULL. */
void notice_host_empty(struct notice *notice, bool empty);

/* Ends all threads; no callback follows. NULL is allowed. */
void notice_stop(struct notice *notice);

/* The time between SIGTERM and SIGKILL that the scheduler of this machine grants, from the
 * environment: HVD_TERMINATION_GRACE, or the file of Slurm's settings that SLURM_CONF names.
 * Returns `fallback_us` if neither says a time. Reads no file outside a job of Slurm. */
int64_t notice_grace(const char *preemption, int64_t fallback_us);

/* The time between SIGUSR2 and the end of this machine: in a job of Slurm that of --signal, as
 * SBATCH_SIGNAL has it, or one minute; elsewhere fallback_us. */
int64_t notice_warning(const char *preemption, int64_t fallback_us);

#endif
