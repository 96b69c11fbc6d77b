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

/*
 * The same for a loop, which must not wait: a program on a disk that does not answer. *ret_report
 * (to be closed) becomes readable when it is known whether the program runs, which process_report
 * then says, once; it waits for that if it is asked earlier. The child is there from the start and
 * is to be reaped in any case.
 */
int process_start(const struct process_spec *spec, pid_t *ret_pid, int *ret_report,
                  struct hvd_err *err) MUST_CHECK;
int process_report(int report_fd, struct hvd_err *err) MUST_CHECK;

/* A descriptor that becomes readable when it ends; -1 with errno. */
int process_watch(pid_t pid);

/* How the process of a descriptor that has become readable ended, child of ours or not: a wait
 * status. HVD_E_UNSUPPORTED where the kernel does not keep that (before 6.15). */
int process_status(int watch, int *ret_wait_status) MUST_CHECK;

/*
 * Of /proc: the parent (0: it has none), the process group, and whether it is on its way out: it
 * has been killed, or takes itself apart, or is a zombie. Then wait_status is what its parent will
 * see, as far as we may know: 0 can also mean that we may not (another user's process, or one that
 * hides from its own user), or that only its first thread has ended. 0, HVD_E_NOTFOUND.
 */
struct process_state {
    pid_t parent;
    pid_t group;
    bool ending;
    int wait_status;
};
int process_look(pid_t pid, struct process_state *ret_state) MUST_CHECK;

#endif
