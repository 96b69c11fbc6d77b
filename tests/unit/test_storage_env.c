/*
 * test_storage_env.c: agent/storage_env: which variables of the driver an agent takes for its
 * checkpoints in S3, and which of its own it keeps.
 */
#include "agent/storage_env.h"

#include "tests/lib/files.h"
#include "tests/lib/fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define ENTRIES_MAX 6

static const char *const names[] = { "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY",
                                     "AWS_SESSION_TOKEN", "AWS_PROFILE",
                                     "AWS_REGION",        "AWS_CA_BUNDLE",
                                     "AWS_ENDPOINT_URL",  "AWS_SHARED_CREDENTIALS_FILE" };
static char entries[ENTRIES_MAX][512];
static char *items[ENTRIES_MAX];
static struct opt_list list;
static struct hvd_err err;
static char home[256];

static void begin_case(struct test *t)
{
    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        unsetenv(names[i]);
    snprintf(home, sizeof(home), "%s", test_dir(t));
    setenv("HOME", home, 1);
    list = (struct opt_list){ .items = items };
    err = (struct hvd_err){ .code = 0 };
}

static void end_case(struct test *t)
{
    (void)t;
}
FIXTURE(begin_case, end_case)

static void give(const char *name, const char *value)
{
    snprintf(entries[list.count], sizeof(entries[0]), "%s=%s", name, value);
    items[list.count] = entries[list.count];
    list.count++;
}

static void give_all(void)
{
    give("AWS_ACCESS_KEY_ID", "theirs");
    give("AWS_SECRET_ACCESS_KEY", "a=b");
    give("AWS_SESSION_TOKEN", "");
    give("AWS_REGION", "eu-west-1");
}

static void expect(struct test *t, const char *name, const char *value)
{
    const char *is = getenv(name);

    CHECK_TEXT(t, is ? is : "(not set)", value);
}

TEST_FLAGS(a_host_without_credentials_takes_those_of_the_driver, TEST_NO_TORTURE)
{
    give_all();
    CHECK_OK(t, storage_env_take(&list, &err));
    expect(t, "AWS_ACCESS_KEY_ID", "theirs");
    expect(t, "AWS_SECRET_ACCESS_KEY", "a=b");
    expect(t, "AWS_SESSION_TOKEN", "");
    expect(t, "AWS_REGION", "eu-west-1");
    for (size_t i = 0; i < list.count; i++)
        CHECK_TEXT(t, entries[i], ""); /* wiped */
}

TEST_FLAGS(credentials_of_the_host_stay_and_are_never_mixed, TEST_NO_TORTURE)
{
    char path[300];

    setenv("AWS_ACCESS_KEY_ID", "mine", 1);
    give_all();
    CHECK_OK(t, storage_env_take(&list, &err));
    expect(t, "AWS_ACCESS_KEY_ID", "mine");
    expect(t, "AWS_SECRET_ACCESS_KEY", "(not set)");
    expect(t, "AWS_REGION", "eu-west-1");
    unsetenv("AWS_ACCESS_KEY_ID");
    /* A file of the host counts as well; a setting of the host stays. */
    snprintf(path, sizeof(path), "%s/.aws", home);
    CHECK_INT(t, mkdir(path, 0700), ==, 0);
    snprintf(path, sizeof(path), "%s/.aws/credentials", home);
    files_write(path, "x", 1);
    setenv("AWS_REGION", "us-east-2", 1);
    list.count = 0;
    give_all();
    CHECK_OK(t, storage_env_take(&list, &err));
    expect(t, "AWS_ACCESS_KEY_ID", "(not set)");
    expect(t, "AWS_REGION", "us-east-2");
}

TEST_FLAGS(a_file_that_the_host_does_not_have_is_left_out, TEST_NO_TORTURE)
{
    char path[300];

    snprintf(path, sizeof(path), "%s/ca", home);
    files_write(path, "x", 1);
    give("AWS_CA_BUNDLE", path);
    give("AWS_SHARED_CREDENTIALS_FILE", "/nowhere/credentials");
    CHECK_OK(t, storage_env_take(&list, &err));
    expect(t, "AWS_CA_BUNDLE", path);
    expect(t, "AWS_SHARED_CREDENTIALS_FILE", "(not set)");
}

/* A line may not change how the agent runs, and an error shows no value. */
TEST_FLAGS(only_variables_of_s3_are_taken, TEST_NO_TORTURE)
{
    give("AWS_SECRET_ACCESS_KEY", "hidden");
    give("LD_PRELOAD", "hidden");
    CHECK_CODE(t, storage_env_take(&list, &err), HVD_E_INVAL);
    CHECK_HAS(t, err.text, "storage-env: item 2 has not the form AWS_NAME=value");
    CHECK(t, !strstr(err.text, "hidden") && !getenv("LD_PRELOAD"));
    CHECK_TEXT(t, entries[1], "");
    list.count = 0;
    give("AWS_X", "hidden");
    entries[0][strlen("AWS_X")] = '\0';
    CHECK_CODE(t, storage_env_take(&list, &err), HVD_E_INVAL);
}
