#include "agent/io/keeper.h"
#include "tests/lib/children_bench.h"
#include "tests/lib/torture.h"

#include <errno.h>
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

/* A keeper in a process of its own, and what is seen of it: all that runs below it holds the
 * writing end of one pipe, and says there that it is ready. */
struct kept {
    int read_fd;
    int write_fd;
    char fifo[300];
    pid_t keeper;
    pid_t agent;
    int workers;
};

static void say(int fd, const char *text)
{
    if (write(fd, text, strlen(text)) < 0)
        abort();
}

/* Workers with all that is hard to find again, and an agent that has no time for its signals. */
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

/* Until it is told to end; how, it says with its code. */
static int agent_that_waits(void *arg)
{
    const struct kept *kept = arg;
    char text[32];
    sigset_t set;
    int number = 0;

    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, NULL);
    snprintf(text, sizeof(text), "agent %d\n", (int)getpid());
    say(kept->write_fd, text);
    sigwait(&set, &number);
    return number == SIGTERM ? 21 : 22;
}

static bool keep(struct kept *kept, struct test *t, int (*agent)(void *arg))
{
    *kept = (struct kept){ .read_fd = -1, .write_fd = -1, .workers = kept->workers };
    snprintf(kept->fifo, sizeof(kept->fifo), "%s/alive", test_dir(t));
    if (mkfifo(kept->fifo, 0600))
        abort();
    kept->read_fd = open(kept->fifo, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    kept->write_fd = open(kept->fifo, O_WRONLY | O_CLOEXEC);
    kept->keeper = fork();
    if (kept->keeper == 0) {
        int code = 0;

        test_die_with_parent();
        close(kept->read_fd);
        signal(SIGCHLD, SIG_IGN); /* as a caller may have left it */
        _exit(keeper_run(agent, kept, &code, NULL) ? 97 : code);
    }
    close(kept->write_fd);
    return kept->keeper > 0;
}

/* The next bytes from below: how many; 0: nobody is there any more; -1: nothing came in time. */
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

/* All workers are ready, and the agent has said who it is. */
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

/* Nobody below it is left, and it has ended: its code. */
static int wait_for_keeper(const struct kept *kept)
{
    char text[64];
    int status = -1;
    ssize_t got;

    do
        got = hear(kept, text, sizeof(text));
    while (got > 0);
    if (got < 0 || waitpid(kept->keeper, &status, 0) != kept->keeper || !WIFEXITED(status))
        return -1;
    return WEXITSTATUS(status);
}

static void forget(struct kept *kept)
{
    if (kept->read_fd >= 0)
        close(kept->read_fd);
    kept->read_fd = -1;
}

static void the_agents_code_is_the_keepers(struct test *t)
{
    struct kept kept = { .read_fd = -1 };

    CHECK(t, keep(&kept, t, agent_that_ends));
    CHECK_INT(t, wait_for_keeper(&kept), ==, 42);
out:
    forget(&kept);
}

/* Twenty times, as what is left at that moment is never the same. */
static void nothing_outlives_the_agent(struct test *t)
{
    struct kept kept = { .read_fd = -1, .workers = 3 };

    for (int i = 0; i < 20; i++) {
        CHECK(t, keep(&kept, t, busy_agent));
        CHECK(t, hear_ready(&kept));
        CHECK(t, !kill(kept.agent, SIGKILL));
        CHECK_INT(t, wait_for_keeper(&kept), ==, 128 + SIGKILL);
        forget(&kept);
    }
out:
    forget(&kept);
}

static void nothing_outlives_an_agent_that_has_just_begun(struct test *t)
{
    struct kept kept = { .read_fd = -1, .workers = 3 };

    for (int i = 0; i < 20; i++) {
        CHECK(t, keep(&kept, t, busy_agent));
        kept.workers = 0; /* it may be anywhere between two of them */
        CHECK(t, hear_ready(&kept));
        kept.workers = 3;
        CHECK(t, !kill(kept.agent, SIGKILL));
        CHECK_INT(t, wait_for_keeper(&kept), ==, 128 + SIGKILL);
        forget(&kept);
    }
out:
    forget(&kept);
}

static void passes_on_that_it_is_to_end(struct test *t)
{
    static const int signals[] = { SIGTERM, SIGINT, SIGHUP };
    struct kept kept = { .read_fd = -1 };

    for (size_t i = 0; i < ARRAY_SIZE(signals); i++) {
        CHECK(t, keep(&kept, t, agent_that_waits));
        CHECK(t, hear_ready(&kept));
        CHECK(t, !kill(kept.keeper, signals[i]));
        CHECK_INT(t, wait_for_keeper(&kept), ==, 21);
        forget(&kept);
    }
out:
    forget(&kept);
}

static void its_death_ends_the_agent(struct test *t)
{
    struct kept kept = { .read_fd = -1 };
    int status;

    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); /* to see how the agent ends */
    CHECK(t, keep(&kept, t, agent_that_waits));
    CHECK(t, hear_ready(&kept));
    CHECK(t, !kill(kept.keeper, SIGKILL));
    CHECK(t, waitpid(kept.keeper, &status, 0) == kept.keeper && WIFSIGNALED(status));
    CHECK(t, waitpid(kept.agent, &status, 0) == kept.agent);
    CHECK(t, WIFEXITED(status) && WEXITSTATUS(status) == 21);
out:
    forget(&kept);
}

/* Else a program that reads what the agent writes, ssh for one, would wait for the keeper too. */
static void the_keeper_holds_nothing(struct test *t)
{
    struct kept kept = { .read_fd = -1 };
    char path[64];
    char target[64];
    ssize_t length;

    CHECK(t, keep(&kept, t, agent_that_waits));
    CHECK(t, hear_ready(&kept));
    for (int i = 3; i < 64; i++) {
        snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)kept.keeper, i);
        do /* the agent may be quicker */
            length = readlink(path, target, sizeof(target));
        while (length >= 0 && !kill(kept.keeper, 0));
    }
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)kept.keeper, i);
        length = readlink(path, target, sizeof(target) - 1);
        CHECK(t, length > 0);
        target[length] = '\0';
        CHECK_TEXT(t, target, "/dev/null");
    }
    kill(kept.keeper, SIGTERM);
    CHECK_INT(t, wait_for_keeper(&kept), ==, 21);
out:
    forget(&kept);
}

/* In a process of its own: as a user who may have no further process. */
static int run_without_processes(void)
{
    struct rlimit none = { 0, 0 };
    struct hvd_err err;
    int code;
    int rc;

    if (setrlimit(RLIMIT_NPROC, &none) || (getuid() == 0 && setresuid(65534, 65534, 65534)))
        return 2;
    rc = keeper_run(agent_that_ends, NULL, &code, &err);
    return rc == HVD_E_LIMIT && strstr(err.text, "the agent: cannot be started") ? 0 : 1;
}

static void an_agent_may_not_start(struct test *t)
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

TESTS(CASE_FLAGS(the_agents_code_is_the_keepers, TEST_NO_TORTURE),
      CASE_FLAGS(nothing_outlives_the_agent, TEST_NO_TORTURE),
      CASE_FLAGS(nothing_outlives_an_agent_that_has_just_begun, TEST_NO_TORTURE),
      CASE_FLAGS(passes_on_that_it_is_to_end, TEST_NO_TORTURE),
      CASE_FLAGS(its_death_ends_the_agent, TEST_NO_TORTURE),
      CASE_FLAGS(the_keeper_holds_nothing, TEST_NO_TORTURE),
      CASE_FLAGS(an_agent_may_not_start, TEST_NO_TORTURE))
