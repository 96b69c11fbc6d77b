#include "os/process.h"

#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATH_WITHOUT_PATH "/usr/local/bin:/usr/bin:/bin"
#define PIPE_FULL         4096 /* PIPE_BUF: a report is written whole or not at all */

/* What the child was doing when it failed. */
enum stage { STAGE_SETUP, STAGE_FOLDER, STAGE_PROGRAM, STAGE_INTERPRETER };

/* From the child to us, when the program does not run. */
struct report {
    int stage;
    int number; /* errno */
    char name[256];
    bool searched; /* in the PATH; otherwise the name says where it is */
};
_Static_assert(sizeof(struct report) <= PIPE_FULL, "a report fits a pipe");

/* Made before the fork: after it only what is safe in a signal handler may be called. */
struct plan {
    const struct process_spec *spec;
    const char *const *envp;
    const char *path; /* NULL: argv[0] says where it is */
    char *candidate;  /* room for any folder of path, and the name */
    size_t candidate_bytes;
    pid_t parent;
    int report;
    sigset_t unblocked;
};

static const char *find_path(const char *const *envp)
{
    for (; *envp; envp++)
        if (!strncmp(*envp, "PATH=", 5))
            return *envp + 5;
    return PATH_WITHOUT_PATH;
}

static int plan_make(struct plan *plan, const struct process_spec *spec, struct hvd_err *err)
{
    const char *name = spec->argv[0];

    *plan = (struct plan){ .spec = spec, .parent = getpid(), .report = -1 };
    plan->envp = spec->envp ? spec->envp : (const char *const *)environ;
    if (!name || !*name)
        return err_set(err, HVD_E_NOTFOUND, "no program is named; name one to run");
    if (strchr(name, '/'))
        return 0;
    plan->path = find_path(plan->envp);
    plan->candidate_bytes = strlen(plan->path) + strlen(name) + 2;
    plan->candidate = mem_alloc(plan->candidate_bytes);
    if (!plan->candidate)
        return err_set(err, HVD_E_NOMEM, "%s: no memory to start it", name);
    return 0;
}

static void copy_cut(char *to, size_t size, const char *from)
{
    size_t length = strnlen(from, size - 1);

    memcpy(to, from, length);
    to[length] = '\0';
}

NORETURN static void give_up(const struct plan *plan, enum stage stage, int number)
{
    struct report report = { .stage = (int)stage,
                             .number = number,
                             .searched = plan->path != NULL };
    ssize_t written;

    copy_cut(report.name, sizeof(report.name),
             stage == STAGE_FOLDER ? plan->spec->cwd : plan->spec->argv[0]);
    written = write(plan->report, &report, sizeof(report));
    _exit(written == sizeof(report) ? 127 : 126);
}

static void set_signals(const struct plan *plan)
{
    const struct sigaction usual = { .sa_handler = SIG_DFL };

    for (int number = 1; number < NSIG; number++)
        (void)sigaction(number, &usual, NULL); /* SIGKILL and SIGSTOP have no other */
    sigprocmask(SIG_SETMASK, &plan->unblocked, NULL);
}

/* All but 0, 1 and 2 are closed when the program begins; the report among them. */
static void close_others(void)
{
    struct rlimit limit = { 1024, 1024 };

    if (!close_range(3, ~0u, CLOSE_RANGE_CLOEXEC))
        return;
    getrlimit(RLIMIT_NOFILE, &limit); /* a kernel before 5.11 */
    for (rlim_t fd = 3; fd < limit.rlim_cur; fd++)
        (void)fcntl((int)fd, F_SETFD, FD_CLOEXEC);
}

/* First out of the way of 0, 1 and 2, then there: they may be given crosswise. */
static bool set_standard(const struct process_spec *spec)
{
    const int given[] = { spec->in, spec->out, spec->err };
    int fds[3];

    for (int i = 0; i < 3; i++) {
        fds[i] = given[i] >= 0 ? fcntl(given[i], F_DUPFD_CLOEXEC, 3)
                               : open("/dev/null", (i ? O_WRONLY : O_RDONLY) | O_CLOEXEC);
        if (given[i] < 0 && fds[i] >= 0 && fds[i] < 3)
            fds[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, 3);
        if (fds[i] < 0)
            return false;
    }
    for (int i = 0; i < 3; i++)
        if (dup2(fds[i], i) < 0)
            return false;
    return true;
}

static bool set_place(const struct process_spec *spec)
{
    if (spec->session ? setsid() < 0 : spec->group && setpgid(0, 0))
        return false;
    return !spec->plain_priority || getpriority(PRIO_PROCESS, 0) >= 0 ||
           !setpriority(PRIO_PROCESS, 0, 0);
}

/* execve changes nothing of what its type lets it change. */
static char *const *unconst(const char *const *texts)
{
    return (char *const *)(uintptr_t)texts;
}

/* Tries one file; returns when it is not the one. Of execve's errors those that say "not here" let
 * the search go on. */
static void try_program(const struct plan *plan, const char *file, bool *denied)
{
    int number;

    (void)execve(file, unconst(plan->spec->argv), unconst(plan->envp));
    number = errno;
    if (number == EACCES)
        *denied = true;
    else if (number == ENOENT && !access(file, F_OK))
        give_up(plan, STAGE_INTERPRETER, number);
    else if (number != ENOENT && number != ENOTDIR && number != ENAMETOOLONG)
        give_up(plan, STAGE_PROGRAM, number);
}

NORETURN static void run_program(const struct plan *plan)
{
    const char *name = plan->spec->argv[0];
    const char *rest = plan->path;
    bool denied = false;

    if (!rest)
        try_program(plan, name, &denied);
    while (rest) {
        const char *end = strchr(rest, ':');
        size_t length = end ? (size_t)(end - rest) : strlen(rest);
        size_t slash = length > 0; /* an empty part is the working folder */

        memcpy(plan->candidate, rest, length);
        plan->candidate[length] = '/';
        memcpy(plan->candidate + length + slash, name, strlen(name) + 1);
        try_program(plan, plan->candidate, &denied);
        rest = end ? end + 1 : NULL;
    }
    give_up(plan, STAGE_PROGRAM, denied ? EACCES : ENOENT);
}

NORETURN static void be_child(const struct plan *plan)
{
    const struct process_spec *spec = plan->spec;

    if (!set_place(spec) || !set_standard(spec))
        give_up(plan, STAGE_SETUP, errno);
    if (spec->dies_with_us) {
        if (prctl(PR_SET_PDEATHSIG, spec->dies_with_us))
            give_up(plan, STAGE_SETUP, errno);
        if (getppid() != plan->parent) /* gone before it could count */
            _exit(126);
    }
    if (spec->cwd && chdir(spec->cwd))
        give_up(plan, STAGE_FOLDER, errno);
    close_others();
    set_signals(plan);
    run_program(plan);
}

/* No handler of ours may run in the child: everything is blocked until they are gone. */
static pid_t fork_quietly(struct plan *plan)
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
        be_child(plan);
    number = errno;
    if (pid > 0 && plan->spec->group && !plan->spec->session)
        (void)setpgid(pid, pid); /* whoever of us comes first, so that the group can be killed */
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = number;
    return pid;
}

static int cannot_start(const char *name, int number, struct hvd_err *err)
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
                       "%s: too many open descriptors to start it; raise ulimit -n", name);
    case ENOMEM: return err_set(err, HVD_E_NOMEM, "%s: no memory to start it", name);
    default: return err_set(err, HVD_E_IO, "%s: cannot be started: %s", name, strerror(number));
    }
}

int process_start(const struct process_spec *spec, pid_t *ret_pid, int *ret_report,
                  struct hvd_err *err)
{
    struct plan plan;
    int fds[2];
    pid_t pid;
    int number;
    int rc = plan_make(&plan, spec, err);

    if (rc)
        return rc;
    if (pipe2(fds, O_CLOEXEC)) {
        number = errno;
        mem_free(plan.candidate);
        return cannot_start(spec->argv[0], number, err);
    }
    plan.report = fcntl(fds[1], F_DUPFD_CLOEXEC, 3); /* where 0, 1 and 2 are not put over it */
    number = errno;
    close(fds[1]);
    pid = plan.report < 0 ? -1 : fork_quietly(&plan);
    if (plan.report >= 0) {
        number = errno;
        close(plan.report);
    }
    mem_free(plan.candidate);
    if (pid < 0) {
        close(fds[0]);
        return cannot_start(spec->argv[0], number, err);
    }
    *ret_pid = pid;
    *ret_report = fds[0];
    return 0;
}

static int no_folder(const struct report *report, struct hvd_err *err)
{
    bool missing = report->number == ENOENT || report->number == ENOTDIR;
    int code = missing ? HVD_E_NOTFOUND : report->number == EACCES ? HVD_E_DENIED : HVD_E_IO;

    return err_set(err, code, "%s: cannot work in this folder: %s; %s", report->name,
                   strerror(report->number),
                   missing                ? "create it on this host"
                   : code == HVD_E_DENIED ? "let this user enter it"
                                          : "check its disk");
}

static int no_program(const struct report *report, struct hvd_err *err)
{
    const char *name = report->name;

    if (report->stage == STAGE_INTERPRETER)
        return err_set(err, HVD_E_NOTFOUND,
                       "%s: what should run it is missing; see its first line (#!), and that it "
                       "is made for this machine",
                       name);
    switch (report->number) {
    case ENOENT:
        if (report->searched)
            return err_set(err, HVD_E_NOTFOUND,
                           "%s: in no folder of the PATH; install it on this host or give its path",
                           name);
        return err_set(err, HVD_E_NOTFOUND, "%s: no such program; check the path on this host",
                       name);
    case EACCES:
    case EPERM:
        return err_set(err, HVD_E_DENIED,
                       "%s: may not be run; make it a file with chmod +x, on a "
                       "disk that is not mounted noexec",
                       name);
    case ENOEXEC:
        return err_set(err, HVD_E_DENIED,
                       "%s: neither a program for this machine nor a script that begins with #!; "
                       "put #!/bin/sh on its first line",
                       name);
    case E2BIG:
        return err_set(err, HVD_E_LIMIT,
                       "%s: its arguments and environment are too long; shorten them", name);
    default: return cannot_start(name, report->number, err);
    }
}

int process_report(int report_fd, struct hvd_err *err)
{
    struct report report;
    ssize_t got;

    do
        got = read(report_fd, &report, sizeof(report));
    while (got < 0 && errno == EINTR);
    if (got == 0)
        return 0;
    if (got != sizeof(report))
        return err_set(err, HVD_E_IO,
                       "a process was started, but not a word came from it; see "
                       "this host's memory and limits");
    report.name[sizeof(report.name) - 1] = '\0';
    if (report.stage == STAGE_SETUP)
        return cannot_start(report.name, report.number, err);
    return report.stage == STAGE_FOLDER ? no_folder(&report, err) : no_program(&report, err);
}

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
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
            ;
    else
        *ret_pid = pid;
    return rc;
}
