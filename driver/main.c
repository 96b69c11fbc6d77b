/* main.c: hvd-elastic runs a job, or asks the driver of one that runs. */
#include "driver/ask.h"
#include "driver/run.h"
#include "os/file.h"
#include "os/stderr_log.h"

#include <string.h>
#include <unistd.h>

/* "help" and "help drain" are "--help" and "drain --help". */
static void help_first(int argc, char **argv)
{
    static char option[] = "--help";

    argv[1] = option;
    if (argc > 2 && ask_is_verb(argv[2])) {
        argv[1] = argv[2];
        argv[2] = option;
    }
}

int main(int argc, char **argv)
{
    file_hold_standard();
    stderr_log_open();
    if (argc > 1 && !strcmp(argv[1], "help"))
        help_first(argc, argv);
    if (argc > 1 && ask_is_verb(argv[1]))
        return ask_main(argc, argv);
    return run_main(argc, argv, environ);
}
