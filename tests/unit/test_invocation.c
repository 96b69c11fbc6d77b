/*
 * test_invocation.c: the words of the first driver, kept in the job's folder for its successors:
 * they come back as they were, and a damaged file is refused.
 */
#include "driver/invocation.h"

#include "tests/lib/files.h"
#include "tests/lib/test.h"

#include <stdio.h>

static char *words[] = { (char[]){ "./train" }, (char[]){ "" }, (char[]){ "a b" }, NULL };
static char *env[] = { (char[]){ "A=1" }, (char[]){ "B=" }, NULL };
static const struct invocation sample = {
    .cwd = "/data", .options = "np = 4\n", .argv = words, .argc = 3, .envp = env
};

TEST(a_saved_invocation_is_read_back)
{
    struct invocation back = { .text = NULL };
    const char *folder = test_dir(t);

    CHECK_OK(t, invocation_save(folder, &sample, NULL));
    CHECK_OK(t, invocation_save(folder, &sample, NULL));
    CHECK_OK(t, invocation_load(folder, &back, NULL));
    CHECK_TEXT(t, back.cwd, "/data");
    CHECK_TEXT(t, back.options, "np = 4\n");
    CHECK_INT(t, back.argc, ==, 3);
    CHECK_TEXT(t, back.argv[0], "./train");
    CHECK_TEXT(t, back.argv[1], "");
    CHECK_TEXT(t, back.argv[2], "a b");
    CHECK(t, !back.argv[3]);
    CHECK_TEXT(t, back.envp[0], "A=1");
    CHECK_TEXT(t, back.envp[1], "B=");
    CHECK(t, !back.envp[2]);
out:
    invocation_release(&back);
}

TEST(a_folder_without_an_invocation)
{
    struct invocation back = { .text = NULL };
    struct hvd_err err;

    CHECK_CODE(t, invocation_load(test_dir(t), &back, &err), HVD_E_NOTFOUND);
    CHECK_HAS(t, err.text, "/command");
out:
    invocation_release(&back);
}

/* Cut anywhere it is refused, or what is left of it makes sense: never read past its end. */
TEST_FLAGS(a_damaged_invocation_is_refused, TEST_NO_TORTURE)
{
    static struct file_bytes whole;
    struct invocation back = { .text = NULL };
    const char *folder = test_dir(t);
    char path[300];

    snprintf(path, sizeof(path), "%s/command", folder);
    CHECK_OK(t, invocation_save(folder, &sample, NULL));
    files_read(path, &whole);
    for (size_t length = 0; length < whole.length - 8; length++) {
        files_write(path, whole.bytes, length);
        CHECK_CODE(t, invocation_load(folder, &back, NULL), HVD_E_CORRUPT);
    }
    whole.bytes[0] = 'x';
    files_write(path, whole.bytes, whole.length);
    CHECK_CODE(t, invocation_load(folder, &back, NULL), HVD_E_CORRUPT);
out:
    invocation_release(&back);
}
