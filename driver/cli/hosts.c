/*
 * hosts.c: the verb "hosts": shows each host, then each worker. The driver makes the answer in
 * control/tables.c.
 */
#include "driver/cli/verbs.h"

const struct cli_verb cli_hosts = {
    .name = "hosts",
    .words = "",
    .about = "Shows each host, how many of its slots are used, and why the other slots are not "
             "used; then each worker.",
    .orphan_table = table_hosts,
    .repeats = true,
};
