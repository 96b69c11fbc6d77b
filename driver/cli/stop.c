/*
 * stop.c: the verb "stop": ends the job. With --wait the driver answers at once and keeps the
 * connection open until the driver ends.
 */
#include "driver/cli/verbs.h"

static int stop_read(struct cli_request *request, struct hvd_err *err)
{
    (void)err;
    request->ask.follow = request->options.wait;
    return 0;
}

const struct cli_verb cli_stop = {
    .name = "stop",
    .words = "",
    .about = "Ends the job: all workers and agents, then the driver, with code 143.",
    .read = stop_read,
    .ends_driver = true,
};
