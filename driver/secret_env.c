/*
 * secret_env.c: removes the variables of --env-secret, and those that are always secret, from an
 * environment, and adds them to another one. run.c calls it when it saves how the job was started,
 * and when it resumes a job. Invariant: no entry with a secret name is in an environment that is
 * saved.
 */
#include "driver/secret_env.h"

#include "base/log.h"
#include "base/mem.h"

#include <string.h>

/* These variables are secret without --env-secret. They are of use only together with
 * secret_key_name, the name of the key that they belong to: so that variable is taken from the same
 * environment as they are. */
static const char *const secret_always[] = { "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN" };
static const char secret_key_name[] = "AWS_ACCESS_KEY_ID";

/* True: `entry` is "NAME=value" with this name. */
static bool secret_has_name(const char *entry, const char *name)
{
    size_t length = strlen(name);

    return !strncmp(entry, name, length) && entry[length] == '=';
}

/* True: `entry`, "NAME=value", is a variable of --env-secret (`names`), or one that is always
 * secret. */
static bool secret_is(const struct opt_list *names, const char *entry)
{
    for (size_t i = 0; i < names->count; i++)
        if (secret_has_name(entry, names->items[i]))
            return true;
    for (size_t i = 0; i < ARRAY_SIZE(secret_always); i++)
        if (secret_has_name(entry, secret_always[i]))
            return true;
    return false;
}

/* True: the environment has a variable of this name; envp NULL: it has none. */
static bool secret_env_has(char *const *envp, const char *name)
{
    for (char *const *entry = envp; entry && *entry; entry++)
        if (secret_has_name(*entry, name))
            return true;
    return false;
}

/* Checks that each --env-secret is a name without a value, and that `envp` has a variable of this
 * name. */
int secret_env_check(const struct opt_list *names, char *const *envp, struct hvd_err *err)
{
    for (size_t i = 0; i < names->count; i++) {
        const char *name = names->items[i];
        size_t length = strcspn(name, "=");

        if (name[length])
            return err_set(
                err, HVD_E_INVAL,
                "--env-secret %.*s=...: the value on a command line is no secret; set the "
                "variable, and give its name alone",
                (int)length, name);
        if (!secret_env_has(envp, name))
            return err_set(
                err, HVD_E_NOTFOUND,
                "--env-secret %s: there is no such variable here, and no file of the job "
                "has its value; set it, and start again",
                name);
    }
    return 0;
}

/* Makes an environment: the entries of `envp` that are no secrets, and the secret entries of
 * `now_envp`; NULL: none. The texts are borrowed; the caller frees the array. Logs a warning if the
 * result has a key of AWS without its secret. */
int secret_env_merge(const struct opt_list *names, char *const *envp, char *const *now_envp,
                     char ***ret_envp, struct hvd_err *err)
{
    bool key_of_now = secret_env_has(now_envp, secret_key_name);
    size_t most = 1, count = 0;
    char **merged;

    for (char *const *entry = envp; *entry; entry++)
        most++;
    for (char *const *entry = now_envp; entry && *entry; entry++)
        most++;
    merged = mem_zalloc_array(most, sizeof(*merged));
    if (!merged)
        return err_set(err, HVD_E_NOMEM,
                       "no memory for the environment of workers; free memory on this host");
    for (char *const *entry = envp; *entry; entry++)
        if (!secret_is(names, *entry) && !(key_of_now && secret_has_name(*entry, secret_key_name)))
            merged[count++] = *entry;
    for (char *const *entry = now_envp; entry && *entry; entry++)
        if (secret_is(names, *entry) || secret_has_name(*entry, secret_key_name))
            merged[count++] = *entry;
    if (now_envp && secret_env_has(merged, secret_key_name) &&
        !secret_env_has(merged, secret_always[0]))
        log_warning(
            JOB,
            "%s has the value with which the job was started, but %s is not set here, and no "
            "file of the job has it: workers start without it; set both variables, and "
            "start again",
            secret_key_name, secret_always[0]);
    *ret_envp = merged;
    return 0;
}
