/*
 * job_env.h: the command that workers run, and the environment that the driver passes on to
 * them. Their agent adds what it knows of each.
 */
#ifndef DRIVER_IO_JOB_ENV_H
#define DRIVER_IO_JOB_ENV_H

#include "base/err.h"
#include "base/vec.h"
#include "proto/msg.h"

struct job_texts VEC(char *);

struct job_env {
    struct job_texts argv;
    struct job_texts env;
    char *cwd;
};

/*
 * argv ends in NULL, envp too; more are "NAME=value", or "NAME" for a value of ours; all are
 * copied. What belongs to this machine or this login is left out (HOME, PWD, SSH_...), and so are
 * our own options. HVD_E_LIMIT names what is too long for a LAUNCH.
 */
int job_env_init(struct job_env *env, char *const *argv, const char *cwd, char *const *envp,
                 char *const *more, size_t more_count, struct hvd_err *err) MUST_CHECK;
void job_env_release(struct job_env *env);

/* One more for the workers, in place of one of that name. */
int job_env_put(struct job_env *env, const char *name, const char *value,
                struct hvd_err *err) MUST_CHECK;

/* What the core leaves out of a LAUNCH. Borrows from env. */
void job_env_fill(const struct job_env *env, const struct msg *launch, struct msg *ret_whole);

#endif
