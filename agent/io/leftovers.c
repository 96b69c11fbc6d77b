#include "agent/io/leftovers.h"

#include "agent/io/agent_socket.h"
#include "agent/io/tree.h"
#include "base/log.h"
#include "os/process.h"

#include <stdio.h>
#include <unistd.h>

#define PASSES  20   /* of what forks faster the rest stays */
#define PARENTS 1024 /* no chain of parents is longer */

static bool is_ancestor(pid_t pid)
{
    struct process_state state;
    pid_t at = getpid();

    for (int i = 0; i < PARENTS && at > 1; i++) {
        if (at == pid)
            return true;
        if (process_look(at, &state))
            return false;
        at = state.parent;
    }
    return false;
}

/* How many there were. */
static size_t end_those_of_now(const char *variable)
{
    struct tree tree;
    struct tree_process *it;
    size_t count = 0;

    if (tree_read(&tree))
        return 0;
    VEC_EACH (it, &tree) {
        it->marked = !it->ending && tree_started_with(it->pid, variable) && !is_ancestor(it->pid);
        count += it->marked;
    }
    if (count) {
        tree_spread(&tree);
        tree_kill(&tree);
    }
    tree_release(&tree);
    return count;
}

void leftovers_end(const char *socket)
{
    char variable[AGENT_SOCKET_MAX + 16];
    size_t count = 0;

    snprintf(variable, sizeof(variable), "HVD_AGENT=%s", socket);
    for (int i = 0; i < PASSES; i++) {
        size_t now = end_those_of_now(variable);

        if (!now)
            break;
        count += now;
    }
    if (count)
        log_warning(AGENT, "%zu processes of a former agent's workers were left here: ended",
                    count);
}
