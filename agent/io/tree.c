#include "agent/io/tree.h"

#include "base/limits.h"
#include "base/text.h"
#include "os/process.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define VARIABLE "HVD_INCARNATION="

static int add(struct tree *tree, pid_t pid)
{
    struct process_state state;
    int rc;

    if (process_look(pid, &state))
        return 0; /* gone since */
    rc = VEC_RESERVE(tree, 1, LIMIT_PROCESSES);
    if (rc)
        return rc;
    tree->items[tree->count++] = (struct tree_process){ pid, state.parent, state.ending, false };
    return 0;
}

static int by_pid(const void *left, const void *right)
{
    const struct tree_process *a = left;
    const struct tree_process *b = right;

    return (a->pid > b->pid) - (a->pid < b->pid);
}

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

        if (!text_parse_u64(name, 1, INT32_MAX, "pid", &pid, NULL))
            rc = add(tree, (pid_t)pid);
    }
    closedir(folder);
    if (rc)
        tree_release(tree);
    else if (tree->count > 0)
        qsort(tree->items, tree->count, sizeof(*tree->items), by_pid);
    return rc;
}

void tree_release(struct tree *tree)
{
    VEC_RELEASE(tree);
}

static bool is_marked(const struct tree *tree, pid_t pid)
{
    const struct tree_process key = { .pid = pid };
    const struct tree_process *found = bsearch(&key, tree->items, tree->count, sizeof(key), by_pid);

    return found && found->marked;
}

void tree_spread(struct tree *tree)
{
    struct tree_process *it;
    bool more = true;

    while (more) {
        more = false;
        VEC_EACH (it, tree)
            if (!it->marked && is_marked(tree, it->parent)) {
                it->marked = true;
                more = true;
            }
    }
}

static void kill_stranger(const struct tree_process *process)
{
    struct process_state state;
    int watch = process_watch(process->pid);

    if (watch < 0)
        return; /* gone, or no descriptor is left: the next reading finds it as our child */
    if (!process_look(process->pid, &state) && state.parent == process->parent)
        (void)syscall(SYS_pidfd_send_signal, watch, SIGKILL, NULL, 0);
    close(watch);
}

void tree_kill(const struct tree *tree)
{
    const struct tree_process *it;
    pid_t self = getpid();

    VEC_EACH (it, tree) {
        if (!it->marked || it->ending || it->pid == self)
            continue;
        if (it->parent == self)
            (void)kill(it->pid, SIGKILL); /* keeps its number until we reap it */
        else
            kill_stranger(it);
    }
}

/* Of the variable's text so far: how much of its name was read, and its value. */
struct reading {
    size_t matched; /* SIZE_MAX: another variable, until it ends */
    uint64_t value;
};

/* True when the variable is complete. */
static bool read_byte(struct reading *reading, char byte)
{
    size_t length = sizeof(VARIABLE) - 1;

    if (byte == '\0') {
        bool complete = reading->matched == length && reading->value > 0;

        if (!complete)
            *reading = (struct reading){ .matched = 0 };
        return complete;
    }
    if (reading->matched < length)
        reading->matched = VARIABLE[reading->matched] == byte ? reading->matched + 1 : SIZE_MAX;
    else if (reading->matched == length && byte >= '0' && byte <= '9')
        reading->value = reading->value * 10 + (uint64_t)(byte - '0');
    else
        reading->matched = SIZE_MAX;
    return false;
}

static int open_environment(pid_t pid)
{
    char path[32];

    snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
    return open(path, O_RDONLY | O_CLOEXEC);
}

bool tree_started_with(pid_t pid, const char *variable)
{
    int fd = open_environment(pid);
    size_t matched = 0; /* SIZE_MAX: another variable, until it ends */
    bool found = false;
    char bytes[4096];
    ssize_t got;

    while (fd >= 0 && !found && (got = read(fd, bytes, sizeof(bytes))) > 0)
        for (ssize_t i = 0; i < got && !found; i++) {
            if (matched != SIZE_MAX && bytes[i] == variable[matched])
                found = !variable[matched++];
            else
                matched = bytes[i] ? SIZE_MAX : 0;
        }
    if (fd >= 0)
        close(fd);
    return found;
}

uint64_t tree_incarnation(pid_t pid)
{
    struct reading reading = { .matched = 0 };
    uint64_t found = 0;
    char bytes[4096];
    ssize_t got = 0;
    int fd = open_environment(pid);

    if (fd < 0)
        return 0;
    while (!found && (got = read(fd, bytes, sizeof(bytes))) > 0)
        for (ssize_t i = 0; i < got && !found; i++)
            if (read_byte(&reading, bytes[i]))
                found = reading.value;
    close(fd);
    return found;
}
