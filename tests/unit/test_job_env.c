/*
 * test_job_env.c: what of the driver's environment workers are given, what is added, and what is
 * refused before anything starts.
 */
#include "driver/io/job_env.h"

#include "base/limits.h"
#include "base/mem.h"
#include "tests/lib/test.h"

#include <string.h>

static char *const words[] = { (char[]){ "./train" }, (char[]){ "--steps=9" }, NULL };

static const char *value_of(const struct job_env *env, const char *name)
{
    for (size_t i = 0; i < env->env.count; i++) {
        if (!strncmp(env->env.items[i], name, strlen(name)) &&
            env->env.items[i][strlen(name)] == '=')
            return env->env.items[i] + strlen(name) + 1;
    }
    return NULL;
}

TEST(passes_on_the_users_variables)
{
    char *const envp[] = { (char[]){ "PATH=/bin" },         (char[]){ "HOME=/root" },
                           (char[]){ "HVD_NP=4" },          (char[]){ "SSH_AUTH_SOCK=x" },
                           (char[]){ "HOMEWORK=mine" },     (char[]){ "broken" },
                           (char[]){ "OMP_NUM_THREADS=2" }, NULL };
    struct job_env env = { .cwd = NULL };

    CHECK_OK(t, job_env_init(&env, words, "/data", envp, NULL, 0, NULL));
    CHECK_TEXT(t, value_of(&env, "PATH"), "/bin");
    CHECK_TEXT(t, value_of(&env, "HOMEWORK"), "mine");
    CHECK_TEXT(t, value_of(&env, "OMP_NUM_THREADS"), "2");
    CHECK_INT(t, env.env.count, ==, 3);
out:
    job_env_release(&env);
}

TEST(a_later_driver_follows_the_first_one)
{
    char *const first[] = { (char[]){ "CLUSTER=a" }, (char[]){ "HOME=/first" },
                            (char[]){ "HVD_NP=4" },  (char[]){ "SSH_AUTH_SOCK=gone" },
                            (char[]){ "PATH=/a" },   NULL };
    char *const now[] = { (char[]){ "CLUSTER=b" }, (char[]){ "HOME=/now" },
                          (char[]){ "HVD_NP=5" },  (char[]){ "SSH_AUTH_SOCK=here" },
                          (char[]){ "OTHER=1" },   NULL };
    static const char *const whole[] = { "CLUSTER=a", "HVD_NP=4", "PATH=/a", "HOME=/now",
                                         "SSH_AUTH_SOCK=here" };
    const char **envp = NULL;

    CHECK_OK(t, job_env_follow(first, now, &envp, NULL));
    for (size_t i = 0; i < ARRAY_SIZE(whole); i++)
        CHECK_TEXT(t, envp[i], whole[i]);
    CHECK(t, !envp[ARRAY_SIZE(whole)]);
out:
    mem_free(envp);
}

TEST(adds_the_requested_variables)
{
    char *const envp[] = { (char[]){ "HOME=/root" }, (char[]){ "A=1" }, (char[]){ "A1=2" }, NULL };
    char *const more[] = { (char[]){ "HOME" }, (char[]){ "A=x=y" }, (char[]){ "NEW=" } };
    struct job_env env = { .cwd = NULL };

    CHECK_OK(t, job_env_init(&env, words, "/", envp, more, ARRAY_SIZE(more), NULL));
    CHECK_TEXT(t, value_of(&env, "HOME"), "/root");
    CHECK_TEXT(t, value_of(&env, "A"), "x=y");
    CHECK_TEXT(t, value_of(&env, "A1"), "2");
    CHECK_TEXT(t, value_of(&env, "NEW"), "");
    CHECK_INT(t, env.env.count, ==, 4);
out:
    job_env_release(&env);
}

TEST(ours_comes_in_place_of_theirs)
{
    char *const envp[] = { (char[]){ "A=1" }, NULL };
    char *const more[] = { (char[]){ "HVD_TIMELINE=mine" } };
    struct job_env env = { .cwd = NULL };

    CHECK_OK(t, job_env_init(&env, words, "/", envp, more, ARRAY_SIZE(more), NULL));
    CHECK_OK(t, job_env_put(&env, "HVD_TIMELINE", "/data/t.json", NULL));
    CHECK_OK(t, job_env_put(&env, "NEW", "", NULL));
    CHECK_TEXT(t, value_of(&env, "HVD_TIMELINE"), "/data/t.json");
    CHECK_TEXT(t, value_of(&env, "NEW"), "");
    CHECK_INT(t, env.env.count, ==, 3);
out:
    job_env_release(&env);
}

TEST(names_variables_that_cannot_be_passed_on)
{
    char *const envp[] = { (char[]){ "A=1" }, NULL };
    char *const missing[] = { (char[]){ "NOT_THERE" } };
    char *const nameless[] = { (char[]){ "=x" } };
    struct job_env env = { .cwd = NULL };
    struct hvd_err err = { .code = 0 };

    CHECK_CODE(t, job_env_init(&env, words, "/", envp, missing, 1, &err), HVD_E_NOTFOUND);
    CHECK_HAS(t, err.text, "--env NOT_THERE: there is no such variable");
    CHECK_CODE(t, job_env_init(&env, words, "/", envp, nameless, 1, &err), HVD_E_INVAL);
    CHECK_HAS(t, err.text, "the name is missing");
out:
    job_env_release(&env);
}

TEST(too_much_is_refused_before_anything_starts)
{
    char *long_word = mem_zalloc(LIMIT_ARG_BYTES + 2);
    char *const long_argv[] = { long_word, NULL };
    char *many[40] = { NULL };
    struct job_env env = { .cwd = NULL };
    struct hvd_err err;

    CHECK(t, long_word);
    memset(long_word, 'x', LIMIT_ARG_BYTES + 1);
    CHECK_CODE(t, job_env_init(&env, long_argv, "/", many, NULL, 0, &err), HVD_E_LIMIT);
    CHECK_HAS(t, err.text, "LIMIT_ARG_BYTES");
    long_word[LIMIT_ARG_BYTES - 1] = 0;
    for (size_t i = 0; i < ARRAY_SIZE(many) - 1; i++)
        many[i] = long_word;
    CHECK_CODE(t, job_env_init(&env, many, "/", many + ARRAY_SIZE(many) - 1, NULL, 0, &err),
               HVD_E_LIMIT);
    CHECK_HAS(t, err.text, "a worker can get only");
out:
    job_env_release(&env);
    mem_free(long_word);
}

TEST(fills_in_a_launch)
{
    char *const envp[] = { (char[]){ "A=1" }, NULL };
    const struct msg launch = { .type = MSG_LAUNCH, .incarnation = 7, .u.launch = { .slot = 3 } };
    struct job_env env = { .cwd = NULL };
    struct msg whole;

    CHECK_OK(t, job_env_init(&env, words, "/data", envp, NULL, 0, NULL));
    job_env_fill(&env, &launch, &whole);
    CHECK_INT(t, whole.incarnation, ==, 7);
    CHECK_INT(t, whole.u.launch.slot, ==, 3);
    CHECK_INT(t, whole.u.launch.argv.count, ==, 2);
    CHECK_TEXT(t, whole.u.launch.argv.items[1], "--steps=9");
    CHECK_TEXT(t, whole.u.launch.env.items[0], "A=1");
    CHECK_TEXT(t, whole.u.launch.cwd, "/data");
out:
    job_env_release(&env);
}
