/*
 * agent_config.h: the settings of an agent's core.
 */
#ifndef AGENT_CORE_AGENT_CONFIG_H
#define AGENT_CORE_AGENT_CONFIG_H

#include "base/base.h"

struct agent_config {
    const char *job; /* `job` and `host` are borrowed as long as the agent lives */
    const char *host;
    uint64_t agent; /* number of this start of the agent; unique on its host */
    uint32_t cores;
    uint64_t memory_bytes;
    uint32_t min_np, max_np;
    int64_t beat_us, lease_us, driver_grace_us; /* a driver's welcome replaces these intervals */
    /* The wait before the first attempt to reach a driver again. It grows by half with each
     * attempt, up to redial_us. */
    int64_t redial_first_us;
    int64_t redial_us;     /* the longest wait between two attempts to reach a driver */
    int64_t kill_grace_us; /* SIGTERM to SIGKILL, when the agent ends without a STOP */
    /* Times after which a worker warns of a stalled operation, and ends it: passed on to workers.
     */
    int64_t stall_warning_us, stall_shutdown_us;
};

#endif
