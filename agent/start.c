#include "agent/start.h"

#include "agent/io/keeper.h"
#include "base/buf.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define REPORT_BYTES (2 * ERR_TEXT_MAX)
#define SUCCESS      "pid "

static int failed(struct hvd_err *err, const char *what)
{
    return err_set(err, HVD_E_IO, "cannot %s: %s", what, strerror(errno));
}

static bool write_all(int fd, const void *bytes, size_t length)
{
    const char *at = bytes;

    while (length > 0) {
        ssize_t written = write(fd, at, length);

        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return false;
        at += written;
        length -= (size_t)written;
    }
    return true;
}

int start_keep_key(struct start *start, const uint8_t *key, size_t length, struct hvd_err *err)
{
    int fds[2];
    bool kept;

    if (pipe2(fds, O_CLOEXEC))
        return failed(err, "make a pipe");
    kept = write_all(fds[1], key, length); /* a pipe takes far more than a key */
    close(fds[1]);
    start->secret = fds[0];
    return kept ? 0 : failed(err, "write to a pipe");
}

int start_take_key(struct start *start, uint8_t *ret_key, size_t length)
{
    ssize_t got;

    do
        got = read(start->secret, ret_key, length);
    while (got < 0 && errno == EINTR);
    close(start->secret);
    start->secret = -1;
    return got == (ssize_t)length ? 0 : HVD_E_IO;
}

/* False: who waits for it has been ended. */
static bool report(struct start *start, FILE *otherwise, const char *line)
{
    bool told;

    if (start->report < 0) {
        fputs(line, otherwise);
        fflush(otherwise);
        return true;
    }
    told = write_all(start->report, line, strlen(line));
    close(start->report);
    start->report = -1;
    return told;
}

bool start_succeeded(struct start *start, int64_t pid)
{
    char line[REPORT_BYTES];

    snprintf(line, sizeof(line), SUCCESS "%" PRId64 "\n", pid);
    return report(start, stdout, line);
}

void start_failed(struct start *start, const struct hvd_err *err)
{
    char line[REPORT_BYTES];

    snprintf(line, sizeof(line), "hvd-agent: %s\n", err->text[0] ? err->text : err_text(err->code));
    (void)report(start, stderr, line);
}

/* Nothing of the terminal, or of ssh, is held on to. What a panic says goes into memory, where the
 * keeper finds it. */
static bool leave_streams(void)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    int words = memfd_create("last words", MFD_CLOEXEC);
    bool left = null >= 0 && words >= 0 && setsid() >= 0;

    left = left && dup2(null, STDIN_FILENO) >= 0 && dup2(null, STDOUT_FILENO) >= 0;
    left = left && dup2(words, STDERR_FILENO) >= 0;
    if (null > STDERR_FILENO)
        close(null);
    if (words > STDERR_FILENO)
        close(words);
    return left;
}

NORETURN static void keep(struct start *start, const struct start_ops *ops, void *arg)
{
    struct hvd_err err = { 0 };
    int code = EXIT_FAILURE;

    if (!leave_streams()) {
        failed(&err, "leave the terminal");
        start_failed(start, &err);
    } else if (keeper_run(ops->agent, arg, &code, &err)) {
        start_failed(start, &err);
    } else {
        ops->ended(arg, code, STDERR_FILENO);
    }
    _exit(code);
}

/* False: nobody reads our standard output any more, so whoever wanted an agent (a driver, its ssh)
 * is gone. */
static bool wait_to_read(int fd)
{
    struct pollfd fds[] = {
        {.fd = fd, .events = POLLIN },
        { .fd = STDOUT_FILENO      }
    };

    while (poll(fds, ARRAY_SIZE(fds), -1) < 0 && errno == EINTR)
        ;
    return fds[0].revents || !(fds[1].revents & (POLLERR | POLLHUP));
}

/* What is said until the end of the line, or until nobody is left who could say something. */
static void read_report(int fd, char line[REPORT_BYTES])
{
    size_t length = 0;
    ssize_t got;

    line[0] = '\0';
    do {
        if (!wait_to_read(fd))
            return;
        got = read(fd, line + length, REPORT_BYTES - 1 - length);
        if (got > 0)
            length += (size_t)got;
        line[length] = '\0';
    } while ((got < 0 && errno == EINTR) || (got > 0 && !strchr(line, '\n')));
}

static int wait_for_report(int fd, pid_t keeper)
{
    char line[REPORT_BYTES];

    read_report(fd, line);
    if (!strncmp(line, SUCCESS, strlen(SUCCESS))) {
        close(fd);
        fputs(line, stdout);
        return fflush(stdout) ? EXIT_FAILURE : EXIT_SUCCESS;
    }
    close(fd); /* an agent that is there now learns that it is not wanted */
    fputs(line[0] ? line : "hvd-agent: it ended before it was there; see its log\n", stderr);
    while (waitpid(keeper, NULL, 0) < 0 && errno == EINTR) /* nothing is left when we end */
        ;
    return EXIT_FAILURE;
}

int start_in_background(struct start *start, const struct start_ops *ops, void *arg)
{
    int status = EXIT_FAILURE;
    int fds[2];
    pid_t pid;

    if (pipe2(fds, O_CLOEXEC)) {
        fprintf(stderr, "hvd-agent: cannot make a pipe: %s\n", strerror(errno));
        return EXIT_FAILURE;
    }
    fflush(NULL);
    pid = fork();
    if (pid == 0) {
        close(fds[0]);
        start->report = fds[1];
        keep(start, ops, arg);
    }
    close(fds[1]);
    if (pid < 0)
        fprintf(stderr, "hvd-agent: cannot start a process: %s\n", strerror(errno));
    else
        return wait_for_report(fds[0], pid);
    close(fds[0]);
    return status;
}
