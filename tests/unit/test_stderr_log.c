/*
 * test_stderr_log.c: os/stderr_log: a line as a terminal and as a pipe get it.
 */
#include "os/stderr_log.h"

#include "base/log.h"
#include "tests/lib/test.h"

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

static char seen[512];

/* Logs a line while standard error is this descriptor, and reads it at the other end. */
static void log_to(int fd, int reader, enum log_level level, const struct stderr_log_style *style)
{
    static const struct stderr_log_style usual = { .stamps = true, .colours = COLOURS_NEVER };
    struct pollfd ready = { .fd = reader, .events = POLLIN };
    int before = dup(STDERR_FILENO);
    size_t length = 0;

    if (before < 0 || dup2(fd, STDERR_FILENO) < 0)
        abort();
    stderr_log_set(style);
    stderr_log_open();
    log_line(LOG_AGENT, level, "the line: %d", 1);
    log_open(NULL);
    stderr_log_set(&usual);
    if (dup2(before, STDERR_FILENO) < 0)
        abort();
    close(before);
    while (length < sizeof(seen) - 1 && poll(&ready, 1, 0) > 0 && (ready.revents & POLLIN)) {
        ssize_t got = read(reader, seen + length, sizeof(seen) - 1 - length);

        if (got <= 0)
            break;
        length += (size_t)got;
    }
    seen[length] = '\0';
}

/* A terminal, raw; *ret_fd: the side of a program. Returns the other side. */
static int open_terminal(int *ret_fd)
{
    int terminal = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    struct termios raw;

    if (terminal < 0 || grantpt(terminal) || unlockpt(terminal) ||
        (*ret_fd = open(ptsname(terminal), O_RDWR | O_NOCTTY | O_CLOEXEC)) < 0 ||
        tcgetattr(*ret_fd, &raw))
        abort();
    cfmakeraw(&raw);
    if (tcsetattr(*ret_fd, TCSANOW, &raw))
        abort();
    return terminal;
}

/* The rest of a progress bar, which ended with a carriage return, does not stay behind the line. */
TEST_FLAGS(a_line_erases_what_a_terminal_shows_there, TEST_NO_TORTURE)
{
    static const struct stderr_log_style plain = { .colours = COLOURS_NEVER };
    int fd = -1, terminal = open_terminal(&fd);

    log_to(fd, terminal, LOG_ERROR, &plain);
    CHECK_TEXT(t, seen, "\x1b[Kerror agent: the line: 1\n");
out:
    close(fd);
    close(terminal);
}

TEST_FLAGS(auto_colours_a_terminal_that_can_show_them, TEST_NO_TORTURE)
{
    static const struct stderr_log_style automatic = { .colours = COLOURS_AUTO };
    int fd = -1, terminal = open_terminal(&fd);

    unsetenv("NO_COLOR");
    setenv("TERM", "xterm", 1);
    log_to(fd, terminal, LOG_ERROR, &automatic);
    CHECK_TEXT(t, seen, "\x1b[K\x1b[1;31merror agent\x1b[0m: the line: 1\n");
    log_to(fd, terminal, LOG_INFO, &automatic);
    CHECK_TEXT(t, seen, "\x1b[Kinfo agent: the line: 1\n");
    setenv("NO_COLOR", "", 1); /* https://no-color.org: not empty */
    log_to(fd, terminal, LOG_WARNING, &automatic);
    CHECK_TEXT(t, seen, "\x1b[K\x1b[33mwarning agent\x1b[0m: the line: 1\n");
    setenv("NO_COLOR", "1", 1);
    log_to(fd, terminal, LOG_WARNING, &automatic);
    CHECK_TEXT(t, seen, "\x1b[Kwarning agent: the line: 1\n");
    unsetenv("NO_COLOR");
    setenv("TERM", "dumb", 1);
    log_to(fd, terminal, LOG_WARNING, &automatic);
    CHECK_TEXT(t, seen, "\x1b[Kwarning agent: the line: 1\n");
out:
    setenv("TERM", "dumb", 1);
    close(fd);
    close(terminal);
}

TEST(a_pipe_gets_the_text_alone)
{
    static const struct stderr_log_style automatic = { .colours = COLOURS_AUTO },
                                         always = { .stamps = true, .colours = COLOURS_ALWAYS };
    int ends[2];

    CHECK_INT(t, pipe2(ends, O_CLOEXEC), ==, 0);
    setenv("TERM", "xterm", 1);
    log_to(ends[1], ends[0], LOG_ERROR, &automatic);
    CHECK_TEXT(t, seen, "error agent: the line: 1\n");
    log_to(ends[1], ends[0], LOG_WARNING, &always);
    CHECK(t, !strncmp(seen, "\x1b[2m", 4));
    CHECK_HAS(t, seen, "\x1b[0m \x1b[33mwarning agent\x1b[0m: the line: 1\n");
    close(ends[0]);
    close(ends[1]);
out:
    setenv("TERM", "dumb", 1);
}
