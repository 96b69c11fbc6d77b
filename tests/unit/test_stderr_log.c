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
static void log_to(int fd, int reader)
{
    struct pollfd ready = { .fd = reader, .events = POLLIN };
    int before = dup(STDERR_FILENO);
    size_t length = 0;

    if (before < 0 || dup2(fd, STDERR_FILENO) < 0)
        abort();
    stderr_log_stamp(false);
    stderr_log_open();
    log_error(AGENT, "the line");
    log_open(NULL);
    stderr_log_stamp(true);
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

/* The rest of a progress bar, which ended with a carriage return, does not stay behind the line. */
TEST_FLAGS(a_line_erases_what_a_terminal_shows_there, TEST_NO_TORTURE)
{
    int terminal = posix_openpt(O_RDWR | O_NOCTTY), fd = -1;
    struct termios raw;

    CHECK(t, terminal >= 0 && !grantpt(terminal) && !unlockpt(terminal));
    fd = open(ptsname(terminal), O_RDWR | O_NOCTTY | O_CLOEXEC);
    CHECK(t, fd >= 0 && !tcgetattr(fd, &raw));
    cfmakeraw(&raw);
    CHECK(t, !tcsetattr(fd, TCSANOW, &raw));
    log_to(fd, terminal);
    CHECK(t, !strncmp(seen, "\x1b[K", 3));
    CHECK_HAS(t, seen, "the line\n");
out:
    close(fd);
    close(terminal);
}

TEST(a_pipe_gets_the_text_alone)
{
    int ends[2];

    CHECK_INT(t, pipe2(ends, O_CLOEXEC), ==, 0);
    log_to(ends[1], ends[0]);
    CHECK_HAS(t, seen, "the line\n");
    CHECK(t, !strchr(seen, '\x1b'));
    close(ends[0]);
    close(ends[1]);
out:
    return;
}
