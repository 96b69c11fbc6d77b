/*
 * process.h: starting a program, without a shell in between, and the state of a process.
 */
#ifndef OS_PROCESS_H
#define OS_PROCESS_H

#include "base/err.h"

#include <sys/types.h>

struct process_spec {
    const char *const *argv; /* ends in NULL; argv[0] is looked for in the PATH of envp */
    const char *const *envp; /* ends in NULL; a NULL pointer: the environment of this process */
    const char *cwd;         /* NULL: the working directory of this process */
    int in, out, err;        /* descriptors that become 0, 1, 2 of the program; -1: /dev/null */
    bool group;              /* the program leads a process group of its own */
    bool session;            /* the program leads a session of its own, and so a process group */
    /* signal that the program gets when the thread that started it ends; 0: none */
    int dies_with_us;
    bool plain_priority; /* the program gets niceness 0 if this process has a lower niceness */
};

/*
 * Starts a program and waits until it runs. Its signals are set to their defaults, no signal is
 * blocked, and no other descriptor is passed on. 0: the program runs. Otherwise nothing was
 * started, and err names the program or the folder and what to do: HVD_E_NOTFOUND, HVD_E_DENIED,
 * HVD_E_LIMIT (too many processes), HVD_E_NOMEM, HVD_E_IO.
 */
int process_spawn(const struct process_spec *spec, pid_t *ret_pid, struct hvd_err *err) MUST_CHECK;

/*
 * Starts a program for an event loop, which must not wait for a slow disk. *ret_report (the caller
 * closes it) becomes readable when it is known whether the program runs. process_report then
 * returns the result, once; an earlier call waits. The child exists from the start, and the caller
 * reaps it in any case.
 */
int process_start(const struct process_spec *spec, pid_t *ret_pid, int *ret_report,
                  struct hvd_err *err) MUST_CHECK;
int process_report(int report_fd, struct hvd_err *err) MUST_CHECK;

/* True: this user may run the program: a path, or a name that a folder of this process's PATH
 * has. */
bool process_findable(const char *name);

/* Returns a pidfd, which becomes readable when the process ends; -1 with errno. */
int process_watch(pid_t pid);

/* Gives the wait status of a process that has ended, child of this process or not; `watch`
 * (process_watch) has become readable. HVD_E_UNSUPPORTED: the kernel does not keep the status
 * (before 6.15). */
int process_status(int watch, int *ret_wait_status) MUST_CHECK;

/*
 * Reads from /proc the parent (0: none), the process group, and whether the process is ending:
 * killed, exiting, or a zombie. For an ending process wait_status is the status that its parent
 * will see. wait_status is 0 when this process may not read it (a process of another user, or
 * hidden from its own user), and when only the first thread of the process has ended. 0,
 * HVD_E_NOTFOUND.
 */
struct process_state {
    pid_t parent;
    pid_t group;
    bool ending;
    int wait_status;
};
int process_look(pid_t pid, struct process_state *ret_state) MUST_CHECK;

/* Writes the kernel's pattern of names for core files (core(5)) as one line; "" if it cannot be
 * read. Returns text. */
const char *process_core_pattern(char *text, size_t size);

#endif
