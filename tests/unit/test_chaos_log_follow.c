/*
 * test_chaos_log_follow.c: how chaos waits for a line of events.log: the last one is found,
 * reading goes on from the end, and a new line wakes the reader.
 */
#include "base/time.h"
#include "os/clock.h"
#include "os/thread.h"
#include "tests/chaos/log_follow.h"
#include "tests/lib/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PATH_BYTES  256
#define PATIENCE_US (60 * TIME_S)

static bool append(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    bool written = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

    if (fd >= 0)
        close(fd);
    return written;
}

TEST(finds_the_last_line_with_the_words)
{
    char path[PATH_BYTES], line[LOG_FOLLOW_LINE] = "";

    snprintf(path, sizeof(path), "%s/events.log", test_dir(t));
    CHECK(t, !log_follow_last(path, "by rank", line));
    CHECK(t,
          append(path, "1 round 1: by rank a:0 b:0\n2 round 2: by rank b:0\n3 a:0#1 is ready\n"));
    CHECK(t, log_follow_last(path, "by rank", line));
    CHECK_TEXT(t, line, "by rank b:0");
    CHECK(t, !log_follow_last(path, "is launched", line));
    for (int i = 0; i < 3000; i++)
        CHECK(t, append(path, "4 something else has happened in the meantime\n"));
    CHECK(t, append(path, "5 round 3: by rank c:1\n"));
    CHECK(t, log_follow_last(path, "by rank", line));
    CHECK_TEXT(t, line, "by rank c:1");
out:
    unlink(path);
}

TEST(reads_on_from_the_end)
{
    struct log_follow follow = { .fd = -1, .notify = -1 };
    char path[PATH_BYTES];

    snprintf(path, sizeof(path), "%s/events.log", test_dir(t));
    CHECK_CODE(t, log_follow_open(&follow, path, NULL), HVD_E_IO);
    CHECK(t, append(path, "a:0#1 is ready\n"));
    CHECK_OK(t, log_follow_open(&follow, path, NULL));
    CHECK(t, !log_follow_await(&follow, " is ready", clock_now_us()));
    CHECK(t, append(path, "b:0#2 is launched\nb:0#2 is re"));
    CHECK(t, !log_follow_await(&follow, " is re", clock_now_us()));
    CHECK(t, append(path, "ady\nc:0#3 is ready\n"));
    CHECK(t, log_follow_await(&follow, " is ready", clock_now_us() + PATIENCE_US));
    CHECK_TEXT(t, follow.line, "b:0#2 is ready");
    CHECK(t, log_follow_await(&follow, " is ready", clock_now_us() + PATIENCE_US));
    CHECK_TEXT(t, follow.line, "c:0#3 is ready");
out:
    log_follow_close(&follow);
    unlink(path);
}

static void *write_later(void *arg)
{
    append(arg, "round 2 is revoked: a:0#1\n");
    return NULL;
}

TEST_FLAGS(wakes_when_the_file_is_written, TEST_NO_TORTURE)
{
    struct log_follow follow = { .fd = -1, .notify = -1 };
    char path[PATH_BYTES];
    pthread_t thread;
    bool came = false;

    snprintf(path, sizeof(path), "%s/events.log", test_dir(t));
    CHECK(t, append(path, "round 1\n"));
    CHECK_OK(t, log_follow_open(&follow, path, NULL));
    CHECK(t, !thread_start(&thread, 0, write_later, path));
    came = log_follow_await(&follow, " is revoked", clock_now_us() + PATIENCE_US);
    pthread_join(thread, NULL);
    CHECK(t, came);
out:
    log_follow_close(&follow);
    unlink(path);
}
