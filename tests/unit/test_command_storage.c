/*
 * test_command_storage.c: checkpoints through a program of the user's: tests/shell/store.sh, and
 * programs that fail, hang, or print what they should not.
 */
#include "state/remote/command_storage.h"

#include "base/time.h"
#include "proto/commit.h"
#include "tests/lib/checkpoints.h"
#include "tests/lib/files.h"
#include "tests/lib/fixture.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATIENCE_US (100 * TIME_S)
#define COMMIT_A    (COMMIT_FIRST_OF(1) | 1)

static struct checkpoint_store *storage;
static struct checkpoint_object *object;
static struct hvd_err err;
static char where[800];
static size_t count;

static void begin(struct test *t)
{
    storage = NULL;
    object = NULL;
    err = (struct hvd_err){ .code = 0 };
    snprintf(where, sizeof(where), COMMAND_SCHEME "%s/tests/shell/store.sh  %s", HVD_SOURCE_DIR,
             test_dir(t));
}

static void end(struct test *t)
{
    (void)t;
    checkpoint_store_abandon(object);
    checkpoint_store_close(storage);
}
FIXTURE(begin, end)

/* Opens a storage whose program is this script of one line. */
static void open_script(struct test *t, const char *line, int64_t limit_us)
{
    char path[600], text[300];
    int length = snprintf(text, sizeof(text), "#!/bin/sh\n%s\n", line);

    checkpoint_store_close(storage);
    storage = NULL;
    snprintf(path, sizeof(path), "%s/program", test_dir(t));
    files_write(path, text, (size_t)length);
    CHECK_INT(t, chmod(path, 0700), ==, 0);
    snprintf(where, sizeof(where), COMMAND_SCHEME "%s word", path);
    CHECK_OK(t, command_storage_open_with(where, false, limit_us, &storage, &err));
}

static int put(const char *name, const char *text)
{
    struct checkpoint_object *made;
    int rc = checkpoint_store_create(storage, name, strlen(text), &made, &err);

    if (rc)
        return rc;
    rc = checkpoint_store_write(made, text, strlen(text), &err);
    if (!rc)
        return checkpoint_store_finish(made, &err);
    checkpoint_store_abandon(made);
    return rc;
}

static int count_name(void *arg, const char *name)
{
    (void)arg;
    (void)name;
    count++;
    return 0;
}

TEST_FLAGS(a_checkpoint_goes_through_a_program, TEST_NO_TORTURE)
{
    struct checkpoint_manifest manifest;
    char text[8] = "";
    uint64_t bytes;

    CHECK_OK(t, command_storage_open_with(where, true, PATIENCE_US, &storage, &err));
    CHECK_OK(t, checkpoints_write(storage, COMMIT_A, &err));
    CHECK_OK(t, checkpoints_write(storage, COMMIT_A + 1, &err));
    CHECK_OK(t, checkpoint_find_newest(storage, NULL, NULL, &manifest, &err));
    CHECK_INT(t, manifest.commit, ==, COMMIT_A + 1);
    CHECK_OK(t, checkpoints_check(storage, &manifest, &err));
    checkpoint_manifest_release(&manifest);
    CHECK_OK(t, checkpoint_remove(storage, "commit-1.2", &err));
    CHECK_OK(t, checkpoint_find_newest(storage, NULL, NULL, &manifest, &err));
    CHECK_INT(t, manifest.commit, ==, COMMIT_A);
    checkpoint_manifest_release(&manifest);
    CHECK_OK(t, put("top", "abc"));
    count = 0;
    CHECK_OK(t, checkpoint_store_list(storage, "", count_name, NULL, &err));
    CHECK_INT(t, count, ==, 2);
    CHECK_OK(t, checkpoint_store_read(storage, "top", 1, text, 2, &err));
    CHECK_TEXT(t, text, "bc");
    CHECK_CODE(t, checkpoint_store_read(storage, "top", 2, text, 2, &err), HVD_E_CORRUPT);
    CHECK_CODE(t, checkpoint_store_read(storage, "none", 2, text, 2, &err), HVD_E_NOTFOUND);
    CHECK_CODE(t, checkpoint_store_size(storage, "to", &bytes, &err), HVD_E_NOTFOUND);
    CHECK_OK(t, checkpoint_store_remove(storage, "none", &err));
}

/* A writer that gives up, or dies, leaves no object: the program sees fewer bytes. */
TEST_FLAGS(a_half_object_gets_no_name, TEST_NO_TORTURE)
{
    struct checkpoint_object *half;
    uint64_t bytes;

    CHECK_OK(t, command_storage_open_with(where, true, PATIENCE_US, &storage, &err));
    CHECK_OK(t, checkpoint_store_create(storage, "half", 6, &object, &err));
    CHECK_OK(t, checkpoint_store_write(object, "abc", 3, &err));
    half = object;
    object = NULL;
    CHECK_CODE(t, checkpoint_store_finish(half, &err), HVD_E_STATE);
    CHECK_CODE(t, checkpoint_store_size(storage, "half", &bytes, &err), HVD_E_NOTFOUND);
}

TEST_FLAGS(a_program_that_fails_is_named_with_its_words, TEST_NO_TORTURE)
{
    uint64_t bytes;
    char text[8];

    open_script(t, "echo the key is wrong >&2; echo more >&2; exit 7", PATIENCE_US);
    CHECK_CODE(t, checkpoint_store_size(storage, "a", &bytes, &err), HVD_E_IO);
    CHECK_HAS(t, err.text, "/program word: list a: exit code 7: the key is wrong; correct the");
    open_script(t, "kill -9 $$", PATIENCE_US);
    CHECK_CODE(t, put("a", "abc"), HVD_E_IO);
    CHECK_HAS(t, err.text, "put a: the program was ended by signal 9 (SIGKILL)");
    open_script(t, "yes", PATIENCE_US);
    CHECK_CODE(t, checkpoint_store_read(storage, "a", 0, text, 4, &err), HVD_E_LIMIT);
    CHECK_HAS(t, err.text, "get a: the program printed more bytes than it was asked for");
    open_script(t,
                "yes 'x' | head -n 1000; echo '-1 a'; echo 7; echo '3 a/b/c'; echo '4 a'; echo '9'",
                PATIENCE_US);
    CHECK_OK(t, checkpoint_store_size(storage, "a", &bytes, &err));
    CHECK_INT(t, bytes, ==, 4);
}

/* The program ignores its input and does not end; neither does a child of it. */
TEST_FLAGS(a_program_that_hangs_is_killed_with_its_group, TEST_NO_TORTURE)
{
    char path[600];
    uint64_t bytes;

    snprintf(path, sizeof(path), "trap '' TERM; tail -f /dev/null & echo $! >%s/child; wait",
             test_dir(t));
    open_script(t, path, 500 * TIME_MS);
    CHECK_CODE(t, checkpoint_store_size(storage, "a", &bytes, &err), HVD_E_TIMEOUT);
    CHECK_HAS(t, err.text, "list a: the program did not end in time, and was killed; correct");
    CHECK_CODE(t, put("a", "abc"), HVD_E_TIMEOUT);
}

TEST(a_program_that_is_not_there_is_named)
{
    struct checkpoint_store *other = NULL;
    uint64_t bytes;

    CHECK_CODE(t, command_storage_open(COMMAND_SCHEME "store.sh", true, &other, &err), HVD_E_INVAL);
    CHECK_HAS(t, err.text, "write the whole path, from the root");
    CHECK_CODE(t, command_storage_open(COMMAND_SCHEME " ", true, &other, &err), HVD_E_INVAL);
    CHECK_OK(t, command_storage_open(COMMAND_SCHEME "/no/such/store", false, &storage, &err));
    CHECK_CODE(t, checkpoint_store_size(storage, "a", &bytes, &err), HVD_E_INVAL);
    CHECK_HAS(t, err.text, "/no/such/store");
}
