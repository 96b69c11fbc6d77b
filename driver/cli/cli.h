/*
 * cli.h: hvd-elastic as the operator's tool for a running job: one verb makes one request to the
 * driver and gives one exit code.
 */
#ifndef DRIVER_CLI_CLI_H
#define DRIVER_CLI_CLI_H

#include "driver/control/tables.h"

/* True: the first word of the command line is a verb. A training program that has the name of a
 * verb is started as "hvd-elastic [options] -- status". */
bool cli_is_verb(const char *word);

/* Makes the view of a job that has no driver; see driver/orphan.h. */
typedef int cli_orphan_fn(const char *folder, struct core_view *ret_view,
                          struct table_facts *ret_facts, struct hvd_err *err);

/* Runs the verb argv[1]. Returns its exit code (docs/cli.md). orphan: for the verbs that also
 * answer without a driver; NULL: only a driver answers. */
int cli_main(int argc, char **argv, cli_orphan_fn *orphan);

#endif
