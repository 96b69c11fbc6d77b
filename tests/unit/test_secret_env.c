/*
 * test_secret_env.c: driver/secret_env: which variables are saved, and which must be there again.
 */
#include "driver/secret_env.h"

#include "base/mem.h"
#include "tests/lib/fixture.h"

#include <string.h>

static char token[] = "TOKEN", pass[] = "PASS";
static char *items[] = { token, pass };
static const struct opt_list names = { .items = items, .count = 2 };
static const char *const saved_texts[] = { "A=1",       "TOKEN=old", "TOKENS=kept", "PASS=",
                                           "TOKE=kept", "odd",       NULL };
static const char *const now_texts[] = { "B=2", "PASS=new", "TOKEN=new=er", NULL };
/* The functions take environments as they come to main. */
#define SAVED ((char **)(uintptr_t)saved_texts)
#define NOW   ((char **)(uintptr_t)now_texts)
static char **merged;

static void end(struct test *t)
{
    (void)t;
    mem_free(merged);
    merged = NULL;
}
FIXTURE(NULL, end)

TEST(secret_variables_are_left_out)
{
    CHECK_OK(t, secret_env_merge(&names, SAVED, NULL, &merged, NULL));
    CHECK_TEXT(t, merged[0], "A=1");
    CHECK_TEXT(t, merged[1], "TOKENS=kept");
    CHECK_TEXT(t, merged[2], "TOKE=kept");
    CHECK_TEXT(t, merged[3], "odd");
    CHECK(t, !merged[4]);
}

TEST(a_resumed_job_has_those_of_now)
{
    CHECK_OK(t, secret_env_merge(&names, SAVED, NOW, &merged, NULL));
    CHECK_TEXT(t, merged[4], "PASS=new");
    CHECK_TEXT(t, merged[5], "TOKEN=new=er");
    CHECK(t, !merged[6]);
}

/* The secrets of AWS need no option, and are never mixed with the key of another identity. */
TEST(secrets_of_aws_are_secret_by_themselves)
{
    static const char *const saved[] = { "AWS_ACCESS_KEY_ID=AKOLD", "AWS_SECRET_ACCESS_KEY=old",
                                         "AWS_SESSION_TOKEN=old", "AWS_REGION=north", NULL };
    static const char *const now[] = { "AWS_ACCESS_KEY_ID=AKNEW", "AWS_SECRET_ACCESS_KEY=new",
                                       "AWS_REGION=south", NULL };
    static const char *const none[] = { "A=1", NULL };
    const struct opt_list no_names = { .count = 0 };

    CHECK_OK(t, secret_env_merge(&no_names, (char **)(uintptr_t)saved, NULL, &merged, NULL));
    CHECK_TEXT(t, merged[0], "AWS_ACCESS_KEY_ID=AKOLD");
    CHECK_TEXT(t, merged[1], "AWS_REGION=north");
    CHECK(t, !merged[2]);
    mem_free(merged);
    merged = NULL;
    CHECK_OK(t, secret_env_merge(&no_names, (char **)(uintptr_t)saved, (char **)(uintptr_t)now,
                                 &merged, NULL));
    CHECK_TEXT(t, merged[0], "AWS_REGION=north");
    CHECK_TEXT(t, merged[1], "AWS_ACCESS_KEY_ID=AKNEW");
    CHECK_TEXT(t, merged[2], "AWS_SECRET_ACCESS_KEY=new");
    CHECK(t, !merged[3]);
    mem_free(merged);
    merged = NULL;
    CHECK_OK(t, secret_env_merge(&no_names, (char **)(uintptr_t)saved, (char **)(uintptr_t)none,
                                 &merged, NULL));
    CHECK_TEXT(t, merged[0], "AWS_ACCESS_KEY_ID=AKOLD");
    CHECK_TEXT(t, merged[1], "AWS_REGION=north");
    CHECK(t, !merged[2]);
}

TEST(each_name_is_there_and_alone)
{
    static char wrong_text[] = "PASS=x", missing_text[] = "A";
    char *wrong[] = { wrong_text }, *missing[] = { missing_text };
    const struct opt_list with_value = { .items = wrong, .count = 1 };
    const struct opt_list unset = { .items = missing, .count = 1 };
    struct hvd_err err;

    CHECK_OK(t, secret_env_check(&names, NOW, &err));
    CHECK_CODE(t, secret_env_check(&with_value, NOW, &err), HVD_E_INVAL);
    CHECK_HAS(t, err.text, "--env-secret PASS=...: the value on a command line is no secret");
    CHECK(t, !strstr(err.text, "=x"));
    CHECK_CODE(t, secret_env_check(&unset, NOW, &err), HVD_E_NOTFOUND);
    CHECK_HAS(t, err.text, "--env-secret A: there is no such variable here");
}
