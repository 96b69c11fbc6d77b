/*
 * test_front.c: the parent of the driver, with real processes: which end of a driver is followed by
 * another driver, what that one is told, and that signals come through once. The drivers here are
 * functions; each writes into a pipe what it was told and what it hears.
 */
#include "driver/front/front.h"
#include "driver/front/front_link.h"
#include "os/clock.h"
#include "tests/lib/test.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATIENCE_MS 100000 /* the bound of a hang */

/* The deeds of a driver. Each driver takes the next script, and further ones take the last. */
struct script {
    bool takes, runs; /* it says so */
    int waits_for;    /* messages of the parent before it ends */
    bool outlives;    /* it waits for the end of the parent, too */
    int signal, code; /* how it ends */
};

/* Memory of all processes of a play. */
struct shared {
    int next;     /* the script of the next driver */
    pid_t parent; /* the parent of the last driver */
};

struct play {
    const struct script *scripts;
    int count;
    int pipe[2];
    struct shared *shared;
    struct front_config config;
    pid_t front;
    bool ignores_hangup;
    char said[4096];
};

static void say(const struct play *play, const char *format, ...) PRINTF_LIKE(2, 3);
static void say(const struct play *play, const char *format, ...)
{
    char text[256];
    va_list args;
    int length;

    va_start(args, format);
    length = vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (write(play->pipe[1], text, (size_t)length) != length)
        abort();
}

/* Reads one message of the parent; false: the parent is gone. */
static bool hear(const struct play *play, int link)
{
    static const char *const names[] = {
        [FRONT_STOP] = "stop", [FRONT_HANGUP] = "hangup", [FRONT_LOOK] = "look"
    };
    struct pollfd poller = { .fd = link, .events = POLLIN };
    struct front_msg msg;

    if (poll(&poller, 1, PATIENCE_MS) != 1)
        abort();
    if (front_link_take(link, &msg)) {
        say(play, "alone;");
        return false;
    }
    if (msg.kind == FRONT_STOP)
        say(play, "%s %d %u;", names[msg.kind], msg.signal, msg.count);
    else
        say(play, "%s;", names[msg.kind]);
    return true;
}

static int drive(void *arg, const struct front_order *order)
{
    struct play *play = arg;
    const struct script *script = &play->scripts[play->shared->next];
    struct front_msg msg = { .kind = FRONT_TAKEN, .grace_us = INT64_MAX, .job = "nightly" };
    const char *former = order->former ? strchr(order->former, ')') : NULL;

    (void)prctl(PR_SET_PDEATHSIG, 0);
    play->shared->parent = getppid();
    if (play->shared->next < play->count - 1)
        play->shared->next++;
    if (script->takes)
        front_link_send(order->link, &msg);
    msg.kind = FRONT_RUNS;
    if (script->runs)
        front_link_send(order->link, &msg);
    /* The parent knows now what it has to know, also if this process is slow. */
    say(play, "driver %s%s;", order->job ? order->job : "-", former ? former + 1 : "");
    for (int i = 0; i < script->waits_for && hear(play, order->link); i++)
        continue;
    while (script->outlives && hear(play, order->link))
        continue;
    if (script->signal) {
        signal(script->signal, SIG_DFL);
        raise(script->signal);
        pause();
    }
    return script->code;
}

/* Starts the parent in a process of its own, as a shell would. */
static void begin(struct play *play)
{
    play->shared = mmap(NULL, sizeof(*play->shared), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (play->shared == MAP_FAILED || pipe2(play->pipe, O_CLOEXEC))
        abort();
    play->front = fork();
    if (play->front == 0) {
        int quiet = open("/dev/null", O_WRONLY | O_CLOEXEC);

        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (dup2(quiet, STDOUT_FILENO) < 0 || dup2(quiet, STDERR_FILENO) < 0)
            abort();
        signal(SIGHUP, play->ignores_hangup ? SIG_IGN : SIG_DFL);
        _exit(front_run(&play->config, drive, play));
    }
    close(play->pipe[1]);
}

/* Reads until the text was said; false: it was not. */
static bool await(struct play *play, const char *text)
{
    struct pollfd poller = { .fd = play->pipe[0], .events = POLLIN };
    size_t length = strlen(play->said);

    while (!strstr(play->said, text)) {
        ssize_t got = poll(&poller, 1, PATIENCE_MS) == 1 ? read(play->pipe[0], play->said + length,
                                                                sizeof(play->said) - 1 - length)
                                                         : 0;
        if (got <= 0)
            return false;
        length += (size_t)got;
        play->said[length] = '\0';
    }
    return true;
}

/* Waits for the end of the parent and of all drivers; returns the exit code of the parent. */
static int end(struct play *play)
{
    int how = 0;

    (void)await(play, "nothing says this"); /* until the pipe is closed */
    if (waitpid(play->front, &how, 0) != play->front)
        abort();
    close(play->pipe[0]);
    munmap(play->shared, sizeof(*play->shared));
    return WIFSIGNALED(how) ? 128 + WTERMSIG(how) : WEXITSTATUS(how);
}

#define PLAY(...)                                           \
    static const struct script scripts[] = { __VA_ARGS__ }; \
    struct play play = { .scripts = scripts,                \
                         .count = ARRAY_SIZE(scripts),      \
                         .config = { .restart = true } };

TEST_FLAGS(the_exit_code_is_that_of_the_driver, TEST_NO_TORTURE)
{
    PLAY({ .takes = true, .runs = true, .code = 3 })

    begin(&play);
    CHECK_INT(t, end(&play), ==, 3);
    CHECK_TEXT(t, play.said, "driver -;");
out:;
}

TEST_FLAGS(a_driver_that_dies_is_followed_by_one_that_takes_the_job_over, TEST_NO_TORTURE)
{
    PLAY({ .takes = true, .runs = true, .signal = SIGKILL },
         { .takes = true, .runs = true, .signal = SIGABRT },
         { .takes = true, .runs = true, .code = 4 }, { .takes = true, .runs = true, .code = 0 })

    begin(&play);
    CHECK_INT(t, end(&play), ==, 0);
    CHECK_TEXT(t, play.said,
               "driver -;driver nightly died of signal 9 (SIGKILL);"
               "driver nightly died of signal 6 (SIGABRT);driver nightly ended with code 4;");
out:;
}

TEST_FLAGS(a_job_that_was_not_taken_is_not_started_again, TEST_NO_TORTURE)
{
    PLAY({ .signal = SIGKILL })

    begin(&play);
    CHECK_INT(t, end(&play), ==, 128 + SIGKILL);
    CHECK_TEXT(t, play.said, "driver -;");
out:;
}

/* Code 4 of a driver that never ran: no agent knows of the job. */
TEST_FLAGS(a_job_that_cannot_begin_is_not_started_again, TEST_NO_TORTURE)
{
    PLAY({ .takes = true, .code = 4 })

    begin(&play);
    CHECK_INT(t, end(&play), ==, 4);
    CHECK_TEXT(t, play.said, "driver -;");
out:;
}

TEST_FLAGS(a_job_that_dies_before_it_begins_is_given_up, TEST_NO_TORTURE)
{
    PLAY({ .takes = true, .signal = SIGKILL })

    begin(&play);
    CHECK_INT(t, end(&play), ==, 128 + SIGKILL);
    CHECK_TEXT(t, play.said, "driver -;driver nightly died of signal 9 (SIGKILL);");
out:;
}

/* A successor that is refused has changed nothing, so the next one tries; a job that has ended or
 * is driven by another needs none. */
TEST_FLAGS(a_successor_that_is_refused_is_followed_by_another, TEST_NO_TORTURE)
{
    PLAY({ .takes = true, .runs = true, .signal = SIGKILL }, { .code = 2 }, { .code = 5 })

    begin(&play);
    CHECK_INT(t, end(&play), ==, 5);
    CHECK_TEXT(
        t, play.said,
        "driver -;driver nightly died of signal 9 (SIGKILL);driver nightly ended with code 2;");
out:;
}

TEST_FLAGS(without_restart_there_is_no_parent, TEST_NO_TORTURE)
{
    PLAY({ .takes = true, .runs = true, .signal = SIGKILL })

    play.config.restart = false;
    begin(&play);
    CHECK_INT(t, end(&play), ==, 128 + SIGKILL);
    CHECK_TEXT(t, play.said, "driver -;");
out:;
}

TEST_FLAGS(signals_are_passed_on_and_counted, TEST_NO_TORTURE)
{
    PLAY({ .takes = true, .runs = true, .waits_for = 4, .code = 130 })

    begin(&play);
    CHECK(t, await(&play, "driver -;"));
    kill(play.front, SIGUSR1);
    CHECK(t, await(&play, "look;"));
    kill(play.front, SIGHUP);
    CHECK(t, await(&play, "hangup;"));
    kill(play.front, SIGTERM);
    CHECK(t, await(&play, "stop 15 1;"));
    kill(play.front, SIGINT);
    CHECK(t, await(&play, "stop 2 2;"));
    CHECK_INT(t, end(&play), ==, 130);
out:;
}

/* Waits until the process has read the signals that were sent to it. */
static bool await_read(pid_t pid)
{
    char path[64], line[128];
    unsigned long long pending;
    FILE *status;

    snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    do {
        pending = 1;
        if (!(status = fopen(path, "re")))
            return false;
        while (fgets(line, sizeof(line), status))
            if (!strncmp(line, "ShdPnd:", 7))
                pending = strtoull(line + 7, NULL, 16);
        (void)fclose(status);
    } while (pending);
    return true;
}

/* The command `timeout` sends SIGTERM to its child, and then to all processes of its group. */
TEST_FLAGS(sigterms_in_quick_succession_count_once, TEST_NO_TORTURE)
{
    int64_t began_us, ended_us;

    PLAY({ .takes = true, .runs = true, .waits_for = 2, .code = 143 })

    begin(&play);
    CHECK(t, await(&play, "driver -;"));
    began_us = clock_now_us();
    kill(play.front, SIGTERM);
    CHECK(t, await(&play, "stop 15 1;"));
    kill(play.front, SIGTERM);
    CHECK(t, await_read(play.front));
    ended_us = clock_now_us();
    kill(play.front, SIGINT);
    CHECK_INT(t, end(&play), ==, 143);
    /* A machine that is held up for so long sees two signals. */
    CHECK(t, strstr(play.said, "stop 2 2;") || ended_us > began_us + LIMIT_SAME_SIGNAL_US);
out:;
}

/* A SIGHUP that this process was started to ignore (nohup) is not passed on. */
TEST_FLAGS(a_hangup_that_is_ignored_stays_ignored, TEST_NO_TORTURE)
{
    PLAY({ .takes = true, .runs = true, .waits_for = 1, .code = 0 })

    play.ignores_hangup = true;
    begin(&play);
    CHECK(t, await(&play, "driver -;"));
    kill(play.front, SIGHUP);
    kill(play.front, SIGUSR1);
    CHECK_INT(t, end(&play), ==, 0);
    CHECK_TEXT(t, play.said, "driver -;look;");
out:;
}

/* The driver dies while it ends the job: the next one is told to end the job too. */
TEST_FLAGS(a_stop_is_told_to_the_next_driver, TEST_NO_TORTURE)
{
    PLAY({ .takes = true, .runs = true, .waits_for = 1, .signal = SIGKILL },
         { .takes = true, .runs = true, .waits_for = 1, .code = 143 })

    begin(&play);
    CHECK(t, await(&play, "driver -;"));
    kill(play.front, SIGTERM);
    CHECK_INT(t, end(&play), ==, 143);
    CHECK_TEXT(t, play.said,
               "driver -;stop 15 1;driver nightly died of signal 9 (SIGKILL);stop 15 1;");
out:;
}

/* A user who ends the job does not wait for a disk that stays broken. */
TEST_FLAGS(a_stop_ends_the_waits_for_the_next_driver, TEST_NO_TORTURE)
{
    PLAY({ .takes = true, .runs = true, .waits_for = 1, .code = 4 }, { .code = 4 })

    begin(&play);
    CHECK(t, await(&play, "driver -;"));
    kill(play.front, SIGTERM);
    CHECK_INT(t, end(&play), ==, 4);
    CHECK_TEXT(t, play.said,
               "driver -;stop 15 1;driver nightly ended with code 4;"
               "driver nightly ended with code 4;");
out:;
}

TEST_FLAGS(a_driver_that_has_lost_its_parent_goes_on, TEST_NO_TORTURE)
{
    PLAY({ .takes = true, .runs = true, .outlives = true, .code = 0 })

    begin(&play);
    CHECK(t, await(&play, "driver -;"));
    kill(play.front, SIGKILL);
    CHECK(t, await(&play, "alone;"));
    CHECK_INT(t, end(&play), ==, 128 + SIGKILL);
    CHECK_TEXT(t, play.said, "driver -;alone;");
out:;
}

/* The process on the terminal ends when the driver runs; the parent of the driver goes on. */
TEST_FLAGS(detached_it_returns_once_the_driver_runs, TEST_NO_TORTURE)
{
    PLAY({ .takes = true, .signal = SIGKILL }, { .takes = true, .runs = true, .waits_for = 1 })
    siginfo_t info;

    play.config.detach = true;
    begin(&play);
    CHECK(t, await(&play, "driver nightly died of signal 9 (SIGKILL);"));
    CHECK(t, !waitid(P_PID, (id_t)play.front, &info, WNOWAIT | WEXITED));
    kill(play.shared->parent, SIGTERM);
    CHECK_INT(t, end(&play), ==, 0);
    CHECK_TEXT(t, play.said, "driver -;driver nightly died of signal 9 (SIGKILL);stop 15 1;");
out:;
}

TEST_FLAGS(detached_it_tells_the_exit_code_of_a_failure, TEST_NO_TORTURE)
{
    PLAY({ .code = 2 })

    play.config.detach = true;
    begin(&play);
    CHECK_INT(t, end(&play), ==, 2);
    CHECK_TEXT(t, play.said, "driver -;");
out:;
}

TEST_FLAGS(detached_without_restart_the_driver_has_no_parent, TEST_NO_TORTURE)
{
    PLAY({ .takes = true, .runs = true, .outlives = true })

    play.config.detach = true;
    play.config.restart = false;
    begin(&play);
    CHECK_INT(t, end(&play), ==, 0);
    CHECK_TEXT(t, play.said, "driver -;alone;");
out:;
}

/* On the terminal a signal still ends a job that has not come to run. */
TEST_FLAGS(detached_it_passes_signals_on_until_the_driver_runs, TEST_NO_TORTURE)
{
    PLAY({ .takes = true, .waits_for = 1, .code = 143 })

    play.config.detach = true;
    begin(&play);
    CHECK(t, await(&play, "driver -;"));
    kill(play.front, SIGTERM);
    CHECK_INT(t, end(&play), ==, 143);
    CHECK_TEXT(t, play.said, "driver -;stop 15 1;");
out:;
}
