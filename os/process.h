/*
 * process.h: starting a program, without a shell in between, and what the kernel says of it.
 */
#ifndef OS_PROCESS_H
#define OS_PROCESS_H

#include "base/err.h"

#include <sys/types.h>

struct process_spec {
    const char *const *argv; /* ends in NULL; argv[0] is looked for in the PATH of envp */
    const char *const *envp; /* ends in NULL; NULL: ours */
    const char *cwd;         /* NULL: ours */
    int in, out, err;        /* descriptors that become 0, 1, 2; -1: /dev/null */
    bool group;              /* it leads a process group of its own */
    bool session;            /* it leads a session of its own, and so a group */
    int dies_with_us;    /* a signal that it gets when the thread that starts it ends; 0: none */
    bool plain_priority; /* niceness 0, if ours is below */
};

/*
 * Signals are set to their defaults, nothing is blocked, and no other descriptor is passed on. 0
 * once the program runs; otherwise nothing was started, and the err names the program or the folder
 * and what to do: HVD_E_NOTFOUND, HVD_E_DENIED, HVD_E_LIMIT (too many processes), HVD_E_NOMEM,
 * HVD_E_IO.
 */
int process_spawn(const struct process_spec *spec, pid_t *ret_pid, struct hvd_err *err) MUST_CHECK;

/* A descriptor that becomes readable when it ends; -1 with errno. */
int process_watch(pid_t pid);

/* Of /proc: the parent (0: no such process), the process group, and whether it is on its way out,
 * with the wait status that its parent will see. */
struct process_state {
    pid_t parent;
    pid_t group;
    bool ending;
    int wait_status;
};
int process_look(pid_t pid, struct process_state *ret_state) MUST_CHECK; /* 0, HVD_E_NOTFOUND */

#endif
