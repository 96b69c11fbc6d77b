/*
 * secret_env.h: the variables of --env-secret, and AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN
 * always. Workers get them like other variables, but no file of the job has their values: the
 * operator who resumes the job sets them again.
 */
#ifndef DRIVER_SECRET_ENV_H
#define DRIVER_SECRET_ENV_H

#include "base/err.h"
#include "base/opt_table.h"

/* Checks that each item of --env-secret is the name of a variable in envp. "NAME=VALUE" is refused,
 * because every user of the machine can read a command line. */
int secret_env_check(const struct opt_list *names, char *const *envp,
                     struct hvd_err *err) MUST_CHECK;

/*
 * Makes *ret_envp: the entries of envp without the secret variables, then the secret variables of
 * now_envp, the environment of this process, which may be NULL. AWS_ACCESS_KEY_ID comes from
 * now_envp if it is there. The entries are borrowed; the caller frees the array. HVD_E_NOMEM.
 */
int secret_env_merge(const struct opt_list *names, char *const *envp, char *const *now_envp,
                     char ***ret_envp, struct hvd_err *err) MUST_CHECK;

#endif
