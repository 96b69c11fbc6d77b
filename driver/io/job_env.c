/*
 * job_env.c: collects the command and the environment that each LAUNCH carries. driver/run.c fills
 * a job_env before the job begins; loop.c puts its texts into each LAUNCH. A job_env that was
 * accepted always fits into a LAUNCH.
 */
#include "driver/io/job_env.h"

#include "base/buf.h"
#include "base/limits.h"
#include "base/mem.h"
#include "proto/catalog.h"

#include <stdio.h>
#include <string.h>

/* Variables that belong to this machine, login or shell; a worker has its own values of them. A "*"
 * matches the rest of a name. */
static const char *const not_passed_on[] = {
    "_",      "HOME", "HOSTNAME", "LOGNAME",     "MAIL",   "OLDPWD", "PWD",   "SHELL",  "SHLVL",
    "TMPDIR", "USER", "HVD_*",    "BASH_FUNC_*", "DBUS_*", "SSH_*",  "XDG_*", "SUDO_*", "LS_COLORS",
};

/* True: workers get this entry of the driver's environment. Only an entry "NAME=value" is passed
 * on, and none whose name matches a pattern of not_passed_on. */
static bool job_env_is_passed_on(const char *entry)
{
    size_t length = strcspn(entry, "=");
    bool passed_on = length > 0 && entry[length] == '=';

    for (size_t i = 0; i < ARRAY_SIZE(not_passed_on) && passed_on; i++) {
        const char *pattern = not_passed_on[i];
        size_t fixed = strcspn(pattern, "*");

        passed_on = strncmp(entry, pattern, fixed) != 0 ||
                    (pattern[fixed] ? length < fixed : length != fixed);
    }
    return passed_on;
}

/* Appends a copy of the text to the list. `max` is the most texts that the list may have; `limit`
 * is the name of that limit, for the error. */
static int push_text(struct job_texts *vec, const char *text, size_t max, const char *limit,
                     struct hvd_err *err)
{
    char *copy;
    int rc;

    if (strlen(text) > LIMIT_ARG_BYTES)
        return err_set(err, HVD_E_LIMIT,
                       "\"%.40s...\" is longer than %d bytes (LIMIT_ARG_BYTES); shorten it", text,
                       LIMIT_ARG_BYTES);
    rc = VEC_RESERVE(vec, 1, max);
    if (rc == HVD_E_LIMIT)
        return err_set(err, rc, "a worker gets more than %zu words or variables (%s); pass fewer",
                       max, limit);
    copy = rc ? NULL : mem_strdup(text);
    if (!copy)
        return err_set(err, HVD_E_NOMEM,
                       "no memory for the command of workers; free memory on this host");
    vec->items[vec->count++] = copy;
    return 0;
}

/* Appends "NAME=value", or replaces the entry that has this name. */
static int put_entry(struct job_env *env, const char *entry, struct hvd_err *err)
{
    size_t length = strcspn(entry, "=");
    char **known = NULL;
    char *copy;

    for (size_t i = 0; i < env->env.count && !known; i++)
        if (!strncmp(env->env.items[i], entry, length) && env->env.items[i][length] == '=')
            known = &env->env.items[i];
    if (!known)
        return push_text(&env->env, entry, LIMIT_ENV_ENTRIES, "LIMIT_ENV_ENTRIES", err);
    copy = mem_strdup(entry);
    if (!copy)
        return err_set(err, HVD_E_NOMEM,
                       "no memory for the environment of workers; free memory on this host");
    mem_free(*known);
    *known = copy;
    return 0;
}

/* Refuses a command that does not fit into a LAUNCH, before any worker is launched. */
static int job_env_check_size(const struct job_env *env, struct hvd_err *err)
{
    /* Each text needs up to 8 bytes more in the message; the folder and the other fields are
     * allowed for separately. */
    size_t max = msg_kind(MSG_LAUNCH)->body_max - LIMIT_PATH_BYTES - 1024;
    size_t total = 0;

    for (size_t i = 0; i < env->argv.count; i++)
        total += strlen(env->argv.items[i]) + 8;
    for (size_t i = 0; i < env->env.count; i++)
        total += strlen(env->env.items[i]) + 8;
    if (total <= max)
        return 0;
    return err_set(err, HVD_E_LIMIT,
                   "the command and the environment have %zu bytes, and a worker can get only %zu; "
                   "start with a smaller environment (env -i)",
                   total, max);
}

/* Collects what workers get: the command, the folder, and the entries of `envp` that are passed on.
 * `more` are the items of --env, -x and --env-secret, the later ones winning. After a failure `env`
 * is released. */
int job_env_init(struct job_env *env, char *const *argv, const char *cwd, char *const *envp,
                 char *const *more, size_t more_count, struct hvd_err *err)
{
    int rc = 0;

    *env = (struct job_env){ 0 };
    if (strlen(cwd) > LIMIT_PATH_BYTES)
        return err_set(err, HVD_E_LIMIT,
                       "%s: the path of this folder is longer than %d bytes (LIMIT_PATH_BYTES); "
                       "start the job in another folder",
                       cwd, LIMIT_PATH_BYTES);
    env->cwd = mem_strdup(cwd);
    if (!env->cwd)
        rc = err_set(err, HVD_E_NOMEM,
                     "no memory for the command of workers; free memory on this host");
    for (; *argv && !rc; argv++)
        rc = push_text(&env->argv, *argv, LIMIT_ARGV_ENTRIES, "LIMIT_ARGV_ENTRIES", err);
    for (char *const *entry = envp; *entry && !rc; entry++) {
        if (job_env_is_passed_on(*entry))
            rc = push_text(&env->env, *entry, LIMIT_ENV_ENTRIES, "LIMIT_ENV_ENTRIES", err);
    }
    /* Each --env is "NAME=value", or "NAME" for the value that the driver has. */
    for (size_t i = 0; i < more_count && !rc; i++) {
        const char *wanted = more[i];
        size_t length = strlen(wanted);
        char *const *entry = envp;

        while (*entry && (strncmp(*entry, wanted, length) != 0 || (*entry)[length] != '='))
            entry++;
        if (*wanted == '=')
            rc = err_set(err, HVD_E_INVAL, "--env %s: the name is missing; write NAME=VALUE",
                         wanted);
        else if (strchr(wanted, '=') || *entry)
            rc = put_entry(env, strchr(wanted, '=') ? wanted : *entry, err);
        else
            rc = err_set(err, HVD_E_NOTFOUND,
                         "--env %s: there is no such variable here; write NAME=VALUE", wanted);
    }
    if (!rc)
        rc = job_env_check_size(env, err);
    if (rc)
        job_env_release(env);
    return rc;
}

/* Makes the environment of the discovery script of a resumed job: from `first`, the environment
 * in which the job was started, what workers get and the HVD_* variables; from `now`, that of
 * this process, the variables of machine and login. The texts are borrowed; the caller frees the
 * array. */
int job_env_follow(char *const *first, char *const *now, const char ***ret_envp,
                   struct hvd_err *err)
{
    size_t most = 1, count = 0;
    const char **envp;

    for (char *const *entry = first; *entry; entry++)
        most++;
    for (char *const *entry = now; *entry; entry++)
        most++;
    envp = mem_zalloc_array(most, sizeof(*envp));
    if (!envp)
        return err_set(
            err, HVD_E_NOMEM,
            "no memory for the environment of the script for hosts; free memory on this host");
    for (char *const *entry = first; *entry; entry++) {
        if (job_env_is_passed_on(*entry) || !strncmp(*entry, "HVD_", strlen("HVD_")))
            envp[count++] = *entry;
    }
    for (char *const *entry = now; *entry; entry++) {
        if (!job_env_is_passed_on(*entry) && strncmp(*entry, "HVD_", strlen("HVD_")) != 0)
            envp[count++] = *entry;
    }
    *ret_envp = envp;
    return 0;
}

/* Gives workers the variable `name`, in place of a former value. The error names the variable. */
int job_env_put(struct job_env *env, const char *name, const char *value, struct hvd_err *err)
{
    struct buf entry;
    int rc;

    buf_init(&entry, LIMIT_ARG_BYTES + 1);
    rc = buf_printf(&entry, "%s=%s", name, value);
    if (rc)
        err_set(err, rc, "%s: %s", name,
                rc == HVD_E_LIMIT ? "its value is too long; shorten it" : err_text(rc));
    else
        rc = put_entry(env, buf_text(&entry), err);
    buf_release(&entry);
    return rc ? rc : job_env_check_size(env, err);
}

void job_env_release(struct job_env *env)
{
    for (size_t i = 0; i < env->argv.count; i++)
        mem_free(env->argv.items[i]);
    for (size_t i = 0; i < env->env.count; i++)
        mem_free(env->env.items[i]);
    VEC_RELEASE(&env->argv);
    VEC_RELEASE(&env->env);
    mem_free(env->cwd);
    env->cwd = NULL;
}

/* Copies the message, with the command, environment and folder that the core does not know. The
 * copy borrows them from `env`. */
void job_env_fill(const struct job_env *env, const struct msg *launch, struct msg *ret_whole)
{
    *ret_whole = *launch;
    ret_whole->u.launch.argv =
        (struct msg_texts){ (const char *const *)env->argv.items, env->argv.count };
    ret_whole->u.launch.env =
        (struct msg_texts){ (const char *const *)env->env.items, env->env.count };
    ret_whole->u.launch.cwd = env->cwd;
}
