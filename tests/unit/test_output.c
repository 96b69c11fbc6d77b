#include "driver/io/output.h"

#include "base/limits.h"
#include "base/log.h"
#include "tests/lib/files.h"
#include "tests/lib/test.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Where a terminal would be: two files. */
struct screen {
    char out_path[300];
    char err_path[300];
    struct output_config config;
    struct output *output;
    struct file_bytes *bytes;
};

static struct file_bytes bytes;

static bool open_screen(struct test *t, struct screen *screen, const char *folder)
{
    snprintf(screen->out_path, sizeof(screen->out_path), "%s/out", test_dir(t));
    snprintf(screen->err_path, sizeof(screen->err_path), "%s/err", test_dir(t));
    screen->config = (struct output_config){
        .folder = folder,
        .out_fd = open(screen->out_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600),
        .err_fd = open(screen->err_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600),
    };
    screen->output = NULL;
    return !output_create(&screen->config, &screen->output, NULL);
}

static void close_screen(struct screen *screen)
{
    output_free(screen->output);
    screen->output = NULL;
    if (screen->config.out_fd >= 0)
        close(screen->config.out_fd);
    if (screen->config.err_fd >= 0)
        close(screen->config.err_fd);
    screen->config.out_fd = screen->config.err_fd = -1;
}

static const char *shown(const char *path)
{
    files_read(path, &bytes);
    bytes.bytes[bytes.length] = 0;
    return bytes.bytes;
}

static void print(struct screen *screen, uint64_t incarnation, unsigned stream, const char *text)
{
    const struct msg_output chunk = {
        .stream = stream,
        .data = {(const uint8_t *)text, strlen(text)},
    };

    output_take(screen->output, incarnation, &chunk);
}

static void lines_say_who_printed_them(struct test *t)
{
    struct screen screen = { .output = NULL };

    CHECK(t, open_screen(t, &screen, NULL));
    output_rank(screen.output, 2, 1);
    output_name(screen.output, 2, OUTPUT_NO_RANK, "b", 0);
    output_name(screen.output, 1, 0, "a", 3);
    print(&screen, 1, STREAM_STDOUT, "one\ntw");
    print(&screen, 2, STREAM_STDOUT, "other\n");
    print(&screen, 1, STREAM_STDERR, "bad\n");
    print(&screen, 1, STREAM_STDOUT, "o\n\n");
    output_name(screen.output, 2, 5, "b", 0);
    print(&screen, 2, STREAM_STDOUT, "renamed\n");
    close_screen(&screen);
    CHECK_TEXT(t, shown(screen.out_path),
               "[0 a:3] one\n[1 b:0] other\n[0 a:3] two\n[0 a:3] \n[5 b:0] renamed\n");
    CHECK_TEXT(t, shown(screen.err_path), "[0 a:3] bad\n");
out:
    close_screen(&screen);
}

static void an_unfinished_line_is_finished_at_the_end(struct test *t)
{
    struct screen screen = { .output = NULL };

    CHECK(t, open_screen(t, &screen, NULL));
    output_name(screen.output, 1, 0, "a", 0);
    output_name(screen.output, 2, 1, "a", 1);
    print(&screen, 1, STREAM_STDOUT, "no end");
    print(&screen, 2, STREAM_STDOUT, "nor here");
    output_end(screen.output, 1);
    output_end(screen.output, 1);
    close_screen(&screen);
    CHECK_TEXT(t, shown(screen.out_path), "[0 a:0] no end\n[1 a:1] nor here\n");
out:
    close_screen(&screen);
}

static void a_carriage_return_ends_a_line(struct test *t)
{
    struct screen screen = { .output = NULL };
    char folder[300];
    char path[400];

    snprintf(folder, sizeof(folder), "%s/logs", test_dir(t));
    CHECK(t, open_screen(t, &screen, folder));
    output_name(screen.output, 1, 0, "a", 0);
    print(&screen, 1, STREAM_STDOUT, "10%\r2");
    print(&screen, 1, STREAM_STDOUT, "0%\r");
    print(&screen, 1, STREAM_STDOUT, "\ndone\r\n\n");
    close_screen(&screen);
    CHECK_TEXT(t, shown(screen.out_path), "[0 a:0] 10%\r[0 a:0] 20%\r\n[0 a:0] done\r\n[0 a:0] \n");
    snprintf(path, sizeof(path), "%s/a/0/1.out", folder);
    CHECK_TEXT(t, shown(path), "10%\r20%\r\ndone\r\n\n");
out:
    close_screen(&screen);
}

static void files_are_by_host_slot_and_incarnation(struct test *t)
{
    struct screen screen = { .output = NULL };
    char folder[300];
    char path[400];

    snprintf(folder, sizeof(folder), "%s/logs", test_dir(t));
    for (int i = 0; i < 2; i++) { /* a second driver appends */
        CHECK(t, open_screen(t, &screen, folder));
        output_name(screen.output, 7, 0, "n1", 2);
        print(&screen, 7, STREAM_STDERR, "hm\n");
        close_screen(&screen);
    }
    snprintf(path, sizeof(path), "%s/n1/2/7.err", folder);
    CHECK_TEXT(t, shown(path), "hm\nhm\n");
out:
    close_screen(&screen);
}

static void what_was_left_out_is_said(struct test *t)
{
    const struct msg_output chunk = { .stream = STREAM_STDOUT, .dropped_bytes = 12 };
    struct screen screen = { .output = NULL };

    CHECK(t, open_screen(t, &screen, NULL));
    output_name(screen.output, 1, 0, "a", 0);
    output_take(screen.output, 1, &chunk);
    close_screen(&screen);
    CHECK_HAS(t, shown(screen.out_path), "[0 a:0] ... 12 bytes that it printed were left out");
out:
    close_screen(&screen);
}

static void a_line_without_end_is_cut(struct test *t)
{
    static char text[LIMIT_OUTPUT_LINE_BYTES + 11];
    struct screen screen = { .output = NULL };

    memset(text, 'x', sizeof(text) - 1);
    CHECK(t, open_screen(t, &screen, NULL));
    output_name(screen.output, 1, 0, "a", 0);
    print(&screen, 1, STREAM_STDOUT, text);
    close_screen(&screen);
    CHECK_HAS(t, shown(screen.out_path), "x\n[0 a:0] xxxxxxxxxx\n");
out:
    close_screen(&screen);
}

/* Nobody reads the other end. What fits waits, the rest is left out, and nobody hangs. */
static void a_terminal_that_is_not_read_stops_nobody(struct test *t)
{
    static char text[1024 * 1024];
    struct screen screen = { .output = NULL };
    int ends[2] = { -1, -1 };

    signal(SIGPIPE, SIG_IGN); /* as the program does */
    memset(text, 'x', sizeof(text) - 2);
    text[sizeof(text) - 2] = '\n';
    CHECK(t, open_screen(t, &screen, NULL));
    CHECK(t, pipe(ends) == 0);
    dup2(ends[1], screen.config.out_fd);
    close(ends[1]);
    for (int i = 0; i < 64; i++)
        print(&screen, 1, STREAM_STDOUT, text);
    close(ends[0]); /* its reader goes: what waits is not worth waiting for */
    close_screen(&screen);
out:
    close_screen(&screen);
}

static char said[4096];

static void keep_line(void *arg, const char *line, size_t length)
{
    size_t used = strlen(said);

    (void)arg;
    snprintf(said + used, sizeof(said) - used, "%.*s", (int)length, line);
}

static int64_t no_time(void *arg)
{
    (void)arg;
    return 0;
}

static void what_cannot_be_written_is_said_once(struct test *t)
{
    static const struct log_sink sink = { keep_line, no_time, NULL };
    struct screen screen = { .output = NULL };
    const char *first;
    int fd = -1;

    said[0] = '\0';
    log_open(&sink);
    CHECK(t, open_screen(t, &screen, NULL));
    fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
    CHECK(t, fd >= 0 && dup2(fd, screen.config.out_fd) >= 0);
    close(fd);
    fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    CHECK(t, fd >= 0 && dup2(fd, screen.config.err_fd) >= 0);
    for (int i = 0; i < 3; i++) { /* in pieces of their own */
        print(&screen, 1, STREAM_STDOUT, "one\n");
        print(&screen, 1, STREAM_STDERR, "two\n");
    }
    close_screen(&screen);
    first = strstr(said, "standard output: cannot be written: No space left on device");
    CHECK(t, first && !strstr(first + 1, "standard output"));
    first = strstr(said, "standard error: cannot be written: Bad file descriptor");
    CHECK(t, first && !strstr(first + 1, "standard error"));
out:
    if (fd >= 0)
        close(fd);
    close_screen(&screen);
    log_open(NULL);
}

static void a_folder_that_is_none_is_refused(struct test *t)
{
    struct hvd_err err = { .code = 0 };
    char path[300];
    FILE *file;

    snprintf(path, sizeof(path), "%s/plain", test_dir(t));
    file = fopen(path, "w");
    CHECK(t, file && !fclose(file));
    CHECK_CODE(t, output_check(path, &err), HVD_E_INVAL);
    CHECK_HAS(t, err.text, "/plain: is no folder");
    CHECK_CODE(t, output_check("/proc/none", &err), HVD_E_NOTFOUND);
    CHECK_HAS(t, err.text, "--output-filename /proc/none: cannot be made");
    CHECK_OK(t, output_check(test_dir(t), &err));
out:;
}

TESTS(CASE_FLAGS(lines_say_who_printed_them, TEST_NO_TORTURE),
      CASE_FLAGS(an_unfinished_line_is_finished_at_the_end, TEST_NO_TORTURE),
      CASE_FLAGS(a_carriage_return_ends_a_line, TEST_NO_TORTURE),
      CASE_FLAGS(files_are_by_host_slot_and_incarnation, TEST_NO_TORTURE),
      CASE_FLAGS(what_was_left_out_is_said, TEST_NO_TORTURE),
      CASE_FLAGS(a_line_without_end_is_cut, TEST_NO_TORTURE),
      CASE_FLAGS(a_terminal_that_is_not_read_stops_nobody, TEST_NO_TORTURE),
      CASE_FLAGS(what_cannot_be_written_is_said_once, TEST_NO_TORTURE),
      CASE_FLAGS(a_folder_that_is_none_is_refused, TEST_NO_TORTURE))
