/*
 * test_output.c: the output of workers on the driver's side: prefixes, files, lines that are cut,
 * and a terminal that is not read.
 */
#include "driver/io/output.h"

#include "base/limits.h"
#include "base/log.h"
#include "driver/io/output_file.h"
#include "tests/lib/files.h"
#include "tests/lib/fixture.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

/* Two files in place of a terminal. */
struct screen {
    char out_path[300];
    char err_path[300];
    struct output_config config;
    struct output *output;
    struct file_bytes *bytes;
};

static struct file_bytes bytes;
static uint64_t limit_bytes = UINT64_MAX;

static bool open_screen(struct test *t, struct screen *screen, const char *folder)
{
    snprintf(screen->out_path, sizeof(screen->out_path), "%s/out", test_dir(t));
    snprintf(screen->err_path, sizeof(screen->err_path), "%s/err", test_dir(t));
    screen->config = (struct output_config){
        .folder = folder,
        .limit_bytes = limit_bytes,
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

static struct screen own;
static int terminal = -1; /* the other side of a terminal */

static void end_case(struct test *t)
{
    (void)t;
    close_screen(&own);
    log_open(NULL);
    limit_bytes = UINT64_MAX;
    if (terminal >= 0)
        close(terminal);
    terminal = -1;
}
FIXTURE(NULL, end_case)

TEST_FLAGS(lines_say_who_printed_them, TEST_NO_TORTURE)
{
    CHECK(t, open_screen(t, &own, NULL));
    output_rank(own.output, 2, 1);
    output_name(own.output, 2, OUTPUT_NO_RANK, "b", 0);
    output_name(own.output, 1, 0, "a", 3);
    print(&own, 1, STREAM_STDOUT, "one\ntw");
    print(&own, 2, STREAM_STDOUT, "other\n");
    print(&own, 1, STREAM_STDERR, "bad\n");
    print(&own, 1, STREAM_STDOUT, "o\n\n");
    output_name(own.output, 2, 5, "b", 0);
    print(&own, 2, STREAM_STDOUT, "renamed\n");
    close_screen(&own);
    CHECK_TEXT(t, shown(own.out_path),
               "[0 a:3] one\n[1 b:0] other\n[0 a:3] two\n[0 a:3] \n[5 b:0] renamed\n");
    CHECK_TEXT(t, shown(own.err_path), "[0 a:3] bad\n");
}

TEST_FLAGS(an_unfinished_line_is_finished_at_the_end, TEST_NO_TORTURE)
{
    CHECK(t, open_screen(t, &own, NULL));
    output_name(own.output, 1, 0, "a", 0);
    output_name(own.output, 2, 1, "a", 1);
    print(&own, 1, STREAM_STDOUT, "no end");
    print(&own, 2, STREAM_STDOUT, "nor here");
    output_end(own.output, 1);
    output_end(own.output, 1);
    close_screen(&own);
    CHECK_TEXT(t, shown(own.out_path), "[0 a:0] no end\n[1 a:1] nor here\n");
}

TEST_FLAGS(a_carriage_return_ends_a_line, TEST_NO_TORTURE)
{
    char folder[300];
    char path[400];

    snprintf(folder, sizeof(folder), "%s/logs", test_dir(t));
    CHECK(t, open_screen(t, &own, folder));
    output_name(own.output, 1, 0, "a", 0);
    print(&own, 1, STREAM_STDOUT, "10%\r2");
    print(&own, 1, STREAM_STDOUT, "0%\r");
    print(&own, 1, STREAM_STDOUT, "\ndone\r\n\n");
    close_screen(&own);
    CHECK_TEXT(t, shown(own.out_path), "[0 a:0] 10%\r[0 a:0] 20%\r\n[0 a:0] done\r\n[0 a:0] \n");
    snprintf(path, sizeof(path), "%s/a/0/1.out", folder);
    CHECK_TEXT(t, shown(path), "10%\r20%\r\ndone\r\n\n");
}

TEST_FLAGS(files_are_by_host_slot_and_incarnation, TEST_NO_TORTURE)
{
    char folder[300];
    char path[400];

    snprintf(folder, sizeof(folder), "%s/logs", test_dir(t));
    for (int i = 0; i < 2; i++) { /* a second driver appends */
        CHECK(t, open_screen(t, &own, folder));
        output_name(own.output, 7, 0, "n1", 2);
        print(&own, 7, STREAM_STDERR, "hm\n");
        close_screen(&own);
    }
    snprintf(path, sizeof(path), "%s/n1/2/7.err", folder);
    CHECK_TEXT(t, shown(path), "hm\nhm\n");
}

TEST_FLAGS(dropped_output_is_reported, TEST_NO_TORTURE)
{
    const struct msg_output chunk = { .stream = STREAM_STDOUT, .dropped_bytes = 12 };

    CHECK(t, open_screen(t, &own, NULL));
    output_name(own.output, 1, 0, "a", 0);
    output_take(own.output, 1, &chunk);
    close_screen(&own);
    CHECK_HAS(t, shown(own.out_path), "[0 a:0] ... 12 bytes of this worker's output were left out");
}

TEST_FLAGS(a_line_without_end_is_cut, TEST_NO_TORTURE)
{
    static char text[LIMIT_OUTPUT_LINE_BYTES + 11];

    memset(text, 'x', sizeof(text) - 1);
    CHECK(t, open_screen(t, &own, NULL));
    output_name(own.output, 1, 0, "a", 0);
    print(&own, 1, STREAM_STDOUT, text);
    close_screen(&own);
    CHECK_HAS(t, shown(own.out_path), "x\n[0 a:0] xxxxxxxxxx\n");
}

/* No process reads the pipe. Output that fits waits, the rest is dropped, and no thread hangs. */
TEST_FLAGS(a_terminal_that_is_not_read_stops_no_caller, TEST_NO_TORTURE)
{
    static char text[1024 * 1024];
    int ends[2] = { -1, -1 };

    signal(SIGPIPE, SIG_IGN); /* as the program does */
    memset(text, 'x', sizeof(text) - 2);
    text[sizeof(text) - 2] = '\n';
    CHECK(t, open_screen(t, &own, NULL));
    CHECK(t, pipe(ends) == 0);
    dup2(ends[1], own.config.out_fd);
    close(ends[1]);
    for (int i = 0; i < 64; i++)
        print(&own, 1, STREAM_STDOUT, text);
    close(ends[0]); /* the reader ends, so the waiting output is dropped */
    close_screen(&own);
}

static char said[4096];

static void keep_line(void *arg, const char *line, size_t length)
{
    size_t used = strlen(said);

    (void)arg;
    snprintf(said + used, sizeof(said) - used, "%.*s", (int)length, line);
}

static int64_t no_time(void)
{
    return 0;
}

TEST_FLAGS(a_failing_file_is_reported_once, TEST_NO_TORTURE)
{
    static const struct log_sink sink = { keep_line, no_time, NULL };
    const char *first;
    int fd = -1;

    said[0] = '\0';
    log_open(&sink);
    CHECK(t, open_screen(t, &own, NULL));
    fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
    CHECK(t, fd >= 0 && dup2(fd, own.config.out_fd) >= 0);
    close(fd);
    fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    CHECK(t, fd >= 0 && dup2(fd, own.config.err_fd) >= 0);
    for (int i = 0; i < 3; i++) { /* three separate pieces */
        print(&own, 1, STREAM_STDOUT, "one\n");
        print(&own, 1, STREAM_STDERR, "two\n");
    }
    close_screen(&own);
    first = strstr(said, "standard output: this output cannot be written: No space left on device");
    CHECK(t, first && !strstr(first + 1, "standard output"));
    first = strstr(said, "standard error: this output cannot be written: Bad file descriptor");
    CHECK(t, first && !strstr(first + 1, "standard error"));
    if (fd >= 0)
        close(fd);
    log_open(NULL);
}

TEST_FLAGS(a_path_that_is_no_folder_is_refused, TEST_NO_TORTURE)
{
    struct hvd_err err = { .code = 0 };
    char path[300];
    FILE *file;

    snprintf(path, sizeof(path), "%s/plain", test_dir(t));
    file = fopen(path, "w");
    CHECK(t, file && !fclose(file));
    CHECK_CODE(t, output_check(path, &err), HVD_E_INVAL);
    CHECK_HAS(t, err.text, "/plain: it is not a folder");
    CHECK_CODE(t, output_check("/proc/none", &err), HVD_E_NOTFOUND);
    CHECK_HAS(t, err.text, "--output-filename /proc/none: cannot be made");
    CHECK_OK(t, output_check(test_dir(t), &err));
}

/* How often a text is in the log. */
static int times_said(const char *text)
{
    int times = 0;

    for (const char *at = said; (at = strstr(at, text)) != NULL; at++)
        times++;
    return times;
}

static void keep_log(void)
{
    static const struct log_sink sink = { keep_line, no_time, NULL };

    said[0] = '\0';
    log_open(&sink);
}

TEST_FLAGS(a_planted_file_is_refused_and_the_output_is_shown, TEST_NO_TORTURE)
{
    char folder[300], path[400], victim[300];
    mode_t before = umask(0);
    struct stat st;

    keep_log();
    snprintf(folder, sizeof(folder), "%s/logs", test_dir(t));
    snprintf(victim, sizeof(victim), "%s/bashrc", test_dir(t));
    files_write(victim, "mine\n", 5);
    CHECK(t, open_screen(t, &own, folder));
    snprintf(path, sizeof(path), "%s/a", folder);
    CHECK(t, !mkdir(path, 0700));
    snprintf(path, sizeof(path), "%s/a/0", folder);
    CHECK(t, !mkdir(path, 0700));
    snprintf(path, sizeof(path), "%s/a/0/1.out", folder);
    CHECK(t, !symlink(victim, path));
    snprintf(path, sizeof(path), "%s/a/0/2.out", folder);
    CHECK(t, !mkfifo(path, 0600));
    snprintf(path, sizeof(path), "%s/b", folder);
    CHECK(t, !symlink(test_dir(t), path));
    output_name(own.output, 1, 0, "a", 0);
    output_name(own.output, 2, 1, "a", 0);
    output_name(own.output, 3, 2, "b", 0);
    output_name(own.output, 4, 3, "c", 0);
    for (int i = 0; i < 3; i++)
        for (uint64_t worker = 1; worker <= 4; worker++)
            print(&own, worker, STREAM_STDOUT, "text\n");
    close_screen(&own);
    umask(before);
    CHECK_TEXT(t, shown(own.out_path),
               "[0 a:0] text\n[1 a:0] text\n[2 b:0] text\n[3 c:0] text\n"
               "[0 a:0] text\n[1 a:0] text\n[2 b:0] text\n[3 c:0] text\n"
               "[0 a:0] text\n[1 a:0] text\n[2 b:0] text\n[3 c:0] text\n");
    CHECK_TEXT(t, shown(victim), "mine\n");
    CHECK_INT(
        t,
        times_said(
            "/logs/a/0/1.out: is a symbolic link or not a regular file; remove it; this output"),
        ==, 1);
    CHECK_INT(
        t,
        times_said(
            "/logs/a/0/2.out: is a symbolic link or not a regular file; remove it; this output"),
        ==, 1);
    CHECK_INT(t,
              times_said("/logs/b/0: b in this path is a symbolic link or not a folder; remove it"),
              ==, 1);
    snprintf(path, sizeof(path), "%s/c/0/4.out", folder);
    CHECK(t, !stat(path, &st) && (st.st_mode & 07777) == 0600);
    snprintf(path, sizeof(path), "%s/c", folder);
    CHECK(t, !stat(path, &st) && (st.st_mode & 07777) == 0700);
}

TEST_FLAGS(files_stay_below_their_limit, TEST_NO_TORTURE)
{
    static char text[64 * 1024 + 1];
    const char *const suffixes[] = { "", ".1", ".2" };
    char folder[300], path[400];
    off_t total = 0;
    struct stat st;

    keep_log();
    memset(text, 'x', sizeof(text) - 2);
    text[sizeof(text) - 2] = '\n';
    limit_bytes = LIMIT_OUTPUT_FILE_LEAST_BYTES;
    snprintf(folder, sizeof(folder), "%s/logs", test_dir(t));
    CHECK(t, open_screen(t, &own, folder));
    output_name(own.output, 1, 0, "a", 0);
    for (int i = 0; i < 40; i++) /* 2.5 MiB, of which a half MiB stays */
        print(&own, 1, STREAM_STDOUT, text);
    print(&own, 1, STREAM_STDOUT, "the end\n");
    close_screen(&own);
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof(path), "%s/a/0/1.out%s", folder, suffixes[i]);
        if (stat(path, &st))
            continue;
        CHECK_INT(t, st.st_size, <=, LIMIT_OUTPUT_FILE_LEAST_BYTES / OUTPUT_FILE_SHARES);
        total += st.st_size;
    }
    CHECK_INT(t, total, >, LIMIT_OUTPUT_FILE_LEAST_BYTES / 8);
    CHECK_INT(t, total, <=, LIMIT_OUTPUT_FILE_LEAST_BYTES / 2);
    CHECK_INT(t, times_said("has reached its share of --output-limit (256 KiB)"), ==, 1);
    snprintf(path, sizeof(path), "%s/a/0/1.out", folder);
    CHECK_HAS(t, shown(path), "the end\n");
}

TEST_FLAGS(a_terminal_gets_no_control_characters_but_files_do, TEST_NO_TORTURE)
{
    static const char evil[] = "\x1b[1A\x1b[2K\x1b]52;c;QQ==\a \x1b[31mred\n90%\r";
    char folder[300], path[400], seen[1024];
    struct pollfd ready = { .events = POLLIN };
    struct termios raw;
    size_t length = 0;
    int fd;

    terminal = posix_openpt(O_RDWR | O_NOCTTY);
    CHECK(t, terminal >= 0 && !grantpt(terminal) && !unlockpt(terminal));
    fd = open(ptsname(terminal), O_RDWR | O_NOCTTY | O_CLOEXEC);
    CHECK(t, fd >= 0 && !tcgetattr(fd, &raw));
    cfmakeraw(&raw);
    CHECK(t, !tcsetattr(fd, TCSANOW, &raw));
    snprintf(folder, sizeof(folder), "%s/logs", test_dir(t));
    CHECK(t, open_screen(t, &own, folder));
    output_free(own.output);
    CHECK(t, dup2(fd, own.config.out_fd) >= 0);
    close(fd);
    CHECK_OK(t, output_create(&own.config, &own.output, NULL));
    output_name(own.output, 1, 0, "a", 0);
    print(&own, 1, STREAM_STDOUT, evil);
    print(&own, 1, STREAM_STDERR, evil);
    print(&own, 1, STREAM_STDOUT, "done\n");
    output_free(own.output);
    own.output = NULL;
    ready.fd = terminal;
    while (length < sizeof(seen) - 1 && poll(&ready, 1, 0) > 0 && (ready.revents & POLLIN)) {
        ssize_t got = read(terminal, seen + length, sizeof(seen) - 1 - length);

        if (got <= 0)
            break;
        length += (size_t)got;
    }
    seen[length] = '\0';
    CHECK_TEXT(t, seen,
               "[0 a:0] \\x1b[1A\\x1b[2K\\x1b]52;c;QQ==\\x07 \x1b[31mred\x1b[0m\n"
               "[0 a:0] 90%\r\x1b[K[0 a:0] done\n");
    CHECK_HAS(t, shown(own.err_path), "[0 a:0] \x1b[1A\x1b[2K\x1b]52;c;QQ==\a \x1b[31mred\n");
    snprintf(path, sizeof(path), "%s/a/0/1.out", folder);
    CHECK_HAS(t, shown(path), evil);
}
