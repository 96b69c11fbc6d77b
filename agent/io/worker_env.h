/*
 * worker_env.h: the environment of a worker: the agent's own, over it what the LAUNCH carries, and
 * over both what tells the worker who it is (HVD_*), also under the names that scripts know
 * (HOROVOD_*).
 */
#ifndef AGENT_IO_WORKER_ENV_H
#define AGENT_IO_WORKER_ENV_H

#include "proto/msg.h"

struct worker_env_config {
    const char *socket; /* where it finds its agent */
    const char *job;
    const char *host;
    const char *const *own; /* ends in NULL */
};

/* A list that ends in NULL. It lies in the arena, but for the texts, which are of the launch and of
 * the config too. NULL: memory is out. */
const char *const *worker_env_make(const struct worker_env_config *config, const struct msg *launch,
                                   struct arena *arena) MUST_CHECK;

#endif
