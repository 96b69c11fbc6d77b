/*
 * tree.c: the processes of this machine at one moment, read from /proc. Called by orphans.c,
 * leftovers.c and supervisor.c. Invariant: SIGKILL goes to a pid only while that pid means the
 * process that was read: a child of this process, or a process whose parent is still the same while
 * its pidfd is open.
 */
#include "agent/processes/tree.h"

#include "base/limits.h"
#include "base/text.h"
#include "os/process.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define VARIABLE     "HVD_INCARNATION="
#define VARIABLE_MAX 256 /* bytes; longer than any variable that is looked for */

/* Compares two processes by their pids, for qsort and bsearch. */
static int tree_by_pid(const void *left, const void *right)
{
    const struct tree_process *a = left;
    const struct tree_process *b = right;

    return (a->pid > b->pid) - (a->pid < b->pid);
}

/* Reads all processes of this machine from /proc, sorted by pid, none of them marked. */
int tree_read(struct tree *tree)
{
    DIR *folder = opendir("/proc");
    const struct dirent *entry;
    uint64_t pid;
    int rc = 0;

    *tree = (struct tree){ .items = NULL };
    if (!folder)
        return errno == ENOMEM ? HVD_E_NOMEM : HVD_E_IO;
    while (!rc && (entry = readdir(folder)) != NULL) {
        struct span name = { entry->d_name, strlen(entry->d_name) };
        struct process_state state;

        if (text_parse_u64(name, 1, INT32_MAX, "pid", &pid, NULL) ||
            process_look((pid_t)pid, &state))
            continue; /* the entry is no process, or the process has gone */
        rc = VEC_RESERVE(tree, 1, LIMIT_PROCESSES);
        if (!rc)
            tree->items[tree->count++] =
                (struct tree_process){ (pid_t)pid, state.parent, state.ending, false };
    }
    closedir(folder);
    if (rc)
        tree_release(tree);
    else if (tree->count > 0)
        qsort(tree->items, tree->count, sizeof(*tree->items), tree_by_pid);
    return rc;
}

void tree_release(struct tree *tree)
{
    VEC_RELEASE(tree);
}

/* waitid fails only if this process has no child process. WNOWAIT: a dead one is not reaped here.
 */
bool tree_have_children(void)
{
    siginfo_t info;

    return !waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT);
}

/* Marks the descendants of the marked processes, and kills every marked process except this one. */
void tree_kill(struct tree *tree)
{
    struct process_state state;
    struct tree_process *it;
    pid_t self = getpid();
    bool more = true;
    int watch;

    /* Marks descendants until a pass finds no further one. */
    while (more) {
        more = false;
        VEC_EACH (it, tree) {
            const struct tree_process key = { .pid = it->parent };
            const struct tree_process *parent =
                bsearch(&key, tree->items, tree->count, sizeof(key), tree_by_pid);

            if (!it->marked && parent && parent->marked)
                it->marked = more = true;
        }
    }
    VEC_EACH (it, tree) {
        if (!it->marked || it->ending || it->pid == self)
            continue;
        if (it->parent == self) {
            (void)kill(it->pid, SIGKILL); /* a child keeps its pid until it is reaped */
            continue;
        }
        /* while the pidfd is open, the signal cannot reach a later process with the same pid; the
         * same parent shows that the pidfd is that of the process that was read */
        watch = process_watch(it->pid);
        if (watch < 0)
            continue; /* the process is gone, or no descriptor is left: the next reading finds it */
        if (!process_look(it->pid, &state) && state.parent == it->parent)
            (void)syscall(SYS_pidfd_send_signal, watch, SIGKILL, NULL, 0);
        close(watch);
    }
}

/* Opens the environment with which a process was started, from /proc; NULL: it cannot be read. */
static FILE *environment_open(pid_t pid)
{
    char path[32];

    snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
    return fopen(path, "re");
}

/* Reads the next text "NAME=value" of an environment, cut to VARIABLE_MAX. The texts end in NUL.
 * false: no text is left, and the file is closed; also if `environment` is NULL. */
static bool environment_next(FILE *environment, char text[VARIABLE_MAX])
{
    size_t length = 0;
    int byte = EOF;

    while (environment && (byte = getc_unlocked(environment)) > 0) {
        if (length < VARIABLE_MAX - 1)
            text[length++] = (char)byte;
    }
    text[length] = '\0';
    if (environment && byte == EOF)
        (void)fclose(environment);
    return byte == '\0';
}

/* true: the process was started with a variable whose text "NAME=value" begins with `begin`. All
 * texts are read, because environment_next closes the file only at its end. */
bool tree_started_with(pid_t pid, const char *begin)
{
    FILE *environment = environment_open(pid);
    char text[VARIABLE_MAX];
    bool found = false;

    while (environment_next(environment, text))
        found |= !strncmp(text, begin, strlen(begin));
    return found;
}

/* Returns the incarnation in the environment of the process; 0: there is none. All variables are
 * read, because environment_next closes the file only at its end. */
uint64_t tree_incarnation(pid_t pid)
{
    FILE *environment = environment_open(pid);
    const size_t length = strlen(VARIABLE);
    char text[VARIABLE_MAX];
    uint64_t found = 0;

    while (environment_next(environment, text)) {
        if (!found && !strncmp(text, VARIABLE, length) &&
            text_parse_u64((struct span){ text + length, strlen(text) - length }, 1, UINT64_MAX,
                           "incarnation", &found, NULL))
            found = 0;
    }
    return found;
}
