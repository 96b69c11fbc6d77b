#include "driver/io/job_env.h"

#include "base/buf.h"
#include "base/limits.h"
#include "base/mem.h"
#include "proto/catalog.h"

#include <stdio.h>
#include <string.h>

/* Of this machine, this login or this shell: a worker has its own. A "*" is any end. */
static const char *const not_passed[] = {
    "_",      "HOME", "HOSTNAME", "LOGNAME",     "MAIL",   "OLDPWD", "PWD",   "SHELL",  "SHLVL",
    "TMPDIR", "USER", "HVD_*",    "BASH_FUNC_*", "DBUS_*", "SSH_*",  "XDG_*", "SUDO_*", "LS_COLORS",
};

static bool is_passed(const char *entry)
{
    size_t length = strcspn(entry, "=");

    for (size_t i = 0; i < ARRAY_SIZE(not_passed); i++) {
        const char *pattern = not_passed[i];
        size_t fixed = strcspn(pattern, "*");

        if (pattern[fixed] ? length >= fixed && !strncmp(entry, pattern, fixed)
                           : length == fixed && !strncmp(entry, pattern, fixed))
            return false;
    }
    return length > 0 && entry[length] == '=';
}

static int push(struct job_texts *vec, const char *text, size_t max, const char *limit,
                struct hvd_err *err)
{
    char *copy;
    int rc;

    if (strlen(text) > LIMIT_ARG_BYTES)
        return err_set(err, HVD_E_LIMIT, "\"%.40s...\" is longer than LIMIT_ARG_BYTES (%d)", text,
                       LIMIT_ARG_BYTES);
    rc = VEC_RESERVE(vec, 1, max);
    if (rc == HVD_E_LIMIT)
        return err_set(err, rc, "more than %s (%zu)", limit, max);
    copy = rc ? NULL : mem_strdup(text);
    if (!copy)
        return err_set(err, HVD_E_NOMEM, "no memory for the command of workers");
    vec->items[vec->count++] = copy;
    return 0;
}

static char **find(struct job_env *env, const char *name, size_t length)
{
    for (size_t i = 0; i < env->env.count; i++) {
        if (!strncmp(env->env.items[i], name, length) && env->env.items[i][length] == '=')
            return &env->env.items[i];
    }
    return NULL;
}

/* An entry that is there already gets the new value. */
static int put(struct job_env *env, const char *entry, struct hvd_err *err)
{
    char **known = find(env, entry, strcspn(entry, "="));
    char *copy;

    if (!known)
        return push(&env->env, entry, LIMIT_ENV_ENTRIES, "LIMIT_ENV_ENTRIES", err);
    copy = mem_strdup(entry);
    if (!copy)
        return err_set(err, HVD_E_NOMEM, "no memory for the environment of workers");
    mem_free(*known);
    *known = copy;
    return 0;
}

static const char *our_value(char *const *envp, const char *name)
{
    size_t length = strlen(name);

    for (; *envp; envp++) {
        if (!strncmp(*envp, name, length) && (*envp)[length] == '=')
            return *envp;
    }
    return NULL;
}

static int add_asked(struct job_env *env, char *const *envp, const char *asked, struct hvd_err *err)
{
    const char *entry = strchr(asked, '=') ? asked : our_value(envp, asked);

    if (*asked == '=')
        return err_set(err, HVD_E_INVAL, "--env %s: a variable needs a name", asked);
    if (!entry)
        return err_set(err, HVD_E_NOTFOUND, "--env %s: there is no such variable; give it a value",
                       asked);
    return put(env, entry, err);
}

/* What does not fit in a LAUNCH must be known before the first one. */
static int check_size(const struct job_env *env, struct hvd_err *err)
{
    size_t max = msg_kind(MSG_LAUNCH)->body_max - LIMIT_PATH_BYTES - 1024;
    size_t total = 0;

    for (size_t i = 0; i < env->argv.count; i++)
        total += strlen(env->argv.items[i]) + 8;
    for (size_t i = 0; i < env->env.count; i++)
        total += strlen(env->env.items[i]) + 8;
    if (total <= max)
        return 0;
    return err_set(err, HVD_E_LIMIT,
                   "command and environment take %zu bytes, and a LAUNCH holds %zu; start with a "
                   "smaller environment (env -i)",
                   total, max);
}

static int fill(struct job_env *env, char *const *argv, char *const *envp, char *const *more,
                size_t more_count, struct hvd_err *err)
{
    int rc = 0;

    for (; *argv && !rc; argv++)
        rc = push(&env->argv, *argv, LIMIT_ARGV_ENTRIES, "LIMIT_ARGV_ENTRIES", err);
    for (char *const *entry = envp; *entry && !rc; entry++) {
        if (is_passed(*entry))
            rc = push(&env->env, *entry, LIMIT_ENV_ENTRIES, "LIMIT_ENV_ENTRIES", err);
    }
    for (size_t i = 0; i < more_count && !rc; i++)
        rc = add_asked(env, envp, more[i], err);
    return rc ? rc : check_size(env, err);
}

int job_env_init(struct job_env *env, char *const *argv, const char *cwd, char *const *envp,
                 char *const *more, size_t more_count, struct hvd_err *err)
{
    int rc;

    *env = (struct job_env){ 0 };
    if (strlen(cwd) > LIMIT_PATH_BYTES)
        return err_set(err, HVD_E_LIMIT, "%s: longer than LIMIT_PATH_BYTES (%d)", cwd,
                       LIMIT_PATH_BYTES);
    env->cwd = mem_strdup(cwd);
    rc = env->cwd ? fill(env, argv, envp, more, more_count, err)
                  : err_set(err, HVD_E_NOMEM, "no memory for the command of workers");
    if (rc)
        job_env_release(env);
    return rc;
}

int job_env_put(struct job_env *env, const char *name, const char *value, struct hvd_err *err)
{
    struct buf entry;
    int rc;

    buf_init(&entry, LIMIT_ARG_BYTES + 1);
    rc = buf_printf(&entry, "%s=%s", name, value);
    if (rc)
        err_set(err, rc, "%s: no room for its value", name);
    else
        rc = put(env, buf_text(&entry), err);
    buf_release(&entry);
    return rc ? rc : check_size(env, err);
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

void job_env_fill(const struct job_env *env, const struct msg *launch, struct msg *ret_whole)
{
    *ret_whole = *launch;
    ret_whole->u.launch.argv =
        (struct msg_texts){ (const char *const *)env->argv.items, env->argv.count };
    ret_whole->u.launch.env =
        (struct msg_texts){ (const char *const *)env->env.items, env->env.count };
    ret_whole->u.launch.cwd = env->cwd;
}
