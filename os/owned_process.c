/*
 * owned_process.c: keeps the wait status of a program for the thread that has started the program.
 * The programs of --checkpoint-command (state/remote/command_storage.c) and of notices
 * (agent/notice/notice_command.c) are started here, and the agent reaps all its children here
 * (agent/processes/child_end.c). Invariant: from the start of an owned process to its row in the
 * table no thread reaps, because both happen under one mutex.
 */
#include "os/owned_process.h"

#include "base/limits.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

struct owned_process {
    pid_t pid;  /* the process; 0: the row is free */
    int status; /* the wait status, once owned_process_reap has reaped the process */
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct owned_process table[LIMIT_OWNED_PROCESSES];

/* Returns the row of the process; NULL: there is none. pid 0 finds a free row. */
static struct owned_process *owned_find(pid_t pid)
{
    for (size_t i = 0; i < LIMIT_OWNED_PROCESSES; i++)
        if (table[i].pid == pid)
            return &table[i];
    return NULL;
}

/* Starts a program and puts it in the table, so that the loop that reaps all children keeps its
 * wait status for this caller. */
int owned_process_start(const struct process_spec *spec, pid_t *ret_pid, int *ret_watch,
                        struct hvd_err *err)
{
    struct owned_process *row;
    pid_t pid = 0;
    int watch = -1, rc;

    pthread_mutex_lock(&mutex);
    row = owned_find(0);
    rc = row ? process_spawn(spec, &pid, err)
             : err_set(
                   err, HVD_E_LIMIT,
                   "%s: this process runs %d programs already, and may run no more at a time; try "
                   "again when one of them has ended",
                   spec->argv[0], LIMIT_OWNED_PROCESSES);
    if (!rc && (watch = process_watch(pid)) < 0) {
        rc = err_set(
            err, HVD_E_LIMIT,
            "%s: the program cannot be watched: %s; raise the limit of open files (ulimit -n)",
            spec->argv[0], strerror(errno));
        (void)kill(pid, SIGKILL);
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    if (!rc && row) {
        *row = (struct owned_process){ .pid = pid };
        *ret_pid = pid;
        *ret_watch = watch;
    }
    pthread_mutex_unlock(&mutex);
    return rc;
}

/* Waits for the end of an owned program, takes it out of the table, and returns its wait status.
 * Either this thread reaps the program, or owned_process_reap did so before: waitid then fails, and
 * the status is in the table. */
int owned_process_end(pid_t pid, int watch)
{
    struct owned_process *row;
    siginfo_t info = { .si_pid = 0 };
    int status = 0, rc;

    /* The pidfd means this process, also if the kernel has given its pid to another process. */
    while ((rc = waitid(P_PIDFD, (id_t)watch, &info, WEXITED)) < 0 && errno == EINTR)
        ;
    pthread_mutex_lock(&mutex);
    row = owned_find(pid);
    if (!rc)
        /* the wait status as waitpid gives it: the exit code in the second byte, or the signal */
        status = info.si_code == CLD_EXITED ? info.si_status << 8 : info.si_status;
    else if (row)
        status = row->status;
    if (row)
        row->pid = 0;
    pthread_mutex_unlock(&mutex);
    return status;
}

/* Reaps a child that has ended, and keeps its wait status if it is in the table. Called by the
 * thread that reaps all children of the agent. */
void owned_process_reap(pid_t pid)
{
    struct owned_process *row;
    int status;

    pthread_mutex_lock(&mutex);
    if (waitpid(pid, &status, WNOHANG) == pid && (row = owned_find(pid)) != NULL)
        row->status = status;
    pthread_mutex_unlock(&mutex);
}
