/*
 * status.c: the verb "status": shows the state of the job. The driver makes the answer in
 * control/tables.c.
 */
#include "driver/cli/verbs.h"

const struct cli_verb cli_status = {
    .name = "status",
    .words = "",
    .about = "Shows where the job stands.",
    .orphan_table = table_status,
    .repeats = true,
    .ended_too = true,
};
