/*
 * front.c: the parent process of the driver. run.c calls front_run once, before anything is made
 * for the job. Invariant: the parent opens no file of the job, and holds neither its lock nor its
 * key; so a driver that loses its parent goes on, and a parent whose driver has died only has to
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

/* Exit codes of a driver after which the job may go on without one; see docs/cli.md. */
enum { CODE_USAGE = 2, CODE_BROKEN = 4 };

#define FORMER_MAX 96

static const char program[] = "hvd-elastic";

struct front {
    const struct front_config *config;
    front_drive_fn drive;
    void *arg;
    int signals;     /* a signalfd; the signals in it are blocked in this process */
    sigset_t before; /* the signals that were blocked when the process began */
    pid_t driver;    /* 0: none lives */
    int link;        /* to the driver */
    int above;       /* to the process on the terminal, with --detach; -1: there is none */

    char job[LIMIT_JOB_NAME_BYTES + 1]; /* empty: no driver has taken the job's folder */
    int64_t grace_us;
    bool begun;       /* a driver has come to run, so there may be workers that need the next one */
    bool runs;        /* the driver that lives, or that has ended last, has come to run */
    int64_t alone_us; /* since then no driver has run */

    uint32_t stops; /* signals that end the job */
    int stop_signal;
    struct restarts restarts;
    int64_t start_at_us;     /* when the next driver is started, while none lives */
    char former[FORMER_MAX]; /* how the last driver has ended */
};

bool front_ignores_hangup(void)
{
    struct sigaction action;

    return !sigaction(SIGHUP, NULL, &action) && action.sa_handler == SIG_IGN;
}

/* From now on the signals are read from a descriptor, beside the messages of the driver. */
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

/* The child of a fork: nothing of the parent is left in it but the link to the parent. The service
 * manager hears of the job from the parent alone. */
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

/* Reaps all children that have ended: in a container, where this process is the first one, these
 * may be others too. true: the process `pid` was among them, and *ret_how is its wait status. */
static bool front_reap(pid_t pid, int *ret_how)
{
    bool found = false;
    pid_t ended;
    int how;

    while ((ended = waitpid(-1, &how, WNOHANG)) > 0)
        if (ended == pid) {
            found = true;
            *ret_how = how;
        }
    return found;
}

static int front_code(int how)
{
    return WIFSIGNALED(how) ? 128 + WTERMSIG(how) : WEXITSTATUS(how);
}

/* Waits until a signal or a message comes, or until `until_us`. */
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

/* Tells systemd, if it has started this process, that the job runs or ends, and how it does. */
static void front_tell_service(const struct front *front, const char *news, const char *text)
{
    char state[LIMIT_JOB_NAME_BYTES + FORMER_MAX + 64];

    snprintf(state, sizeof(state), "%sSTATUS=job %s: %s", news, front->job, text);
    service_tell(state);
}

/* Reads what the driver has said, and tells it to the process on the terminal too. The end of the
 * link is no event: the end of the driver is one. */
static void front_hear_driver(struct front *front)
{
    struct front_msg msg;
    int rc = HVD_E_BUSY;

    while (front->link >= 0 && !(rc = front_link_take(front->link, &msg))) {
        if (msg.kind == FRONT_TAKEN) {
            /* A job that was there before the first driver of this process has begun. */
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

/* Waits until the job runs in the background, or has failed to. Signals are passed on to `child`,
 * which is in another session. Returns the exit code. */
static int front_see_off(struct front *front, pid_t child)
{
    char folder[LIMIT_PATH_BYTES + 16] = "";
    bool ended = false;
    int how = 0;
    int number;

    while (!front->runs && !ended) {
        front_await(front, front->link, TIME_NEVER);
        while ((number = front_next_signal(front)))
            if (number == SIGCHLD)
                ended = front_reap(child, &how) || ended;
            else
                (void)kill(child, number);
        front_hear_driver(front); /* last, so no message of a child that has ended is missed */
    }
    if (!front->runs)
        return front_code(how);
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

/* Goes on in a child process in a session of its own. true: this is that child. false: this is the
 * process on the terminal, and *ret_status is its exit code. */
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

/* Forks a driver. true: this is the driver, and *ret_order is for it. */
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
        front->start_at_us = restarts_next(&front->restarts, false, clock_now_us());
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

/* Says that this process starts no further driver, and what is to be done. Returns the exit code.
 */
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

/* Decides after the end of a driver, with the wait status `how`. true: this process ends with
 * *ret_status. false: the next driver is started at start_at_us. */
static bool front_after(struct front *front, int how, int *ret_status)
{
    const int number = WIFSIGNALED(how) ? WTERMSIG(how) : 0;
    const pid_t driver = front->driver;
    int64_t now_us = clock_now_us();
    int code = front_code(how);
    char wait[TIME_TEXT_MAX], signal[TEXT_SIGNAL_MAX];
    bool wanted;

    *ret_status = code;
    front->driver = 0;
    if (front->link >= 0)
        close(front->link);
    front->link = -1;
    if (number)
        snprintf(front->former, FORMER_MAX, "the driver (pid %d) died of %s", (int)driver,
                 text_signal(number, signal));
    else
        snprintf(front->former, FORMER_MAX, "the driver (pid %d) ended with code %d", (int)driver,
                 code);
    if (!*front->job) {
        if (number && number != front->stop_signal)
            fprintf(stderr, "%s: %s, and nothing was started\n", program, front->former);
        return true;
    }
    /* The next driver is needed when this one died of a signal or, after the job had begun, broke
     * down; and also when it was to take a running job over and refused to begin, for example
     * because a file is missing: the job then has no driver. */
    wanted =
        number || (front->begun && (code == CODE_BROKEN || (code == CODE_USAGE && !front->runs)));
    if (!wanted)
        return true;
    if (front->runs)
        front->alone_us = now_us;
    front_tell_service(front, "", front->former);
    front->start_at_us = restarts_next(&front->restarts, front->runs, now_us);
    if (front->start_at_us == now_us)
        return false;
    if (front->stops || !front->begun || front->start_at_us - front->alone_us > front->grace_us) {
        *ret_status = front_give_up(front, code);
        return true;
    }
    log_warning(JOB, "%s; the next one is started in %s", front->former,
                time_brief(front->start_at_us - now_us, wait));
    return false;
}

/* Starts drivers until the job needs none, and waits for their ends. */
static int front_drive(struct front *front)
{
    struct front_order order;
    struct front_msg msg;
    int status = CODE_BROKEN;
    int how, number;
    bool ended;

    for (;;) {
        if (!front->driver && clock_now_us() >= front->start_at_us && front_start(front, &order))
            return front->drive(front->arg, &order);
        front_await(front, front->link, front->driver ? TIME_NEVER : front->start_at_us);
        /* The last words of a driver that has ended are read before its end counts. */
        ended = false;
        while ((number = front_next_signal(front))) {
            front_hear_driver(front);
            if (number == SIGCHLD) {
                ended = front_reap(front->driver, &how) || ended;
                continue;
            }
            msg = (struct front_msg){ .kind = FRONT_STOP, .signal = number };
            if (number == SIGUSR1)
                msg.kind = FRONT_LOOK;
            if (number == SIGHUP) {
                msg.kind = FRONT_HANGUP;
                file_leave_terminal();
            }
            if (msg.kind == FRONT_STOP) {
                msg.count = ++front->stops;
                front->stop_signal = number;
                front->start_at_us = clock_now_us(); /* no wait: the next driver ends the job */
                front_tell_service(front, "STOPPING=1\n", "a signal ends the job");
                /* A driver that has not taken the folder has no handlers yet: the signal ends it,
                 * as it would end a program without a parent. */
                if (front->driver && !*front->job)
                    (void)kill(front->driver, number);
            }
            front_link_send(front->link, &msg);
        }
        front_hear_driver(front);
        if (ended && front_after(front, how, &status))
            return status;
    }
}

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

    (void)fflush(NULL); /* no child may print what waits in a buffer here */
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
        fprintf(stderr, "%s: no descriptor for signals: %s; raise ulimit -n\n", program,
                strerror(errno));
        return CODE_BROKEN;
    }
    status = front_drive(&front);
    if (front.signals >= 0)
        close(front.signals);
    return status;
}
