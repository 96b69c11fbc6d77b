/*
 * main.c: the program hvd-elastic. If the first word is a verb (status, drain ...), the program
 * asks the driver of a job (driver/cli); otherwise it becomes the driver of a job (run.c). Both
 * return the exit code.
 */
#include "driver/cli/cli.h"
#include "driver/orphan.h"
#include "driver/run.h"
#include "os/file.h"
#include "os/stderr_log.h"
#include "os/thread.h"
#include "state/remote/remote.h"

#include <string.h>
#include <unistd.h>

/* Runs a verb, or the driver of a job. file_hold_standard makes sure that the descriptors 0 to 2
 * are in use, so that no file of the job gets one of these numbers. orphan_view answers the verbs
 * for a job that has no driver. */
int main(int argc, char **argv)
{
    static char help[] = "--help";
    int at = cli_verb_behind_options(argc, argv);
    char *verb = argv[at];

    file_hold_standard();
    stderr_log_open();
    remote_storage_add();
    /* "help" means "--help", and "help drain" means "drain --help". */
    if (argc > 1 && !strcmp(argv[1], "help")) {
        argv[1] = help;
        if (argc > 2 && cli_is_verb(argv[2])) {
            argv[1] = argv[2];
            argv[2] = help;
        }
    }
    /* "--job x status" means "status --job x". */
    for (; at > 1; at--) {
        argv[at] = argv[at - 1];
        argv[at - 1] = verb;
    }
    if (argc > 1 && cli_is_verb(argv[1]))
        return cli_main(argc, argv, orphan_view);
    thread_end_process(run_main(argc, argv, environ));
}
