/*
 * process.c: starts a program in a child: fork, set up the child, exec. The agent starts workers
 * with this file, os/command starts scripts and ssh. Between fork and exec the child calls only
 * functions that are safe in a signal handler, because the parent has threads. A child that fails
 * writes a struct report into a pipe; the kernel closes the pipe when the program runs.
 */
#include "os/process.h"

#include "base/limits.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* The folders to search when PATH is not set. */
#define PATH_WITHOUT_PATH "/usr/local/bin:/usr/bin:/bin"
#define PIPE_FULL         4096 /* PIPE_BUF: a report is written whole or not at all */

/* The stage at which the child failed. */
enum stage { STAGE_SETUP, STAGE_FOLDER, STAGE_PROGRAM, STAGE_INTERPRETER };

/* The message from the child to the parent when the program does not run. */
struct report {
    int stage;
    int number; /* the errno of the failure */
    char name[256];
    bool searched; /* true: the program was searched in the PATH; false: its name holds the path */
};
_Static_assert(sizeof(struct report) <= PIPE_FULL, "a report fits a pipe");

/* Everything that the child needs. The parent makes it before the fork, because the child may not
 * allocate memory. */
struct plan {
    const struct process_spec *spec;
    const char *const *envp;
    const char *path;   /* the PATH to search; NULL: argv[0] holds the path */
    char *candidate;    /* memory for any folder of `path` plus the name */
    pid_t parent;       /* the pid of the parent, as the parent sees it */
    int report;         /* the child's end of the pipe for a struct report */
    sigset_t unblocked; /* the empty set of signals, which the program starts with as its mask */
};

/* Called in the child: reports to the parent why the program does not run, and exits. `number` is
 * an errno. The exit code is 127 as in a shell; 126: the report could not be written. */
NORETURN static void child_give_up(const struct plan *plan, enum stage stage, int number)
{
    struct report report = { .stage = (int)stage,
                             .number = number,
                             .searched = plan->path != NULL };
    const char *name = stage == STAGE_FOLDER ? plan->spec->cwd : plan->spec->argv[0];
    ssize_t written;

    memcpy(report.name, name, strnlen(name, sizeof(report.name) - 1));
    written = write(plan->report, &report, sizeof(report));
    _exit(written == sizeof(report) ? 127 : 126);
}

/* Removes const: execve does not change the texts, although its type allows it. */
static char *const *process_unconst(const char *const *texts)
{
    return (char *const *)(uintptr_t)texts;
}

/* Tries to run the file. Returns only when the search in the PATH has to go on. *denied: a file of
 * that name exists but may not be run. */
static void child_try(const struct plan *plan, const char *file, bool *denied)
{
    int number;

    (void)execve(file, process_unconst(plan->spec->argv), process_unconst(plan->envp));
    number = errno;
    if (number == EACCES)
        *denied = true;
    else if (number == ENOENT && !access(file, F_OK))
        child_give_up(plan, STAGE_INTERPRETER, number);
    else if (number != ENOENT && number != ENOTDIR && number != ENAMETOOLONG)
        child_give_up(plan, STAGE_PROGRAM, number);
}

/* Runs the program by its path, or from the folders of the PATH. */
NORETURN static void child_run(const struct plan *plan)
{
    const char *name = plan->spec->argv[0];
    const char *rest = plan->path;
    bool denied = false;

    if (!rest)
        child_try(plan, name, &denied);
    while (rest) {
        const char *end = strchr(rest, ':');
        size_t length = end ? (size_t)(end - rest) : strlen(rest);
        size_t slash = length > 0; /* an empty part of the PATH is the working folder */

        memcpy(plan->candidate, rest, length);
        plan->candidate[length] = '/';
        memcpy(plan->candidate + length + slash, name, strlen(name) + 1);
        child_try(plan, plan->candidate, &denied);
        rest = end ? end + 1 : NULL;
    }
    child_give_up(plan, STAGE_PROGRAM, denied ? EACCES : ENOENT);
}

/* Runs in the child after the fork: sets up the process as the caller wants it, then runs the
 * program. No memory may be allocated here. */
NORETURN static void child_main(const struct plan *plan)
{
    const struct sigaction usual = { .sa_handler = SIG_DFL };
    const struct process_spec *spec = plan->spec;
    const int given[] = { spec->in, spec->out, spec->err };
    struct rlimit limit = { 1024, 1024 };
    int fds[3];

    if (spec->session ? setsid() < 0 : spec->group && setpgid(0, 0))
        child_give_up(plan, STAGE_SETUP, errno);
    /* a niceness below 0 (a higher priority) of this process is not for the program */
    if (spec->plain_priority && getpriority(PRIO_PROCESS, 0) < 0 && setpriority(PRIO_PROCESS, 0, 0))
        child_give_up(plan, STAGE_SETUP, errno);
    /* Sets the descriptors 0, 1 and 2. All given descriptors are first moved above 2, because the
     * caller may give 0, 1 and 2 in another order. */
    for (int i = 0; i < 3; i++) {
        fds[i] = given[i] >= 0 ? fcntl(given[i], F_DUPFD_CLOEXEC, 3)
                               : open("/dev/null", (i ? O_WRONLY : O_RDONLY) | O_CLOEXEC);
        if (given[i] < 0 && fds[i] >= 0 && fds[i] < 3)
            fds[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, 3);
        if (fds[i] < 0)
            child_give_up(plan, STAGE_SETUP, errno);
    }
    for (int i = 0; i < 3; i++)
        if (dup2(fds[i], i) < 0)
            child_give_up(plan, STAGE_SETUP, errno);
    if (spec->dies_with_us) {
        if (prctl(PR_SET_PDEATHSIG, spec->dies_with_us))
            child_give_up(plan, STAGE_SETUP, errno);
        if (getppid() != plan->parent) /* the parent died before the prctl took effect */
            _exit(126);
    }
    if (spec->cwd && chdir(spec->cwd))
        child_give_up(plan, STAGE_FOLDER, errno);
    /* All descriptors except 0, 1 and 2 are closed when the program begins, also the pipe of the
     * report. */
    if (close_range(3, ~0u, CLOSE_RANGE_CLOEXEC)) {
        getrlimit(RLIMIT_NOFILE, &limit); /* needed on a kernel before 5.11 */
        for (rlim_t fd = 3; fd < limit.rlim_cur; fd++)
            (void)fcntl((int)fd, F_SETFD, FD_CLOEXEC);
    }
    for (int number = 1; number < NSIG; number++)
        (void)sigaction(number, &usual, NULL); /* fails for SIGKILL and SIGSTOP only */
    sigprocmask(SIG_SETMASK, &plan->unblocked, NULL);
    child_run(plan);
}

/* Forks: the child runs the program, the parent gets its pid, or -1 with errno. No signal handler
 * of the parent may run in the child: all signals are blocked until the child has reset the
 * handlers. */
static pid_t process_fork(struct plan *plan)
{
    sigset_t all;
    sigset_t before;
    pid_t pid;
    int number;

    sigemptyset(&plan->unblocked);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pid = fork();
    if (pid == 0)
        child_main(plan);
    number = errno;
    if (pid > 0 && plan->spec->group && !plan->spec->session)
        /* the child makes the same call, so the group exists from now on in both */
        (void)setpgid(pid, pid);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = number;
    return pid;
}

/* Sets the error for a process that could not be made, and the remedy for this errno. */
static int process_failed(const char *name, int number, struct hvd_err *err)
{
    switch (number) {
    case EAGAIN:
        return err_set(err, HVD_E_LIMIT,
                       "%s: too many processes for this user on this host; raise ulimit -u, or "
                       "the pids limit of its control group",
                       name);
    case EMFILE:
    case ENFILE:
        return err_set(err, HVD_E_LIMIT,
                       "%s: too many open file descriptors to start this program; raise the limit "
                       "of open files (ulimit -n)",
                       name);
    case ENOMEM:
        return err_set(err, HVD_E_NOMEM,
                       "%s: no memory to start this program; free memory on this host", name);
    default:
        return err_set(
            err, HVD_E_IO,
            "%s: cannot be started: %s; check that this path exists and is executable on this host",
            name, strerror(number));
    }
}

/* Forks and runs a program. The caller reads later from *ret_report whether the program runs: the
 * pipe closes by itself when the program begins (close-on-exec). */
int process_start(const struct process_spec *spec, pid_t *ret_pid, int *ret_report,
                  struct hvd_err *err)
{
    struct plan plan = { .spec = spec, .parent = getpid() };
    const char *name = spec->argv[0];
    int fds[2];
    pid_t pid;
    int number; /* the errno of the call that failed */

    plan.envp = spec->envp ? spec->envp : (const char *const *)environ;
    if (!name || !*name)
        return err_set(err, HVD_E_NOTFOUND, "no program is named; name one to run");
    if (!strchr(name, '/')) {
        plan.path = PATH_WITHOUT_PATH;
        for (const char *const *variable = plan.envp; *variable; variable++)
            if (!strncmp(*variable, "PATH=", 5)) {
                plan.path = *variable + 5;
                break;
            }
        plan.candidate = mem_alloc(strlen(plan.path) + strlen(name) + 2);
        if (!plan.candidate)
            return err_set(err, HVD_E_NOMEM,
                           "%s: no memory to start this program; free memory on this host", name);
    }
    if (pipe2(fds, O_CLOEXEC)) {
        number = errno;
        mem_free(plan.candidate);
        return process_failed(name, number, err);
    }
    plan.report = fcntl(fds[1], F_DUPFD_CLOEXEC, 3); /* The child replaces the descriptors 0, 1
                                                      * and 2, so its end of the pipe gets a
                                                      * higher number. */
    number = errno;
    close(fds[1]);
    pid = plan.report < 0 ? -1 : process_fork(&plan);
    if (plan.report >= 0) {
        number = errno;
        close(plan.report);
    }
    mem_free(plan.candidate);
    if (pid < 0) {
        close(fds[0]);
        return process_failed(name, number, err);
    }
    *ret_pid = pid;
    *ret_report = fds[0];
    return 0;
}

/* true: this user may run the program `name`: a path, or a name in a folder of the PATH. The
 * function calls itself with the path for each folder. */
bool process_findable(const char *name)
{
    const char *rest = getenv("PATH");
    char path[LIMIT_PATH_BYTES];
    bool found = false;
    struct stat st;

    if (strchr(name, '/'))
        return !stat(name, &st) && S_ISREG(st.st_mode) && !access(name, X_OK);
    rest = rest ? rest : PATH_WITHOUT_PATH;
    while (rest && !found) {
        const char *end = strchr(rest, ':');
        size_t length = end ? (size_t)(end - rest) : strlen(rest);

        /* an empty part of the PATH is the working folder */
        if (length < sizeof(path) &&
            snprintf(path, sizeof(path), "%.*s/%s", length ? (int)length : 1, length ? rest : ".",
                     name) < (int)sizeof(path))
            found = process_findable(path);
        rest = end ? end + 1 : NULL;
    }
    return found;
}

/* Sets the error for a program that could not be executed: what is wrong with the file, and the
 * remedy. */
static int process_no_program(const struct report *report, struct hvd_err *err)
{
    const char *name = report->name;

    if (report->stage == STAGE_INTERPRETER)
        return err_set(err, HVD_E_NOTFOUND,
                       "%s: the interpreter or loader of this program is missing; check the first "
                       "line (#!) of the file, and that the file is made for this machine",
                       name);
    switch (report->number) {
    case ENOENT:
        if (report->searched)
            return err_set(err, HVD_E_NOTFOUND,
                           "%s: no folder of the PATH has this program; install the program on "
                           "this host, or give its path",
                           name);
        return err_set(err, HVD_E_NOTFOUND, "%s: no such program; check the path on this host",
                       name);
    case EACCES:
    case EPERM:
        return err_set(err, HVD_E_DENIED,
                       "%s: this user may not run the program; use chmod +x on the file, on a disk "
                       "that is not mounted noexec",
                       name);
    case ENOEXEC:
        return err_set(
            err, HVD_E_DENIED,
            "%s: the file is neither a program for this machine nor a script that begins with #!; "
            "put #!/bin/sh on the first line",
            name);
    case E2BIG:
        return err_set(
            err, HVD_E_LIMIT,
            "%s: the arguments and the environment of this program are too long; shorten them",
            name);
    default: return process_failed(name, report->number, err);
    }
}

/* Reads the report of process_start. 0: the program runs, because the pipe was closed without a
 * report. */
int process_report(int report_fd, struct hvd_err *err)
{
    struct report report;
    ssize_t got = TEMP_FAILURE_RETRY(read(report_fd, &report, sizeof(report)));

    if (got == 0)
        return 0;
    if (got != sizeof(report))
        return err_set(err, HVD_E_IO,
                       "a process was started, but has not reported whether its program runs; "
                       "check the memory and the limits of this host");
    report.name[sizeof(report.name) - 1] = '\0';
    if (report.stage == STAGE_SETUP)
        return process_failed(report.name, report.number, err);
    if (report.stage != STAGE_FOLDER)
        return process_no_program(&report, err);
    if (report.number == ENOENT || report.number == ENOTDIR)
        return err_set(err, HVD_E_NOTFOUND,
                       "%s: no program can work in this folder: %s; create the folder on this host",
                       report.name, strerror(report.number));
    if (report.number == EACCES)
        return err_set(err, HVD_E_DENIED,
                       "%s: no program can work in this folder: %s; let this user enter the folder",
                       report.name, strerror(report.number));
    return err_set(err, HVD_E_IO,
                   "%s: no program can work in this folder: %s; check the disk of the folder",
                   report.name, strerror(report.number));
}

/* Starts a program and waits until it runs. On failure the child is reaped here. */
int process_spawn(const struct process_spec *spec, pid_t *ret_pid, struct hvd_err *err)
{
    int report = -1;
    pid_t pid = 0;
    int rc = process_start(spec, &pid, &report, err);

    if (rc)
        return rc;
    rc = process_report(report, err);
    close(report);
    if (rc)
        (void)TEMP_FAILURE_RETRY(waitpid(pid, NULL, 0));
    else
        *ret_pid = pid;
    return rc;
}
