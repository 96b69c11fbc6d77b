/*
 * front.c: the parent process of the driver. run.c calls front_run once, before anything is made
 * for the job. Invariant: the parent opens no file of the job, and has neither its lock nor its
 * key. So a driver that loses its parent goes on, and a parent whose driver has died only has to
 * fork again. Parent and driver are in one process group, as the shell expects it.
 */
#include "driver/front/front.h"

#include "base/log.h"
#include "base/text.h"
#include "driver/front/front_link.h"
#include "driver/front/restarts.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/service.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

/* Exit codes of a driver after which the job may still run, without a driver; see docs/cli.md. */
enum { CODE_USAGE = 2, CODE_BROKEN = 4 };

#define FORMER_MAX 96

static const char program[] = "hvd-elastic";

struct front {
    const struct front_config *config;
    front_drive_fn drive;
    void *arg;
    int signals;     /* a signalfd; the signals in it are blocked in this process */
    sigset_t before; /* the signals that were blocked when the process began */
    pid_t driver;    /* the pid of the driver; 0: no driver lives */
    int link;        /* the socket to the driver; -1: none */
    int above;       /* with --detach: the socket to the process on the terminal; -1: none */

    /* The job's name; empty: no driver has taken the job's folder yet. */
    char job[LIMIT_JOB_NAME_BYTES + 1];
    int64_t grace_us; /* how long the job's workers go on without a driver */
    bool begun;       /* a driver has run, so workers may wait for the next driver */
    bool runs;        /* the newest driver has run: it has sent FRONT_RUNS */
    int64_t alone_us; /* the time since which no driver has run */

    uint32_t stops;  /* how many signals have asked for the end of the job */
    int stop_signal; /* the last of these signals */
    int64_t stop_us; /* when that signal came */
    struct restarts restarts;
    int64_t start_at_us;     /* when the next driver is started, if `driver` is 0 */
    char former[FORMER_MAX]; /* how the last driver has ended */
};

/* True: this process ignores SIGHUP, as its starter (nohup) has set it. */
bool front_ignores_hangup(void)
{
    struct sigaction action;

    return !sigaction(SIGHUP, NULL, &action) && action.sa_handler == SIG_IGN;
}

/* Blocks the signals that this process handles. They are then read from the descriptor
 * front->signals, in the same poll as the messages of the driver. Returns 0, or -1: no descriptor
 * is left. */
static int front_block_signals(struct front *front)
{
    static const int heard[] = { SIGINT, SIGTERM, SIGUSR1, SIGCHLD };
    sigset_t set;

    sigemptyset(&set);
    for (size_t i = 0; i < ARRAY_SIZE(heard); i++)
        sigaddset(&set, heard[i]);
    if (!front_ignores_hangup())
        sigaddset(&set, SIGHUP);
    sigprocmask(SIG_BLOCK, &set, &front->before);
    (void)signal(SIGCHLD, SIG_DFL); /* while SIGCHLD is ignored, waitpid returns no status */
    front->signals = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    return front->signals < 0 ? -1 : 0;
}

/* Called in the child after a fork: closes what belongs to the parent, `other_end` of the link too,
 * and restores the signals. The service manager (systemd) hears of the job from the parent alone,
 * so its variable is removed. */
static void front_become_child(struct front *front, int other_end)
{
    unsetenv(SERVICE_SOCKET);
    close(other_end);
    close(front->signals);
    front->signals = -1;
    sigprocmask(SIG_SETMASK, &front->before, NULL);
}

/* Returns the next signal that has come; 0: there is none. */
static int front_next_signal(struct front *front)
{
    struct signalfd_siginfo info;

    return TEMP_FAILURE_RETRY(read(front->signals, &info, sizeof(info))) == sizeof(info)
               ? (int)info.ssi_signo
               : 0;
}

/* Reaps all children that have ended. In a container, where this process may be the first one,
 * processes of others can be among them. True: the process `pid` was among them, and
 * *ret_wait_status says how it ended. */
static bool front_reap(pid_t pid, int *ret_wait_status)
{
    bool found = false;
    pid_t ended;
    int wait_status;

    while ((ended = waitpid(-1, &wait_status, WNOHANG)) > 0)
        if (ended == pid) {
            found = true;
            *ret_wait_status = wait_status;
        }
    return found;
}

/* Returns the exit code of a process by its wait status; 128 + the signal, as in a shell. */
static int front_code(int wait_status)
{
    return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

/* Waits until a signal, or a message on `link`, comes, or until `until_us`. It may return earlier:
 * after an hour. */
static void front_await(const struct front *front, int link, int64_t until_us)
{
    struct pollfd fds[] = {
        {.fd = front->signals, .events = POLLIN},
        { .fd = link,          .events = POLLIN}
    };
    int64_t left_us = until_us == TIME_NEVER ? TIME_HOUR : until_us - clock_now_us();

    if (left_us > TIME_HOUR)
        left_us = TIME_HOUR;
    (void)poll(fds, ARRAY_SIZE(fds), left_us > 0 ? (int)(left_us / TIME_MS) + 1 : 0);
}

/* Tells systemd, if it has started this process, about the job. `news`: "READY=1\n", "STOPPING=1\n"
 * or "", a state that systemd acts on; `text`: what it shows. */
static void front_tell_service(const struct front *front, const char *news, const char *text)
{
    char state[LIMIT_JOB_NAME_BYTES + FORMER_MAX + 64];

    snprintf(state, sizeof(state), "%sSTATUS=job %s: %s", news, front->job, text);
    service_tell(state);
}

/* Reads the messages of the driver, and passes them on to the process on the terminal (--detach). A
 * link that has ended is only closed: not its end but SIGCHLD says that the driver has ended. */
static void front_hear_driver(struct front *front)
{
    struct front_msg msg;
    int rc = HVD_E_BUSY;

    while (front->link >= 0 && !(rc = front_link_take(front->link, &msg))) {
        if (msg.kind == FRONT_TAKEN) {
            /* A former process has begun the job already: the first driver takes it over. */
            front->begun = front->begun || (msg.begun && !*front->job);
            front->grace_us = msg.grace_us;
            memcpy(front->job, msg.job, sizeof(front->job));
        } else if (msg.kind == FRONT_RUNS) {
            front->begun = front->runs = true;
            front_tell_service(front, "READY=1\n", "a driver runs");
            if (front->above >= 0)
                file_leave_streams();
        }
        front_link_send(front->above, &msg);
    }
    if (rc == HVD_E_LOST) {
        close(front->link);
        front->link = -1;
    }
}

/* ---- --detach: the process that stays on the terminal until the driver runs -------------------
 */

/* The process on the terminal, with --detach: waits until the job runs in the background, or its
 * start has failed. `child`, the process in the background, is in another session, so signals are
 * passed on to it. Returns the exit code. */
static int front_see_off(struct front *front, pid_t child)
{
    char folder[LIMIT_PATH_BYTES + 16] = "";
    bool ended = false;
    int wait_status = 0;
    int signal_number;

    while (!front->runs && !ended) {
        front_await(front, front->link, TIME_NEVER);
        while ((signal_number = front_next_signal(front)))
            if (signal_number == SIGCHLD)
                ended = front_reap(child, &wait_status) || ended;
            else
                (void)kill(child, signal_number);
        front_hear_driver(front); /* read after the signals, so that no message of a child that has
                                     ended is missed */
    }
    if (!front->runs)
        return front_code(wait_status);
    if (front->config->state_dir)
        snprintf(folder, sizeof(folder), " --state-dir %s", front->config->state_dir);
    printf("%s\n", front->job);
    (void)fflush(stdout);
    fprintf(stderr,
            "%s: job %s goes on in the background; look at it with: %s status %s%s; end it with: "
            "%s stop %s%s\n",
            program, front->job, program, front->job, folder, program, front->job, folder);
    return 0;
}

/* For --detach: forks a child process in a session of its own, which goes on with the job. True:
 * this is the child. False: this is the process on the terminal, which has nothing left to do but
 * to end with *ret_status. */
static bool front_detach(struct front *front, int *ret_status)
{
    struct hvd_err err;
    pid_t child = -1;
    int fds[2];

    *ret_status = CODE_BROKEN;
    if (front_link_open(fds, &err)) {
        fprintf(stderr, "%s: %s\n", program, err.text);
        return false;
    }
    if (!front_block_signals(front))
        child = fork();
    if (child < 0) {
        fprintf(stderr, "%s: no process can be started: %s; raise ulimit -u\n", program,
                strerror(errno));
        return false;
    }
    if (child == 0) {
        front_become_child(front, fds[0]);
        front->above = fds[1];
        (void)setsid();
        return true;
    }
    close(fds[1]);
    front->link = fds[0];
    *ret_status = front_see_off(front, child);
    return false;
}

/* ---- the parent of the driver -----------------------------------------------------------------
 */

/* Forks a driver. True: this is the driver's process, and *ret_order is what the parent tells it.
 * False: this is the parent; if no process could be started, start_at_us says when it tries again.
 */
static bool front_start(struct front *front, struct front_order *ret_order)
{
    struct front_msg stop = { .kind = FRONT_STOP,
                              .signal = front->stop_signal,
                              .count = front->stops };
    struct hvd_err err = { .text = "no process can be started; raise ulimit -u" };
    int fds[2];

    if (front_link_open(fds, &err))
        front->driver = -1;
    else
        front->driver = fork();
    if (front->driver == 0) {
        front_become_child(front, fds[0]);
        if (front->above >= 0)
            close(front->above);
        *ret_order = (struct front_order){ .link = fds[1],
                                           .job = *front->job ? front->job : NULL,
                                           .former = *front->former ? front->former : NULL,
                                           .signal = front->stop_signal,
                                           .restarts = true,
                                           .detach = front->config->detach };
        return true;
    }
    if (front->driver < 0) {
        front->driver = 0;
        front->start_at_us =
            restarts_next(&front->restarts, false /* it did not run */, clock_now_us());
        log_warning(JOB, "no driver can be started: %s", err.text);
        return false;
    }
    close(fds[1]);
    front->link = fds[0];
    front->runs = false;
    if (front->stops)
        front_link_send(front->link, &stop);
    return false;
}

/* Prints that this process starts no further driver, and how the user can go on. Returns the exit
 * code. */
static int front_give_up(const struct front *front, int code)
{
    const char *state_dir = front->config->state_dir;
    char grace[TIME_TEXT_MAX];

    if (!front->begun) {
        fprintf(stderr, "%s: %s, and the job had not begun\n", program, front->former);
        return code;
    }
    fprintf(stderr,
            "%s: %s\n%s: job %s trains on without a driver for %s; take it over with: %s --resume "
            "%s%s%s\n",
            program, front->former, program, front->job, time_format(front->grace_us, grace),
            program, front->job, state_dir ? " --state-dir " : "", state_dir ? state_dir : "");
    return CODE_BROKEN;
}

/* Decides what follows the end of a driver, whose wait status is given. True: this process ends
 * with *ret_status. False: the next driver is started at start_at_us. */
static bool front_after(struct front *front, int wait_status, int *ret_status)
{
    const int signal_number = WIFSIGNALED(wait_status) ? WTERMSIG(wait_status) : 0;
    const pid_t driver = front->driver;
    int64_t now_us = clock_now_us();
    int code = front_code(wait_status);
    char wait[TIME_TEXT_MAX], signal[TEXT_SIGNAL_MAX];
    bool wanted;

    *ret_status = code;
    front->driver = 0;
    if (front->link >= 0)
        close(front->link);
    front->link = -1;
    if (signal_number)
        snprintf(front->former, FORMER_MAX, "the driver (pid %d) died of %s", (int)driver,
                 text_signal(signal_number, signal));
    else
        snprintf(front->former, FORMER_MAX, "the driver (pid %d) ended with code %d", (int)driver,
                 code);
    if (!*front->job) {
        if (signal_number && signal_number != front->stop_signal)
            fprintf(stderr, "%s: %s, and nothing was started\n", program, front->former);
        return true;
    }
    /* The next driver is needed if this one died of a signal, or broke down after the job had
     * begun. It is also needed if this one should take over a running job but refused to begin
     * (CODE_USAGE), for example because a file is missing: the job has no driver then. */
    wanted = signal_number ||
             (front->begun && (code == CODE_BROKEN || (code == CODE_USAGE && !front->runs)));
    if (!wanted)
        return true;
    if (front->runs)
        front->alone_us = now_us;
    front_tell_service(front, "", front->former);
    front->start_at_us = restarts_next(&front->restarts, front->runs, now_us);
    if (front->start_at_us == now_us)
        return false;
    /* The next driver cannot start at once. The parent does not wait for it, and ends, if the user
     * has ended the job, if the job has not begun, or if the workers end before that start. */
    if (front->stops || !front->begun || front->start_at_us - front->alone_us > front->grace_us) {
        *ret_status = front_give_up(front, code);
        return true;
    }
    log_warning(JOB, "%s; the next one is started in %s", front->former,
                time_brief(front->start_at_us - now_us, wait));
    return false;
}

/* The main loop of the parent: starts drivers until the job needs none, passes signals on to them,
 * and waits for their ends. Returns the exit code of the parent; in the driver's process, that of
 * the driver. */
static int front_drive(struct front *front)
{
    struct front_order order;
    struct front_msg msg;
    int status = CODE_BROKEN;
    int wait_status, signal_number;
    bool ended;

    for (;;) {
        if (!front->driver && clock_now_us() >= front->start_at_us && front_start(front, &order))
            return front->drive(front->arg, &order);
        front_await(front, front->link, front->driver ? TIME_NEVER : front->start_at_us);
        /* The messages of a driver that has ended are read before its end counts. */
        ended = false;
        while ((signal_number = front_next_signal(front))) {
            front_hear_driver(front);
            if (signal_number == SIGCHLD) {
                ended = front_reap(front->driver, &wait_status) || ended;
                continue;
            }
            /* The command `timeout` sends SIGTERM to its child, and then to all of its group.
             * SIGINT comes from a keyboard, where a second one means haste. */
            if (signal_number == SIGTERM && front->stop_signal == SIGTERM &&
                clock_now_us() < front->stop_us + LIMIT_SAME_SIGNAL_US)
                continue;
            msg = (struct front_msg){ .kind = FRONT_STOP, .signal = signal_number };
            if (signal_number == SIGUSR1)
                msg.kind = FRONT_LOOK;
            if (signal_number == SIGHUP) {
                msg.kind = FRONT_HANGUP;
                file_leave_terminal();
            }
            if (msg.kind == FRONT_STOP) {
                msg.count = ++front->stops;
                front->stop_signal = signal_number;
                /* If no driver lives, the next one starts at once, only to end the job. */
                front->stop_us = front->start_at_us = clock_now_us();
                front_tell_service(front, "STOPPING=1\n", "a signal ends the job");
                /* A driver that has not taken the job's folder yet has no handlers: the signal ends
                 * it, as it would end a program without a parent. */
                if (front->driver && !*front->job)
                    (void)kill(front->driver, signal_number);
            }
            front_link_send(front->link, &msg);
        }
        front_hear_driver(front);
        if (ended && front_after(front, wait_status, &status))
            return status;
    }
}

/* Starts the drivers of the job. The processes from the terminal down are: with --detach the
 * process that stays on the terminal until the job runs; with `restart` the parent of the drivers;
 * and the driver, which calls `drive`. */
int front_run(const struct front_config *config, front_drive_fn drive, void *arg)
{
    struct front front = { .config = config,
                           .drive = drive,
                           .arg = arg,
                           .signals = -1,
                           .link = -1,
                           .above = -1,
                           .alone_us = clock_now_us() };
    struct front_order alone = { .link = -1, .detach = config->detach };
    int status = 0;

    (void)fflush(NULL); /* a child must not print what is still in a buffer of this process */
    if (config->detach && !front_detach(&front, &status)) {
        close(front.signals);
        if (front.link >= 0)
            close(front.link);
        return status;
    }
    if (!config->restart) {
        alone.link = front.above;
        return drive(arg, &alone);
    }
    if (front_block_signals(&front)) {
        fprintf(stderr, "%s: no file descriptor is left for signals: %s; raise ulimit -n\n",
                program, strerror(errno));
        return CODE_BROKEN;
    }
    status = front_drive(&front);
    if (front.signals >= 0)
        close(front.signals);
    return status;
}
