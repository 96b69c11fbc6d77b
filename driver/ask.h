/*
 * ask.h: hvd-elastic as it asks the driver of a job that runs: status, hosts, changes, events,
 * drain, undrain, blacklist, stop.
 */
#ifndef DRIVER_ASK_H
#define DRIVER_ASK_H

#include "base/base.h"

/* Whether the first word of the command line is a question. A program of that name is run as
 * "hvd-elastic [options] -- status". */
bool ask_is_verb(const char *word);

/* docs/cli.md says what it exits with. argv[1] is the verb. */
int ask_main(int argc, char **argv);

#endif
