/* main.c: hvd-elastic runs a job, or asks the driver of one that runs. */
#include "driver/ask.h"
#include "driver/run.h"
#include "os/file.h"
#include "os/stderr_log.h"

#include <unistd.h>

int main(int argc, char **argv)
{
    file_hold_standard();
    stderr_log_open();
    if (argc > 1 && ask_is_verb(argv[1]))
        return ask_main(argc, argv);
    return run_main(argc, argv, environ);
}
