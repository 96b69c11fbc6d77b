/*
 * run.h: hvd-elastic as it runs a job: from the command line to the exit status.
 */
#ifndef DRIVER_RUN_H
#define DRIVER_RUN_H

/* Exit statuses beside 128 + the signal that ended the job; docs/cli.md. */
enum run_exit {
    RUN_FINISHED = 0,
    RUN_FAILED = 1,
    RUN_USAGE = 2,
    RUN_TOO_FEW = 3,
    RUN_BROKEN = 4,
    RUN_REPLACED = 5
};

int run_main(int argc, char **argv, char **envp);

#endif
