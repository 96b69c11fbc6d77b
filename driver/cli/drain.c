/*
 * drain.c: the verbs "drain" and "undrain": drain takes a host or a slot out of the job, undrain
 * gives it back. The core of the driver does both and answers (EVENT_DRAIN, EVENT_UNDRAIN).
 */
#include "driver/cli/verbs.h"

/* Gives the request its two arguments: the host or slot, and the deadline ("never" if none was
 * given). */
static int drain_read(struct cli_request *request, struct hvd_err *err)
{
    int rc = cli_read_slot(request, err);

    if (!rc)
        cli_add_arg(request, time_format(request->options.deadline_us, request->time));
    return rc;
}

const struct cli_verb cli_drain = {
    .name = "drain",
    .words = "HOST[:SLOT] ",
    .about = "Asks the workers of a host, or of one slot, to leave in order. Nothing is rolled "
             "back, and a worker that leaves is never counted as a failure. Nothing is launched "
             "there until 'hvd-elastic undrain'.",
    .read = drain_read,
};

const struct cli_verb cli_undrain = {
    .name = "undrain",
    .words = "HOST[:SLOT] ",
    .about = "Lets a drained host or slot be used again.",
    .read = cli_read_slot,
};
