/*
 * test_events.c: the driver's event log: the newest lines are kept, followers come and go, a full
 * or hanging disk stops no driver.
 */
#include "base/limits.h"
#include "base/log.h"
#include "base/time.h"
#include "driver/control/events.h"
#include "os/clock.h"
#include "os/file.h"
#include "tests/lib/fixture.h"
#include "tests/lib/log_kept.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define YEAR_S (365 * 24 * 3600)

/* ---- the lines that were visited or followed ---- */

struct seen {
    struct events_follower follower;
    char text[512];
    size_t count;
    size_t most;
    int64_t last_us;
};

static bool see(void *arg, const struct event_line *line)
{
    struct seen *seen = arg;
    size_t used = strlen(seen->text);

    snprintf(seen->text + used, sizeof(seen->text) - used, "%s|", line->text);
    seen->last_us = line->wall_us;
    seen->count++;
    return !seen->most || seen->count < seen->most;
}

static void hear(void *arg, const struct event_line *line)
{
    struct seen *seen = arg;

    if (!see(seen, line))
        events_unfollow(&seen->follower);
}

/* ---- the cases ---- */

/* The linker calls this in place of clock_gettime (tests/CMakeLists.txt). */
static bool wall_is_off;
static _Thread_local bool an_hour_on;

int __real_clock_gettime(clockid_t clock, struct timespec *at);
int __wrap_clock_gettime(clockid_t clock, struct timespec *at);

int __wrap_clock_gettime(clockid_t clock, struct timespec *at)
{
    int rc = __real_clock_gettime(clock, at);

    if (!rc && wall_is_off && clock == CLOCK_REALTIME)
        at->tv_sec += YEAR_S;
    if (!rc && an_hour_on && clock == CLOCK_MONOTONIC)
        at->tv_sec += 3600;
    return rc;
}

static struct events *events;
static struct buf out;

/* Frees the log when its thread has written all lines. A busy machine may hold the thread up for
 * longer than EVENTS_LAST_US, so for this call the end of that time lies an hour ahead. */
static void free_written(void)
{
    an_hour_on = true;
    events_free(events);
    an_hour_on = false;
    events = NULL;
}

static void begin(struct test *t)
{
    (void)t;
    log_kept_begin();
    events = NULL;
    buf_init(&out, 1 << 20);
}

static void end(struct test *t)
{
    (void)t;
    free_written(); /* first, because the thread logs and asks for the time */
    wall_is_off = false;
    log_open(NULL);
    buf_release(&out);
}
FIXTURE(begin, end)

TEST(keeps_the_newest)
{
    struct seen seen = { .most = 0 };
    char text[32];

    CHECK_OK(t, events_create(NULL, "j1", &events, NULL));
    events_each(events, 10, see, &seen);
    CHECK_INT(t, seen.count, ==, 0);
    for (int i = 0; i < LIMIT_EVENTS_KEPT + 5; i++) {
        snprintf(text, sizeof(text), "line %d", i);
        events_add(events, TRACE_INFO, NULL, text);
    }
    events_each(events, 3, see, &seen);
    CHECK_TEXT(t, seen.text, "line 4098|line 4099|line 4100|");
    CHECK_INT(t, seen.last_us, >, TIME_DAY);
    seen = (struct seen){ .most = 2 };
    events_each(events, SIZE_MAX, see, &seen);
    CHECK_TEXT(t, seen.text, "line 5|line 6|");
}

TEST(followers_come_and_go)
{
    struct seen all = {
        .follower = {.line = hear, .arg = &all}
    };
    struct seen one = {
        .follower = {.line = hear, .arg = &one},
          .most = 1
    };

    CHECK_OK(t, events_create(NULL, "j1", &events, NULL));
    events_add(events, TRACE_INFO, NULL, "before");
    events_follow(events, &one.follower);
    events_follow(events, &all.follower);
    events_add(events, TRACE_INFO, NULL, "a");
    events_add(events, TRACE_INFO, NULL, "b");
    events_unfollow(&all.follower);
    events_unfollow(&all.follower);
    events_add(events, TRACE_INFO, NULL, "c");
    CHECK_TEXT(t, all.text, "a|b|");
    CHECK_TEXT(t, one.text, "a|");
    events_follow(events, &all.follower);
    events_free(events); /* the follower is off the list now */
    events = NULL;
    events_unfollow(&all.follower);
}

static int read_log(const char *folder, const char *name)
{
    char path[4096];

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    buf_clear(&out);
    return file_read(path, &out, NULL);
}

TEST(appends_to_a_file)
{
    const char *folder = test_dir(t);
    struct stat status;
    char path[4096];

    for (int i = 0; i < 2; i++) {
        CHECK_OK(t, events_create(folder, "j1", &events, NULL));
        events_add(events, i ? TRACE_INFO : TRACE_DETAIL, NULL, i ? "third" : "first");
        events_add(events, TRACE_INFO, NULL, i ? "fourth" : "second");
        free_written();
    }
    CHECK_OK(t, read_log(folder, "events.log"));
    CHECK_HAS(t, buf_text(&out), "Z debug: first\tjob=j1\n");
    CHECK_HAS(t, buf_text(&out), "Z second\tjob=j1\n2");
    CHECK_HAS(t, buf_text(&out), "Z third\tjob=j1\n2");
    CHECK_HAS(t, buf_text(&out), "Z fourth\tjob=j1\n");
    snprintf(path, sizeof(path), "%s/events.log", folder);
    CHECK_OK(t, stat(path, &status));
    CHECK_INT(t, status.st_mode & 0777, ==, 0600);
}

/* The driver before died inside its last line. */
TEST(a_line_that_was_cut_gets_an_end)
{
    const char *folder = test_dir(t);
    char path[4096];
    FILE *file;

    snprintf(path, sizeof(path), "%s/events.log", folder);
    file = fopen(path, "w");
    CHECK(t, file && fputs("1970-01-01T00:00:01.500Z half\tround=1", file) >= 0 && !fclose(file));
    CHECK_OK(t, events_create(folder, "j1", &events, NULL));
    events_add(events, TRACE_WARNING, FACTS(.kind = KIND_HOST_LOST, .host = "a\nb"), "new\tline\n");
    free_written();
    CHECK_OK(t, read_log(folder, "events.log"));
    CHECK_HAS(t, buf_text(&out), "Z half\tround=1\t\n");
    CHECK_HAS(t, buf_text(&out), "Z warning: new line \tjob=j1\tkind=host_lost\thost=a b\n");
}

/* The last line of the file is whole, is cut, or is cut because the reader has no room for more. */
TEST_FLAGS(a_reader_gives_a_cut_line_its_end, TEST_NO_TORTURE)
{
    char path[4096];
    FILE *file;
    int fd;

    snprintf(path, sizeof(path), "%s/read.log", test_dir(t));
    CHECK_INT(t, events_read(path, &out, NULL), ==, HVD_E_NOTFOUND);
    file = fopen(path, "w");
    CHECK(t, file && !fclose(file));
    CHECK_OK(t, events_read(path, &out, NULL));
    CHECK_TEXT(t, buf_text(&out), "");
    file = fopen(path, "w");
    CHECK(t, file && fputs("M one\tround=1\n", file) >= 0 && !fclose(file));
    CHECK_OK(t, events_read(path, &out, NULL));
    CHECK_TEXT(t, buf_text(&out), "M one\tround=1\n");
    file = fopen(path, "a");
    CHECK(t, file && fputs("M two\tround=1", file) >= 0 && !fclose(file));
    buf_clear(&out);
    CHECK_OK(t, events_read(path, &out, NULL));
    CHECK_TEXT(t, buf_text(&out), "M one\tround=1\nM two\tround=1\t\n");
    fd = open(path, O_WRONLY);
    CHECK(t, fd >= 0 && !ftruncate(fd, EVENTS_FILE_MAX + 1) && !close(fd));
    buf_release(&out);
    buf_init(&out, EVENTS_FILE_MAX);
    CHECK_OK(t, events_read(path, &out, NULL));
    CHECK_INT(t, out.length, ==, EVENTS_FILE_MAX + 2);
    CHECK_TEXT(t, out.data + EVENTS_FILE_MAX, "\t\n");
}

TEST_FLAGS(a_long_file_is_put_aside, TEST_NO_TORTURE)
{
    const char *folder = test_dir(t);
    struct stat status;
    char path[4096];
    int fd = -1;

    snprintf(path, sizeof(path), "%s/events.log", folder);
    fd = open(path, O_WRONLY | O_CREAT, 0600);
    CHECK(t, fd >= 0 && !ftruncate(fd, LIMIT_EVENTS_LOG_BYTES));
    CHECK_OK(t, events_create(folder, "j1", &events, NULL));
    events_add(events, TRACE_INFO, NULL, "first of the new one");
    free_written();
    CHECK_OK(t, read_log(folder, "events.log"));
    CHECK_HAS(t, buf_text(&out), "Z first of the new one\tjob=j1\n");
    snprintf(path, sizeof(path), "%s/events.log.1", folder);
    CHECK_OK(t, stat(path, &status));
    CHECK_INT(t, status.st_size, ==, LIMIT_EVENTS_LOG_BYTES);
    if (fd >= 0)
        close(fd);
}

/* A missing folder is a file that cannot be written, until the folder is made. */
TEST(a_disk_that_fails_is_warned_of_once)
{
    struct seen seen = { .most = 0 };
    char folder[512];

    snprintf(folder, sizeof(folder), "%s/later", test_dir(t));
    CHECK_OK(t, events_create(folder, "j1", &events, NULL));
    for (int i = 0; i < 3; i++)
        events_add(events, TRACE_INFO, NULL, "lost");
    events_each(events, 9, see, &seen);
    CHECK_TEXT(t, seen.text, "lost|lost|lost|");
    free_written();
    CHECK_HAS(t, log_kept(), "later/events.log: cannot open: No such file or directory; until");
    CHECK(t, !strstr(strstr(log_kept(), "cannot open") + 1, "cannot open"));
}

TEST(says_how_many_lines_are_missing)
{
    char folder[512];

    snprintf(folder, sizeof(folder), "%s/later", test_dir(t));
    CHECK_OK(t, events_create(folder, "j1", &events, NULL));
    events_add(events, TRACE_INFO, NULL, "lost");
    while (!log_kept_times("cannot open"))
        sched_yield();
    CHECK_OK(t, mkdir(folder, 0700));
    events_add(events, TRACE_INFO, NULL, "kept");
    free_written();
    CHECK_OK(t, read_log(folder, "events.log"));
    CHECK_HAS(t, buf_text(&out),
              " warning: (1 lines are missing here)\tjob=j1\tkind=lines_missing\n");
    CHECK_HAS(t, buf_text(&out), "Z kept\tjob=j1\n");
    CHECK_HAS(t, log_kept(), "the file can be written again; 1 lines are missing in it");
}

/* The file is a pipe without a reader, so even opening it hangs. The wall clock is off by a year,
 * as if it were set back during the wait. */
TEST_FLAGS(a_disk_that_hangs_does_not_hold_up_the_end, TEST_NO_TORTURE)
{
    char folder[300];
    char path[400];
    int64_t began_us;

    buf_init(&out, 4096);
    snprintf(folder, sizeof(folder), "%s/hangs", test_dir(t));
    snprintf(path, sizeof(path), "%s/events.log", folder);
    CHECK_INT(t, mkdir(folder, 0700), ==, 0);
    CHECK_INT(t, mkfifo(path, 0600), ==, 0);
    CHECK_OK(t, events_create(folder, "j1", &events, NULL));
    events_add(events, TRACE_INFO, NULL, "never written");
    wall_is_off = true;
    began_us = clock_now_us();
    events_free(events);
    events = NULL;
    CHECK_INT(t, clock_now_us() - began_us, >=, EVENTS_LAST_US);
    CHECK_OK(t, file_read(path, &out, NULL)); /* the thread goes on, and ends */
    CHECK_HAS(t, buf_text(&out), " never written\tjob=j1\n");
}
