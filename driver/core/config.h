/*
 * config.h: what a user decides about a job, as the core needs it.
 */
#ifndef DRIVER_CORE_CONFIG_H
#define DRIVER_CORE_CONFIG_H

#include "base/limits.h"
#include "blacklist/policy.h"

#define CORE_NO_RESET_LIMIT UINT32_MAX

struct core_config {
    const char *job;      /* borrowed as long as the core lives */
    uint32_t np;          /* slots that the first round needs */
    uint32_t min_np;      /* members that a later round needs */
    uint32_t max_np;      /* members that a round may have */
    uint32_t reset_limit; /* rounds after the first; one more ends the job */
    struct policy blacklist;

    int64_t beat_us;            /* how often an agent is heard when it has nothing to say */
    int64_t lease_us;           /* silence that is taken for a death */
    int64_t driver_grace_us;    /* how long workers train on without a driver */
    int64_t discovery_us;       /* from the end of one discovery to the next */
    int64_t elastic_timeout_us; /* how long the job may stand without enough workers */
    int64_t agent_start_us;     /* from the start of an agent to its hello */
    int64_t start_timeout_us;   /* from the launch of a worker to its READY */
    int64_t gather_us;          /* how long those that are ready wait for others that boot */
    int64_t prepare_us;         /* for the connections of a new round */
    int64_t stall_warning_us;   /* how long until it is said who is waited for */
    int64_t stall_us;           /* how long others wait for a worker that computes */
    int64_t kill_grace_us;      /* from SIGTERM to SIGKILL */
    uint64_t seed;              /* of the jitter of cooldowns */
};

/* The defaults; job and np are the caller's to set, min_np and max_np 0 mean np and no cap. */
void core_config_init(struct core_config *config);

/* Fills in what follows from others, and judges: 0, or HVD_E_INVAL or HVD_E_LIMIT naming what. */
int core_config_finish(struct core_config *config, struct hvd_err *err);

#endif
