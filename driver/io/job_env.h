/*
 * job_env.h: the command that workers run, and the environment that the driver passes on to them.
 * The agent adds what differs between workers: rank, slot and the like.
 */
#ifndef DRIVER_IO_JOB_ENV_H
#define DRIVER_IO_JOB_ENV_H

#include "base/err.h"
#include "base/vec.h"
#include "proto/msg.h"

struct job_texts VEC(char *);

struct job_env {
    struct job_texts argv; /* the command that workers run, word by word */
    struct job_texts env;  /* the variables of workers, "NAME=value" */
    char *cwd;             /* the folder in which workers start */
};

/*
 * Makes the command and the environment of the workers; all texts are copied. argv and envp end in
 * NULL. Each text of `more` is "NAME=value", or "NAME" for the value that envp has.
 *
 * Two kinds of variables are left out: those of this machine or this login (HOME, PWD, SSH_...),
 * and the driver's own options (HVD_...). HVD_E_LIMIT: a text is too long for a LAUNCH; the error
 * names it.
 */
int job_env_init(struct job_env *env, char *const *argv, const char *cwd, char *const *envp,
                 char *const *more, size_t more_count, struct hvd_err *err) MUST_CHECK;
void job_env_release(struct job_env *env);

/* Makes the environment of a program, such as the discovery script, that a driver runs after
 * --resume. `first` is the environment of the job's first driver, `now` that of this process.
 * Variables of the machine or login (HOME, SSH_...) come from `now`; all others, and HVD_..., come
 * from `first`. The caller frees the array; its texts are borrowed. */
int job_env_follow(char *const *first, char *const *now, const char ***ret_envp,
                   struct hvd_err *err) MUST_CHECK;

/* Sets a variable in the environment of the workers. */
int job_env_put(struct job_env *env, const char *name, const char *value,
                struct hvd_err *err) MUST_CHECK;

/* Makes *ret_whole: the LAUNCH of the core, with argv, env and cwd added. *ret_whole borrows from
 * env. */
void job_env_fill(const struct job_env *env, const struct msg *launch, struct msg *ret_whole);

#endif
