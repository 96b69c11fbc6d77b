#include "agent/io/keeper.h"

#include "agent/io/tree.h"
#include "base/time.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* Between two readings of what is left, unless one of them ends earlier. */
#define LOOK_FIRST_NS 1000000L
#define LOOK_LAST_NS  500000000L

static const int heard[] = { SIGTERM, SIGINT, SIGHUP, SIGCHLD };

static void heard_set(sigset_t *set)
{
    sigemptyset(set);
    for (size_t i = 0; i < ARRAY_SIZE(heard); i++)
        sigaddset(set, heard[i]);
}

/* So that nobody who reads what the agent writes waits for us. */
static void let_go(void)
{
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);

    if (nothing >= 0) {
        (void)dup2(nothing, STDIN_FILENO);
        (void)dup2(nothing, STDOUT_FILENO);
    }
    (void)close_range(3, ~0u, 0);
}

static int code_of(int status)
{
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* Puts away whoever has ended; true when the agent was among them. */
static bool reap(pid_t agent, int *ret_status)
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

static int wait_for(pid_t agent)
{
    sigset_t set;
    int status;

    heard_set(&set);
    for (;;) {
        int number = sigwaitinfo(&set, NULL);

        if (number == SIGCHLD && reap(agent, &status))
            return status;
        if (number > 0 && number != SIGCHLD)
            (void)kill(agent, SIGTERM);
    }
}

static bool have_children(void)
{
    siginfo_t info;

    return !waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT);
}

static void kill_all(void)
{
    struct tree tree;
    struct tree_process *it;
    pid_t self = getpid();

    if (tree_read(&tree))
        return; /* no memory now: soon again */
    VEC_EACH (it, &tree)
        it->marked = it->pid == self;
    tree_spread(&tree);
    tree_kill(&tree);
    tree_release(&tree);
}

/* One that the kernel does not let die is waited for: somebody should know where it is. */
static void end_what_is_left(void)
{
    struct timespec wait = { 0, LOOK_FIRST_NS };
    sigset_t set;
    int status;

    heard_set(&set);
    while (have_children()) {
        kill_all();
        (void)sigtimedwait(&set, NULL, &wait);
        (void)reap(-1, &status);
        wait.tv_nsec = wait.tv_nsec * 2 > LOOK_LAST_NS ? LOOK_LAST_NS : wait.tv_nsec * 2;
    }
}

NORETURN static void be_agent(int (*agent)(void *arg), void *arg, pid_t keeper,
                              const sigset_t *before)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != keeper)
        _exit(128 + SIGTERM); /* it died before that counted */
    sigprocmask(SIG_SETMASK, before, NULL);
    exit(agent(arg));
}

int keeper_run(int (*agent)(void *arg), void *arg, int *ret_code, struct hvd_err *err)
{
    pid_t keeper = getpid();
    sigset_t before;
    sigset_t set;
    pid_t pid;
    int status;
    int number;

    heard_set(&set);
    sigprocmask(SIG_BLOCK, &set, &before);
    (void)signal(SIGCHLD, SIG_DFL); /* who ignores them neither hears of them nor can wait */
    (void)signal(SIGTERM, SIG_DFL);
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    pid = fork();
    if (pid == 0)
        be_agent(agent, arg, keeper, &before);
    number = errno;
    if (pid < 0) {
        sigprocmask(SIG_SETMASK, &before, NULL);
        return err_set(err, number == ENOMEM ? HVD_E_NOMEM : HVD_E_LIMIT,
                       "the agent: cannot be started: %s; raise ulimit -u, or free memory",
                       strerror(number));
    }
    let_go();
    status = wait_for(pid);
    end_what_is_left();
    sigprocmask(SIG_SETMASK, &before, NULL);
    *ret_code = code_of(status);
    return 0;
}
