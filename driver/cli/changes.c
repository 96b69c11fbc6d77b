/*
 * changes.c: the verb "changes": shows what each change of the membership has cost. The driver
 * makes the answer in control/tables.c.
 */
#include "driver/cli/verbs.h"

const struct cli_verb cli_changes = {
    .name = "changes",
    .words = "",
    .about = "Shows what each change of the membership has cost, by phase.",
    .repeats = true,
};
