/*
 * cli.h: hvd-elastic as the operator's tool for a running job: one verb makes one request to the
 * driver and gives one exit code.
 */
#ifndef DRIVER_CLI_CLI_H
#define DRIVER_CLI_CLI_H

#include "base/base.h"

/* True: the first word of the command line is a verb. A training program that has the name of a
 * verb is started as "hvd-elastic [options] -- status". */
bool cli_is_verb(const char *word);

/* Runs the verb argv[1]. Returns its exit code (docs/cli.md). */
int cli_main(int argc, char **argv);

#endif
