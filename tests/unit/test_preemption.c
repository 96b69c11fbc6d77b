/* test_preemption.c: what --preemption may say, and what is refused. */
#include "proto/preemption.h"

#include "base/limits.h"
#include "tests/lib/test.h"

#include <stdio.h>
#include <string.h>

TEST(lists_are_read)
{
    struct preemption read;

    CHECK_OK(t, preemption_parse("auto", &read, NULL));
    CHECK(t, read.automatic && !read.givers);
    CHECK_OK(t, preemption_parse("none", &read, NULL));
    CHECK(t, !read.automatic && !read.givers && !read.file.length && !read.command.length);
    CHECK_OK(t, preemption_parse("aws,slurm,file:/a b,command:x, y,gcp", &read, NULL));
    CHECK_INT(t, read.givers, ==, PREEMPTION_AWS | PREEMPTION_SLURM);
    CHECK(t, span_is(read.file, "/a b"));
    CHECK(t, span_is(read.command, "x, y,gcp")); /* a command is the rest */
    CHECK_OK(t, preemption_parse("gcp,azure", &read, NULL));
    CHECK_INT(t, read.givers, ==, PREEMPTION_GCP | PREEMPTION_AZURE);
out:;
}

TEST(nonsense_is_refused)
{
    static const char *const wrong[] = { "",      "aws,",   ",aws",        "moon",      "auto,aws",
                                         "file:", "AWS",    "command:",    "file:here", "none,none",
                                         "aws ",  "\nfile", "file:/a\x01b" };
    static char longest[LIMIT_PATH_BYTES + 8];
    struct preemption read = { .givers = 77 };
    struct hvd_err err;

    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
        CHECK_CODE(t, preemption_parse(wrong[i], &read, &err), HVD_E_INVAL);
    CHECK_CODE(t, preemption_parse("file:", &read, &err), HVD_E_INVAL);
    CHECK_HAS(t, err.text, "nothing follows the colon; give the path of a file");
    CHECK_CODE(t, preemption_parse("command:", &read, &err), HVD_E_INVAL);
    CHECK_HAS(t, err.text, "nothing follows the colon; give a command");
    CHECK_CODE(t, preemption_parse("file:/a\x01b", &read, &err), HVD_E_INVAL);
    CHECK_HAS(t, err.text, "has control characters; remove them");
    snprintf(longest, sizeof(longest), "file:/%0*d", (int)(sizeof(longest) - sizeof("file:/")), 0);
    CHECK_CODE(t, preemption_parse(longest, &read, &err), HVD_E_LIMIT);
    CHECK_INT(t, read.givers, ==, 77);
out:;
}
