/*
 * command.h: a program that is run for its answer: what it prints, its standard error, and how it
 * ends, within a time limit. It leads a process group of its own, and the whole group is killed
 * when the program ends.
 *
 * The caller's program ignores SIGPIPE.
 */
#ifndef OS_COMMAND_COMMAND_H
#define OS_COMMAND_COMMAND_H

#include "base/buf.h"
#include "os/command/stderr_tail.h"

struct event_base;
struct command;

struct command_spec {
    const char *const *argv; /* argv[0] is borrowed as long as the command lives */
    const char *const *envp; /* ends in NULL; a NULL pointer: the environment of this process */
    const char *input;       /* the program's standard input; NULL: /dev/null; copied */
    size_t output_max;       /* more bytes of standard output end the program; 0: /dev/null */
    size_t stderr_max;       /* more bytes of standard error end the program; 0: no limit */
    int64_t limit_us;        /* how long the program may run; TIME_NEVER: no limit */
    /* how long the program may run after it has closed its output; TIME_NEVER: no limit */
    int64_t linger_us;
    int dies_with_us; /* the signal that kills the program when this process dies; 0: none */
};

enum command_how {
    COMMAND_EXITED,   /* the program has ended by itself: `value` is its exit code */
    COMMAND_SIGNALED, /* a signal has ended the program: `value` is its number */
    COMMAND_TOO_LATE, /* killed: the program ran longer than limit_us */
    /* killed: the program ran longer than linger_us after the end of its output */
    COMMAND_LINGERED,
    COMMAND_TOO_LONG, /* killed: the program printed more than output_max or stderr_max bytes */
    /* the program could not be run, or its output not be read: `why` says the reason */
    COMMAND_FAILED,
    /* the exit status was taken elsewhere in this process, or the program did not die */
    COMMAND_LOST
};

/* How a program has ended. The texts are borrowed during the call. */
struct command_end {
    enum command_how how;
    int value;       /* the exit code or the number of the signal, as `how` says */
    const char *why; /* a whole sentence about the program; only for COMMAND_FAILED */
    struct buf *output;
    const struct stderr_tail *stderr_tail;
};

/* Each callback is called from the event loop. */
struct command_ops {
    /* Called when more output has come; may be NULL. Bytes that the callback consumes do not count
     * against output_max. */
    void (*output)(void *arg, struct buf *output);
    /* Called when more of the standard error has come; may be NULL. */
    void (*stderr_grew)(void *arg, const struct stderr_tail *stderr_tail);
    /* The last callback; the owner may free the command inside it. The children of the program have
     * been killed too; output that they would still have printed is not waited for. */
    void (*ended)(void *arg, const struct command_end *end);
};

/* Starts a program. On failure nothing runs, and the codes are those of process_start. A program
 * that cannot be executed is known only later: `ended` gets COMMAND_FAILED. */
int command_run(struct event_base *base, const struct command_spec *spec,
                const struct command_ops *ops, void *arg, struct command **ret_command,
                struct hvd_err *err) MUST_CHECK;

/* Kills a program that still runs, and waits for its end, for COMMAND_REAP_US at most. */
void command_free(struct command *command);

/* How long a killed program may take to die. A process does not always die at once of SIGKILL, for
 * example while a file server does not answer. */
#define COMMAND_REAP_US (2 * INT64_C(1000000))

/* Writes how the program ended: "exit code 3", "ended by signal 9 (SIGKILL)", "did not end within
 * 10s, and was killed", or `why`. Returns text. */
#define COMMAND_HOW_MAX 160
const char *command_how(const struct command_spec *spec, const struct command_end *end,
                        char text[COMMAND_HOW_MAX]);

#endif
