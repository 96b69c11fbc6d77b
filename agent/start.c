/*
 * start.c: how the agent goes into the background. Called by main.c in three processes: the process
 * that the caller waits for, the supervisor in the background, and the agent below the supervisor.
 * Invariant: the first process ends only when the result of the start is known, and its exit status
 * is that result.
 */
#include "agent/start.h"

#include "agent/processes/supervisor.h"

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
#define SUCCESS      "pid " /* a report that begins with this says that the agent runs */

/* The error of a system call that has failed, with the reason that errno has. Returns HVD_E_IO. */
static int start_fail(struct hvd_err *err, const char *what, const char *remedy)
{
    return err_set(err, HVD_E_IO, "the agent cannot %s: %s; %s", what, strerror(errno), remedy);
}

/* Writes all bytes; false: the write has failed. */
static bool start_write(int fd, const void *bytes, size_t length)
{
    const char *at = bytes;

    while (length > 0) {
        ssize_t written = TEMP_FAILURE_RETRY(write(fd, at, length));

        if (written <= 0)
            return false;
        at += written;
        length -= (size_t)written;
    }
    return true;
}

/* Puts the key into a pipe, so that the memory of the supervisor, which is forked later, does not
 * hold the key. */
int start_keep_key(struct start *start, const uint8_t *key, size_t length, struct hvd_err *err)
{
    int fds[2];
    bool kept;

    if (pipe2(fds, O_CLOEXEC))
        return start_fail(err, "make a pipe for the host's key", "raise ulimit -n");
    /* the write does not wait: a pipe takes far more bytes than a key has */
    kept = start_write(fds[1], key, length);
    close(fds[1]);
    start->secret = fds[0];
    return kept ? 0 : start_fail(err, "write the host's key to a pipe", "free memory on this host");
}

/* Called once, in the agent: reads the key from the pipe and closes the pipe. 0 or HVD_E_IO. */
int start_take_key(struct start *start, uint8_t *ret_key, size_t length)
{
    ssize_t got = TEMP_FAILURE_RETRY(read(start->secret, ret_key, length));

    close(start->secret);
    start->secret = -1;
    return got == (ssize_t)length ? 0 : HVD_E_IO;
}

/* Sends the report of the start to the process that waits for it, or writes the report to
 * `otherwise` if no process waits. false: the waiting process has ended. */
static bool start_report(struct start *start, FILE *otherwise, const char *line)
{
    bool told;

    if (start->report < 0) {
        fputs(line, otherwise);
        fflush(otherwise);
        return true;
    }
    told = start_write(start->report, line, strlen(line));
    close(start->report);
    start->report = -1;
    return told;
}

/* Reports the pid of the host's agent to the process that waits for the start. false: that process
 * has ended, so no caller wants this agent any more. */
bool start_succeeded(struct start *start, int64_t pid)
{
    char line[REPORT_BYTES];

    snprintf(line, sizeof(line), SUCCESS "%" PRId64 "\n", pid);
    return start_report(start, stdout, line);
}

/* Reports why the agent could not start. It makes no difference whether a process still waits. */
void start_failed(struct start *start, const struct hvd_err *err)
{
    char line[REPORT_BYTES];

    snprintf(line, sizeof(line), "hvd-agent: %s\n", err->text[0] ? err->text : err_text(err->code));
    (void)start_report(start, stderr, line);
}

/* Runs in the background process, which becomes the supervisor. It keeps no descriptor of the
 * terminal or of ssh. Its standard error, and that of the agent below it, is a file in memory: the
 * text of a crash goes there, and the supervisor reads it when the agent has ended. */
NORETURN static void start_supervise(struct start *start, const struct start_ops *ops, void *arg)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    int words = memfd_create("last words", MFD_CLOEXEC);
    bool detached = null >= 0 && words >= 0 && setsid() >= 0;
    struct hvd_err err = { 0 };
    int code = EXIT_FAILURE;

    detached = detached && dup2(null, STDIN_FILENO) >= 0 && dup2(null, STDOUT_FILENO) >= 0;
    detached = detached && dup2(words, STDERR_FILENO) >= 0;
    if (!detached)
        start_fail(&err, "leave the terminal",
                   "make /dev/null readable and writable, or raise ulimit -n");
    /* a descriptor that is itself one of the standard streams stays open */
    if (null > STDERR_FILENO)
        close(null);
    if (words > STDERR_FILENO)
        close(words);

    if (!detached || supervisor_run(ops->agent, arg, &code, &err))
        start_failed(start, &err);
    else
        ops->ended(arg, code, STDERR_FILENO);
    _exit(code);
}

/* Starts the background process, waits for its report, and prints that report. Returns the exit
 * status of the calling process. The background process itself never returns from here. */
int start_in_background(struct start *start, const struct start_ops *ops, void *arg)
{
    /* standard output is watched for errors only (no events): its reader may go away */
    struct pollfd watched[] = { { .events = POLLIN }, { .fd = STDOUT_FILENO } };
    char line[REPORT_BYTES] = "";
    size_t length = 0;
    ssize_t got;
    int fds[2];
    pid_t pid;

    if (pipe2(fds, O_CLOEXEC)) {
        fprintf(stderr, "hvd-agent: cannot make a pipe: %s; raise ulimit -n\n", strerror(errno));
        return EXIT_FAILURE;
    }
    fflush(NULL);
    pid = fork();
    if (pid == 0) {
        close(fds[0]);
        start->report = fds[1];
        start_supervise(start, ops, arg);
    }
    close(fds[1]);
    if (pid < 0) {
        fprintf(stderr, "hvd-agent: cannot start a process: %s; raise ulimit -u, or free memory\n",
                strerror(errno));
        close(fds[0]);
        return EXIT_FAILURE;
    }
    /* Reads the agent's report up to the end of the line, or until no process is left that could
     * report. When no process reads standard output any more, the caller (a driver, its ssh) has
     * ended: then this process ends, too. */
    watched[0].fd = fds[0];
    do {
        (void)TEMP_FAILURE_RETRY(poll(watched, ARRAY_SIZE(watched), -1));
        if (!watched[0].revents && (watched[1].revents & (POLLERR | POLLHUP)))
            break;
        got = TEMP_FAILURE_RETRY(read(fds[0], line + length, REPORT_BYTES - 1 - length));
        if (got > 0)
            length += (size_t)got;
        line[length] = '\0';
    } while (got > 0 && !strchr(line, '\n'));

    /* an agent that is ready only now cannot report its start any more, and ends by itself */
    close(fds[0]);
    if (!strncmp(line, SUCCESS, strlen(SUCCESS))) {
        fputs(line, stdout);
        return fflush(stdout) ? EXIT_FAILURE : EXIT_SUCCESS;
    }
    fputs(line[0] ? line : "hvd-agent: the agent ended before it was ready; see its log\n", stderr);
    /* all processes of the agent have ended when this call returns */
    (void)TEMP_FAILURE_RETRY(waitpid(pid, NULL, 0));
    return EXIT_FAILURE;
}
