/*
 * test_chaos_steps.c: the file of steps that chaos reads: lines that come in pieces, wrong lines,
 * and the times computed from the steps.
 */
#include "os/clock.h"
#include "os/thread.h"
#include "tests/chaos/steps.h"
#include "tests/lib/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int take(struct steps *steps, const char *text)
{
    return steps_take(steps, text, strlen(text), NULL);
}

TEST(reads_lines_however_they_are_cut)
{
    static const char text[] = "1000 1 1 4\n2000 1 2 4\n9223372036854775807 2 3 4294967295\n";
    struct steps steps = { .fd = -1 };

    for (size_t cut = 0; cut < strlen(text); cut++) {
        CHECK_OK(t, steps_take(&steps, text, cut, NULL));
        CHECK_OK(t, steps_take(&steps, text + cut, strlen(text) - cut, NULL));
        CHECK_INT(t, steps.count, ==, 3);
        CHECK_INT(t, steps.list[1].at_us, ==, 2000);
        CHECK_INT(t, steps.list[1].round, ==, 1);
        CHECK_INT(t, steps.list[1].number, ==, 2);
        CHECK_INT(t, steps.list[2].at_us, ==, INT64_MAX);
        CHECK_INT(t, steps.list[2].size, ==, UINT32_MAX);
        steps_close(&steps);
    }
out:
    steps_close(&steps);
    steps_close(NULL);
}

TEST(a_line_without_its_end_does_not_count_yet)
{
    struct steps steps = { .fd = -1 };

    CHECK_OK(t, take(&steps, "1000 1 1 4\n2000 1 2 1"));
    CHECK_INT(t, steps.count, ==, 1);
    CHECK_OK(t, take(&steps, "6"));
    CHECK_INT(t, steps.count, ==, 1);
    CHECK_OK(t, take(&steps, "\n"));
    CHECK_INT(t, steps.count, ==, 2);
    CHECK_INT(t, steps.list[1].size, ==, 16);
out:
    steps_close(&steps);
}

TEST(refuses_wrong_lines)
{
    static const char *const bad[] = {
        "\n",          "1 2 3\n",   "1 2 3 4 5\n",  "1 2 3 4 \n",         " 1 2 3 4\n",
        "1  2 3 4\n",  "a 2 3 4\n", "1 2 3 4x\n",   "1 2 3 4294967296\n", "-1 2 3 4\n",
        "1 2 3 4\r\n", "1,2,3,4\n", "1\t2\t3\t4\n", "1 2 3 41 2 3 4\n",
    };
    static char endless[300];
    struct hvd_err err = { .text = "" };
    struct steps steps = { .fd = -1 };

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        CHECK_OK(t, take(&steps, "1000 1 1 4\n"));
        CHECK_CODE(t, steps_take(&steps, bad[i], strlen(bad[i]), &err), HVD_E_CORRUPT);
        CHECK_HAS(t, err.text, "line 2 of the steps: ");
        CHECK_INT(t, steps.count, ==, 1);
        steps_close(&steps);
    }
    memset(endless, '1', sizeof(endless) - 1);
    CHECK_CODE(t, steps_take(&steps, endless, sizeof(endless) - 1, &err), HVD_E_CORRUPT);
    CHECK_HAS(t, err.text, "line 1 of the steps is longer than 128 bytes");
    steps_close(&steps);
    memset(endless, '0', sizeof(endless) - 1);
    memcpy(endless + sizeof(endless) - 9, "1 1 1 4\n", 9); /* a whole line after many zeros */
    CHECK_CODE(t, steps_take(&steps, endless, sizeof(endless) - 1, &err), HVD_E_CORRUPT);
    CHECK_HAS(t, err.text, "line 1 of the steps is longer than 128 bytes");
out:
    steps_close(&steps);
}

TEST(computes_the_times_of_steps)
{
    struct steps steps = { .fd = -1 };

    CHECK_INT(t, steps_usual_us(&steps, 0), ==, 0);
    CHECK_INT(t, steps_longest_us(&steps, 0), ==, 0);
    CHECK_INT(t, steps_repeated(&steps, 0), ==, 0);
    CHECK_OK(t, take(&steps, "1000 1 1 4\n1010 1 2 4\n1022 1 3 4\n1031 1 4 4\n"));
    CHECK_INT(t, steps_usual_us(&steps, 0), ==, 10);
    CHECK_INT(t, steps_usual_us(&steps, 2), ==, 9);
    CHECK_INT(t, steps_longest_us(&steps, 0), ==, 12);
    /* a lost round: its gap is the longest, but not a usual one */
    CHECK_OK(t, take(&steps, "2000 2 4 3\n2011 2 5 3\n2021 2 6 3\n"));
    CHECK_INT(t, steps_usual_us(&steps, 0), ==, 10);
    CHECK_INT(t, steps_longest_us(&steps, 0), ==, 969);
    CHECK_INT(t, steps_longest_us(&steps, 4), ==, 11);
    CHECK_INT(t, steps_repeated(&steps, 0), ==, 1);
    CHECK_INT(t, steps_repeated(&steps, 4), ==, 1);
    CHECK_INT(t, steps_repeated(&steps, 5), ==, 0);
    /* a rank that wakes up late reports an earlier step, which is sorted in */
    CHECK_OK(t, take(&steps, "1500 1 5 4\n2031 2 7 3\n"));
    CHECK_INT(t, steps.list[4].at_us, ==, 1500);
    CHECK_INT(t, steps.list[8].at_us, ==, 2031);
    CHECK_INT(t, steps_repeated(&steps, 0), ==, 2);
    CHECK_INT(t, steps_repeated(&steps, 6), ==, 1);
    CHECK_INT(t, steps_longest_us(&steps, 0), ==, 500);
    CHECK_INT(t, steps_longest_us(&steps, 100), ==, 0);
    CHECK_INT(t, steps_usual_us(&steps, 100), ==, 0);
out:
    steps_close(&steps);
}

struct writer {
    const char *path;
    int written;
};

static void *write_three(void *arg)
{
    static const char *const parts[] = { "1000 1 1 4\n", "2000 1 2", " 4\n" };
    struct writer *writer = arg;
    int fd = open(writer->path, O_WRONLY | O_APPEND | O_CLOEXEC);

    for (size_t i = 0; fd >= 0 && i < ARRAY_SIZE(parts); i++)
        writer->written += write(fd, parts[i], strlen(parts[i])) == (ssize_t)strlen(parts[i]);
    if (fd >= 0)
        close(fd);
    return NULL;
}

TEST(waits_for_the_next)
{
    struct writer writer = { .written = 0 };
    struct steps steps = { .fd = -1 };
    bool started = false;
    pthread_t thread;
    char path[512];

    snprintf(path, sizeof(path), "%s/steps", test_dir(t));
    writer.path = path;
    CHECK_OK(t, steps_open(&steps, path, NULL));
    CHECK_CODE(t, steps_await(&steps, 0, clock_now_us(), NULL), HVD_E_TIMEOUT);
    CHECK_OK(t, thread_start(&thread, 0, write_three, &writer));
    started = true;
    CHECK_OK(t, steps_await(&steps, 1, clock_now_us() + INT64_C(60000000), NULL));
    CHECK_INT(t, steps.count, ==, 2);
    CHECK_CODE(t, steps_await(&steps, 2, clock_now_us() + 1000, NULL), HVD_E_TIMEOUT);
out:
    if (started)
        pthread_join(thread, NULL);
    steps_close(&steps);
}
