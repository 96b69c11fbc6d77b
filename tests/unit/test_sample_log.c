/*
 * test_sample_log.c: the log of samples that hvd-audit reads: whole lines, several samplers, and a
 * disk that is full.
 */
#include "base/limits.h"
#include "base/mem.h"
#include "tests/lib/test.h"
#include "worker/sample_log.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

static const uint64_t three[] = { 7, 0, 281474976710655 };
static const hvd_batch small_batch = {
    .epoch = 2, .first = 30, .total = 9, .count = 3, .samples = three
};
static const struct sample_place place = { .round = 5, .rank = 1, .size = 4 };

/* Returns the contents of a file in the case's folder; "": there is no file. */
static const char *holds(const char *folder, const char *name)
{
    static char text[4096];
    char path[512];
    ssize_t got = 0;
    int fd;

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    fd = open(path, O_RDONLY);
    if (fd >= 0) {
        got = read(fd, text, sizeof(text) - 1);
        close(fd);
    }
    text[got > 0 ? got : 0] = '\0';
    return text;
}

TEST(writes_a_line_for_each_batch)
{
    const char *folder = test_dir(t);
    hvd_batch idle = { .epoch = 2, .first = 39, .total = 1 };
    struct sample_log log = { .fd = -1 };
    struct hvd_err err;

    CHECK_OK(t, sample_log_init(&log, folder, 17, "data", 1000));
    CHECK_TEXT(t, holds(folder, "17.samples"), "");
    CHECK_OK(t, sample_log_write(&log, &place, &small_batch, &err));
    CHECK_OK(t, sample_log_write(&log, &place, &idle, &err));
    CHECK_TEXT(t, holds(folder, "17.samples"),
               "batch data 2 30 9 5 1 4 1000: 7 0 281474976710655\n"
               "batch data 2 39 1 5 1 4 1000:\n");
out:
    sample_log_release(&log);
}

TEST(several_samplers_share_the_file)
{
    const char *folder = test_dir(t);
    struct sample_log one = { .fd = -1 };
    struct sample_log two = { .fd = -1 };
    hvd_batch idle = { .total = 1 };

    CHECK_OK(t, sample_log_init(&one, folder, 0, "train", 10));
    CHECK_OK(t, sample_log_init(&two, folder, 0, "the 100 % hard ones", 20));
    CHECK_OK(t, sample_log_write(&one, &place, &idle, NULL));
    CHECK_OK(t, sample_log_write(&two, &place, &idle, NULL));
    CHECK_OK(t, sample_log_write(&one, &place, &idle, NULL));
    CHECK_TEXT(t, holds(folder, "0.samples"),
               "batch train 0 0 1 5 1 4 10:\n"
               "batch the%20100%20%25%20hard%20ones 0 0 1 5 1 4 20:\n"
               "batch train 0 0 1 5 1 4 10:\n");
out:
    sample_log_release(&one);
    sample_log_release(&two);
}

TEST(no_folder_means_no_log)
{
    struct sample_log log = { .fd = -1 };

    CHECK_OK(t, sample_log_init(&log, NULL, 17, "data", 1000));
    CHECK_OK(t, sample_log_write(&log, &place, &small_batch, NULL));
    sample_log_release(&log);
    CHECK_OK(t, sample_log_init(&log, "", 17, "data", 1000));
    CHECK_OK(t, sample_log_write(&log, &place, &small_batch, NULL));
out:
    sample_log_release(&log);
}

TEST(makes_the_folder_but_not_its_parents)
{
    const char *folder = test_dir(t);
    char below[512];
    struct sample_log log = { .fd = -1 };
    struct hvd_err err;

    snprintf(below, sizeof(below), "%s/new", folder);
    CHECK_OK(t, sample_log_init(&log, below, 3, "data", 1000));
    CHECK_OK(t, sample_log_write(&log, &place, &small_batch, &err));
    CHECK_HAS(t, holds(folder, "new/3.samples"), "batch data 2 30 ");
    sample_log_release(&log);
    snprintf(below, sizeof(below), "%s/not/there", folder);
    CHECK_OK(t, sample_log_init(&log, below, 3, "data", 1000));
    CHECK_CODE(t, sample_log_write(&log, &place, &small_batch, &err), HVD_E_IO);
    CHECK_HAS(t, err.text,
              "not/there/3.samples: cannot open: No such file or directory; "
              "set HVD_SAMPLE_LOG to a folder that this user may write, on a disk with free space");
out:
    sample_log_release(&log);
}

/* The limit for the size of files stands for a full disk. */
TEST(a_full_disk_leaves_no_part_of_a_line)
{
    const char *folder = test_dir(t);
    struct rlimit before;
    struct rlimit small;
    struct sample_log log = { .fd = -1 };
    hvd_batch idle = { .total = 1 };
    struct hvd_err err;
    bool limited = false;

    signal(SIGXFSZ, SIG_IGN);
    CHECK_OK(t, sample_log_init(&log, folder, 9, "data", 10));
    CHECK_OK(t, sample_log_write(&log, &place, &idle, &err));
    CHECK_OK(t, getrlimit(RLIMIT_FSIZE, &before));
    small = before;
    small.rlim_cur = 40; /* the first line has 28 */
    CHECK_OK(t, setrlimit(RLIMIT_FSIZE, &small));
    limited = true;
    CHECK_CODE(t, sample_log_write(&log, &place, &idle, &err), HVD_E_IO);
    CHECK_HAS(t, err.text, "9.samples: cannot write: File too large; set HVD_SAMPLE_LOG");
    CHECK_TEXT(t, holds(folder, "9.samples"), "batch data 0 0 1 5 1 4 10:\n");
    CHECK_OK(t, setrlimit(RLIMIT_FSIZE, &before));
    limited = false;
    CHECK_OK(t, sample_log_write(&log, &place, &idle, &err));
    CHECK_TEXT(t, holds(folder, "9.samples"),
               "batch data 0 0 1 5 1 4 10:\nbatch data 0 0 1 5 1 4 10:\n");
out:
    if (limited)
        (void)setrlimit(RLIMIT_FSIZE, &before);
    sample_log_release(&log);
}

TEST_FLAGS(a_line_has_a_limit, TEST_NO_TORTURE)
{
    const char *folder = test_dir(t);
    size_t count = LIMIT_SAMPLE_LINE_BYTES / 2 + 1;
    uint64_t *samples = mem_zalloc_array(count, sizeof(*samples));
    hvd_batch batch = { .total = count, .count = count, .samples = samples };
    struct sample_log log = { .fd = -1 };
    struct hvd_err err;

    CHECK(t, samples);
    CHECK_OK(t, sample_log_init(&log, folder, 0, "data", 10));
    CHECK_CODE(t, sample_log_write(&log, &place, &batch, &err), HVD_E_LIMIT);
    CHECK_HAS(t, err.text, "bytes (LIMIT_SAMPLE_LINE_BYTES)");
    CHECK_TEXT(t, holds(folder, "0.samples"), "");
out:
    mem_free(samples);
    sample_log_release(&log);
}
