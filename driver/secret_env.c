/*
 * secret_env.c: removes the variables of --env-secret from an environment, and adds them to another
 * one. run.c calls it when it saves how the job was started, and when it resumes a job. Invariant:
 * no entry with a secret name is in an environment that is saved.
 */
#include "driver/secret_env.h"

#include "base/mem.h"

#include <string.h>

/* True: the NAME of the entry "NAME=value" is one of the secret names. */
static bool secret_is(const struct opt_list *names, const char *entry)
{
    for (size_t i = 0; i < names->count; i++) {
        size_t length = strlen(names->items[i]);

        if (!strncmp(entry, names->items[i], length) && entry[length] == '=')
            return true;
    }
    return false;
}

/* Checks that each --env-secret is a name without a value, and that `envp` has the variable. */
int secret_env_check(const struct opt_list *names, char *const *envp, struct hvd_err *err)
{
    for (size_t i = 0; i < names->count; i++) {
        const char *name = names->items[i];
        size_t length = strcspn(name, "=");
        bool found = false;

        if (name[length])
            return err_set(
                err, HVD_E_INVAL,
                "--env-secret %.*s=...: the value on a command line is no secret; set the "
                "variable, and give its name alone",
                (int)length, name);
        for (char *const *entry = envp; *entry && !found; entry++)
            found = !strncmp(*entry, name, length) && (*entry)[length] == '=';
        if (!found)
            return err_set(
                err, HVD_E_NOTFOUND,
                "--env-secret %s: there is no such variable here, and no file of the job "
                "has its value; set it, and start again",
                name);
    }
    return 0;
}

/* Makes an environment from the entries of `envp` that are no secrets, and from the entries of
 * `now` that are; `now` NULL: none. The texts are borrowed; the caller frees the array. */
int secret_env_merge(const struct opt_list *names, char *const *envp, char *const *now,
                     char ***ret_envp, struct hvd_err *err)
{
    size_t most = 1, count = 0;
    char **merged;

    for (char *const *entry = envp; *entry; entry++)
        most++;
    for (char *const *entry = now; entry && *entry; entry++)
        most++;
    merged = mem_zalloc_array(most, sizeof(*merged));
    if (!merged)
        return err_set(err, HVD_E_NOMEM,
                       "no memory for the environment of workers; free memory on this host");
    for (char *const *entry = envp; *entry; entry++)
        if (!secret_is(names, *entry))
            merged[count++] = *entry;
    for (char *const *entry = now; entry && *entry; entry++)
        if (secret_is(names, *entry))
            merged[count++] = *entry;
    *ret_envp = merged;
    return 0;
}
