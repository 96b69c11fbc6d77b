/*
 * test_supervisor.c: the supervisor of an agent, with real processes: exit codes and signals pass
 * through the supervisor, and no process outlives the agent or the supervisor.
 */
#include "agent/processes/supervisor.h"
#include "tests/lib/children_bench.h"
#include "tests/lib/torture.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define WAIT_MS 30000

/* A supervisor in its own process. All processes below it have the writing end of one pipe, and
 * write there that they are ready. */
struct kept {
    int read_fd;
    int write_fd;
    char fifo[300];
    pid_t supervisor;
    pid_t agent;
    int workers;
};

static void say(int fd, const char *text)
{
    if (write(fd, text, strlen(text)) < 0)
        abort();
}

/* An agent that does nothing about signals. Its workers are hard to find again: they ignore
 * SIGTERM, and have children in other sessions and without the environment of the job. */
static int busy_agent(void *arg)
{
    const struct kept *kept = arg;
    static struct bench bench;
    static struct test t = { .name = "agent" };
    char text[32];

    if (!bench_open(&bench, &t))
        return 99;
    snprintf(text, sizeof(text), "agent %d\n", (int)getpid());
    say(kept->write_fd, text);
    for (int i = 0; i < kept->workers; i++)
        bench_shell(&bench,
                    "exec 9>%s; trap '' TERM; (setsid sh -c 'sleep 1000 & sleep 1000; true' &); "
                    "(env -i /usr/bin/setsid sleep 1000 &); sleep 1000 & echo ready >&9; wait",
                    kept->fifo);
    while (!bench.late)
        bench_turn(&bench);
    return 98;
}

static int agent_that_ends(void *arg)
{
    (void)arg;
    return 42;
}

/* An agent that waits for the signal to end; its exit code says which signal came. */
static int agent_that_waits(void *arg)
{
    const struct kept *kept = arg;
    char text[32];
    sigset_t set;
    int number = 0;

    sigemptyset(&set);
    sigaddset(&set, SUPERVISOR_PASSES_ON);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, NULL);
    snprintf(text, sizeof(text), "agent %d\n", (int)getpid());
    say(kept->write_fd, text);
    sigwait(&set, &number);
    return number == SUPERVISOR_PASSES_ON ? 21 : number == SIGTERM ? 22 : 23;
}

static bool keep(struct kept *kept, struct test *t, int (*agent)(void *arg))
{
    *kept = (struct kept){ .read_fd = -1, .write_fd = -1, .workers = kept->workers };
    snprintf(kept->fifo, sizeof(kept->fifo), "%s/alive", test_dir(t));
    if (mkfifo(kept->fifo, 0600))
        abort();
    kept->read_fd = open(kept->fifo, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    kept->write_fd = open(kept->fifo, O_WRONLY | O_CLOEXEC);
    kept->supervisor = fork();
    if (kept->supervisor == 0) {
        int code = 0;

        test_die_with_parent();
        close(kept->read_fd);
        signal(SIGCHLD, SIG_IGN); /* as a caller may have left it */
        _exit(supervisor_run(agent, kept, &code, NULL) ? 97 : code);
    }
    close(kept->write_fd);
    return kept->supervisor > 0;
}

/* Reads bytes from the processes below. 0: no process is left; -1: nothing came in time. */
static ssize_t hear(const struct kept *kept, char *text, size_t size)
{
    struct pollfd poller = { .fd = kept->read_fd, .events = POLLIN };
    ssize_t got;

    if (poll(&poller, 1, WAIT_MS) != 1)
        return -1;
    got = read(kept->read_fd, text, size - 1);
    text[got > 0 ? got : 0] = '\0';
    return got;
}

/* Waits until all workers are ready and the agent has written its pid. */
static bool hear_ready(struct kept *kept)
{
    char all[1024] = "";
    size_t length = 0;
    int ready = 0;

    while (!kept->agent || ready < kept->workers) {
        const char *at = all;

        if (hear(kept, all + length, sizeof(all) - length) <= 0)
            return false;
        length = strlen(all);
        ready = 0;
        while ((at = strstr(at, "ready\n")) != NULL) {
            ready++;
            at++;
        }
        at = strstr(all, "agent ");
        if (at && strchr(at, '\n'))
            kept->agent = (pid_t)strtol(at + 6, NULL, 10);
    }
    return true;
}

/* Waits until no process is left below the supervisor; returns its exit code. */
static int wait_for_supervisor(const struct kept *kept)
{
    char text[64];
    int status = -1;
    ssize_t got;

    do
        got = hear(kept, text, sizeof(text));
    while (got > 0);
    if (got < 0 || waitpid(kept->supervisor, &status, 0) != kept->supervisor || !WIFEXITED(status))
        return -1;
    return WEXITSTATUS(status);
}

static void forget(struct kept *kept)
{
    if (kept->read_fd >= 0)
        close(kept->read_fd);
    kept->read_fd = -1;
}

TEST_FLAGS(the_agents_code_is_the_supervisors, TEST_NO_TORTURE)
{
    struct kept kept = { .read_fd = -1 };

    CHECK(t, keep(&kept, t, agent_that_ends));
    CHECK_INT(t, wait_for_supervisor(&kept), ==, 42);
out:
    forget(&kept);
}

/* Twenty times, because each time other processes are left at that moment. */
TEST_FLAGS(nothing_outlives_the_agent, TEST_NO_TORTURE)
{
    struct kept kept = { .read_fd = -1, .workers = 3 };

    for (int i = 0; i < 20; i++) {
        CHECK(t, keep(&kept, t, busy_agent));
        CHECK(t, hear_ready(&kept));
        CHECK(t, !kill(kept.agent, SIGKILL));
        CHECK_INT(t, wait_for_supervisor(&kept), ==, 128 + SIGKILL);
        forget(&kept);
    }
out:
    forget(&kept);
}

TEST_FLAGS(nothing_outlives_an_agent_that_has_just_begun, TEST_NO_TORTURE)
{
    struct kept kept = { .read_fd = -1, .workers = 3 };

    for (int i = 0; i < 20; i++) {
        CHECK(t, keep(&kept, t, busy_agent));
        kept.workers = 0; /* the signal may come between the starts of two workers */
        CHECK(t, hear_ready(&kept));
        kept.workers = 3;
        CHECK(t, !kill(kept.agent, SIGKILL));
        CHECK_INT(t, wait_for_supervisor(&kept), ==, 128 + SIGKILL);
        forget(&kept);
    }
out:
    forget(&kept);
}

TEST_FLAGS(passes_signals_on_to_the_agent, TEST_NO_TORTURE)
{
    static const int signals[] = { SIGTERM, SIGINT, SIGHUP };
    struct kept kept = { .read_fd = -1 };

    for (size_t i = 0; i < ARRAY_SIZE(signals); i++) {
        CHECK(t, keep(&kept, t, agent_that_waits));
        CHECK(t, hear_ready(&kept));
        CHECK(t, !kill(kept.supervisor, signals[i]));
        CHECK_INT(t, wait_for_supervisor(&kept), ==, 21);
        forget(&kept);
    }
out:
    forget(&kept);
}

TEST_FLAGS(the_death_of_the_supervisor_ends_the_agent, TEST_NO_TORTURE)
{
    struct kept kept = { .read_fd = -1 };
    int status;

    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); /* to see how the agent ends */
    CHECK(t, keep(&kept, t, agent_that_waits));
    CHECK(t, hear_ready(&kept));
    CHECK(t, !kill(kept.supervisor, SIGKILL));
    CHECK(t, waitpid(kept.supervisor, &status, 0) == kept.supervisor && WIFSIGNALED(status));
    CHECK(t, waitpid(kept.agent, &status, 0) == kept.agent);
    CHECK(t, WIFEXITED(status) && WEXITSTATUS(status) == 22);
out:
    forget(&kept);
}

/* Otherwise a program that reads the agent's output, such as ssh, would wait for the supervisor,
 * too. */
TEST_FLAGS(the_supervisor_holds_nothing, TEST_NO_TORTURE)
{
    struct kept kept = { .read_fd = -1 };
    char path[64];
    char target[64];
    ssize_t length;

    CHECK(t, keep(&kept, t, agent_that_waits));
    CHECK(t, hear_ready(&kept));
    for (int i = 3; i < 64; i++) {
        snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)kept.supervisor, i);
        do /* the agent may be faster */
            length = readlink(path, target, sizeof(target));
        while (length >= 0 && !kill(kept.supervisor, 0));
    }
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)kept.supervisor, i);
        length = readlink(path, target, sizeof(target) - 1);
        CHECK(t, length > 0);
        target[length] = '\0';
        CHECK_TEXT(t, target, "/dev/null");
    }
    kill(kept.supervisor, SIGTERM);
    CHECK_INT(t, wait_for_supervisor(&kept), ==, 21);
out:
    forget(&kept);
}

/* Runs the supervisor in a process of its own, as a user who may start no further process. */
static int run_without_processes(void)
{
    struct rlimit none = { 0, 0 };
    struct hvd_err err;
    int code;
    int rc;

    if (setrlimit(RLIMIT_NPROC, &none) || (getuid() == 0 && setresuid(65534, 65534, 65534)))
        return 2;
    rc = supervisor_run(agent_that_ends, NULL, &code, &err);
    return rc == HVD_E_LIMIT && strstr(err.text, "the process of the agent cannot be started") ? 0
                                                                                               : 1;
}

TEST_FLAGS(an_agent_may_not_start, TEST_NO_TORTURE)
{
    int status = -1;
    pid_t pid = fork();

    CHECK(t, pid >= 0);
    if (pid == 0)
        _exit(run_without_processes());
    CHECK(t, waitpid(pid, &status, 0) == pid);
    CHECK_INT(t, status, ==, 0);
out:;
}
