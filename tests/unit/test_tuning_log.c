/*
 * test_tuning_log.c: worker/tuning_log: the lines of --autotune-log-file, and files that cannot be
 * written.
 */
#include "worker/tuning_log.h"

#include "tests/lib/fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct tuning_log tuning = { .fd = -1 };
static struct hvd_err err;
static char path[256];
static char text[1024];
static const struct coll_tried ring = { 3, 4, 2, 65536, "ring", 12.25, true };

static void begin_case(struct test *t)
{
    snprintf(path, sizeof(path), "%s/tuned.csv", test_dir(t));
    remove(path);
}

static void end_case(struct test *t)
{
    (void)t;
    tuning_log_release(&tuning);
}
FIXTURE(begin_case, end_case)

static const char *content(void)
{
    FILE *file = fopen(path, "r");
    size_t length = file ? fread(text, 1, sizeof(text) - 1, file) : 0;

    text[length] = '\0';
    if (file)
        fclose(file);
    return text;
}

TEST(lines_are_appended_below_the_names_of_the_columns)
{
    const struct coll_tried chunks = { 4, 3, 1, 200000, "chunks of 128 KiB", 99, false };

    CHECK_OK(t, tuning_log_init(&tuning, path));
    CHECK_TEXT(t, content(), ""); /* the first line creates the file */
    CHECK_OK(t, tuning_log_write(&tuning, &ring, &err));
    tuning_log_release(&tuning);
    CHECK_OK(t, tuning_log_init(&tuning, path));
    CHECK_OK(t, tuning_log_write(&tuning, &chunks, &err));
    CHECK_TEXT(t, content(),
               "round,workers,hosts,bytes,algorithm,microseconds,chosen\n"
               "3,4,2,65536,ring,12.2,1\n"
               "4,3,1,200000,chunks of 128 KiB,99.0,0\n");
}

TEST(without_a_file_nothing_is_written)
{
    CHECK_OK(t, tuning_log_init(&tuning, NULL));
    CHECK_OK(t, tuning_log_write(&tuning, &ring, &err));
    CHECK_OK(t, tuning_log_init(&tuning, ""));
    CHECK_OK(t, tuning_log_write(&tuning, &ring, &err));
}

TEST(a_file_that_cannot_be_written_is_told_once)
{
    static const char *const wrong[] = { "/proc/none", "/dev/full", "/" };

    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
        CHECK_OK(t, tuning_log_init(&tuning, wrong[i]));
        CHECK_CODE(t, tuning_log_write(&tuning, &ring, &err), HVD_E_IO);
        CHECK_HAS(t, err.text, "--autotune-log-file /");
        CHECK_HAS(t, err.text, "is no longer written to this file");
        CHECK_OK(t, tuning_log_write(&tuning, &ring, &err));
        tuning_log_release(&tuning);
    }
    /* a named pipe without a reader does not block */
    CHECK(t, mkfifo(path, 0600) == 0);
    CHECK_OK(t, tuning_log_init(&tuning, path));
    CHECK_CODE(t, tuning_log_write(&tuning, &ring, &err), HVD_E_IO);
}

/* A terminal takes only a part of the line that fills its buffer. lseek fails for a terminal, but
 * is not the reason why the line could not be written. */
TEST(a_short_write_is_told_as_such)
{
    int terminal = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    int rc = 0;

    CHECK(t, terminal >= 0 && !grantpt(terminal) && !unlockpt(terminal));
    CHECK(t, !ptsname_r(terminal, path, sizeof(path)));
    CHECK_OK(t, tuning_log_init(&tuning, path));
    for (int i = 0; !rc && i < 100000; i++)
        rc = tuning_log_write(&tuning, &ring, &err);
    close(terminal);
    CHECK_CODE(t, rc, HVD_E_IO);
    CHECK(t, !strstr(err.text, strerror(ESPIPE)));
}
