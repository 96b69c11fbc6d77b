/*
 * run.h: hvd-elastic as the driver of a job: from the command line to the exit code.
 */
#ifndef DRIVER_RUN_H
#define DRIVER_RUN_H

/* Exit codes of a driver; a job that a signal ended has the code 128 + the signal. See docs/cli.md.
 */
enum run_exit {
    RUN_FINISHED = 0,
    RUN_FAILED = 1,
    RUN_USAGE = 2,
    RUN_TOO_FEW = 3,
    RUN_BROKEN = 4,
    RUN_REPLACED = 5,
    /* Another standby has taken the job over first. The driver's process ends with this code, and
     * its parent waits again; no user sees it. */
    RUN_STANDBY = 6
};

/* Runs the driver's program, or answers options such as --help. Returns the exit code. */
int run_main(int argc, char **argv, char **envp);

#endif
