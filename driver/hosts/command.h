/*
 * command.h: a program that is run for its answer: what it prints, what it complains of, and how it
 * ends, within a time. It leads a process group of its own, of which nothing is left afterwards.
 *
 * The program that does this ignores SIGPIPE.
 */
#ifndef DRIVER_HOSTS_COMMAND_H
#define DRIVER_HOSTS_COMMAND_H

#include "base/buf.h"
#include "driver/hosts/complaint.h"

struct event_base;
struct command;

struct command_spec {
    const char *const *argv; /* argv[0] is borrowed as long as the command lives */
    const char *input;       /* NULL: /dev/null; copied */
    size_t output_max;       /* bytes of its standard output that are waited for; 0: /dev/null */
    int64_t limit_us;        /* TIME_NEVER: as long as it likes */
    int64_t linger_us;       /* how long it may go on after it has closed its output; TIME_NEVER */
    int dies_with_us;        /* see os/process.h */
};

enum command_how {
    COMMAND_EXITED,   /* value is its exit code */
    COMMAND_SIGNALED, /* value is the signal */
    COMMAND_TOO_LATE, /* the others were ended by us */
    COMMAND_LINGERED,
    COMMAND_TOO_LONG, /* more than output_max */
    COMMAND_FAILED,   /* it could not be run, or not be read: why says so */
    COMMAND_LOST      /* somebody else has taken its exit status */
};

/* Borrowed during the call. */
struct command_end {
    enum command_how how;
    int value;
    const char *why; /* a whole sentence about the program; of COMMAND_FAILED only */
    struct buf *output;
    const struct complaint *complaint;
};

/* Each from the loop. */
struct command_ops {
    /* NULL, or: there is more. What it consumes does not count against output_max. */
    void (*output)(void *arg, struct buf *output);
    void (*complained)(void *arg, const struct complaint *complaint); /* NULL, or: there is more */
    /* The last call, in which the owner may free it. Whoever it left behind has been killed, and
     * what they would still have printed is not waited for. */
    void (*ended)(void *arg, const struct command_end *end);
};

/* 0, or nothing runs: see process_start. That the program cannot be run is known later: it has then
 * ended with COMMAND_FAILED. */
int command_run(struct event_base *base, const struct command_spec *spec,
                const struct command_ops *ops, void *arg, struct command **ret_command,
                struct hvd_err *err) MUST_CHECK;

/* One that runs on is killed, and waited for, for COMMAND_REAP_US at most. */
void command_free(struct command *command);

/* SIGKILL is not always obeyed at once: by a process that waits for a file server that is gone. */
#define COMMAND_REAP_US (2 * INT64_C(1000000))

/* "exit code 3", "ended by signal 9", "not done within 10s, and killed"; or the why. */
#define COMMAND_HOW_MAX 160
const char *command_how(const struct command_spec *spec, const struct command_end *end,
                        char text[COMMAND_HOW_MAX]);

#endif
