/*
 * notice_command.c: a command of the user, which is run again and again, and prints a line when
 * this machine is about to go away. Called through the table of notice.c. Invariant: no run
 * outlives its time limit, the agent, or notice_stop: its whole process group is killed then.
 */
#include "agent/notice/notice_internal.h"
#include "base/time.h"
#include "os/clock.h"
#include "os/owned_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define COMMAND_PAUSE_US (5 * TIME_S) /* the time between two runs of the command */
#define COMMAND_LIMIT_S  10           /* seconds that one run may take */

/* Reads the output of the command (`out`) until the process has ended (its pidfd `ended` is
 * readable) and no byte is left. Error: the command is too slow, prints too much, or the agent ends
 * (`stop_fd`); the caller then kills it. */
static int command_read(struct notice_watch *watch, int out, int ended, struct buf *text,
                        struct hvd_err *err)
{
    int64_t until_us = clock_now_us() + COMMAND_LIMIT_S * TIME_S;
    struct pollfd fds[] = {
        {out,                     POLLIN, 0},
        { ended,                  POLLIN, 0},
        { watch->notice->stop_fd, POLLIN, 0}
    };
    char bytes[4096];
    ssize_t got = 1;

    /* got > 0: more bytes may wait, also when the process has ended already */
    while (got > 0 || !fds[1].revents) {
        int64_t left_us = until_us - clock_now_us();

        if (left_us <= 0 || poll(fds, ARRAY_SIZE(fds), (int)(left_us / TIME_MS + 1)) == 0)
            return err_set(err, HVD_E_TIMEOUT,
                           "the command has not ended within %ds, and is killed; give a faster "
                           "command",
                           COMMAND_LIMIT_S);
        if (fds[2].revents)
            return err_set(err, HVD_E_BUSY, "the agent ends, and the command is killed");
        got = fds[0].revents ? read(out, bytes, sizeof(bytes)) : -1;
        if (got == 0)
            fds[0].fd = -1; /* the output has ended; the program may still run */
        if (got > 0 && buf_append(text, bytes, (size_t)got))
            return err_set(err, HVD_E_LIMIT,
                           "the command prints more than %d bytes; let it print one line",
                           LIMIT_NOTICE_BYTES);
    }
    return 0;
}

/* One look: runs the command once, and reads the first line of its output. Processes that the
 * command has left in its group are killed before the command is reaped. */
static int command_look(struct notice_watch *watch, struct notice_said *ret_said,
                        struct hvd_err *err)
{
    char command[LIMIT_PATH_BYTES];
    const char *const argv[] = { "/bin/sh", "-c", command, NULL };
    struct notice_line line = { .given = false };
    int pipes[2], watch_fd = -1, status, rc;
    struct buf text;
    pid_t pid;

    snprintf(command, sizeof(command), "%.*s", (int)watch->target.length, watch->target.at);
    if (pipe2(pipes, O_CLOEXEC))
        return err_set(err, HVD_E_LIMIT, "no file descriptor is left; raise ulimit -n");
    rc = owned_process_start(&(struct process_spec){ .argv = argv,
                                                     .in = -1,
                                                     .out = pipes[1],
                                                     .err = -1,
                                                     .group = true,
                                                     .dies_with_us = SIGKILL,
                                                     .plain_priority = true },
                             &pid, &watch_fd, err);
    close(pipes[1]);
    buf_init(&text, LIMIT_NOTICE_BYTES);
    if (!rc) {
        (void)fcntl(pipes[0], F_SETFL, O_NONBLOCK);
        rc = command_read(watch, pipes[0], watch_fd, &text, err);
        kill(-pid, SIGKILL);
        status = owned_process_end(pid, watch_fd);
        close(watch_fd);
        if (!rc && (!WIFEXITED(status) || WEXITSTATUS(status)))
            rc = err_set(err, HVD_E_IO,
                         "the command has failed (wait status %d); correct the command", status);
    }
    close(pipes[0]);
    if (!rc)
        rc = notice_read_line((struct span){ buf_text(&text), text.length }, false,
                              watch->notice->default_us, clock_wall_us(), &line, err);
    if (!rc && line.given)
        notice_say_left(watch, line.left_us, line.words, ret_said);
    buf_release(&text);
    return rc;
}

const struct notice_giver notice_command = {
    .name = "command",
    .pause_us = COMMAND_PAUSE_US,
    .look = command_look,
};
