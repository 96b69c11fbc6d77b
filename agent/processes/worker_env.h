/*
 * worker_env.h: the environment of a worker: the agent's own variables, replaced by those of the
 * LAUNCH, replaced by the variables that tell the worker its identity (HVD_*). The identity is also
 * given under the names that existing scripts use (HOROVOD_*).
 */
#ifndef AGENT_PROCESSES_WORKER_ENV_H
#define AGENT_PROCESSES_WORKER_ENV_H

#include "proto/msg.h"

struct worker_env_config {
    const char *socket; /* name of the agent's socket */
    const char *job;
    const char *host;
    const char *const *own; /* the agent's own environment; ends in NULL */
};

/* Makes the environment of the worker that this LAUNCH starts: a list of "NAME=value" that ends in
 * NULL. The list lies in the arena; its texts belong to the arena, the launch and the config. NULL:
 * no memory is left. */
const char *const *worker_env_make(const struct worker_env_config *config, const struct msg *launch,
                                   struct arena *arena) MUST_CHECK;

#endif
