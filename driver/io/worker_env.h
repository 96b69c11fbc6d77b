/*
 * worker_env.h: the command that workers run, and the environment that the driver passes on to
 * them. Their agent adds what it knows of each.
 */
#ifndef DRIVER_IO_WORKER_ENV_H
#define DRIVER_IO_WORKER_ENV_H

#include "base/err.h"
#include "base/vec.h"
#include "proto/msg.h"

struct worker_texts VEC(char *);

struct worker_env {
    struct worker_texts argv;
    struct worker_texts env;
    char *cwd;
};

/*
 * argv ends in NULL, envp too; more are "NAME=value", or "NAME" for a value of ours; all are
 * copied. What belongs to this machine or this login is left out (HOME, PWD, SSH_...), and so are
 * our own options. HVD_E_LIMIT names what is too long for a LAUNCH.
 */
int worker_env_init(struct worker_env *env, char *const *argv, const char *cwd, char *const *envp,
                    char *const *more, size_t more_count, struct hvd_err *err) MUST_CHECK;
void worker_env_release(struct worker_env *env);

/* What the core leaves out of a LAUNCH. Borrows from env. */
void worker_env_fill(const struct worker_env *env, const struct msg *launch, struct msg *ret_whole);

#endif
