/*
 * supervisor.c: the parent process of the agent. Called once, by agent/start.c in the background
 * process that becomes the supervisor. Invariant: the function returns only when no child process
 * is left; as a subreaper the supervisor becomes the parent of every process below the agent that
 * loses its own parent.
 */
#include "agent/processes/supervisor.h"

#include "agent/processes/tree.h"
#include "os/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* The wait between two looks at the processes that the agent has left: the first wait, which
 * doubles, and the longest one. The end of a process ends a wait early. */
#define LOOK_FIRST_NS 1000000L
#define LOOK_LAST_NS  500000000L

/* Reaps every process that has ended. true: the agent was among them, and *ret_status is its
 * status. `agent` is -1 after the agent's end: no process has that pid. */
static bool supervisor_reap(pid_t agent, int *ret_status)
{
    bool agent_ended = false;
    int status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
        if (pid == agent) {
            agent_ended = true;
            *ret_status = status;
        }
    return agent_ended;
}

/* Runs the agent in the forked child, and never returns. The kernel sends SIGTERM to the agent when
 * the supervisor dies. `before`: the signal mask before the supervisor has blocked its signals. */
NORETURN static void supervisor_run_agent(int (*agent)(void *arg), void *arg, pid_t supervisor,
                                          const sigset_t *before)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != supervisor)
        _exit(128 + SIGTERM); /* the parent died before the prctl took effect */
    sigprocmask(SIG_SETMASK, before, NULL);
    thread_end_process(agent(arg));
}

/* Starts the agent as a child process, waits for its end, and then kills the processes that the
 * agent has left. The supervisor has blocked its signals, and takes each one with sigwaitinfo. 0:
 * *ret_code is the agent's exit code, or 128 plus its signal. */
int supervisor_run(int (*agent)(void *arg), void *arg, int *ret_code, struct hvd_err *err)
{
    static const int heard[] = { SIGTERM, SIGINT, SIGHUP, SIGUSR2, SIGCHLD };
    struct timespec wait = { 0, LOOK_FIRST_NS };
    pid_t supervisor = getpid();
    sigset_t before, set;
    int nothing, status, number, ignored;
    struct tree_process *it;
    struct tree tree;
    pid_t pid;

    sigemptyset(&set);
    for (size_t i = 0; i < ARRAY_SIZE(heard); i++)
        sigaddset(&set, heard[i]);
    sigprocmask(SIG_BLOCK, &set, &before);
    (void)signal(SIGCHLD, SIG_DFL); /* while SIGCHLD is ignored, waitpid returns no status */
    (void)signal(SIGTERM, SIG_DFL);
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    pid = fork();
    if (pid == 0)
        supervisor_run_agent(agent, arg, supervisor, &before);
    number = errno;
    if (pid < 0) {
        sigprocmask(SIG_SETMASK, &before, NULL);
        return err_set(
            err, number == ENOMEM ? HVD_E_NOMEM : HVD_E_LIMIT,
            "the process of the agent cannot be started: %s; raise ulimit -u, or free memory",
            strerror(number));
    }
    /* Replaces standard input and output by /dev/null, and closes all other descriptors but
     * standard error: a program that reads the agent's output (ssh) must not wait for the
     * supervisor's end. */
    nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (nothing >= 0) {
        (void)dup2(nothing, STDIN_FILENO);
        (void)dup2(nothing, STDOUT_FILENO);
    }
    (void)close_range(3, ~0u, 0);
    /* Waits for the end of the agent. Meanwhile SIGTERM, SIGINT and SIGHUP are passed on to the
     * agent as SIGUSR1: a SIGTERM to all processes comes to the agent too, and is one signal.
     * SIGUSR2, the early warning of a scheduler, may come twice without harm. */
    while ((number = sigwaitinfo(&set, NULL)) != SIGCHLD || !supervisor_reap(pid, &status)) {
        if (number > 0 && number != SIGCHLD)
            (void)kill(pid, number == SIGUSR2 ? SIGUSR2 : SUPERVISOR_PASSES_ON);
    }
    /* Kills all remaining processes until none is left. The supervisor also waits for a process
     * that the kernel does not end yet, because no other process watches it. A signal ends a wait
     * early. */
    while (tree_have_children()) {
        /* a reading that fails, because no memory is left, is repeated after the wait */
        if (!tree_read(&tree)) {
            VEC_EACH (it, &tree)
                it->marked = it->pid == supervisor; /* tree_kill marks and kills all below it */
            tree_kill(&tree);
            tree_release(&tree);
        }
        (void)sigtimedwait(&set, NULL, &wait);
        (void)supervisor_reap(-1, &ignored);
        wait.tv_nsec = wait.tv_nsec * 2 > LOOK_LAST_NS ? LOOK_LAST_NS : wait.tv_nsec * 2;
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    *ret_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    return 0;
}
