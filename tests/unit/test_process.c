/*
 * test_process.c: os/process with real processes: descriptors, groups, priorities, ends that are
 * seen once, and process names with any bytes.
 */
#include "base/buf.h"
#include "os/owned_process.h"
#include "os/process.h"
#include "tests/lib/test.h"

#include <dirent.h>
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

#define WAIT_MS 60000
#define NOBODY  65534

static int count_descriptors(void)
{
    DIR *folder = opendir("/proc/self/fd");
    int count = 0;

    while (folder && readdir(folder))
        count++;
    if (folder)
        closedir(folder);
    return count;
}

/* Writes a script with this mode, and returns its path. */
static const char *script(struct test *t, const char *text, mode_t mode)
{
    static char path[300];
    FILE *file;

    snprintf(path, sizeof(path), "%s/script", test_dir(t));
    file = fopen(path, "w");
    if (!file || fputs(text, file) < 0 || fclose(file) || chmod(path, mode))
        abort();
    return path;
}

/* Runs a command to its end. Returns its wait status, and its standard output in *said. */
static int run(const struct process_spec *wanted, struct buf *said, struct hvd_err *err)
{
    struct process_spec spec = *wanted;
    int status = -1;
    char text[4096];
    int fds[2];
    pid_t pid;
    ssize_t got;
    int lost = 0;
    int rc;

    if (pipe2(fds, O_CLOEXEC))
        abort();
    spec.out = fds[1];
    rc = process_spawn(&spec, &pid, err);
    close(fds[1]);
    while (!rc && !lost && (got = read(fds[0], text, sizeof(text))) > 0)
        lost = buf_append(said, text, (size_t)got);
    close(fds[0]);
    if (rc)
        return rc;
    return waitpid(pid, &status, 0) == pid && !lost ? status : -1;
}

static struct process_spec shell(const char *command)
{
    static const char *argv[4];

    argv[0] = "/bin/sh";
    argv[1] = "-c";
    argv[2] = command;
    return (struct process_spec){ .argv = argv, .in = -1, .out = -1, .err = -1 };
}

TEST(runs_a_program)
{
    const char *argv[] = { "printf", "%s|", "a b", "", "$HOME", NULL };
    const char *envp[] = { "PATH=/no/such::/usr/bin:/bin", NULL };
    struct process_spec spec = { .argv = argv, .envp = envp, .in = -1, .err = -1 };
    struct buf said;

    buf_init(&said, 65536);
    CHECK_INT(t, run(&spec, &said, NULL), ==, 0);
    CHECK_TEXT(t, buf_text(&said), "a b||$HOME|");
out:
    buf_release(&said);
}

/* A child process gets only its standard descriptors and no blocked or ignored signals; the parent
 * keeps its own. */
TEST(passes_nothing_on)
{
    struct process_spec spec =
        shell("ls /proc/self/fd | wc -l; grep -E 'Sig(Blk|Ign)' /proc/self/status; cat");
    int leaked = dup(STDERR_FILENO); /* not close-on-exec */
    struct sigaction ignore = { .sa_handler = SIG_IGN };
    struct sigaction before;
    sigset_t blocked;
    sigset_t were;
    struct buf said;

    buf_init(&said, 65536);
    sigaction(SIGPIPE, &ignore, &before);
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR1);
    sigprocmask(SIG_BLOCK, &blocked, &were);
    CHECK_INT(t, run(&spec, &said, NULL), ==, 0);
    CHECK_TEXT(t, buf_text(&said), "4\nSigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
    sigprocmask(SIG_BLOCK, NULL, &blocked);
    CHECK(t, sigismember(&blocked, SIGUSR1) == 1);
out:
    sigprocmask(SIG_SETMASK, &were, NULL);
    sigaction(SIGPIPE, &before, NULL);
    close(leaked);
    buf_release(&said);
}

TEST_FLAGS(descriptors_may_be_given_crosswise, TEST_NO_TORTURE)
{
    struct process_spec spec = shell("echo to-1; echo to-2 >&2");
    int one = open("/dev/null", O_WRONLY | O_CLOEXEC);
    int saved[3] = { dup(0), dup(1), dup(2) };
    int status = -1;
    char said[64] = "";
    int fds[2] = { -1, -1 };
    pid_t pid;

    CHECK(t, one >= 0 && !pipe2(fds, O_CLOEXEC));
    dup2(one, 1); /* the child's 1 is this process's 2, and its 2 this process's 1 */
    dup2(fds[1], 2);
    close(fds[1]);
    spec.out = 2;
    spec.err = 1;
    CHECK_OK(t, process_spawn(&spec, &pid, NULL));
    CHECK(t, waitpid(pid, &status, 0) == pid && status == 0);
    CHECK(t, read(fds[0], said, sizeof(said) - 1) == 5);
    CHECK_TEXT(t, said, "to-1\n");
out:
    for (int i = 0; i < 3; i++) {
        dup2(saved[i], i);
        close(saved[i]);
    }
    close(one);
    close(fds[0]);
}

TEST_FLAGS(ours_may_be_closed, TEST_NO_TORTURE)
{
    struct process_spec spec = shell("test -c /proc/self/fd/0 -a -c /proc/self/fd/2");
    int saved[3] = { dup(0), dup(1), dup(2) };
    int status = -1;
    pid_t pid;

    for (int i = 0; i < 3; i++)
        close(i);
    CHECK_OK(t, process_spawn(&spec, &pid, NULL));
    CHECK(t, waitpid(pid, &status, 0) == pid && status == 0);
out:
    for (int i = 0; i < 3; i++) {
        dup2(saved[i], i);
        close(saved[i]);
    }
}

TEST(a_failure_names_the_culprit_and_the_remedy)
{
    const char *path[] = { "PATH=/usr/bin:/no/such", NULL };
    const char *argv[] = { "no-such-program", NULL };
    struct process_spec spec = { .argv = argv, .envp = path, .in = -1, .out = -1, .err = -1 };
    int before = count_descriptors();
    struct hvd_err err = { 0 };
    pid_t pid = 77;

    CHECK_CODE(t, process_spawn(&spec, &pid, &err), HVD_E_NOTFOUND);
    CHECK_TEXT(t, err.text,
               "no-such-program: no folder of the PATH has this program; install the program on "
               "this host, or give its path");
    argv[0] = "/no/such/program";
    CHECK_CODE(t, process_spawn(&spec, &pid, &err), HVD_E_NOTFOUND);
    CHECK_TEXT(t, err.text, "/no/such/program: no such program; check the path on this host");
    argv[0] = script(t, "#!/bin/sh\n", 0600);
    CHECK_CODE(t, process_spawn(&spec, &pid, &err), HVD_E_DENIED);
    CHECK_HAS(t, err.text, "/script: this user may not run the program; use chmod +x");
    argv[0] = script(t, "echo no first line\n", 0700);
    CHECK_CODE(t, process_spawn(&spec, &pid, &err), HVD_E_DENIED);
    CHECK_HAS(t, err.text, "put #!/bin/sh on the first line");
    argv[0] = script(t, "#!/no/such/interpreter\n", 0700);
    CHECK_CODE(t, process_spawn(&spec, &pid, &err), HVD_E_NOTFOUND);
    CHECK_HAS(
        t, err.text,
        "/script: the interpreter or loader of this program is missing; check the first line (#!)");
    argv[0] = "/bin/true";
    spec.cwd = "/no/such/folder";
    CHECK_CODE(t, process_spawn(&spec, &pid, &err), HVD_E_NOTFOUND);
    CHECK_TEXT(
        t, err.text,
        "/no/such/folder: no program can work in this folder: No such file or directory; create "
        "the folder on this host");
    argv[0] = "";
    CHECK_CODE(t, process_spawn(&spec, &pid, &err), HVD_E_NOTFOUND);
    CHECK_INT(t, pid, ==, 77);
    CHECK_INT(t, count_descriptors(), ==, before);
    CHECK(t, waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);
out:;
}

/* The first program of this name in PATH may not be run; the next one is found. */
TEST(the_search_goes_on_after_a_denied_program)
{
    const char *denied = script(t, "#!/bin/sh\n", 0600);
    const char *argv[] = { "script", NULL };
    const char *envp[] = { NULL, NULL };
    struct process_spec spec = { .argv = argv, .envp = envp, .in = -1, .err = -1 };
    struct hvd_err err;
    struct buf said;
    char path[800];
    int length;

    buf_init(&said, 65536);
    length = snprintf(path, sizeof(path), "PATH=%.*s", (int)strlen(denied) - 7, denied);
    envp[0] = path;
    CHECK_CODE(t, run(&spec, &said, &err), HVD_E_DENIED);
    denied = script(t, "#!/bin/sh\necho it runs\n", 0700);
    snprintf(path + length, sizeof(path) - (size_t)length, ":%.*s", (int)strlen(denied) - 7,
             denied);
    CHECK_INT(t, run(&spec, &said, NULL), ==, 0);
    CHECK_TEXT(t, buf_text(&said), "it runs\n");
out:
    buf_release(&said);
}

/* Runs in a process of its own, as a user who may start no further process. */
static int spawn_without_processes(void)
{
    struct process_spec spec = shell("true");
    struct rlimit none = { 0, 0 };
    struct hvd_err err;
    pid_t pid;
    int rc;

    if (setrlimit(RLIMIT_NPROC, &none) || (getuid() == 0 && setresuid(NOBODY, NOBODY, NOBODY)))
        return 2;
    rc = process_spawn(&spec, &pid, &err);
    return rc == HVD_E_LIMIT && strstr(err.text, "/bin/sh: too many processes") ? 0 : 1;
}

TEST(a_program_is_findable_or_not)
{
    const char *path = script(t, "#!/bin/sh\n", 0700);
    char folder[300];

    CHECK(t, process_findable("sh") && process_findable("/bin/sh") && process_findable(path));
    CHECK(t, !process_findable("no-such-program") && !process_findable("/no/such/program"));
    snprintf(folder, sizeof(folder), "%.*s", (int)(strrchr(path, '/') - path), path);
    CHECK(t, !process_findable("/bin") && !process_findable(folder));
    setenv("PATH", folder, 1);
    CHECK(t, process_findable("script") && !process_findable("sh"));
    setenv("PATH", "/no/such:", 1); /* the empty part is the working folder */
    CHECK(t, !chdir(folder) && process_findable("script") && !process_findable("sh"));
    CHECK(t, !chmod(path, 0600) && !process_findable("script"));
    unsetenv("PATH");
    CHECK(t, process_findable("sh"));
out:
    setenv("PATH", "/usr/local/bin:/usr/bin:/bin", 1);
}

TEST_FLAGS(too_many_processes, TEST_NO_TORTURE)
{
    int status = -1;
    pid_t pid = fork();

    CHECK(t, pid >= 0);
    if (pid == 0)
        _exit(spawn_without_processes());
    CHECK(t, waitpid(pid, &status, 0) == pid);
    CHECK_INT(t, status, ==, 0);
out:;
}

TEST_FLAGS(too_many_descriptors, TEST_NO_TORTURE)
{
    struct process_spec spec = shell("true");
    struct rlimit before;
    struct rlimit few;
    struct hvd_err err;
    pid_t pid;

    CHECK(t, !getrlimit(RLIMIT_NOFILE, &before));
    few = (struct rlimit){ 0, before.rlim_max };
    CHECK(t, !setrlimit(RLIMIT_NOFILE, &few));
    CHECK_CODE(t, process_spawn(&spec, &pid, &err), HVD_E_LIMIT);
    CHECK_HAS(t, err.text, "(ulimit -n)");
out:
    setrlimit(RLIMIT_NOFILE, &before);
}

TEST_FLAGS(leads_a_group_or_a_session, TEST_NO_TORTURE)
{
    struct process_spec spec = shell("read -r line");
    struct process_state state;
    int fds[2] = { -1, -1 };
    pid_t pid = 0;

    CHECK(t, !pipe2(fds, O_CLOEXEC));
    spec.in = fds[0];
    spec.group = true;
    CHECK_OK(t, process_spawn(&spec, &pid, NULL));
    CHECK_OK(t, process_look(pid, &state));
    CHECK_INT(t, state.group, ==, pid);
    CHECK_INT(t, state.parent, ==, getpid());
    CHECK(t, getsid(pid) == getsid(0));
    kill(pid, SIGKILL);
    CHECK(t, waitpid(pid, NULL, 0) == pid);
    spec.session = true;
    CHECK_OK(t, process_spawn(&spec, &pid, NULL));
    CHECK_INT(t, getsid(pid), ==, pid);
    kill(pid, SIGKILL);
    CHECK(t, waitpid(pid, NULL, 0) == pid);
out:
    close(fds[0]);
    close(fds[1]);
}

TEST(takes_its_priority_back)
{
    struct process_spec spec = shell("cut -d' ' -f19 /proc/$$/stat");
    struct buf said;

    buf_init(&said, 65536);
    if (setpriority(PRIO_PROCESS, 0, -5)) /* not permitted: then there is nothing to take back */
        goto out;
    CHECK_INT(t, run(&spec, &said, NULL), ==, 0);
    CHECK_TEXT(t, buf_text(&said), "-5\n");
    buf_clear(&said);
    spec.plain_priority = true;
    CHECK_INT(t, run(&spec, &said, NULL), ==, 0);
    CHECK_TEXT(t, buf_text(&said), "0\n");
out:
    (void)setpriority(PRIO_PROCESS, 0, 0);
    buf_release(&said);
}

static bool readable(int fd)
{
    struct pollfd poller = { .fd = fd, .events = POLLIN };

    return poll(&poller, 1, WAIT_MS) == 1;
}

TEST_FLAGS(dies_with_us, TEST_NO_TORTURE)
{
    struct process_spec spec = shell("exec cat");
    int fds[2] = { -1, -1 };
    int fifo[2] = { -1, -1 };
    pid_t parent;
    char byte;

    spec.dies_with_us = SIGKILL;
    CHECK(t, !pipe2(fds, O_CLOEXEC) && !pipe2(fifo, O_CLOEXEC));
    parent = fork();
    CHECK(t, parent >= 0);
    if (parent == 0) {
        pid_t pid;

        spec.in = fifo[0];
        spec.out = fds[1]; /* as the end of the child the pipe closes */
        _exit(process_spawn(&spec, &pid, NULL) ? 1 : 0);
    }
    close(fds[1]);
    CHECK(t, waitpid(parent, NULL, 0) == parent);
    CHECK(t, readable(fds[0]));
    CHECK_INT(t, read(fds[0], &byte, 1), ==, 0);
out:
    close(fds[0]);
    close(fifo[0]);
    close(fifo[1]);
}

TEST_FLAGS(an_end_is_seen, TEST_NO_TORTURE)
{
    struct process_spec spec = shell("read -r line; exit 3");
    struct process_state state;
    int status;
    int fds[2];
    int watch = -1;
    pid_t pid;

    CHECK(t, !pipe2(fds, O_CLOEXEC));
    spec.in = fds[0];
    CHECK_OK(t, process_spawn(&spec, &pid, NULL));
    watch = process_watch(pid);
    CHECK(t, watch >= 0 && fcntl(watch, F_GETFD) == FD_CLOEXEC);
    CHECK_OK(t, process_look(pid, &state));
    CHECK(t, !state.ending && state.wait_status == 0);
    close(fds[0]);
    close(fds[1]);
    CHECK(t, readable(watch));
    CHECK_OK(t, process_look(pid, &state));
    CHECK(t, state.ending && state.wait_status == 3 << 8);
    CHECK(t, waitpid(pid, &status, 0) == pid && status == 3 << 8);
    CHECK_CODE(t, process_look(pid, &state), HVD_E_NOTFOUND);
    status = 0;
    CHECK(t, process_status(watch, &status) || status == 3 << 8);
out:
    if (watch >= 0)
        close(watch);
}

TEST_FLAGS(a_stopped_process_does_not_end, TEST_NO_TORTURE)
{
    struct process_spec spec = shell("kill -STOP $$");
    struct process_state state;
    siginfo_t info;
    pid_t pid;

    CHECK_OK(t, process_spawn(&spec, &pid, NULL));
    CHECK(t, !waitid(P_PID, (id_t)pid, &info, WSTOPPED));
    CHECK_OK(t, process_look(pid, &state));
    CHECK(t, !state.ending && state.wait_status == 0);
    kill(pid, SIGKILL); /* is pending, or at work */
    CHECK_OK(t, process_look(pid, &state));
    CHECK(t, state.ending && state.wait_status == SIGKILL);
    CHECK(t, waitpid(pid, NULL, 0) == pid);
out:;
}

/* The name looks like the fields that follow the name. */
TEST(a_name_may_hold_anything)
{
    struct process_state state;
    char before[17];

    prctl(PR_GET_NAME, before);
    prctl(PR_SET_NAME, "a) Z 1 2 ) (");
    CHECK_OK(t, process_look(getpid(), &state));
    CHECK_INT(t, state.parent, ==, getppid());
    CHECK_INT(t, state.group, ==, getpgrp());
    CHECK(t, !state.ending);
    CHECK_CODE(t, process_look(-1, &state), HVD_E_NOTFOUND);
out:
    prctl(PR_SET_NAME, before);
}

/* The process reaps all its children, as the agent does, before the owner of a program asks: the
 * owner gets the status in any case. An orphan's status is kept for no one. */
TEST(a_reaped_program_keeps_its_status_for_its_owner)
{
    const char *fails[] = { "/bin/sh", "-c", "exit 3", NULL };
    const char *dies[] = { "/bin/sh", "-c", "kill -TERM $$", NULL };
    struct process_spec spec = { .argv = fails, .in = -1, .out = -1, .err = -1 };
    struct pollfd end = { .fd = -1, .events = POLLIN };
    pid_t pid = 0;

    for (int reaped = 0; reaped < 2; reaped++)
        for (int i = 0; i < 2; i++) {
            int status;

            spec.argv = i ? dies : fails;
            CHECK_OK(t, owned_process_start(&spec, &pid, &end.fd, NULL));
            CHECK(t, poll(&end, 1, WAIT_MS) == 1);
            if (reaped) {
                owned_process_reap(pid);
                CHECK(t, waitpid(pid, NULL, WNOHANG) < 0 && errno == ECHILD);
            }
            status = owned_process_end(pid, end.fd);
            close(end.fd);
            end.fd = -1;
            CHECK(t, i ? WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM
                       : WIFEXITED(status) && WEXITSTATUS(status) == 3);
        }
out:
    if (end.fd >= 0) {
        (void)owned_process_end(pid, end.fd);
        close(end.fd);
    }
}

TEST_FLAGS(thousands_leave_nothing, TEST_NO_TORTURE)
{
    const char *missing[] = { "/no/such/program", NULL };
    const char *program[] = { "/bin/true", NULL };
    struct process_spec spec = { .in = -1, .out = -1, .err = -1 };
    int before = count_descriptors();
    pid_t pid;

    for (int i = 0; i < 2000; i++) {
        spec.argv = i % 8 ? missing : program;
        if (!process_spawn(&spec, &pid, NULL))
            CHECK(t, waitpid(pid, NULL, 0) == pid);
    }
    CHECK_INT(t, count_descriptors(), ==, before);
    CHECK(t, waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);
out:;
}
